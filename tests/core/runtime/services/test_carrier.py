"""Requests over HTTP from submission to settlement, against the fake cluster's query service."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.runtime.kv.simulated import upsert
from tests.core.runtime.services.asking import ANSWER, ROWS, STATEMENT, Asking, asking
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import couchbase, neutral
from triclinium_core.contract.couchbase import RequestSubmitted
from triclinium_core.contract.neutral import Token
from triclinium_core.options import PasswordAuthenticator, TimeoutOptions
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest, Service
from triclinium_core.services.answer.incoming_answer import HELD_SIZE_BYTES, HELD_SIZE_BYTES_MAX
from triclinium_core.services.management.buckets import AllBucketsResult, GetAllBuckets, GetBucket
from triclinium_core.services.management.users import ChangePassword
from triclinium_core.services.query.result import QueryMetaData
from triclinium_core.services.service_request import HttpRequest, ServiceRequest
from triclinium_core.telemetry.defaults import LoggingMeter, ThresholdLoggingTracer
from triclinium_core.testing.fakes.faults import Fault, drop_response, hang_up, refuse_connection
from triclinium_core.testing.fakes.services import faults
from triclinium_core.testing.fakes.services.answers import FakeAnswer

LARGE_ROW = "x" * 1000


class ReadingOn(Asking):
    """A driver that does not pause."""

    def _carry_out(self, action: couchbase.Action) -> None:
        if not isinstance(action, neutral.PauseReading):
            super()._carry_out(action)


class Later:
    """A strategy that has to be awaited."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Say nothing that anybody hears."""
        raise AssertionError("the simulation decides")


class Never:
    """A strategy that retries nothing."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse."""
        return RetryAction.no_retry()


def refusals(simulation: Asking) -> list[couchbase.ReportRefusal]:
    """Return the refusals that the client reported."""
    return [action for action in simulation.actions if isinstance(action, couchbase.ReportRefusal)]


def test_rows_and_then_what_came_after_them() -> None:
    """A request hands out its rows, each once and in order, and ends with the metadata."""
    simulation = Asking()

    token = simulation.finish(asking())

    assert ROWS == simulation.rows[token]
    assert isinstance(simulation.answers[token], QueryMetaData)
    assert 0 == simulation.open_operations


def test_one_connection_carries_one_request_after_the_other() -> None:
    """What was used is used again while it is warm, and closed a second later."""
    simulation = Asking()
    for _ in range(3):
        simulation.finish(asking())
    streams = {each.connection for each in simulation.asked}

    simulation.advance(1.1)
    simulation.tick()

    assert 1 == len(streams)
    assert [*streams] == [action.stream for action in simulation.actions if isinstance(action, neutral.CloseStream)]


def test_requests_at_once_share_the_connections_that_are_permitted() -> None:
    """What is beyond the bound waits in order, and nothing is left out."""
    simulation = Asking(max_http_connections=2)
    simulation.run()
    before = simulation.count(neutral.OpenStream)

    tokens = [simulation.request(asking()) for _ in range(7)]
    simulation.run()

    assert 2 == simulation.count(neutral.OpenStream) - before
    assert tokens == sorted(simulation.answers, key=lambda token: simulation.settled_at[token])


def test_requests_wait_for_the_first_config_and_no_longer() -> None:
    """Where the cluster cannot be found the strategy is asked, and the error says what is missing."""
    simulation = Asking()
    token = simulation.request(asking())
    assert not simulation.asked
    simulation.run()

    lost = Asking()
    lost.nodes.kill(0)
    error = lost.failure(errors.RequestCanceledException, asking(), retry_strategy=Never())

    assert ROWS == simulation.rows[token]
    assert str(RetryReason.NODE_NOT_AVAILABLE) == error.context.refused_reason


def test_no_node_has_the_service() -> None:
    """It is waited for; once a node has it, the request is answered."""
    simulation = Asking()
    simulation.run()
    simulation.nodes.set_services(0, {Service.KV})
    simulation.run(5.0)
    error = simulation.failure(errors.RequestCanceledException, asking(), retry_strategy=Never())
    token = simulation.request(asking())
    simulation.advance(1.0)
    simulation.flow()

    simulation.nodes.set_services(0, {Service.KV, Service.QUERY})
    simulation.run()

    assert "no node has the query service" in str(error.context.last_dispatch_error)
    assert ROWS == simulation.rows[token]


def test_an_endpoint_that_failed_is_avoided_on_the_next_attempt() -> None:
    """A node that refuses does not keep a request from the one beside it."""
    simulation = Asking(nodes=2)
    simulation.run()
    simulation.nodes.kill(0)
    tokens = [simulation.request(asking()) for _ in range(4)]
    simulation.run(30.0)

    assert tokens == sorted(simulation.answers)


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("fault", [hang_up(), faults.cut_body(bytes_sent=10)], ids=repr)
def test_a_connection_lost_in_flight(fault: Fault, readonly: bool) -> None:
    """What may be sent again is, after the request left the client; nothing else is, ever."""
    simulation = Asking()
    simulation.nodes[0].faults.next(Service.QUERY, fault)

    token = simulation.finish(asking(readonly=readonly))

    if readonly:
        assert ROWS == simulation.rows[token]
        assert 2 == len(simulation.asked)
    else:
        error = simulation.errors[token]
        assert str(RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT) == error.context.refused_reason
        assert 1 == len(simulation.asked)


