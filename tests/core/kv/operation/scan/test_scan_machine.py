"""Scan as a machine: requests and restarts of each vbucket, order of the vbuckets, backpressure and cleanup."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count

import pytest
from hypothesis import given, strategies as st

from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, Keyspace, Noop, Operation
from triclinium_core.kv.operation.fan_out import FanOut
from triclinium_core.kv.operation.results import Done, MutationToken, RangeScanCreated, ScanPage, ScanResult
from triclinium_core.kv.operation.scan import scan_machine, scan_requests
from triclinium_core.kv.operation.scan.scan_machine import ScanOptions
from triclinium_core.kv.operation.scan.scans import Bounds, PrefixScan, RangeScan, Sample, SamplingScan, ScanType
from triclinium_core.retry.couchbase import RetryReason, Status

TRAVEL = Keyspace("travel")
SCAN_ID, OTHER_ID = b"sixteen bytes it", b"sixteen bytes at"
OPENED = RangeScanCreated(SCAN_ID)
LETTERS, ALL = RangeScan("a", "z"), RangeScan()


def scan_of(scan_type: ScanType = LETTERS) -> scan_machine.VBucketScan:
    """Return a scan of vbucket 3."""
    options = ScanOptions(TRAVEL, scan_type)
    return scan_machine.VBucketScan(options, 3, options.selection(77))


def opened(scan_type: ScanType = LETTERS) -> scan_machine.VBucketScan:
    """Return a scan that the node has opened."""
    scan = scan_of(scan_type)
    scan.next_request()
    scan.succeeded(OPENED)
    return scan


def items(*ids: str) -> tuple[ScanResult, ...]:
    """Return the items of a page that has these ids."""
    return tuple(ScanResult(each, JSON_TRANSCODER) for each in ids)


def error(
    status: int | None = None, kind: type[errors.CouchbaseException] = errors.CouchbaseException
) -> errors.CouchbaseException:
    """Return an exception whose context has this status."""
    return kind("failed", ErrorContext(status=status))


LOST = errors.RequestCanceledException(
    "lost", ErrorContext(refused_reason=str(RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT))
)
REFUSED = errors.RequestCanceledException("refused", ErrorContext(refused_reason=str(RetryReason.SOCKET_NOT_AVAILABLE)))


def test_page_by_page() -> None:
    """A scan opens, continues until the node marks a page as the last one, and is then complete."""
    token = MutationToken("travel", 3, 1, 2)
    options = ScanOptions(TRAVEL, PrefixScan("p"), True, 7, 8, {3: token, 4: MutationToken("travel", 4, 1, 2)})
    scan = scan_machine.VBucketScan(options, 3, options.selection(77))
    requests = [scan.next_request()]
    assert () == scan.succeeded(OPENED)
    requests.append(scan.next_request())
    assert items("b", "c") == scan.succeeded(ScanPage(items("b", "c"), is_complete=False))
    requests.append(scan.next_request())
    assert not scan.is_done
    assert items("d") == scan.succeeded(ScanPage(items("d"), is_complete=True))

    go_on = scan_requests.RangeScanContinue(TRAVEL, 3, SCAN_ID, 7, 8, scan_machine.PAGE_MS_MAX)
    assert [scan_requests.RangeScanCreate(TRAVEL, 3, Bounds(b"p", b"p\xff"), True, token), go_on, go_on] == requests
    assert scan.is_done
    assert scan.cancel_request() is None


@pytest.mark.parametrize(("seed", "expected"), [(None, 77), (0, 0), (5, 5)])
def test_samples(seed: int | None, expected: int) -> None:
    """Each vbucket requests a sample of the complete size, with the seed of the caller if there is one."""
    assert (
        scan_requests.RangeScanCreate(TRAVEL, 3, Sample(9, expected)) == scan_of(SamplingScan(9, seed)).next_request()
    )


GONE = [error(Status.NOT_MY_VBUCKET), error(Status.KEY_NOT_FOUND), error(Status.RANGE_SCAN_CANCELLED), LOST]


@pytest.mark.parametrize("failure", GONE, ids=["moved", "forgotten", "cancelled", "lost"])
def test_a_lost_scan_restarts_behind_the_last_document(failure: errors.CouchbaseException) -> None:
    """After a loss, the vbucket opens another scan after the last delivered key, so no item is delivered twice."""
    scan = opened()
    scan.succeeded(ScanPage(items("b", "c\udcff"), is_complete=False))

    assert scan.failed(failure) is None
    assert scan.cancel_request() is None
    assert scan_requests.RangeScanCreate(TRAVEL, 3, Bounds(b"c\xff", b"z", excludes_start=True)) == scan.next_request()
    scan.succeeded(RangeScanCreated(OTHER_ID))
    request = scan.next_request()
    assert isinstance(request, scan_requests.RangeScanContinue)
    assert OTHER_ID == request.scan_id
    # The node has no document after the last delivered one.
    scan.failed(failure)
    assert scan.failed(error(Status.KEY_NOT_FOUND, errors.DocumentNotFoundException)) is None
    assert scan.is_done


@pytest.mark.parametrize("failure", GONE, ids=["moved", "forgotten", "cancelled", "lost"])
def test_a_lost_sample_is_not_restarted(failure: errors.CouchbaseException) -> None:
    """If the sample of a vbucket is lost, the vbucket is done without a restart, because a sample may be incomplete."""
    scan = opened(SamplingScan(9))
    scan.succeeded(ScanPage(items("b"), is_complete=False))

    assert scan.failed(failure) is None
    assert scan.is_done
    assert scan.cancel_request() is None


@rows(
    "failure",
    [
        error(Status.UNKNOWN_COLLECTION, errors.CollectionNotFoundException),
        error(Status.NO_ACCESS),
        error(Status.INTERNAL_ERROR),
        errors.AmbiguousTimeoutException("late"),
        REFUSED,
    ],
)
@rows("is_open", [False, True])
@rows("scan_type", [RangeScan(), SamplingScan(5)])
def test_errors_that_end_the_scan(failure: errors.CouchbaseException, is_open: bool, scan_type: ScanType) -> None:
    """An error that is not a loss of the scan fails it; if it is open on the node, it can still be cancelled."""
    scan = opened(scan_type) if is_open else scan_of(scan_type)

    assert failure is scan.failed(failure)
    assert is_open == (scan.cancel_request() is not None)


def test_restarts_are_limited() -> None:
    """Restarts of a vbucket back off up to a limit, after which the scan fails; a page resets the count."""
    scan = scan_of()
    for is_last in (False, True):
        pauses = []
        for _ in range(scan_machine.RESTARTS_MAX):
            pauses.append(scan.pause)
            scan.succeeded(OPENED)
            assert 0.0 == scan.pause
            assert scan.failed(LOST) is None
        scan.succeeded(OPENED)
        assert [0.0, 0.0, 0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 1.0, 1.0] == pauses
        if not is_last:
            scan.succeeded(ScanPage(items("b"), is_complete=False))

    assert LOST is scan.failed(LOST)


def test_an_older_server_refuses_a_large_sample() -> None:
    """If a server refuses a large sample, the vbucket is scanned completely; if it refuses a range, the scan fails."""
    scan, refused = scan_of(SamplingScan(9)), error(Status.RANGE_ERROR, errors.InvalidArgumentException)

    assert scan.failed(refused) is None
    assert scan_requests.RangeScanCreate(TRAVEL, 3, Bounds()) == scan.next_request()
    assert refused is scan.failed(refused)
    assert refused is scan_of().failed(refused)


@rows(
    ("option", "parameter", "values"),
    [
        ("scan_type", "scan_type", ("ada", None, Bounds())),
        ("ids_only", "ids_only", (1,)),
        ("item_limit", "batch_item_limit", (-1, 2**32)),
        ("byte_limit", "batch_byte_limit", (-1,)),
        ("concurrency", "concurrency", (0, 1025)),
    ],
)
def test_wrong_options(option: str, parameter: str, values: tuple[object, ...]) -> None:
    """An invalid option raises an error with the public name of the parameter."""
    for value in values:
        refused(parameter, ScanOptions, **{"keyspace": TRAVEL, "scan_type": ALL, option: value})


def test_a_page_without_a_limit_of_items() -> None:
    """If the caller's item limit is 0, a page has the maximum number of items."""
    scan = scan_machine.VBucketScan(ScanOptions(TRAVEL, ALL, item_limit=0), 3, Bounds())
    scan.succeeded(RangeScanCreated(bytes(16)))
    request = scan.next_request()

    assert isinstance(request, scan_requests.RangeScanContinue)
    assert scan_machine.PAGE_ITEMS_MAX == request.item_limit


