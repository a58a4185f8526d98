"""Responses that belong to other requests: the client uses none of them for the next request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import pytest

from tests.core.runtime.services.asking import NO_INDEX, ROWS, STATEMENT, Asking, asking
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import Action, Event, RowsReceived
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.retry.couchbase import RetryReason, Service
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest
from triclinium_core.services.management.buckets import DropBucket, GetBucket
from triclinium_core.services.management.query_indexes import DropIndex
from triclinium_core.services.search.queries import TermQuery
from triclinium_core.services.search.search_request import SearchQueryRequest, SearchRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.views.view_request import ViewRequest
from triclinium_core.testing.fakes.services import faults
from triclinium_core.testing.fakes.services.answers import FakeAnswer

FOREIGN = FakeAnswer(rows=["theirs"], metadata={"clientContextID": "another"})
HITS: Sequence[dict[str, object]] = [{"index": "i", "id": each, "score": 1.0} for each in ("first", "second")]


class Pair(NamedTuple):
    """Two requests to one service, which have different responses."""

    service: Service
    first: ServiceRequest | Ping
    second: ServiceRequest
    error: type[errors.CouchbaseException] | None = None
    """Exception of the second request; None if its rows are ``second``."""


def search(index: str) -> SearchQueryRequest:
    """Return a search."""
    return SearchQueryRequest(index=index, search=SearchRequest(TermQuery("inn")))


def view(name: str) -> ViewRequest:
    """Return a view query."""
    return ViewRequest(bucket_name="travel", design_document=name, view_name="v")


PAIRS: Sequence[Pair] = [
    Pair(Service.QUERY, asking("SELECT first"), asking("SELECT second")),
    Pair(
        Service.QUERY,
        asking("SELECT first", client_context_id="mine"),
        asking("SELECT second", client_context_id="mine"),
    ),
    Pair(Service.ANALYTICS, AnalyticsRequest(statement="SELECT first"), AnalyticsRequest(statement="SELECT second")),
    Pair(Service.SEARCH, search("first"), search("second")),
    Pair(Service.VIEWS, view("first"), view("second")),
    Pair(
        Service.MANAGEMENT,
        GetBucket(bucket_name="travel"),
        DropBucket(bucket_name="nowhere"),
        errors.BucketNotFoundException,
    ),
    Pair(
        Service.QUERY,
        Ping(bucket=None, report_id="r", service_types=frozenset({Service.QUERY})),
        asking("SELECT second"),
    ),
    Pair(Service.SEARCH, Ping(bucket=None, report_id="r", service_types=frozenset({Service.SEARCH})), search("second")),
]


class Twice(Asking):
    """Simulation in which the second request of a pair is submitted as soon as the first has completed.

    Args:
        size: maximum number of bytes that the driver reads at a time.
    """

    def __init__(self, pair: Pair, size: int) -> None:
        self.pair = pair
        self.size = size
        self.first: neutral.Token | None = None
        self.second: neutral.Token | None = None
        super().__init__()
        script = self.nodes.script
        for name in ("first", "second"):
            script.answer(f"SELECT {name}", FakeAnswer(rows=[name]))
            script.answer(f"SELECT {name}", FakeAnswer(rows=[name]), service=Service.ANALYTICS)
            script.answer(f"{name}/v", FakeAnswer(rows=[{"key": name}]), service=Service.VIEWS)
            script.answer(name, FakeAnswer(rows=[{"index": "i", "id": name, "score": 1.0}]), service=Service.SEARCH)
        self.run()
        self.nodes[0].faults.next(pair.service, faults.answer_twice())
        self.first = self.inquire(pair.first) if isinstance(pair.first, Ping) else self.request(pair.first)
        self.run()

    def feed(self, event: Event) -> list[Action]:
        """Feed an event; if it completes the first request, submit the second one immediately."""
        actions = super().feed(event)
        if self.first in self.settled_at and self.second is None:
            self.second = neutral.Token(0)
            self.second = self.request(self.pair.second)
        return actions

    def deliver(self, stream: neutral.StreamId, size: int | None = None) -> None:
        """Deliver at most ``self.size`` bytes to the client; the argument has no effect."""
        super().deliver(stream, self.size)

    def answer_size(self) -> int:
        """Return the size in bytes of one response to the first request."""
        return self.asked[0].bytes_sent // 2


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: str(pair.service))
def test_a_repeated_response_misses_the_next_request(pair: Pair) -> None:
    """If a node sends its response twice, the next request still gets its own response, for reads of any size."""
    whole = Twice(pair, 64 * 1024).answer_size()
    sizes = {size for size in range(1, whole + 1) if whole % size in (0, 1, size - 1)} | {2 * whole}
    for size in sorted(sizes):
        simulation = Twice(pair, size)
        assert simulation.second is not None
        error = simulation.errors.get(simulation.second)

        assert whole == simulation.answer_size()
        assert pair.error is (type(error) if error is not None else None), f"read by {size}: {error!r}"
        if pair.error is None:
            [row] = simulation.rows[simulation.second]
            assert (True, False) == (b"second" in row, b"first" in row), f"read by {size}"


def test_requests_are_sent_to_silent_connections_only() -> None:
    """Each HTTP request is sent with ``unless_readable``, even the first one on a connection."""
    simulation = Asking()
    simulation.finish(asking())
    simulation.finish(asking())
    sent = [action for action in simulation.actions if isinstance(action, neutral.SendBytes)]

    assert {True: 2, False: len(sent) - 2} == {
        flag: sum(action.unless_readable is flag for action in sent) for flag in (True, False)
    }
    assert {True} == {action.unless_readable for action in sent if action.data.startswith(b"POST ")}


def unsolicited(simulation: Asking, data: bytes) -> neutral.StreamId:
    """Let the node send bytes on the connection of its newest request, and return the stream."""
    [stream] = simulation.nodes[0].request_log[-1:]
    simulation.links[neutral.StreamId(stream.connection)].incoming += data
    return neutral.StreamId(stream.connection)


@pytest.mark.parametrize("readonly", [True, False])
def test_unread_bytes_move_a_request_to_another_connection(readonly: bool) -> None:
    """If a connection has unread bytes, the request is not sent on it, and is retried even if it writes."""
    simulation = Asking()
    simulation.finish(asking())
    stream = unsolicited(simulation, b"HTTP/1.1 100 Continue\r\n\r\n")

    token = simulation.finish(asking(readonly=readonly))

    assert ROWS == simulation.rows[token]
    assert stream != simulation.asked[-1].connection
    assert [RetryReason.SOCKET_NOT_AVAILABLE] == [retry.reason for retry in simulation.retries]
    assert [neutral.LossCause.UNSOLICITED.value in line for line in simulation.log[-1:]] == [True]


def test_bytes_in_front_of_the_first_request() -> None:
    """If bytes arrive on a new connection before its first request, they are not used as the response."""
    simulation = Asking()
    simulation.run()
    before = set(simulation.links)
    token = simulation.request(asking())
    [stream] = set(simulation.links) - before
    simulation.links[stream].incoming += b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    simulation.run()

    assert ROWS == simulation.rows[token]
    assert stream != simulation.asked[-1].connection


def test_a_kept_connection_that_the_node_has_closed() -> None:
    """If the node has closed a kept connection, the request was not sent on it, and is retried even if it writes."""
    simulation = Asking()
    simulation.finish(asking())
    simulation.links[neutral.StreamId(simulation.asked[-1].connection)].is_hung_up = True

    token = simulation.finish(asking())

    assert ROWS == simulation.rows[token]
    assert 2 == len(simulation.asked)


@rows(
    ("request", "body"),
    [
        (asking(), b'{"clientContextID":"another","results":["theirs"],"status":"success"}'),
        (asking(), b'{"results":[],"clientContextID":"another","status":"success"}'),
        (asking(), b'{"clientContextID":"another","errors":[{"code":3000,"msg":"syntax"}],"status":"fatal"}'),
        (asking(), b'{"clientContextID":"another","results":[1,,'),
        (AnalyticsRequest(statement=STATEMENT), b'{"clientContextID":"another","results":[1],"status":"success"}'),
        (DropIndex(statement=STATEMENT), b'{"clientContextID":"another","results":[],"status":"success"}'),
    ],
)
def test_a_foreign_response_closes_the_connection(request: ServiceRequest, body: bytes) -> None:
    """If a response names another request, its connection closes, and a request that is not read-only fails."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(body=body.decode()), service=request.service)

    error = simulation.failure(errors.RequestCanceledException, request)
    [report] = [
        action for action in simulation.actions if isinstance(action, neutral.ReportConnection) and action.stream > 1
    ]

    assert str(RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT) == error.context.refused_reason
    assert "another" in str(error.context.last_dispatch_error)
    assert [report.stream] == [
        action.stream for action in simulation.actions if isinstance(action, neutral.CloseStream)
    ]
    assert neutral.ReportLevel.WARNING is report.level
    assert 0 == simulation.count(RowsReceived)