def test_refused_connections_beside_a_busy_one_are_backed_off_from() -> None:
    """Whoever found no free connection is retried as its strategy says, not at once and for ever."""
    simulation = Asking()
    simulation.nodes.script.answer("SELECT slow", FakeAnswer(rows=[1] * 10, seconds_between_rows=1.0))
    slow = simulation.request(asking("SELECT slow"))
    simulation.run(0.5)
    simulation.nodes[0].faults.always(None, refuse_connection())
    before = simulation.count(neutral.OpenStream)
    tokens = [simulation.request(asking()) for _ in range(3)]

    simulation.run(1.0)

    assert 3 <= simulation.count(neutral.OpenStream) - before <= 3 * len(simulation.retries)
    simulation.nodes[0].faults.clear()
    simulation.run()
    assert [ROWS] * 3 == [simulation.rows[token] for token in tokens]
    assert slow in simulation.answers


def test_what_never_left_the_client_is_sent_again() -> None:
    """A stream that is lost before the driver has handed over a byte of the request makes nothing ambiguous."""
    simulation = Asking()
    simulation.finish(asking())
    token = simulation.request(asking())
    (stream,) = (stream for stream, link in simulation.links.items() if link.outgoing)

    simulation.lose(stream)
    simulation.run()

    assert ROWS == simulation.rows[token]
    assert 2 == len(simulation.asked)


def test_rows_that_were_handed_out_are_not_handed_out_again() -> None:
    """A connection that is lost between two rows ends a request that might be sent again otherwise."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[{"n": 1}, {"n": 2}], seconds_between_rows=1.0))
    token = simulation.request(asking(readonly=True))
    simulation.run(0.5)
    assert 1 == len(simulation.rows[token])
    (stream,) = (each.connection for each in simulation.asked)

    simulation.lose(neutral.StreamId(stream))
    simulation.run()

    error, (report,) = simulation.errors[token], refusals(simulation)

    assert isinstance(error, errors.RequestCanceledException)
    assert RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT == report.reason == error.context.refused_reason
    assert (token, "RequestCanceledException") == (report.token, report.error)
    assert 1 == len(simulation.asked)


def test_an_error_after_rows_is_raised_after_them() -> None:
    """Rows that came before the error are handed out first, and a retryable one is not retried any more."""
    simulation = Asking()
    failing = FakeAnswer(rows=[{"n": 1}], errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
    simulation.nodes.script.answer(STATEMENT, failing)

    token = simulation.finish(asking(readonly=True))

    error, (report,) = simulation.errors[token], refusals(simulation)

    assert [b'{"n":1}'] == simulation.rows[token]
    assert isinstance(error, errors.CouchbaseException)
    assert RetryReason.QUERY_INDEX_NOT_FOUND == report.reason == error.context.refused_reason
    assert 1 == len(simulation.asked)


def test_an_error_without_rows() -> None:
    """The service's code says which exception it is; the context has what it said, and nothing of the parameters."""
    simulation = Asking()

    error = simulation.failure(errors.ParsingFailureException, asking("SELEC"))

    assert (400, 3000) == (error.context.http_status, error.context.error_code)
    assert "SELEC" == error.context.statement


def test_a_retryable_error_without_rows() -> None:
    """The strategy is asked, and the next answer is taken."""
    simulation = Asking()
    failing = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
    simulation.nodes.script.answer(STATEMENT, failing, failing, ANSWER)

    token = simulation.finish(asking())

    assert ROWS == simulation.rows[token]
    assert [RetryReason.QUERY_INDEX_NOT_FOUND] * 2 == [retry.reason for retry in simulation.retries]


@pytest.mark.parametrize(
    ("readonly", "kind"), [(True, errors.UnambiguousTimeoutException), (False, errors.AmbiguousTimeoutException)]
)
def test_a_service_that_never_answers(readonly: bool, kind: type[errors.CouchbaseException]) -> None:
    """The deadline ends the request and its connection; only what is read-only is certainly not applied."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())

    token = simulation.request(asking(readonly=readonly))
    simulation.run()

    assert type(simulation.errors[token]) is kind
    assert 1 <= simulation.count(neutral.CloseStream)


def test_what_was_not_sent_in_time_was_not_applied() -> None:
    """A request that waited for a connection until its deadline names what it waited for."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0), max_http_connections=1)
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1], seconds=60.0))
    simulation.run()
    _, token = simulation.request(asking()), simulation.request(asking())
    simulation.run()

    error = simulation.errors[token]
    assert isinstance(error, errors.UnambiguousTimeoutException)
    assert "no connection" in str(error.context.last_dispatch_error)


def test_nobody_takes_the_rows() -> None:
    """Reading pauses once a quarter of a mebibyte is held, goes on when the rows are taken, and all of them arrive."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[LARGE_ROW], repeat=2000))
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.flow()
    (stream,) = (neutral.StreamId(each.connection) for each in simulation.asked)
    taken, unread = len(simulation.rows[token]), len(simulation.links[stream].incoming)

    simulation.takes_rows = True
    simulation.feed(couchbase.RowsWanted(token))
    simulation.run()

    assert taken < HELD_SIZE_BYTES // len(LARGE_ROW)
    assert unread > 2000 * len(LARGE_ROW) - 2 * HELD_SIZE_BYTES
    assert 1 == simulation.count(neutral.PauseReading) == simulation.count(neutral.ResumeReading)
    assert [f'"{LARGE_ROW}"'.encode()] * 2000 == simulation.rows[token]
    assert 0 == simulation.open_operations


def test_a_reader_takes_its_time() -> None:
    """The deadline is for the service, not for whoever thinks about the rows that it has."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[LARGE_ROW], repeat=2000))
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.live(100.0)

    simulation.takes_rows = True
    simulation.feed(couchbase.RowsWanted(token))
    simulation.run()

    assert 2000 == len(simulation.rows[token])


