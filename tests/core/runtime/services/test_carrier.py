"""HTTP requests from submission to completion, sent to the query service of the fake cluster."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.core.runtime.kv import phases
from tests.core.runtime.services.asking import ANSWER, NO_INDEX, ROWS, STATEMENT, Asking, asking
from tests.core.runtime.services.request_cases import Never, refusals
from triclinium_core import errors
from triclinium_core.contract import couchbase, neutral
from triclinium_core.contract.couchbase import RequestSubmitted
from triclinium_core.contract.neutral import Token
from triclinium_core.options import PasswordAuthenticator, TimeoutOptions
from triclinium_core.retry.couchbase import BreakerState, RetryAction, RetryReason, Service
from triclinium_core.services.management.buckets import GetBucket
from triclinium_core.services.service_request import HttpRequest
from triclinium_core.telemetry.defaults import ThresholdLoggingTracer
from triclinium_core.testing.fakes.faults import Fault, drop_response, hang_up, refuse_connection
from triclinium_core.testing.fakes.services import faults
from triclinium_core.testing.fakes.services.answers import FakeAnswer


def test_one_connection_carries_one_request_after_the_other() -> None:
    """One connection carries consecutive requests, and is closed when it has been idle for a second."""
    simulation = Asking()
    for _ in range(3):
        simulation.finish(asking())
    streams = {each.connection for each in simulation.asked}

    simulation.advance(1.1)
    simulation.tick()

    assert 1 == len(streams)
    assert [*streams] == [action.stream for action in simulation.actions if isinstance(action, neutral.CloseStream)]


def test_requests_share_the_permitted_connections() -> None:
    """If there are more requests than permitted connections, they are queued, and all complete in order."""
    simulation = Asking(max_http_connections=2)
    simulation.run()
    before = simulation.count(neutral.OpenStream)

    tokens = [simulation.request(asking()) for _ in range(7)]
    simulation.run()

    assert 2 == simulation.count(neutral.OpenStream) - before
    assert tokens == sorted(simulation.answers, key=lambda token: simulation.settled_at[token])


def test_requests_wait_for_the_first_config() -> None:
    """A request waits for the first config; if no node is reachable, its error has the reason NODE_NOT_AVAILABLE."""
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
    """While no node has the service, a request is retried; it succeeds as soon as a node has the service."""
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


def test_the_next_attempt_avoids_a_failed_endpoint() -> None:
    """If one node refuses connections, requests succeed at the other node."""
    simulation = Asking(nodes=2)
    simulation.run()
    simulation.nodes.kill(0)
    tokens = [simulation.request(asking()) for _ in range(4)]
    simulation.run(30.0)

    assert tokens == sorted(simulation.answers)


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("fault", [hang_up(), faults.cut_body(bytes_sent=10)], ids=repr)
def test_a_connection_lost_in_flight(fault: Fault, readonly: bool) -> None:
    """If a connection is lost in flight, a read-only request is retried, and any other request fails."""
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


def test_refused_connections_are_backed_off_from() -> None:
    """If requests find no free connection and no new one opens, they are retried with backoff."""
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


def test_an_unsent_request_is_sent_again() -> None:
    """If a stream is lost before the driver has written a byte of a request, the request is sent again."""
    simulation = Asking()
    simulation.finish(asking())
    token = simulation.request(asking())
    (stream,) = (stream for stream, link in simulation.links.items() if link.outgoing)

    simulation.lose(stream)
    simulation.run()

    assert ROWS == simulation.rows[token]
    assert 2 == len(simulation.asked)


def test_an_error_without_rows() -> None:
    """If the response is an error, its code selects the exception, whose context has the codes and the statement."""
    simulation = Asking()

    error = simulation.failure(errors.ParsingFailureException, asking("SELEC"))

    assert (400, 3000) == (error.context.http_status, error.context.error_code)
    assert "SELEC" == error.context.statement


def test_a_retryable_error_without_rows() -> None:
    """If the response is a retryable error, the strategy retries the request until a response succeeds."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, NO_INDEX, ANSWER)

    token = simulation.finish(asking())

    assert ROWS == simulation.rows[token]
    assert [RetryReason.QUERY_INDEX_NOT_FOUND] * 2 == [retry.reason for retry in simulation.retries]