def test_a_foreign_response_retries_a_readonly_request() -> None:
    """If a response names another request, a read-only request is sent again with a new id, on a new connection."""
    simulation = Asking()
    simulation.nodes.script.answer("SELECT 1", FOREIGN, FOREIGN, FakeAnswer(rows=[1]))

    token = simulation.finish(asking("SELECT 1", readonly=True))

    assert [b"1"] == simulation.rows[token]
    assert 3 == len({each.connection for each in simulation.asked})
    assert [RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT] * 2 == [retry.reason for retry in simulation.retries]


def test_rows_before_a_foreign_id() -> None:
    """If a response names another request after some rows, the request fails after these rows, without a retry."""
    simulation = Asking()
    answer = msgspec.structs.replace(FOREIGN, rows=["theirs", "too"], seconds_between_rows=0.1)
    simulation.nodes.script.answer("SELECT 1", answer)

    token = simulation.finish(asking("SELECT 1", readonly=True))

    assert [b'"theirs"'] == simulation.rows[token]
    assert isinstance(simulation.errors[token], errors.RequestCanceledException)
    assert 1 == len(simulation.asked)


def ids_of(simulation: Asking) -> list[str]:
    """Return the client context id in each request that the nodes have received."""
    return [str(msgspec.json.decode(each.body)["client_context_id"]) for each in simulation.asked]