def test_the_newest_mutation_of_each_vbucket() -> None:
    """The newest token of each vbucket is used; tokens of other buckets are ignored, an invalid token is rejected."""
    tokens = [MutationToken(bucket, vbucket, 1, number) for bucket in ("travel", "hotels") for vbucket, number in
              [(1, 5), (1, 7), (1, 6), (2, 1)]]  # fmt: skip

    assert {1: tokens[1], 2: tokens[3]} == scan_machine.newest_tokens(tokens, TRAVEL)
    refused("consistent_with", scan_machine.newest_tokens, ["token"], TRAVEL)


# Scans of a whole collection.

FOUR = {vbucket: [f"{vbucket}{letter}" for letter in "abc"] for vbucket in range(4)}
"""Three ids in each of four vbuckets."""
FORBIDDEN, CLOSED = error(Status.NO_ACCESS), RuntimeError("the driver is closed")


class Nodes:
    """Nodes that store ids by vbucket, with the driver of one scan, which checks the concurrency of the scan."""

    def __init__(
        self, stored: Mapping[int, Sequence[str]], scan_type: ScanType = ALL, concurrency: int = 1, page_size: int = 1
    ) -> None:
        self.scan: FanOut[ScanResult] = scan_machine.ScanMachine(
            ScanOptions(TRAVEL, scan_type, concurrency=concurrency), seed=77
        )
        self.now = 100.0
        self.open: list[Operation] = []
        self.asked: list[Operation] = []
        """Operations that the scan has submitted so far."""
        self.ready: list[int] = []
        """Vbuckets that have pages which the caller has not taken yet."""
        self.scans: dict[bytes, list[str]] = {}
        """Ids that each open scan has yet to return."""
        self._stored, self._concurrency, self._page_size = stored, concurrency, page_size
        self._numbers = count()

    def submit(self) -> Sequence[Operation]:
        """Submit the operations that the scan has due, and return them."""
        operations = self.scan.next_operations(self.now)
        self.open += operations
        self.asked += operations
        busy = self.ready + [each.vbucket for each in self.open if isinstance(each, scan_requests.VBucketOperation)]
        assert len(busy) == len(set(busy)) <= self._concurrency
        return operations

    def take(self) -> list[str]:
        """Take the available ids, submit the operations that follow, and return the ids."""
        ids = [item.id for item in self.scan.take()]
        del self.ready[: bool(ids)]
        self.submit()
        return ids

    def settle(self, operation: Operation, failure: Exception | None = None) -> None:
        """Complete an operation, and submit the operations that follow."""
        self.open.remove(operation)
        if failure is LOST and isinstance(operation, scan_requests.RangeScanContinue):
            del self.scans[operation.scan_id]
        outcome = failure or self._answer(operation)
        if (
            isinstance(outcome, ScanPage)
            and isinstance(operation, scan_requests.RangeScanContinue)
            and not self.scan.is_over
        ):
            self.ready.append(operation.vbucket)
        self.scan.settled(operation, outcome, vbuckets=len(self._stored), replicas=0)
        self.submit()

    def settle_all(self) -> None:
        """Complete operations until none is open; ``take`` submits the next ones."""
        while self.open:
            self.settle(self.open[0])

    def close(self) -> None:
        """Close the scan, and remove each vbucket scan that it cancels."""
        for operation in self.scan.close():
            assert isinstance(operation, scan_requests.RangeScanCancel)
            del self.scans[operation.scan_id]

    def _answer(self, operation: Operation) -> object:
        if isinstance(operation, Noop):
            return Done()
        if isinstance(operation, scan_requests.RangeScanCreate):
            bounds, ids = operation.selection, list(self._stored.get(operation.vbucket, ()))
            if isinstance(bounds, Bounds) and bounds.excludes_start:
                ids = [each for each in ids if each.encode() > bounds.start]
            if not ids:
                return error(Status.KEY_NOT_FOUND, errors.DocumentNotFoundException)
            scan_id = b"%016d" % next(self._numbers)
            self.scans[scan_id] = ids
            return RangeScanCreated(scan_id)
        assert isinstance(operation, scan_requests.RangeScanContinue)
        left = self.scans[operation.scan_id]
        page, left[:] = left[: self._page_size], left[self._page_size :]
        if not left:
            del self.scans[operation.scan_id]
        return ScanPage(items(*page), is_complete=not left)