@pytest.mark.parametrize(
    ("readonly", "kind"), [(True, errors.UnambiguousTimeoutException), (False, errors.AmbiguousTimeoutException)]
)
def test_a_request_times_out_without_a_response(readonly: bool, kind: type[errors.CouchbaseException]) -> None:
    """Without a response, the deadline ends a request and its connection; only a read-only request is unambiguous."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())

    token = simulation.request(asking(readonly=readonly))
    simulation.run()

    assert type(simulation.errors[token]) is kind
    assert 1 <= simulation.count(neutral.CloseStream)


def test_a_timeout_before_sending_is_unambiguous() -> None:
    """If a request waits for a connection until its deadline, it times out as unambiguous and names the obstacle."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0), max_http_connections=1)
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1], seconds=60.0))
    simulation.run()
    _, token = simulation.request(asking()), simulation.request(asking())
    simulation.run()

    error = simulation.errors[token]
    assert isinstance(error, errors.UnambiguousTimeoutException)
    assert "no connection" in str(error.context.last_dispatch_error)


@pytest.mark.parametrize("status", [200, 404, 503])
def test_the_breaker_opens_and_closes_again(status: int) -> None:
    """Timeouts open the circuit breaker, which refuses requests until its canary ping gets any response."""
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
def test_the_breaker_counts_overdue_responses(
    failures: int, time_of: Callable[[neutral.StreamId], neutral.TimePassed]
) -> None:
    """A timeout is a failure of the endpoint only if the request was sent and the client has read its stream."""
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


def test_an_invalid_request_is_not_submitted() -> None:
    """Submitting something other than a request raises ``InvalidArgumentException`` and changes nothing."""
    simulation = Asking()
    token = simulation.request(asking())

    with pytest.raises(errors.InvalidArgumentException):
        simulation.machine.handle(RequestSubmitted(Token(99), "SELECT 1"), simulation.now)  # type: ignore[arg-type]
    simulation.run()

    assert ROWS == simulation.rows[token]


def test_encoding_times_of_all_attempts_are_reported() -> None:
    """The reported encoding time is the sum of all attempts; a request without a payload has none."""
    everything = ThresholdLoggingTracer(query_threshold=0, management_threshold=0)
    simulation = Asking(tracer=everything, meter=None)
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, ANSWER)
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
    reported = json.loads(report.text)
    assert [250_000] == [entry["encode_duration_us"] for entry in reported["query"]["top_requests"]]
    assert ["encode_duration_us" in entry for entry in reported["management"]["top_requests"]] == [False]


@pytest.mark.parametrize(
    ("is_abandoned", "expected"), [(False, [couchbase.ReportAnswer, couchbase.ReportEnd]), (True, [])]
)
def test_traced_request_without_an_answer(is_abandoned: bool, expected: list[type[couchbase.Action]]) -> None:
    """At its deadline, a traced request reports the end of its attempt and of itself; abandoned, it reports neither."""
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
    """An asynchronous strategy decides on each retry; its decision after the end of the request is ignored."""
    simulation = Asking()
    simulation.nodes[0].faults.next(Service.QUERY, faults.cut_body(bytes_sent=1), times=3)
    token = simulation.request(asking(readonly=True), retry_strategy=phases.Asking())
    simulation.flow()

    for _ in range(3):
        simulation.feed(neutral.StrategyDecided(simulation.consulted[-1].token, RetryAction.after(0.1)))
        simulation.live(0.2)
    simulation.feed(neutral.StrategyDecided(token, RetryAction.no_retry()))

    assert ROWS == simulation.rows[token]
    assert 3 == len(simulation.retries)


