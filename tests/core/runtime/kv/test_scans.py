"""Scans in the client machine: pages of several responses, and abandoned scans, which the client closes."""

from __future__ import annotations

import json

import pytest

from tests.core.runtime.kv.simulated import HOTEL_ID, HOTELS, TRAVEL, Recorded, client_options, get, ready, respond
from tests.core.runtime.kv.test_cluster import RecordedCluster
from triclinium_core import errors
from triclinium_core.contract.neutral import BytesReceived
from triclinium_core.kv.operation.results import Done, RangeScanCreated, ScanPage
from triclinium_core.kv.operation.scan.scan_requests import RangeScanCancel, RangeScanContinue, RangeScanCreate
from triclinium_core.kv.operation.scan.scans import Bounds
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import RetryReason, Status
from triclinium_core.runtime.kv.destinations import vbucket_of
from triclinium_core.telemetry.defaults import OrphanReporter
from triclinium_core.testing.fakes.error_map import ErrorMapDocument, ErrorMapRow
from triclinium_core.testing.fakes.faults import drop_response, status, temporary_failure
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

VBUCKET = vbucket_of(b"key", 128)
KEYS = [key for number in range(4_000) if vbucket_of((key := f"k{number}").encode(), 128) == VBUCKET][:30]
CREATE = RangeScanCreate(TRAVEL, VBUCKET, Bounds())
KEYS_ONLY, MORE, COMPLETE = bytes(4), Status.RANGE_SCAN_MORE, Status.RANGE_SCAN_COMPLETE


def stored(simulation: Recorded, keys: list[str] = KEYS, collection_id: int = 0) -> Recorded:
    """Store documents in the vbucket, and return the simulation."""
    for key in keys:
        simulation.node.documents.put("travel", key, b"1", collection_id=collection_id)
    return simulation


def open_scan(simulation: Recorded, create: RangeScanCreate = CREATE) -> bytes:
    """Open a scan, and return its id."""
    result = simulation.result(create)
    assert isinstance(result, RangeScanCreated)
    return result.scan_id


def go_on(scan_id: bytes, items: int = 1000, vbucket: int = VBUCKET) -> RangeScanContinue:
    """Return the operation that requests the next page."""
    return RangeScanContinue(TRAVEL, vbucket, scan_id, items)


def test_a_scan() -> None:
    """A scan opens, returns two pages of several responses each, and is closed by the node after the last page."""
    simulation = stored(ready())
    scan_id = open_scan(simulation)
    pages = [simulation.result(go_on(scan_id, 20)), simulation.result(go_on(scan_id))]

    assert 30 == len(KEYS)
    assert [False, True] == [page.is_complete for page in pages if isinstance(page, ScanPage)]
    assert sorted(KEYS) == [item.id for page in pages if isinstance(page, ScanPage) for item in page.items]
    assert 0 == simulation.node.open_scans
    assert 0 == simulation.machine.statistics().in_flight
    simulation.failure(errors.DocumentNotFoundException, go_on(scan_id))


def test_a_scan_that_is_ended() -> None:
    """A cancellation closes the scan on the node, and a second cancellation fails."""
    simulation = stored(ready())
    scan_id = open_scan(simulation)
    cancel = RangeScanCancel(TRAVEL, VBUCKET, scan_id)

    assert 1 == simulation.node.open_scans
    assert Done() == simulation.result(cancel)
    assert 0 == simulation.node.open_scans
    simulation.failure(errors.DocumentNotFoundException, cancel)