@pytest.mark.parametrize(
    ("readonly", "kind"), [(True, errors.UnambiguousTimeoutException), (False, errors.AmbiguousTimeoutException)]
)
def test_a_service_that_falls_silent_between_rows(readonly: bool, kind: type[errors.CouchbaseException]) -> None:
    """Whoever waits for more rows waits no longer than for the first."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[{"n": 1}, {"n": 2}], seconds_between_rows=60.0))

    token = simulation.request(asking(readonly=readonly))
    simulation.run(10.0)

    assert ROWS[:1] == simulation.rows[token]
    assert type(simulation.errors[token]) is kind


def test_silence_between_rows_is_no_earlier_failure() -> None:
    """The timeout of a query that was retried and then stalls between rows does not name the reason of the retry."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    stalling = FakeAnswer(rows=[{"n": 1}, {"n": 2}], seconds_between_rows=60.0)
    stale = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
    simulation.nodes.script.answer(STATEMENT, stale, stalling)

    token = simulation.request(asking(readonly=True))
    simulation.run(10.0)

    error = simulation.errors[token]
    assert isinstance(error, errors.UnambiguousTimeoutException)
    assert 1 == error.context.retry_attempts
    assert RetryReason.QUERY_INDEX_NOT_FOUND.meaning not in str(error)


def test_an_error_behind_rows_waits_for_their_reader() -> None:
    """A request that fails behind rows has no deadline any more: its reader gets the rows, and then the error."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    body = b'{"results":[' + b",".join([b'"%s"' % LARGE_ROW.encode()] * 200) + b",oops"
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    simulation.nodes[0].faults.always(Service.QUERY, faults.raw_answer(head + body))
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.live(10.0)

    assert {} == simulation.errors
    first = len(simulation.rows[token])

    for _ in range(2):
        simulation.feed(couchbase.RowsWanted(token))

    assert isinstance(simulation.errors[token], errors.DecodingFailureException)
    assert 0 < first < len(simulation.rows[token]) < 200


def test_an_unreadable_first_answer_names_its_node() -> None:
    """The error of a first attempt whose rows are malformed has the node of the attempt in its context."""
    simulation = Asking()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n"
    simulation.nodes[0].faults.always(Service.QUERY, faults.raw_answer(head + b'{"results":[1,oops'))
    error = simulation.failure(errors.DecodingFailureException, asking())

    assert "127.0.0.1:8093" == error.context.last_dispatched_to
    assert 0 == error.context.retry_attempts


def test_an_abandoned_request_names_its_obstacle() -> None:
    """A request that is abandoned before a connection is open has the missing connection in its context."""
    simulation = Asking()
    simulation.run()
    simulation.feed(RequestSubmitted(Token(1), asking()))

    context = simulation.machine.error_context(Token(1), simulation.now)
    assert context is not None
    assert "no connection to" in str(context.last_dispatch_error)
    assert {str(RetryReason.SOCKET_NOT_AVAILABLE)} == context.retry_reasons


def test_tokens_of_operations_are_unknown_to_readers() -> None:
    """A reader that names the token of an operation changes nothing."""
    simulation = Asking()
    simulation.run()
    token = simulation.submit(upsert("k"))
    simulation.feed(couchbase.RowsWanted(token))
    simulation.flow()

    assert token in simulation.results


def test_a_driver_that_reads_on_gets_the_request_failed() -> None:
    """Memory is bounded whatever the driver does."""
    simulation = ReadingOn()
    size = HELD_SIZE_BYTES_MAX * 2 // len(LARGE_ROW)
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[LARGE_ROW], repeat=size))
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.run(5.0)
    simulation.takes_rows = True

    simulation.feed(couchbase.RowsWanted(token))
    simulation.run()

    assert isinstance(simulation.errors[token], errors.DecodingFailureException)
    assert HELD_SIZE_BYTES_MAX + HELD_SIZE_BYTES >= sum(map(len, simulation.rows[token])) >= HELD_SIZE_BYTES


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("body", ["", "[]", '{"results": [1', '{"metrics": 7, "results": []}'])
def test_an_answer_that_cannot_be_read(body: str, *, readonly: bool) -> None:
    """It is told whether the statement may have been applied."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(body=body))

    error = simulation.errors[simulation.finish(asking(readonly=readonly))]

    assert isinstance(error, errors.DecodingFailureException)
    assert readonly is not ("may have been applied" in str(error))


def test_the_caller_leaves_in_the_middle() -> None:
    """The connection is closed, so that the service notices; the others go on."""
    simulation = Asking()
    simulation.nodes.script.answer("SELECT slow", FakeAnswer(rows=[1] * 10, seconds_between_rows=1.0))
    token, other = simulation.request(asking("SELECT slow")), simulation.request(asking())
    simulation.run(2.5)

    simulation.feed(couchbase.OperationAbandoned(token))
    simulation.run(2.0)

    assert [True] == [each.client_hung_up for each in simulation.asked if each.statement == "SELECT slow"]
    assert ROWS == simulation.rows[other]
    assert 0 == simulation.open_operations


@pytest.mark.parametrize("readonly", [True, False])
def test_who_leaves_with_rows_in_hand_is_told_that_it_may_be_applied(readonly: bool) -> None:
    """Also where the whole answer has come, and only its reader is not through."""
    simulation = Asking()
    simulation.takes_rows = False
    token = simulation.request(asking(readonly=readonly))
    simulation.run(0.5)

    assert ROWS == simulation.rows[token]
    assert (not readonly) is simulation.machine.is_ambiguous(token)


def recorded_by(simulation: Asking) -> dict[couchbase.TelemetryKind, Any]:
    """Return the last reports of the client as data."""
    return {report.kind: json.loads(report.text) for report in simulation.clients[0].last_reports()}