def begun(nodes: Nodes) -> Nodes:
    """Take once, complete all operations that this submits, and return ``nodes``."""
    assert [] == nodes.take()
    nodes.settle_all()
    return nodes


def test_requests_follow_the_reader() -> None:
    """Before the first take, nothing is sent; then a request for the map, and one page of each concurrent vbucket."""
    nodes = Nodes(FOUR, concurrency=2)

    assert not nodes.submit()
    begun(nodes)
    assert [0, 1, 0, 1] == [each.vbucket for each in nodes.asked if isinstance(each, scan_requests.VBucketOperation)]
    assert ["0a"] == nodes.take()
    nodes.settle_all()
    assert [Noop(TRAVEL), nodes.asked[3]] == [nodes.asked[0], *nodes.asked[5:]]


def test_where_there_is_no_map() -> None:
    """Without a map, the machine scans vbucket 0, so that the error of this request gives the reason."""
    assert scan_requests.RangeScanCreate(TRAVEL, 0, Bounds()) == begun(Nodes({}, concurrency=5)).asked[-1]


@rows("failure", [FORBIDDEN, CLOSED])
def test_the_first_failure_ends_it(failure: Exception) -> None:
    """The first failure ends the scan after the available pages; later pages are not delivered and nothing is sent."""
    early, nodes = Nodes(FOUR), begun(Nodes(FOUR, concurrency=3))
    early.take()
    early.settle(early.open[0], failure)
    nodes.take()
    nodes.take()
    for operation, outcome in zip(list(nodes.open), (failure, None), strict=True):
        nodes.settle(operation, outcome)

    assert [["2a"], []] == [nodes.take(), nodes.take()]
    for scan in (early.scan, nodes.scan):
        assert (True, failure, math.inf, ()) == (scan.is_over, scan.failure, scan.wakeup, scan.next_operations(999.0))