def test_in_a_collection() -> None:
    """For a scan in a collection, the client requests the collection id, and again if a node does not know it."""
    simulation = stored(ready(), KEYS[:3], HOTEL_ID)
    create = RangeScanCreate(HOTELS, VBUCKET, Bounds())
    page = simulation.result(go_on(open_scan(simulation, create)))
    simulation.node.faults.next(Opcode.RANGE_SCAN_CREATE, status(Status.UNKNOWN_COLLECTION))
    again = simulation.result(create)

    assert isinstance(page, ScanPage)
    assert sorted(KEYS[:3]) == [item.id for item in page.items]
    assert isinstance(again, RangeScanCreated)
    assert 2 == len(simulation.commands(Opcode.GET_COLLECTION_ID))
    simulation.failure(errors.DocumentNotFoundException, CREATE)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Status.NOT_MY_VBUCKET, errors.CouchbaseException),
        (Status.UNKNOWN_COLLECTION, errors.CollectionNotFoundException),
        (Status.KEY_NOT_FOUND, errors.DocumentNotFoundException),
        (Status.RANGE_SCAN_CANCELLED, errors.RequestCanceledException),
    ],
)
def test_continuing_a_scan_is_not_retried(code: Status, kind: type[errors.CouchbaseException]) -> None:
    """If a continuation fails, it is not retried: another attempt would not find the scan (decisions C9, C10)."""
    simulation = stored(ready())
    scan_id = open_scan(simulation)
    simulation.node.faults.next(Opcode.RANGE_SCAN_CONTINUE, status(code))
    error = simulation.failure(kind, go_on(scan_id))

    assert (code, 0) == (error.context.status, error.context.retry_attempts)


def test_opening_is_retried() -> None:
    """If opening a scan fails temporarily, or at the wrong node, it is retried."""
    simulation = stored(ready())
    simulation.node.faults.next(Opcode.RANGE_SCAN_CREATE, temporary_failure())
    simulation.node.faults.next(Opcode.RANGE_SCAN_CREATE, status(Status.NOT_MY_VBUCKET))
    open_scan(simulation)

    assert {RetryReason.KV_TEMPORARY_FAILURE, RetryReason.KV_NOT_MY_VBUCKET} == set(
        simulation.machine.statistics().retries_by_reason
    )


def test_a_scan_uses_the_node_of_its_vbucket() -> None:
    """A scan is open at the node of its vbucket; if the vbucket moves, the scan ends and is unknown at the new node."""
    simulation = RecordedCluster()
    simulation.write(["ada"])
    vbucket = vbucket_of(b"ada", 128)
    owner = simulation.nodes.owner_of("ada")
    assert owner is not None
    scan_id = open_scan(simulation, RangeScanCreate(TRAVEL, vbucket, Bounds()))
    assert [1 if place == owner else 0 for place in range(3)] == [node.open_scans for node in simulation.nodes]
    simulation.nodes.move([vbucket], to=(owner + 1) % 3)
    error = simulation.failure(errors.CouchbaseException, go_on(scan_id, vbucket=vbucket))
    simulation.failure(errors.DocumentNotFoundException, go_on(scan_id, vbucket=vbucket))

    assert Status.NOT_MY_VBUCKET == error.context.status
    assert 0 == sum(node.open_scans for node in simulation.nodes)


def test_a_vbucket_outside_the_map() -> None:
    """If a vbucket is not in the map, its scan waits for another map."""
    simulation = ready()
    token = simulation.submit(RangeScanCreate(TRAVEL, 0xFFFF, Bounds()))
    simulation.live(1.0)

    assert token not in simulation.settled_at
    assert simulation.machine.statistics().retries_by_reason[RetryReason.NODE_NOT_AVAILABLE]


def test_a_bucket_that_cannot_be_scanned() -> None:
    """If the bucket does not have the capability, opening a scan fails unsent."""
    simulation = ready(features=IMPLEMENTED_FEATURES - {HelloFeature.JSON})
    error = simulation.failure(errors.FeatureNotAvailableException, CREATE)

    assert "range_scan_create needs the capability rangeScan" in str(error)
    assert [] == simulation.commands(Opcode.RANGE_SCAN_CREATE)


def test_the_deadline_of_a_scan() -> None:
    """The options or the connection string set the deadline of scan requests."""
    for options in (
        client_options(timeouts=TimeoutOptions(kv_scan=20.0)),
        client_options("couchbase://127.0.0.1:11210?kv_scan_timeout=20s"),
    ):
        simulation = stored(ready(options=options))
        simulation.node.faults.next(Opcode.RANGE_SCAN_CREATE, drop_response())
        began = simulation.now
        simulation.failure(errors.AmbiguousTimeoutException, CREATE)

        assert 20.0 == simulation.now - began


# Pages in several parts.