@rows(
    ("answer", "takes_rows"),
    [
        (FakeAnswer(rows=[1], seconds=60.0), True),
        (FakeAnswer(rows=[1] * 10, seconds_between_rows=1.0), True),
        (FakeAnswer(rows=[1] * 10, seconds_between_rows=1.0), False),
    ],
)
@pytest.mark.parametrize("reason", couchbase.AbandonReason)
def test_an_abandoned_request_is_measured(
    answer: FakeAnswer, *, takes_rows: bool, reason: couchbase.AbandonReason
) -> None:
    """A slow request that is abandoned before its whole answer is in both reports, with the reason of a failure."""
    simulation = Asking(tracer=ThresholdLoggingTracer(), meter=LoggingMeter())
    simulation.takes_rows = takes_rows
    simulation.nodes.script.answer("SELECT slow", answer)
    token = simulation.request(asking("SELECT slow"))
    simulation.live(2.5)

    simulation.feed(couchbase.OperationAbandoned(token, reason=reason))
    recorded = recorded_by(simulation)

    (slow,) = recorded[couchbase.TelemetryKind.SLOW_OPERATIONS]["query"]["top_requests"]
    told = None if reason is couchbase.AbandonReason.NOT_NEEDED else reason.value
    assert ("query", 2_500_000, told) == (slow["operation_name"], slow["total_duration_us"], slow.get("abandoned"))
    assert slow["total_dispatch_duration_us"] > 2_000_000
    assert 1 == recorded[couchbase.TelemetryKind.DURATIONS]["operations"]["query"]["query"]["total_count"]


def test_a_reader_that_leaves_a_whole_answer_is_measured_once() -> None:
    """The time during which a reader keeps the rows of a whole answer does not count, however it leaves."""
    simulation = Asking(tracer=ThresholdLoggingTracer(), meter=LoggingMeter())
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.live(2.5)

    simulation.feed(couchbase.OperationAbandoned(token))
    recorded = recorded_by(simulation)

    assert {couchbase.TelemetryKind.DURATIONS} == recorded.keys()
    assert 1 == recorded[couchbase.TelemetryKind.DURATIONS]["operations"]["query"]["query"]["total_count"]


def test_the_caller_leaves_when_all_has_come() -> None:
    """An answer that is whole costs no connection."""
    simulation = Asking()
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.run(0.5)

    simulation.feed(couchbase.OperationAbandoned(token))

    assert 0 == simulation.count(neutral.CloseStream)
    assert 0 == simulation.open_operations


@rows(
    ("fault", "kind"),
    [
        (faults.gzipped(), errors.DecodingFailureException),
        (faults.gzipped(zeros=2**24), errors.DecodingFailureException),
        (faults.endless_headers(), errors.DecodingFailureException),
        (faults.endless_body(), errors.DecodingFailureException),
        (faults.raw_answer(b"\x15\x03\x01\x00\x02\x02\x46"), errors.DecodingFailureException),
        (faults.raw_answer(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), errors.DecodingFailureException),
        (faults.wrong_chunk_size(announced=5), errors.DecodingFailureException),
        (faults.wrong_chunk_size(announced=2**40), errors.DecodingFailureException),
        (faults.wrong_content_length(announced=5), errors.DecodingFailureException),
        (faults.wrong_content_length(announced=2**40), errors.AmbiguousTimeoutException),
        (faults.redirect("http://127.0.0.2:8093/query/service"), errors.CouchbaseException),
        (faults.proxy_page(), errors.CouchbaseException),
    ],
)
def test_nonsense_costs_only_its_own_request(fault: Fault, kind: type[errors.CouchbaseException]) -> None:
    """A named error, in bounded memory; the request beside it and the next one are answered."""
    simulation = Asking(timeouts=TimeoutOptions(query=5.0))
    simulation.nodes[0].faults.next(Service.QUERY, fault)

    bad, good = simulation.request(asking()), simulation.request(asking())
    simulation.run()
    again = simulation.finish(asking())

    assert kind is type(simulation.errors[bad])
    assert ROWS == simulation.rows[good] == simulation.rows[again]


BASIC = "QWRtaW5pc3RyYXRvcjpwYXNzd29yZA=="
"""Credentials of ``Asking`` in the form that its requests carry."""