def test_a_slow_asynchronous_strategy() -> None:
    """If an asynchronous strategy has not decided by the deadline, the timeout has the reason of the retry."""
    simulation = Asking(timeouts=TimeoutOptions(query=1.0))
    simulation.nodes.script.answer(STATEMENT, NO_INDEX)

    error = simulation.failure(errors.UnambiguousTimeoutException, asking(), retry_strategy=phases.Asking())
    (report,) = refusals(simulation)

    assert RetryReason.QUERY_INDEX_NOT_FOUND is report.reason
    assert {str(report.reason)} == error.context.retry_reasons
    assert 1 == len(simulation.consulted)
    assert 1 == len(simulation.asked)


def test_other_credentials() -> None:
    """If credentials change while a request is in flight, this request and the next one succeed."""
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


def test_a_connection_that_does_not_open_in_time() -> None:
    """If a stream does not open within the connect timeout, it is abandoned, and the strategy decides."""
    simulation = Asking(timeouts=TimeoutOptions(connect=1.0))
    simulation.run()
    token = simulation.request(asking(), retry_strategy=Never())

    simulation.advance(1.1)

    assert "no connection within 1 s" in str(simulation.errors[token].context.last_dispatch_error)


def test_a_removed_node_gets_no_canary() -> None:
    """If a node is in no topology, its open circuit breaker sends no canary."""
    simulation = Asking(nodes=2, timeouts=TimeoutOptions(query=1.0))
    simulation.run()
    simulation.nodes.set_services(0, {Service.KV})
    simulation.nodes[1].faults.next(Service.QUERY, drop_response(), times=20)
    for _ in range(20):
        simulation.finish(asking())
    breakers = [each.circuit_breaker for each in simulation.clients[0].statistics().endpoints]
    simulation.nodes.set_services(1, {Service.KV})
    simulation.live(3.0)
    before = simulation.count(neutral.OpenStream)

    simulation.live(60.0)

    assert [BreakerState.CLOSED, BreakerState.OPEN] == [each and each.state for each in breakers]
    assert before == simulation.count(neutral.OpenStream)
    assert [] == [each.target for each in simulation.asked if each.method == "GET"]
    assert 0 == simulation.open_operations


def test_other_credentials_while_a_stream_is_opened() -> None:
    """If credentials change while a stream opens, another stream replaces it: it may have sent the old certificate."""
    simulation = Asking()
    simulation.run()
    token = simulation.request(asking())
    (stream,) = (stream for stream, link in simulation.links.items() if not link.is_open)

    simulation.feed(couchbase.AuthenticatorChanged(PasswordAuthenticator("Administrator", "password"), "n" * 24))
    simulation.run()

    assert ROWS == simulation.rows[token]
    assert [stream] != [each.connection for each in simulation.asked]


@pytest.mark.parametrize("cause", [neutral.LossCause.END_OF_STREAM, neutral.LossCause.TRUNCATED])
def test_truncation_fails_a_response_without_a_length(cause: neutral.LossCause) -> None:
    """If a response has no length, its request succeeds at the end of the stream and fails if it is truncated (D80)."""
    simulation = Asking()
    simulation.run()
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())
    token = simulation.request(asking())
    simulation.live(0.1)
    stream = neutral.StreamId(simulation.asked[-1].connection)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    simulation.feed(neutral.BytesReceived(stream, head + b'{"requestID": "1", "results": [1], "status": "success"}'))
    assert token not in simulation.answers
    simulation.lose(stream, cause)
    simulation.run()

    assert (token in simulation.answers) is (cause is neutral.LossCause.END_OF_STREAM)
    assert (type(simulation.errors.get(token)) is errors.RequestCanceledException) is (
        cause is neutral.LossCause.TRUNCATED
    )