def test_a_page_in_parts() -> None:
    """The last part of a page completes the operation with all parts, even if other responses arrived in between."""
    simulation = ready()
    token, request = simulation.submit_in_flight(go_on(bytes(16)))
    for key in (b"a", b"b"):
        simulation.inject(respond(request, extras=KEYS_ONLY, value=b"\x01" + key))
        assert token not in simulation.settled_at
        other = simulation.submit(get("nobody"))
        simulation.flow()
        assert other in simulation.errors
    simulation.inject(respond(request, MORE, extras=KEYS_ONLY, value=b"\x01c"))
    page = simulation.results[token]

    assert isinstance(page, ScanPage)
    assert ["a", "b", "c"] == [item.id for item in page.items]
    simulation.inject(respond(request, MORE))
    assert (1, []) == (simulation.machine.statistics().orphans, simulation.closings())


def test_a_failure_after_some_parts() -> None:
    """If a page fails after some parts, its operation fails with the status, and its request ends."""
    simulation = ready()
    token, request = simulation.submit_in_flight(go_on(bytes(16)))
    simulation.inject(respond(request, extras=KEYS_ONLY, value=b"\x01a"))
    simulation.inject(respond(request, Status.NOT_MY_VBUCKET))

    assert Status.NOT_MY_VBUCKET == simulation.error(errors.CouchbaseException, token).context.status
    assert 0 == simulation.machine.statistics().in_flight


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([b"\x01a", b"\x05b"], "size 5"),
        ([b"\x01a", b"\x01b\x01c"], "3 items "),
        ([b"\x01a", b"\x01b", b"\x01c"], "3 items "),
    ],
)
def test_invalid_parts_of_a_page(parts: list[bytes], reason: str) -> None:
    """The first invalid part of a page fails the operation; later parts are ignored."""
    simulation = ready()
    token, request = simulation.submit_in_flight(go_on(bytes(16), 2))
    for value in parts:
        simulation.inject(respond(request, extras=KEYS_ONLY, value=value))
    error = simulation.error(errors.DecodingFailureException, token)
    simulation.inject(respond(request, MORE))

    assert reason in str(error)
    assert (0, []) == (simulation.machine.statistics().in_flight, simulation.closings())


def test_a_connection_lost_between_parts() -> None:
    """If the connection is lost between the parts of a page, the operation fails."""
    simulation = ready()
    token, request = simulation.submit_in_flight(go_on(bytes(16)))
    simulation.inject(respond(request, extras=KEYS_ONLY, value=b"\x01a"))
    simulation.lose(simulation.newest)

    assert token in simulation.errors


def test_an_answer_of_another_kind_between_parts() -> None:
    """If a response with another opcode arrives between the parts of a page, it is ignored."""
    simulation = ready()
    token, request = simulation.submit_in_flight(go_on(bytes(16)))
    simulation.inject(respond(request, extras=KEYS_ONLY, value=b"\x01a"))
    data = bytearray(respond(request))
    data[1] = Opcode.GET
    simulation.inject(bytes(data) + respond(request, MORE, extras=KEYS_ONLY, value=b"\x01b"))

    assert isinstance(page := simulation.results[token], ScanPage)
    assert ["a", "b"] == [item.id for item in page.items]


# Abandoned and late scans, and unreadable pages.


def test_an_abandoned_opening_is_cancelled() -> None:
    """If opening a scan is abandoned, the client cancels the scan; only the response to the opening is an orphan."""
    simulation = stored(ready(options=client_options(orphans=OrphanReporter())))
    token = simulation.submit(CREATE)
    simulation.abandon(token)
    simulation.flow()

    assert [Opcode.RANGE_SCAN_CREATE, Opcode.RANGE_SCAN_CANCEL] == [
        command.opcode for command in simulation.commands(Opcode.RANGE_SCAN_CREATE, Opcode.RANGE_SCAN_CANCEL)
    ]
    assert 0 == simulation.node.open_scans
    assert (1, 0) == (simulation.machine.statistics().orphans, simulation.machine.statistics().in_flight)
    (report,) = simulation.clients[0].last_reports()
    assert ["range_scan_create"] == [
        orphan["operation_name"] for orphan in json.loads(report.text)["kv"]["top_requests"]
    ]