def _answer(status: str, kind: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@rows(
    "answer",
    [
        _answer("400 Bad Request", "text/html", f"<html>authorization: Basic {BASIC}</html>"),
        _answer("400 Bad Request", "text/html", f"<html>authorization: Basic {BASIC[:11]}"),
        _answer("502 Bad Gateway", "text/html", f"<html>{'x' * 270} Basic {BASIC}"),
        _answer("400 Bad Request", "text/plain", f"Authorization=Basic%20{BASIC.replace('=', '%3D').lower()}"),
        _answer("400 Bad Request", "text/plain", "user Administrator:password is refused"),
        _answer("400 Bad Request", "text/html", f"<html>{'x' * 280} Administrator:password is refused"),
        _answer("200 OK", "application/json", json.dumps({"errors": [{"code": 5000, "msg": f"got {BASIC}"}]})),
        _answer("400 x", "application/json", json.dumps({"errors": [{"msg": BASIC}]}).replace("=", "\\u003d")),
        f"POST /query/service HTTP/1.1\r\nauthorization: Basic {BASIC}\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\nContent-Encoding: {BASIC}\r\n\r\n".encode(),
        f"authorization Basic {BASIC}\r\n\r\n".encode(),
    ],
)
def test_an_answer_that_repeats_the_credentials(answer: bytes) -> None:
    """If an answer repeats the credentials, the error, its context and connection events have no part of them."""
    simulation = Asking(timeouts=TimeoutOptions(query=5.0))
    simulation.nodes[0].faults.always(Service.QUERY, faults.raw_answer(answer))
    token = simulation.finish(asking())
    error = simulation.errors[token]
    reports = [action.text for action in simulation.actions if isinstance(action, neutral.ReportConnection)]

    for told in (str(error), error.context.to_json(), repr(error.context), *reports):
        assert "QWRtaW" not in told.replace("%", "")
        assert "qwrtaw" not in told.lower()
        assert "Administrator:pass" not in told


def test_a_password_in_a_request_that_is_repeated() -> None:
    """If a management service repeats a request with a new password, the error does not contain the password."""
    simulation = Asking()
    echo = _answer("400 Bad Request", "text/plain", "name=&roles=&password=correct%20horse%20battery")
    simulation.nodes[0].faults.always(Service.MANAGEMENT, faults.raw_answer(echo))
    error = simulation.errors[simulation.finish(ChangePassword(new_password="correct horse battery"))]

    assert "horse" not in str(error) + error.context.to_json()


def test_rows_that_hold_the_credentials() -> None:
    """Rows that contain the credentials arrive unchanged, because they are data of the service."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[{"n": BASIC}]))

    assert [f'{{"n":"{BASIC}"}}'.encode()] == simulation.rows[simulation.finish(asking())]


@rows(
    ("answer", "is_used"),
    [
        (b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}", False),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n{"results":[1],"status":"success"}', True),
    ],
)
def test_nothing_queues_behind_a_request_that_was_answered_unread(answer: bytes, is_used: bool) -> None:
    """A node may answer a large one while the driver still has most of it: that counts; the next one goes its own way."""
    simulation = Asking(max_http_connections=1)
    simulation.finish(asking())
    large = simulation.request(asking("x" * 1_000_000))
    (stream,) = (stream for stream, link in simulation.links.items() if len(link.outgoing) > 1_000_000)
    simulation.feed(neutral.BytesReceived(stream, answer))
    simulation.feed(couchbase.RowsWanted(large))
    simulation.actions.clear()
    after = simulation.finish(asking())

    assert [] == [
        action for action in simulation.actions if isinstance(action, neutral.SendBytes) and action.stream == stream
    ]
    assert ROWS == simulation.rows[after]
    assert is_used is (simulation.rows.get(large) == [b"1"])
    assert is_used is not (large in simulation.errors)


def test_a_second_answer_is_nobody_s() -> None:
    """It is read as no answer to the next request; its connection is closed."""
    simulation = Asking()
    simulation.nodes[0].faults.next(Service.QUERY, faults.answer_twice())

    first = simulation.finish(asking())
    second = simulation.finish(asking())

    assert ROWS == simulation.rows[first] == simulation.rows[second]
    assert 2 == len({each.connection for each in simulation.asked})


def test_a_redirect_is_not_followed() -> None:
    """Credentials go to no other host."""
    simulation = Asking()
    simulation.nodes[0].faults.next(Service.QUERY, faults.redirect("http://127.0.0.2:8093/query/service"))

    token = simulation.finish(asking())

    assert isinstance(simulation.errors[token], errors.CouchbaseException)
    assert 1 == len(simulation.asked)


def test_a_statement_is_prepared_once() -> None:
    """The first execution has it prepared, the next ones send the plan."""
    simulation = Asking()

    for _ in range(3):
        simulation.finish(asking(adhoc=False))

    assert [True, False, False] == [b"PREPARE" in each.body for each in simulation.asked]


@pytest.mark.parametrize("code", [4040, 4050, 4070])
def test_a_plan_that_went_stale_is_asked_for_again(code: int) -> None:
    """The strategy is asked, the plan is forgotten, and the statement is prepared anew."""
    simulation = Asking()
    simulation.finish(asking(adhoc=False))
    simulation.nodes.plans.go_stale(code)

    token = simulation.finish(asking(adhoc=False))
    simulation.nodes.plans.go_stale(code)
    error = simulation.failure(errors.PreparedStatementFailureException, asking(adhoc=False), retry_strategy=Never())

    assert ROWS == simulation.rows[token]
    assert [RetryReason.QUERY_PREPARED_STATEMENT_FAILURE] == [retry.reason for retry in simulation.retries]
    assert code == error.context.error_code


def test_a_plan_whose_index_is_gone() -> None:
    """It is asked for again: executed again, it would miss the same index."""
    simulation = Asking()
    simulation.finish(asking(adhoc=False))
    missing = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
    simulation.nodes.script.answer(STATEMENT, missing, ANSWER)

    token = simulation.finish(asking(adhoc=False))

    assert ROWS == simulation.rows[token]
    assert [True, False, True] == [b"PREPARE" in each.body for each in simulation.asked]
    assert [RetryReason.QUERY_INDEX_NOT_FOUND] == [retry.reason for retry in simulation.retries]


@pytest.mark.parametrize("decision", [RetryAction.after(0.1), RetryAction.no_retry()])
def test_plan_is_kept_until_the_strategy_decides(decision: RetryAction) -> None:
    """A stale plan is still sent while an asynchronous strategy is consulted, and forgotten when it has decided."""
    simulation = Asking()
    simulation.finish(asking(adhoc=False))
    missing = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
    simulation.nodes.script.answer(STATEMENT, missing, ANSWER)
    token = simulation.request(asking(adhoc=False), retry_strategy=Later())
    simulation.flow()
    meanwhile = simulation.finish(asking(adhoc=False), retry_strategy=Never())
    before = [b"PREPARE" in each.body for each in simulation.asked]
    simulation.feed(neutral.StrategyDecided(token, decision))
    afterwards = simulation.finish(asking(adhoc=False), retry_strategy=Never())

    assert 1 == len(simulation.consulted)
    assert [True, False, False] == before
    assert [True] == [b"PREPARE" in each.body for each in simulation.asked][len(before) : len(before) + 1]
    assert [ROWS, ROWS] == [simulation.rows[each] for each in (meanwhile, afterwards)]


def test_a_cluster_that_cannot_read_from_replicas() -> None:
    """What a cluster does not offer is not sent."""
    simulation = Asking()

    simulation.failure(errors.FeatureNotAvailableException, asking(use_replica=True))

    assert not simulation.asked


@pytest.mark.parametrize("status", [200, 404, 503])
def test_the_breaker_opens_and_closes_again(status: int) -> None:
    """Timeouts open it, so that requests are not sent; its canary is a ping, and any answer to that closes it."""
    simulation = Asking(timeouts=TimeoutOptions(query=1.0))
    simulation.nodes[0].faults.next(Service.QUERY, drop_response(), times=20)
    simulation.nodes[0].faults.next(Service.QUERY, faults.http_status(status))
    for _ in range(20):
        simulation.finish(asking())
    refused = simulation.failure(errors.RequestCanceledException, asking(), retry_strategy=Never())

    simulation.live(6.0)
    token = simulation.finish(asking())

    assert str(RetryReason.CIRCUIT_BREAKER_OPEN) == refused.context.refused_reason
    assert ["/admin/ping"] == [each.target for each in simulation.asked if each.method == "GET"]
    assert ROWS == simulation.rows[token]


@pytest.mark.parametrize(
    ("failures", "time_of"),
    [
        (1, lambda stream: neutral.TimePassed()),
        (0, lambda stream: neutral.TimePassed(unread={stream})),
        (1, lambda stream: neutral.TimePassed(unread={neutral.StreamId(stream + 1)})),
        (0, lambda stream: neutral.TimePassed(unsent={stream: 0})),
    ],
    ids=["owed", "unread", "another-unread", "unsent"],
)
def test_the_breaker_counts_what_the_node_owes(
    failures: int, time_of: Callable[[neutral.StreamId], neutral.TimePassed]
) -> None:
    """A timeout counts against the endpoint only if the request was sent and its stream was read."""
    simulation = Asking(timeouts=TimeoutOptions(query=1.0))
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())
    token = simulation.request(asking())
    simulation.flow()
    stream = [action.stream for action in simulation.actions if isinstance(action, neutral.SendBytes)][-1]
    simulation.now += 1.0
    simulation.feed(time_of(stream))
    (endpoint,) = [each for each in simulation.clients[0].statistics().endpoints if each.service is Service.QUERY]

    assert token in simulation.errors
    assert endpoint.circuit_breaker is not None
    assert failures == endpoint.circuit_breaker.failures


def test_what_cannot_be_submitted() -> None:
    """A caller's mistake raises, and changes nothing."""
    simulation = Asking()
    token = simulation.request(asking())

    with pytest.raises(errors.InvalidArgumentException):
        simulation.machine.handle(RequestSubmitted(Token(99), "SELECT 1"), simulation.now)  # type: ignore[arg-type]
    simulation.run()

    assert ROWS == simulation.rows[token]


def test_whoever_measures_has_the_payload_of_each_attempt_encoded() -> None:
    """What comes of it travels, as often as there is an attempt; what has no payload is not measured."""
    everything = ThresholdLoggingTracer(query_threshold=0, management_threshold=0)
    simulation = Asking(tracer=everything, meter=None)
    failing = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
    simulation.nodes.script.answer(STATEMENT, failing, ANSWER)
    encoded: list[str] = []

    def encoding(encode: Callable[[], HttpRequest]) -> tuple[HttpRequest, float]:
        sent = encode()
        encoded.append(sent.target)
        return sent, 0.125

    simulation.feed(RequestSubmitted(Token(1001), asking(), encoding=encoding))
    simulation.feed(RequestSubmitted(Token(1002), GetBucket("travel"), encoding=encoding))
    simulation.live(5)

    assert ["/query/service"] * 2 == encoded == [each.target for each in simulation.asked if each.method == "POST"]
    assert "/pools/default/buckets/travel" in [each.target for each in simulation.asked]
    (report,) = simulation.clients[0].last_reports()
    told = json.loads(report.text)
    assert [250_000] == [entry["encode_duration_us"] for entry in told["query"]["top_requests"]]
    assert ["encode_duration_us" in entry for entry in told["management"]["top_requests"]] == [False]


@pytest.mark.parametrize(
    ("is_abandoned", "expected"), [(False, [couchbase.ReportAnswer, couchbase.ReportEnd]), (True, [])]
)
def test_traced_request_without_an_answer(is_abandoned: bool, expected: list[type[couchbase.Action]]) -> None:
    """A deadline ends the attempt of a traced request and then the request; an abandoned request reports neither."""
    simulation = Asking(timeouts=TimeoutOptions(query=1.0))
    simulation.is_traced = True
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())
    token = simulation.request(asking())
    simulation.live(0.5)
    if is_abandoned:
        simulation.feed(couchbase.OperationAbandoned(token))
    simulation.live(1.0)
    reports = [
        action
        for action in simulation.actions
        if isinstance(action, couchbase.ReportDispatch | couchbase.ReportAnswer | couchbase.ReportEnd)
    ]

    assert 0 == simulation.open_operations
    assert [couchbase.ReportDispatch, *expected] == [type(report) for report in reports]


