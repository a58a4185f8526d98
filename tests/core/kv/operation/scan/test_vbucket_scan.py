"""The scan of one vbucket as a machine: what it asks for next, whatever became of the last request."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    CollectionNotFoundException,
    CouchbaseException,
    DocumentNotFoundException,
    InvalidArgumentException,
    RequestCanceledException,
)
from triclinium_core.kv.operation.requests import JSON_TRANSCODER, Keyspace
from triclinium_core.kv.operation.results import MutationToken, RangeScanCreated, ScanPage, ScanResult
from triclinium_core.kv.operation.scan.requests import RangeScanCancel, RangeScanContinue, RangeScanCreate
from triclinium_core.kv.operation.scan.types import (
    Bounds,
    PrefixScan,
    RangeScan,
    Sample,
    SamplingScan,
    ScanType,
)
from triclinium_core.kv.operation.scan.vbucket_scan import (
    PAGE_MS_MAX,
    RESTARTS_MAX,
    ScanOptions,
    VBucketScan,
    newest_tokens,
    scan_order,
)
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.couchbase.tables.reasons import RetryReason

TRAVEL = Keyspace("travel")
SCAN_ID, OTHER_ID = b"sixteen bytes it", b"sixteen bytes at"
OPENED = RangeScanCreated(SCAN_ID)
LETTERS = RangeScan("a", "z")


def scan_of(scan_type: ScanType = LETTERS) -> VBucketScan:
    """Return a scan of the fourth vbucket."""
    return VBucketScan(ScanOptions(TRAVEL, scan_type), 3, seed=77)


def opened(scan_type: ScanType = LETTERS) -> VBucketScan:
    """Return a scan that was opened."""
    scan = scan_of(scan_type)
    scan.next_request()
    scan.succeeded(OPENED)
    return scan


def items(*ids: str) -> tuple[ScanResult, ...]:
    """Return documents."""
    return tuple(ScanResult(each, JSON_TRANSCODER) for each in ids)


def error(status: int | None = None, kind: type[CouchbaseException] = CouchbaseException) -> CouchbaseException:
    """Return the failure that a status makes."""
    return kind("failed", ErrorContext(status=status))


LOST = RequestCanceledException("lost", ErrorContext(refused_reason=str(RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT)))
REFUSED = RequestCanceledException("refused", ErrorContext(refused_reason=str(RetryReason.SOCKET_NOT_AVAILABLE)))


def test_page_by_page() -> None:
    """It is opened, gone on with as long as there is more, and over with the last page."""
    scan = scan_of()
    requests = [scan.next_request()]
    assert () == scan.succeeded(OPENED)
    requests.append(scan.next_request())
    assert items("b", "c") == scan.succeeded(ScanPage(items("b", "c"), is_complete=False))
    requests.append(scan.next_request())
    assert not scan.is_done
    assert items("d") == scan.succeeded(ScanPage(items("d"), is_complete=True))

    go_on = RangeScanContinue(TRAVEL, 3, SCAN_ID, 50, 15_000, PAGE_MS_MAX)
    assert [RangeScanCreate(TRAVEL, 3, Bounds(b"a", b"z")), go_on, go_on] == requests
    assert scan.is_done
    assert scan.cancel_request() is None


def test_options_travel() -> None:
    """Whatever is the same for all vbuckets, and the mutation of this one."""
    token = MutationToken("travel", 3, 1, 2)
    options = ScanOptions(TRAVEL, PrefixScan("p"), True, 7, 8, {3: token, 4: MutationToken("travel", 4, 1, 2)})
    scan = VBucketScan(options, 3, seed=77)

    assert RangeScanCreate(TRAVEL, 3, Bounds(b"p", b"p\xff"), True, token) == scan.next_request()
    scan.succeeded(OPENED)
    assert RangeScanContinue(TRAVEL, 3, SCAN_ID, 7, 8, PAGE_MS_MAX) == scan.next_request()


@pytest.mark.parametrize(("seed", "expected"), [(None, 77), (0, 0), (5, 5)])
def test_samples(seed: int | None, expected: int) -> None:
    """Each vbucket is asked for as many as the whole sample has; the seed is the user's where there is one."""
    assert RangeScanCreate(TRAVEL, 3, Sample(9, expected)) == scan_of(SamplingScan(9, seed)).next_request()


def test_what_is_open_can_be_ended() -> None:
    """And what is not needs no end."""
    assert scan_of().cancel_request() is None
    assert RangeScanCancel(TRAVEL, 3, SCAN_ID) == opened().cancel_request()


@pytest.mark.parametrize("scan_type", [RangeScan(), PrefixScan("p"), SamplingScan(5)])
def test_an_empty_vbucket(scan_type: ScanType) -> None:
    """There is nothing to go on with, and nothing wrong."""
    scan = scan_of(scan_type)
    scan.next_request()

    assert scan.failed(error(Status.KEY_NOT_FOUND, DocumentNotFoundException)) is None
    assert scan.is_done


GONE = [error(Status.NOT_MY_VBUCKET), error(Status.KEY_NOT_FOUND), error(Status.RANGE_SCAN_CANCELLED), LOST]


@pytest.mark.parametrize("failure", GONE, ids=["moved", "forgotten", "cancelled", "lost"])
def test_it_goes_on_behind_the_last_document(failure: CouchbaseException) -> None:
    """Another scan is opened there, wherever the vbucket is now; nothing is told twice."""
    scan = opened()
    scan.succeeded(ScanPage(items("b", "c"), is_complete=False))

    assert scan.failed(failure) is None
    assert scan.cancel_request() is None
    assert RangeScanCreate(TRAVEL, 3, Bounds(b"c", b"z", excludes_start=True)) == scan.next_request()
    scan.succeeded(RangeScanCreated(OTHER_ID))
    request = scan.next_request()
    assert isinstance(request, RangeScanContinue)
    assert OTHER_ID == request.scan_id
    # Nothing was left behind the last one.
    scan.failed(failure)
    assert scan.failed(error(Status.KEY_NOT_FOUND, DocumentNotFoundException)) is None
    assert scan.is_done