def test_opening_that_is_answered_too_late() -> None:
    """If a scan opens after its deadline, the client cancels it."""
    simulation = stored(ready(options=client_options(timeouts=TimeoutOptions(kv_scan=1.0))))
    token, request = simulation.submit_in_flight(CREATE)
    simulation.live(2.0)
    simulation.error(errors.AmbiguousTimeoutException, token)
    simulation.inject(respond(request, value=bytes(16)))

    assert simulation.requests[simulation.newest][-1].opcode == Opcode.RANGE_SCAN_CANCEL
    assert bytes(16) == simulation.requests[simulation.newest][-1].extras


@pytest.mark.parametrize(
    ("code", "value"), [(Status.KEY_NOT_FOUND, b""), (Status.SUCCESS, b""), (Status.SUCCESS, bytes(17))]
)
def test_a_failed_abandoned_opening(code: Status, value: bytes) -> None:
    """If opening a scan was abandoned and its response is an error or invalid, the client sends no cancellation."""
    simulation = ready()
    token, request = simulation.submit_in_flight(CREATE)
    simulation.abandon(token)
    before = len(simulation.requests[simulation.newest])
    simulation.inject(respond(request, code, value=value))

    assert before == len(simulation.requests[simulation.newest])


def test_an_abandoned_page() -> None:
    """If a page is abandoned, its parts are orphans, and its request stays in flight until the last part."""
    simulation = ready()
    token, request = simulation.submit_in_flight(go_on(bytes(16)))
    simulation.abandon(token)
    simulation.feed(BytesReceived(simulation.newest, respond(request, extras=KEYS_ONLY, value=b"\x01a")))
    before = simulation.machine.statistics()
    simulation.inject(respond(request, COMPLETE))

    assert (1, 1) == (before.orphans, before.in_flight)
    assert (2, 0) == (simulation.machine.statistics().orphans, simulation.machine.statistics().in_flight)


def test_a_late_response_after_an_unreadable_one() -> None:
    """If the first response of a page is unreadable, its last response is one orphan and ends the request."""
    simulation = ready(options=client_options(orphans=OrphanReporter()))
    token, request = simulation.submit_in_flight(go_on(bytes(16)))
    simulation.inject(respond(request, extras=KEYS_ONLY, value=b"no page"))
    simulation.error(errors.DecodingFailureException, token)
    simulation.inject(respond(request, COMPLETE, extras=KEYS_ONLY))
    (report,) = simulation.clients[0].last_reports()

    assert ["range_scan_continue"] == [
        orphan["operation_name"] for orphan in json.loads(report.text)["kv"]["top_requests"]
    ]
    assert (1, 0) == (simulation.machine.statistics().orphans, simulation.machine.statistics().in_flight)


def test_two_unreadable_responses() -> None:
    """If two unreadable responses arrive in one piece, the first ends the request and the second is an orphan."""
    simulation = stored(ready())
    token, request = simulation.submit_in_flight(go_on(open_scan(simulation)))
    simulation.inject(respond(request, value=b"no page") * 2)

    simulation.error(errors.DecodingFailureException, token)
    assert (1, []) == (simulation.machine.statistics().orphans, simulation.closings())


def test_unreadable_pages_on_a_closed_stream() -> None:
    """If a response closes the connection, an unreadable page after it fails its scan, and later pages are orphans."""
    simulation = ready(error_map=ErrorMapDocument(1, (ErrorMapRow(0x7F09, "GONE", "conn-state-invalidated", "Gone"),)))
    other, first = simulation.submit_in_flight(get())
    token, request = simulation.submit_in_flight(go_on(bytes(16)))
    page = respond(request, value=b"no page")
    simulation.inject(respond(first, 0x7F09) + page * 2 + respond(request, COMPLETE, extras=KEYS_ONLY))
    simulation.flow()

    simulation.error(errors.DecodingFailureException, token)
    assert other in simulation.errors
    assert (2, 1) == (simulation.machine.statistics().orphans, len(simulation.closings()))
    assert 0 == simulation.machine.statistics().in_flight