def test_an_asynchronous_strategy_is_consulted() -> None:
    """Its answer decides; what it says after the caller has left is ignored."""
    simulation = Asking()
    simulation.nodes[0].faults.next(Service.QUERY, faults.cut_body(bytes_sent=1), times=3)
    token = simulation.request(asking(readonly=True), retry_strategy=Later())
    simulation.flow()

    for _ in range(3):
        simulation.feed(neutral.StrategyDecided(simulation.consulted[-1].token, RetryAction.after(0.1)))
        simulation.live(0.2)
    simulation.feed(neutral.StrategyDecided(token, RetryAction.no_retry()))

    assert ROWS == simulation.rows[token]
    assert 3 == len(simulation.retries)


def test_an_asynchronous_strategy_that_thinks_for_too_long() -> None:
    """The request is due while the strategy thinks about an answer, and the deadline fails it."""
    simulation = Asking(timeouts=TimeoutOptions(query=1.0))
    stale = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
    simulation.nodes.script.answer(STATEMENT, stale)

    error = simulation.failure(errors.UnambiguousTimeoutException, asking(), retry_strategy=Later())
    (report,) = refusals(simulation)

    assert RetryReason.QUERY_INDEX_NOT_FOUND is report.reason
    assert {str(report.reason)} == error.context.retry_reasons
    assert 1 == len(simulation.consulted)
    assert 1 == len(simulation.asked)