@pytest.mark.parametrize("failure", GONE, ids=["moved", "forgotten", "cancelled", "lost"])
def test_a_sample_does_not_go_on(failure: CouchbaseException) -> None:
    """It has no place to go on from, and need not be complete."""
    scan = opened(SamplingScan(9))
    scan.succeeded(ScanPage(items("b"), is_complete=False))

    assert scan.failed(failure) is None
    assert scan.is_done
    assert scan.cancel_request() is None


def test_a_key_that_is_no_text() -> None:
    """It goes on behind its bytes."""
    scan = opened()
    scan.succeeded(ScanPage(items("\udcff"), is_complete=False))
    scan.failed(LOST)
    request = scan.next_request()

    assert isinstance(request, RangeScanCreate)
    assert Bounds(b"\xff", b"z", excludes_start=True) == request.selection


@rows(
    "failure",
    [
        error(Status.UNKNOWN_COLLECTION, CollectionNotFoundException),
        error(Status.NO_ACCESS),
        error(Status.INTERNAL_ERROR),
        AmbiguousTimeoutException("late"),
        REFUSED,
    ],
)
@rows("is_open", [False, True])
@rows("scan_type", [RangeScan(), SamplingScan(5)])
def test_what_ends_the_whole_scan(failure: CouchbaseException, is_open: bool, scan_type: ScanType) -> None:
    """The error is told, and what is open on the node can still be ended."""
    scan = opened(scan_type) if is_open else scan_of(scan_type)

    assert failure is scan.failed(failure)
    assert is_open == (scan.cancel_request() is not None)


def test_opening_that_was_lost() -> None:
    """It is tried again: a scan that nobody knows of harms nobody."""
    scan = scan_of()
    first = scan.next_request()

    assert scan.failed(LOST) is None
    assert first == scan.next_request()


def test_it_does_not_begin_for_ever() -> None:
    """When nothing comes of it time after time, the last error is told; a page makes up for it."""
    scan = scan_of()
    for _ in range(2):
        for _ in range(RESTARTS_MAX):
            scan.succeeded(OPENED)
            assert scan.failed(LOST) is None
        scan.succeeded(OPENED)
        scan.succeeded(ScanPage(items("b"), is_complete=False))
    for _ in range(RESTARTS_MAX):
        assert scan.failed(LOST) is None
        scan.succeeded(OPENED)

    assert LOST is scan.failed(LOST)


def test_pauses() -> None:
    """One is opened again at once; the next ones wait, the longer the more of them were in vain."""
    scan, pauses = scan_of(), []
    for _ in range(RESTARTS_MAX):
        pauses.append(scan.pause)
        scan.succeeded(OPENED)
        assert 0.0 == scan.pause
        scan.failed(LOST)
    scan.succeeded(OPENED)
    scan.succeeded(ScanPage(items("b"), is_complete=False))
    scan.failed(LOST)

    assert [0.0, 0.0, 0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 1.0, 1.0] == pauses
    assert 0.0 == scan.pause


def test_an_older_server_refuses_a_large_sample() -> None:
    """Then all there is is the sample, as with newer ones; for a range it is an error."""
    scan, refused = scan_of(SamplingScan(9)), error(Status.RANGE_ERROR, InvalidArgumentException)

    assert scan.failed(refused) is None
    assert RangeScanCreate(TRAVEL, 3, Bounds()) == scan.next_request()
    assert refused is scan.failed(refused)
    assert refused is scan_of().failed(refused)


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"scan_type": "ada"}, "scan_type"),
        ({"scan_type": None}, "scan_type"),
        ({"scan_type": Bounds()}, "scan_type"),
        ({"ids_only": 1}, "ids_only"),
        ({"item_limit": 0}, "batch_item_limit"),
        ({"item_limit": 2**32}, "batch_item_limit"),
        ({"byte_limit": -1}, "batch_byte_limit"),
    ],
    ids=str,
)
def test_wrong_options(arguments: dict[str, object], parameter: str) -> None:
    """By the names that users know."""
    with pytest.raises(InvalidArgumentException) as caught:
        ScanOptions(**{"keyspace": TRAVEL, "scan_type": RangeScan(), **arguments})  # type: ignore[arg-type]

    assert parameter == caught.value.parameter


def test_the_newest_mutation_of_each_vbucket() -> None:
    """Those of other buckets do not matter; what is no token is refused."""
    tokens = [MutationToken(bucket, vbucket, 1, number) for bucket in ("travel", "hotels") for vbucket, number in
              [(1, 5), (1, 7), (1, 6), (2, 1)]]  # fmt: skip

    assert {1: tokens[1], 2: tokens[3]} == newest_tokens(tokens, TRAVEL)
    with pytest.raises(InvalidArgumentException) as caught:
        newest_tokens(["token"], TRAVEL)  # type: ignore[list-item]
    assert "consistent_with" == caught.value.parameter


def test_the_order_of_vbuckets() -> None:
    """By number; a sample is shuffled by its seed, so that every vbucket has its chance."""
    orders = [scan_order(ScanOptions(TRAVEL, SamplingScan(5, seed)), 64, seed=77) for seed in (None, 77, 78)]

    assert list(range(64)) == list(scan_order(ScanOptions(TRAVEL, RangeScan()), 64, seed=77))
    assert orders[0] == orders[1] != orders[2]
    assert [list(range(64))] * 3 == [sorted(order) for order in orders]
    assert list(range(64)) != list(orders[0])