@pytest.mark.parametrize("limit", [3, 4])
def test_a_sample_that_is_large_enough(limit: int) -> None:
    """A complete sample drops the rest of its page, ignores a failure, and cancels the scans that are open."""
    nodes = begun(Nodes(FOUR, SamplingScan(limit), 3, page_size=2))
    sizes = [len(nodes.take())]
    nodes.settle(nodes.open[0], FORBIDDEN)
    sizes += [len(nodes.take())]
    was_over = nodes.scan.is_over, nodes.scan.failure
    sizes += [len(nodes.take()), len(nodes.take())]
    nodes.close()

    assert [2, limit - 2, 0, 0] == sizes
    assert ((True, None), {}) == (was_over, nodes.scans)


def test_a_vbucket_backs_off_while_others_continue() -> None:
    """After a failed restart, a vbucket waits until ``wakeup``, while other vbuckets continue."""
    nodes, again = Nodes(FOUR, concurrency=2), scan_requests.RangeScanCreate(TRAVEL, 0, Bounds())
    nodes.take()
    nodes.settle(nodes.open[0])
    nodes.settle(again)
    for failure in (LOST, None, LOST):
        assert math.inf == nodes.scan.wakeup
        nodes.settle(nodes.open[-1], failure)
    nodes.settle_all()

    assert (nodes.now + 0.001, ["1a"]) == (nodes.scan.wakeup, nodes.take())
    assert again not in nodes.open
    nodes.now = nodes.scan.wakeup
    assert [again] == nodes.submit()