def test_an_error_with_many_rows() -> None:
    """Nobody takes the rows of an error, so they are not held, and reading goes on to its end."""
    simulation = Asking()
    size = 2 * HELD_SIZE_BYTES // len(LARGE_ROW)
    syntax = FakeAnswer(http_status=400, rows=[LARGE_ROW], repeat=size, errors=[{"code": 3000, "msg": "syntax"}])
    simulation.nodes.script.answer(STATEMENT, syntax)

    simulation.failure(errors.ParsingFailureException, asking())

    assert not simulation.count(neutral.PauseReading)


def test_what_errors_tell_of_a_request_that_is_given_up() -> None:
    """Where it stands, and whether it may have been applied."""
    simulation = Asking(max_http_connections=1)
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1], seconds=60.0))
    early = simulation.request(asking())
    unplaced = simulation.machine.error_context(early, simulation.now)
    simulation.flow()
    waiting = simulation.request(asking())
    contexts = [simulation.machine.error_context(token, simulation.now) for token in (early, waiting)]

    assert unplaced is not None
    assert ["pending", "in_flight", "pending"] == [each and each.state for each in (unplaced, *contexts)]
    assert [["NODE_NOT_AVAILABLE"], [], ["SOCKET_NOT_AVAILABLE"]] == [
        each and [*each.retry_reasons] for each in (unplaced, *contexts)
    ]
    assert [True, False] == [simulation.machine.is_ambiguous(token) for token in (early, waiting)]


def test_other_credentials() -> None:
    """Connections that are idle are closed at once, one that is busy after its answer; new ones speak for the new user."""
    simulation = Asking()
    simulation.nodes.script.answer("SELECT slow", FakeAnswer(rows=[1], seconds=1.0))
    simulation.request(asking("SELECT slow"))
    simulation.finish(asking())
    simulation.request(asking("SELECT slow"))
    simulation.flow()
    simulation.nodes.set_credentials(password="another")

    simulation.feed(couchbase.AuthenticatorChanged(PasswordAuthenticator("Administrator", "another"), "n" * 24))
    token = simulation.finish(asking())
    simulation.run()

    assert ROWS == simulation.rows[token]
    assert 0 == simulation.open_operations
    assert not simulation.errors


def test_a_node_that_lets_nobody_connect() -> None:
    """A stream that does not open in time is given up, and the strategy is asked."""
    simulation = Asking(timeouts=TimeoutOptions(connect=1.0))
    simulation.run()
    token = simulation.request(asking(), retry_strategy=Never())

    simulation.advance(1.1)

    assert "no connection within 1 s" in str(simulation.errors[token].context.last_dispatch_error)


def test_a_cluster_that_prepares_in_a_step_of_its_own() -> None:
    """Without enhanced prepared statements the plan is asked for first, and travels with each execution."""
    simulation = Asking(enhanced=False)

    tokens = [simulation.finish(asking(adhoc=False)) for _ in range(2)]

    assert [ROWS] * 2 == [simulation.rows[token] for token in tokens]
    assert [True, False, False] == [b"PREPARE" in each.body for each in simulation.asked]
    assert [False, True, True] == [b"encoded_plan" in each.body for each in simulation.asked]


@pytest.mark.parametrize("end", ["deadline", "refused"])
def test_prepared_statement_that_cannot_be_executed(end: str) -> None:
    """A statement that was prepared and waits for a connection fails once, at its deadline or when none can be opened."""
    simulation = Asking(enhanced=False, max_http_connections=1, timeouts=TimeoutOptions(query=2.0))
    simulation.nodes.script.answer("SELECT slow", FakeAnswer(rows=[1], seconds=60.0))
    simulation.run()
    token = simulation.request(asking(adhoc=False), retry_strategy=Never())
    slow = simulation.request(asking("SELECT slow", readonly=True), retry_strategy=Never())
    simulation.flow()
    context = simulation.machine.error_context(token, simulation.now)
    if end == "refused":
        simulation.nodes[0].faults.always(None, refuse_connection())
        simulation.lose(max(simulation.links))
    simulation.run()

    assert context is not None
    assert ("in_flight", 1) == (context.state, len([each for each in simulation.asked if b"PREPARE" in each.body]))
    expected = errors.UnambiguousTimeoutException if end == "deadline" else errors.RequestCanceledException
    assert expected is type(simulation.errors[token])
    assert {str(RetryReason.SOCKET_NOT_AVAILABLE)} == simulation.errors[token].context.retry_reasons
    assert slow in simulation.errors
    assert 0 == simulation.open_operations