def test_each_attempt_has_its_own_id() -> None:
    """The PREPARE, the execution and each retry have ids that differ; the error has the first of them."""
    simulation = Asking(enhanced=False)
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, NO_INDEX, FakeAnswer(errors=[{"code": 3000, "msg": "no"}]))

    token = simulation.finish(asking(adhoc=False, readonly=True))
    ids = ids_of(simulation)

    assert len(ids) == len(set(ids)) >= 4
    assert {ids[0]} == {each[:36] for each in ids}
    assert ids[0] == simulation.errors[token].context.client_context_id


def test_a_given_id_is_that_of_all_attempts() -> None:
    """If the caller passes an id, the PREPARE, the execution and each retry have this id."""
    simulation = Asking(enhanced=False)
    simulation.nodes[0].faults.next(Service.QUERY, faults.cut_body(bytes_sent=5))

    token = simulation.finish(asking(adhoc=False, readonly=True, client_context_id="mine"))

    assert ROWS == simulation.rows[token]
    assert ["mine"] * 3 == ids_of(simulation)


def test_a_plan_of_another_request() -> None:
    """If the response to a PREPARE names another request, the client drops its plan and sends the PREPARE again."""
    simulation = Asking(enhanced=False)
    plan = b'{"clientContextID":"another","results":[{"name":"theirs"}],"status":"success"}'
    simulation.nodes[0].faults.next(Service.QUERY, faults.http_status(200, plan))

    token = simulation.finish(asking(adhoc=False, readonly=True))

    assert ROWS == simulation.rows[token]
    assert [True, True, False] == [b"PREPARE" in each.body for each in simulation.asked]