def test_the_order_of_vbuckets() -> None:
    """A range scan visits the vbuckets by number; a sampling scan visits them in an order that its seed determines."""
    scan_types: list[ScanType] = [SamplingScan(5), SamplingScan(5, 77), SamplingScan(5, 78), ALL]
    asked = [begun(Nodes(dict.fromkeys(range(64), ()), each)).asked for each in scan_types]
    orders = [[each.vbucket for each in row if isinstance(each, scan_requests.VBucketOperation)] for row in asked]

    assert list(range(64)) == orders[3] == sorted(orders[0]) == sorted(orders[2])
    assert orders[3] != orders[0] == orders[1] != orders[2]


SCAN_TYPES = st.sampled_from([ALL, SamplingScan(1), SamplingScan(5), SamplingScan(1000)])
STORED = st.lists(st.integers(0, 4), min_size=1, max_size=6).map(
    lambda sizes: {vbucket: [f"{vbucket}-{number}" for number in range(size)] for vbucket, size in enumerate(sizes)}
)


@given(STORED, SCAN_TYPES, st.integers(1, 8), st.integers(1, 3), st.data())
def test_any_events_in_any_order(
    stored: Mapping[int, Sequence[str]], scan_type: ScanType, concurrency: int, page_size: int, data: st.DataObject
) -> None:
    """In any order of events, each item is delivered at most once and within the limit, and no scan stays open on a
    node. Without failures, all items are delivered.
    """
    nodes = Nodes(stored, scan_type, concurrency, page_size)
    failures: list[errors.CouchbaseException | None] = [
        None,
        None,
        None,
        LOST,
        *[FORBIDDEN] * data.draw(st.integers(0, 1)),
    ]
    found, losses = nodes.take(), 0
    for _ in range(data.draw(st.integers(0, 30))):
        if data.draw(st.booleans()) and nodes.open:
            operation = data.draw(st.sampled_from(nodes.open))
            failure = (
                data.draw(st.sampled_from(failures)) if isinstance(operation, scan_requests.VBucketOperation) else None
            )
            losses += failure is LOST
            nodes.settle(operation, failure if losses <= scan_machine.RESTARTS_MAX else None)
        else:
            found += nodes.take()
    is_left, taken = data.draw(st.booleans()), ["something"]
    for _ in range(1000):
        nodes.settle_all()
        if is_left or (nodes.scan.is_over and not taken):
            break
        nodes.now = min(nodes.scan.wakeup, nodes.now + 1.0)
        nodes.submit()
        found += (taken := nodes.take())
    assert is_left or nodes.scan.is_over
    nodes.close()
    every = {each for ids in stored.values() for each in ids}
    wanted = scan_type.limit if isinstance(scan_type, SamplingScan) else len(every)

    assert {} == nodes.scans
    assert set(found) <= every
    assert len(found) == len(set(found)) <= wanted
    assert nodes.scan.failure in {None, *failures} - {LOST}
    if not is_left and nodes.scan.failure is None and (scan_type == ALL or not losses):
        assert min(wanted, len(every)) == len(found)