@pytest.mark.parametrize("body", ['{"results":[1', '{"results":[1,]}', '{"results":[1],"status":7}', "[]", ""])
def test_an_answer_that_means_nothing(body: str) -> None:
    """It fails with an error that names the node, and the next request is answered."""
    simulation = Asking()
    simulation.nodes.script.answer("SELECT odd", FakeAnswer(body=body))

    token = simulation.finish(asking("SELECT odd"))
    good = simulation.finish(asking())

    assert isinstance(simulation.errors[token], errors.CouchbaseException)
    assert ROWS == simulation.rows[good]


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (GetBucket(bucket_name="travel"), b"7"),
        (GetAllBuckets(), b"7"),
        (asking(), b'{"results":[],"status":7}'),
        (asking(), b'{"results":[1,oops'),
        (asking(), b'{"results":[1'),
        (asking(adhoc=False), b'{"results":[{"name":7}],"status":"success"}'),
    ],
)
def test_undecodable_answer_has_http_status(request_: ServiceRequest, body: bytes) -> None:
    """An answer with status 200 that cannot be decoded fails its request with that status in the context."""
    simulation = Asking(enhanced=False)
    simulation.nodes[0].faults.next(request_.service, faults.http_status(200, body=body))

    error = simulation.failure(errors.DecodingFailureException, request_)

    assert 200 == error.context.http_status


@pytest.mark.parametrize("enhanced", [False, True])
def test_an_unreadable_plan_has_changed_nothing(enhanced: bool) -> None:
    """The error of a statement says that it may have been applied, unless only its plan was requested."""
    simulation = Asking(enhanced=enhanced)
    body = b'{"results":[{"name":7}],"status":7}'
    simulation.nodes[0].faults.next(Service.QUERY, faults.http_status(200, body=body))

    error = simulation.failure(errors.DecodingFailureException, asking(adhoc=False))

    assert enhanced == ("may have been applied" in str(error))


def test_an_answer_without_a_head_has_no_status() -> None:
    """The error of a statement whose answer has no status line does not have the status of its plan."""
    simulation = Asking(enhanced=False)
    plan = b'{"results":[{"name":"p","encoded_plan":"x"}],"status":"success"}'
    for fault in (faults.http_status(200, body=plan), faults.raw_answer(b"nonsense\r\n\r\n")):
        simulation.nodes[0].faults.next(Service.QUERY, fault)

    error = simulation.failure(errors.DecodingFailureException, asking(adhoc=False))

    assert 2 == len(simulation.asked)
    assert error.context.http_status is None


def test_a_complete_answer_with_unread_rows_waits_for_nothing() -> None:
    """The context of a query whose rows are not taken yet has no obstacle and no reason of a retry."""
    simulation = Asking()
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.run()

    context = simulation.machine.error_context(token, simulation.now)
    assert context is not None
    assert (None, frozenset()) == (context.last_dispatch_error, context.retry_reasons)


def test_a_list_that_is_not_whole() -> None:
    """Unreadable rows are left out of a list, and one warning gives their number."""
    simulation = Asking()
    body = '[{"name":"a","quota":{}},{"name":7},null]'
    simulation.nodes.script.answer("GET /pools/default/buckets", FakeAnswer(body=body), service=Service.MANAGEMENT)

    token = simulation.finish(GetAllBuckets())
    found = simulation.answers[token]
    warnings = [
        action.text
        for action in simulation.actions
        if isinstance(action, neutral.ReportConnection) and action.level is neutral.ReportLevel.WARNING
    ]

    assert isinstance(found, AllBucketsResult)
    assert ["a"] == [each.settings.name for each in found.buckets]
    assert ["get_all_buckets: unreadable rows left out of the list: 2"] == warnings


def test_a_node_that_has_left_is_not_asked_for_ever() -> None:
    """An open breaker of a node that no topology has any more sends no canary, and the node is forgotten."""
    simulation = Asking(nodes=2, timeouts=TimeoutOptions(query=1.0))
    simulation.run()
    simulation.nodes.set_services(0, {Service.KV})
    simulation.nodes[1].faults.next(Service.QUERY, drop_response(), times=20)
    for _ in range(20):
        simulation.finish(asking())
    simulation.nodes.set_services(1, {Service.KV})
    simulation.live(3.0)
    before = simulation.count(neutral.OpenStream)

    simulation.live(60.0)

    assert before == simulation.count(neutral.OpenStream)
    assert 0 == simulation.open_operations


def test_wanting_rows_again_and_again() -> None:
    """Whoever asks for the rows that are wanted already does not put off the deadline."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())
    token = simulation.request(asking())

    for _ in range(5):
        simulation.live(0.5)
        simulation.feed(couchbase.RowsWanted(token))

    assert isinstance(simulation.errors[token], errors.AmbiguousTimeoutException)


def test_other_credentials_while_a_stream_is_opened() -> None:
    """It may have shown the certificate that is replaced; another one is opened for what waits."""
    simulation = Asking()
    simulation.run()
    token = simulation.request(asking())
    (stream,) = (stream for stream, link in simulation.links.items() if not link.is_open)

    simulation.feed(couchbase.AuthenticatorChanged(PasswordAuthenticator("Administrator", "password"), "n" * 24))
    simulation.run()

    assert ROWS == simulation.rows[token]
    assert [stream] != [each.connection for each in simulation.asked]
