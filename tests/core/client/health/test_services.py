"""Health of HTTP services: pings, waits, diagnostics and statistics, with the fake cluster as server."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.core.runtime.services.asking import Asking, asking
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.client.health.readiness import PAUSE_SECONDS, PING_SECONDS_MAX
from triclinium_core.client.health.statistics import EndpointStatistics
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import CloseStream, OpenStream, SendBytes, Token
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady
from triclinium_core.kv.operation.reports import (
    ClusterState,
    EndpointPingReport,
    EndpointState,
    PingResult,
    PingState,
    Ready,
)
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import Authenticator, JwtAuthenticator, PasswordAuthenticator, TimeoutOptions
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.views.view_request import ViewRequest
from triclinium_core.telemetry.defaults import ThresholdLoggingTracer
from triclinium_core.testing.fakes.faults import Fault, delay, drop_response, hang_up, refuse_connection
from triclinium_core.testing.fakes.services import faults
from triclinium_core.testing.fakes.services.answers import FakeAnswer

QUERY = (Service.QUERY,)
EVERYTHING = ThresholdLoggingTracer(query_threshold=0, views_threshold=0, management_threshold=0)
"""Tracer with a threshold of 0 for query, views and management, so that each of their requests counts as slow."""
ONE_SECOND = TimeoutOptions(query=1.0, views=1.0, management=1.0)


def result_of(simulation: Asking, token: Token) -> PingResult:
    """Return the report of a ping, which must be complete."""
    result = simulation.results[token]
    assert isinstance(result, PingResult)
    return result


def ping(simulation: Asking, *services: Service, bucket: str | None = None) -> PingResult:
    """Ping these services, or all, and return the report."""
    token = simulation.inquire(Ping(bucket, "i", services or None))
    simulation.run(100.0)
    return result_of(simulation, token)


def ping_query(simulation: Asking) -> EndpointPingReport:
    """Ping the query service, and return the report of its only node."""
    (found,) = ping(simulation, Service.QUERY).endpoints[Service.QUERY]
    return found


def started(nodes: int = 1, **options: Any) -> Asking:
    """Return a simulation whose client knows the cluster and has sent nothing over HTTP."""
    simulation = Asking(nodes, **options)
    simulation.inquire(WaitUntilReady(None, service_types=(Service.KV,)))
    simulation.run()
    return simulation


def test_every_service_of_every_node() -> None:
    """A ping sends one request per endpoint, each on its own stream; a second ping reuses the streams."""
    simulation = Asking(2)

    result = ping(simulation)
    again = ping(simulation)

    assert list(Service) == list(result.endpoints)
    assert {2} == {len(reports) for reports in result.endpoints.values()}
    reports = [found for reports in result.endpoints.values() for found in reports]
    assert {(PingState.OK, None, None)} == {(found.state, found.error, found.namespace) for found in reports}
    assert len(reports) == len({found.id for found in reports}) == len({found.remote for found in reports})
    assert {found.id for found in reports} == {found.id for each in again.endpoints.values() for found in each}


def test_only_the_named_service_is_pinged() -> None:
    """Only the named service is pinged, and no further key-value connection is opened."""
    simulation = Asking(2)

    result = ping(simulation, Service.SEARCH)

    assert [Service.SEARCH] == list(result.endpoints)
    assert {Service.SEARCH} == {each.service for each in simulation.asked}
    assert 1 == len(simulation.machine.statistics().connections)


def test_a_service_that_the_cluster_does_not_have() -> None:
    """If no node has a service, the ping does not report that service, and a wait for it succeeds."""
    simulation = started(2)
    simulation.nodes.set_services(0, {Service.KV, Service.QUERY})
    simulation.nodes.set_services(1, {Service.KV})
    simulation.run(3.0)

    result = ping(simulation)
    token = simulation.inquire(WaitUntilReady(None, service_types=(Service.ANALYTICS,)))
    simulation.run()

    assert {Service.KV: 2, Service.QUERY: 1} == {service: len(found) for service, found in result.endpoints.items()}
    assert token in simulation.results


def test_views_belong_to_the_bucket() -> None:
    """In the report of a ping, only the endpoints of key-value and views have the bucket as namespace."""
    result = ping(Asking(), bucket="travel")

    assert {Service.KV: {"travel"}, Service.VIEWS: {"travel"}} == {
        service: names
        for service, found in result.endpoints.items()
        if (names := {each.namespace for each in found}) != {None}
    }


def test_unknown_services_report_key_value() -> None:
    """If the client has no config yet, a ping of another service reports only key-value, in state ERROR."""
    simulation = Asking()
    simulation.nodes.kill(0)

    result = ping(simulation, Service.QUERY)

    assert [Service.KV] == list(result.endpoints)
    assert [PingState.ERROR] == [found.state for found in result.endpoints[Service.KV]]


OVER_HTTP = [each for each in Service if each is not Service.KV]


@pytest.mark.parametrize("service", OVER_HTTP)
@pytest.mark.parametrize("status", [300, 302, 307, 404, 429, 500, 503])
def test_a_ping_reports_the_first_answer(service: Service, status: int) -> None:
    """If the status shows neither success nor missing credentials, the ping of that service fails after one request;
    the next ping reuses the connection.
    """
    simulation = started()
    simulation.nodes[0].faults.next(service, faults.http_status(status, body=b"no"))

    (bad,) = ping(simulation, service).endpoints[service]
    sent = len(heads(simulation))
    (good,) = ping(simulation, service).endpoints[service]

    assert (PingState.ERROR, 1) == (bad.state, sent)
    assert str(status) in str(bad.error)
    assert (PingState.OK, bad.id) == (good.state, good.id)


def missing_credentials(code: int, status: int = 400) -> Fault:
    """Return a fault: an error response of query or analytics with this code."""
    return faults.http_status(status, body=b'{"errors": [{"code": %d, "msg": "no"}], "status": "fatal"}' % code)


@rows(
    ("service", "fault"),
    [
        *((service, faults.http_status(status, body=b"no")) for service in OVER_HTTP for status in (401, 403)),
        *((Service.QUERY, missing_credentials(code)) for code in (10000, 13014)),
        (Service.ANALYTICS, missing_credentials(20000)),
        # The code determines the exception class, but for a ping the status is enough (decision D66).
        *((Service.QUERY, missing_credentials(5000, status)) for status in (401, 403)),
        *((Service.ANALYTICS, missing_credentials(25000, status)) for status in (401, 403)),
    ],
)
def test_a_service_that_requires_credentials(service: Service, fault: Fault) -> None:
    """If a service responds that credentials are missing, it counts as reached for pings and for waits."""
    simulation = started()
    simulation.nodes[0].faults.always(service, fault)

    (report,) = ping(simulation, service).endpoints[service]
    token = simulation.inquire(WaitUntilReady(None, service_types=(service,)))
    simulation.run(1.0)

    assert (PingState.OK, None) == (report.state, report.error)
    assert Ready(ClusterState.ONLINE) == simulation.results[token]


def test_refused_credentials_do_not_answer_a_ping() -> None:
    """If key-value refuses the credentials, and a service is unreachable, a ping reports the service as failed."""
    simulation = started()
    simulation.feed(couchbase.AuthenticatorChanged(PasswordAuthenticator("Administrator", "wrong"), "nonce"))
    simulation.live(1.0)
    simulation.nodes[0].faults.always(None, refuse_connection())

    report = ping_query(simulation)

    assert (PingState.ERROR, f"{report.remote}: connection refused") == (report.state, report.error)


def heads(simulation: Asking) -> list[bytes]:
    """Return the head of each HTTP request that the client has sent."""
    sent = [action.data.partition(b"\r\n\r\n")[0] for action in simulation.actions if isinstance(action, SendBytes)]
    return [head for head in sent if b" HTTP/1.1\r\n" in head]


@pytest.mark.parametrize(
    "authenticator",
    [PasswordAuthenticator("Administrator", "password"), JwtAuthenticator("a.b.c", allow_unencrypted=True)],
    ids=["basic", "bearer"],
)
def test_pings_carry_no_credentials(authenticator: Authenticator) -> None:
    """Pings and waits send no credentials to any service; a later request on the same stream sends them."""
    simulation = Asking(2, tokens=("a.b.c",), authenticator=authenticator)
    token = simulation.inquire(WaitUntilReady(None))
    simulation.run()
    ping(simulation)
    pings = heads(simulation)
    streams = simulation.count(OpenStream)
    query = simulation.request(asking())
    simulation.run()

    assert token in simulation.results
    assert {b"GET /admin/ping", b"GET /api/ping", b"GET /pools", b"GET /"} == {
        head.partition(b" HTTP")[0] for head in pings
    }
    assert not [head for head in pings if b"authorization" in head.lower()]
    assert query in simulation.answers
    assert [True] == [b"authorization: " in head for head in heads(simulation)[len(pings) :]]
    assert streams == simulation.count(OpenStream)


VIEW = ViewRequest(bucket_name="travel", design_document="dd", view_name="v")


@pytest.mark.parametrize(
    ("request_", "target", "status"),
    [(asking(), b"/admin/ping", 401), (VIEW, b"/", 302), (VIEW, b"/", 503)],
    ids=["query 401", "views 302", "views 503"],
)
def test_canaries_carry_no_credentials(request_: ServiceRequest, target: bytes, status: int) -> None:
    """The canary of a circuit breaker sends no credentials, and any response, even an error, closes the breaker."""
    simulation = started(timeouts=ONE_SECOND)
    simulation.nodes.script.answer("dd/v", FakeAnswer(), service=Service.VIEWS)
    simulation.nodes[0].faults.next(request_.service, drop_response(), times=20)
    simulation.nodes[0].faults.next(request_.service, faults.http_status(status))
    for _ in range(20):
        simulation.finish(request_)
    simulation.live(6.0)
    (canary,) = (head for head in heads(simulation) if head.startswith(b"GET %b " % target))
    sent = len(heads(simulation))
    simulation.finish(request_)

    assert b"authorization" not in canary.lower()
    assert sent + 1 == len(heads(simulation))


def test_new_credentials_during_a_ping() -> None:
    """If credentials change during a ping, the ping completes, its stream closes, and later requests use the new ones."""
    simulation = started()
    simulation.nodes[0].faults.next(Service.QUERY, delay(0.1))
    token = simulation.inquire(Ping(None, "i", QUERY))
    simulation.flow()
    simulation.feed(couchbase.AuthenticatorChanged(PasswordAuthenticator("ada", "secret"), "nonce"))
    simulation.live(0.2)
    simulation.request(asking())
    simulation.flow()

    (report,) = result_of(simulation, token).endpoints[Service.QUERY]
    assert PingState.OK is report.state
    assert int(report.id, 16) in [action.stream for action in simulation.actions if isinstance(action, CloseStream)]
    assert base64.b64encode(b"ada:secret") in heads(simulation)[-1]


@pytest.mark.parametrize("services", [None, QUERY])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_wrong_password_ends_a_wait(services: tuple[Service, ...] | None, is_known: bool) -> None:
    """If key-value refuses the password, a wait fails immediately, even if it names only other services."""
    wrong = PasswordAuthenticator("Administrator", "wrong")
    simulation = started() if is_known else Asking(authenticator=wrong)
    if is_known:
        simulation.feed(couchbase.AuthenticatorChanged(wrong, "nonce"))
    began = simulation.now
    token = simulation.inquire(WaitUntilReady(None, service_types=services))
    simulation.run(1.0)
    error = simulation.errors[token]

    assert isinstance(error, errors.AuthenticationFailureException)
    assert ("wait_until_ready", "kv") == (error.context.operation, error.context.service)
    assert began == simulation.settled_at[token]


def test_a_password_that_is_being_checked() -> None:
    """While key-value checks new credentials, a wait for other services stays open; a refusal fails the wait."""
    simulation = started()
    simulation.nodes[0].faults.next(Opcode.SASL_AUTH, delay(0.5))
    simulation.feed(couchbase.AuthenticatorChanged(PasswordAuthenticator("Administrator", "wrong"), "nonce"))
    began = simulation.now
    token = simulation.inquire(WaitUntilReady(None, service_types=QUERY))
    simulation.run(1.0)

    assert isinstance(simulation.errors[token], errors.AuthenticationFailureException)
    assert began + 0.5 == simulation.settled_at[token]


@pytest.mark.parametrize(
    "fault",
    [
        hang_up(),
        faults.raw_answer(b"\x15\x03\x01\x00\x02\x02\x46"),
        faults.raw_answer(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        faults.endless_headers(),
        faults.endless_body(),
        faults.gzipped(zeros=1000),
        faults.wrong_chunk_size(announced=2**40),
        faults.wrong_content_length(announced=2**40),
        faults.answer_twice(),
        drop_response(),
    ],
    ids=repr,
)
def test_a_hostile_answer(fault: Fault) -> None:
    """If the service hangs up, stays silent or responds wrongly, the ping ends in time, and the next ping succeeds."""
    simulation = started(timeouts=TimeoutOptions(query=5.0))
    began = simulation.now
    simulation.nodes[0].faults.next(Service.QUERY, fault)

    bad = ping_query(simulation)
    took = simulation.now - began
    good = ping_query(simulation)

    assert took <= 5.0
    assert bad.state is not PingState.OK or fault == faults.answer_twice()
    assert PingState.OK is good.state
    assert (0, 0) == (simulation.open_operations, query_statistics(simulation).in_flight)


def test_a_ping_uses_the_timeout_of_its_service() -> None:
    """If a service does not respond, its ping ends after the timeout of the service, not that of key-value."""
    simulation = started(timeouts=TimeoutOptions(query=7.0))
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())

    token = simulation.inquire(Ping(None, "i"))
    simulation.run(100.0)
    (found,) = result_of(simulation, token).endpoints[Service.QUERY]

    assert (PingState.TIMEOUT, 7.0) == (found.state, found.latency)
    assert {PingState.OK} == {each.state for each in result_of(simulation, token).endpoints[Service.KV]}


def test_the_latency_of_a_service() -> None:
    """The latency of a ping is the time from its request to its response."""
    simulation = started()
    simulation.nodes[0].faults.next(Service.QUERY, delay(0.25))

    assert 0.25 == ping_query(simulation).latency


@pytest.mark.parametrize("inquiry", [Ping(None, "i", QUERY), WaitUntilReady(None, service_types=QUERY)])
@pytest.mark.parametrize("is_open", [True, False])
def test_abandoning_closes_the_streams_of_pings(inquiry: Ping | WaitUntilReady, is_open: bool) -> None:
    """An abandoned ping or wait closes its open or opening stream and leaves no timer."""
    simulation = started()
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())
    before = simulation.count(OpenStream), simulation.count(CloseStream)
    wakeup = simulation.machine.wakeup
    token = simulation.inquire(inquiry)
    if is_open:
        simulation.flow()

    simulation.feed(couchbase.OperationAbandoned(token))

    assert (before[0] + 1, before[1] + 1) == (simulation.count(OpenStream), simulation.count(CloseStream))
    assert (0, 0) == (query_statistics(simulation).open, query_statistics(simulation).opening)
    assert wakeup == simulation.machine.wakeup
    assert token not in simulation.settled_at
    simulation.nodes[0].faults.clear()
    assert PingState.OK is ping_query(simulation).state


def test_abandoning_keeps_a_shared_stream() -> None:
    """An abandoned ping does not close a stream that a query waits for."""
    simulation = started(max_http_connections=1)
    query = simulation.request(asking())
    token = simulation.inquire(Ping(None, "i", QUERY))

    simulation.feed(couchbase.OperationAbandoned(token))
    simulation.run()

    assert query in simulation.answers


def test_ready_when_every_node_has_answered() -> None:
    """ONLINE needs all nodes of each service and DEGRADED only one; a node counts again after it has recovered."""
    simulation = started(2)
    simulation.nodes[1].faults.always(Service.QUERY, faults.http_status(503))

    degraded = simulation.inquire(WaitUntilReady(None, ClusterState.DEGRADED))
    online = simulation.inquire(WaitUntilReady(None))
    simulation.run(3.0)
    known = simulation.machine.error_context(online, simulation.now)
    assert online not in simulation.results
    simulation.nodes[1].faults.clear()
    healed_at = simulation.now
    simulation.run()

    assert Ready(ClusterState.DEGRADED) == simulation.results[degraded]
    assert Ready(ClusterState.ONLINE) == simulation.results[online]
    assert simulation.settled_at[online] - healed_at <= PAUSE_SECONDS
    assert known is not None
    assert 1 == len(known.connections)
    assert "503" in known.connections[0]


def test_a_lost_ping_is_sent_again() -> None:
    """If a ping of a wait gets no response, the wait sends another ping before the timeout of the service."""
    simulation = started()
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())
    began = simulation.now

    token = simulation.inquire(WaitUntilReady(None))
    simulation.run(200.0)

    assert PING_SECONDS_MAX + PAUSE_SECONDS == simulation.settled_at[token] - began


def test_a_wait_for_query_ignores_key_value() -> None:
    """A wait for the query service ends although one node's key-value service is unreachable."""
    simulation = started(2)
    simulation.nodes.set_services(1, {Service.KV})
    simulation.run(3.0)
    simulation.nodes.kill(1)
    simulation.flow()

    token = simulation.inquire(WaitUntilReady(None, service_types=QUERY))
    simulation.run(1.0)

    assert token in simulation.results


def test_diagnostics_of_connections_over_http() -> None:
    """Diagnostics list an HTTP connection while it exists; without it the cluster state stays ONLINE."""
    simulation = started()
    machine = simulation.machine
    assert isinstance(machine, ClientMachine)
    token = simulation.inquire(Ping(None, "i", QUERY))
    (opening,) = machine.diagnostics("i", simulation.now).endpoints[Service.QUERY]
    simulation.run()
    simulation.advance(0.5)
    (warm,) = machine.diagnostics("i", simulation.now).endpoints[Service.QUERY]
    simulation.advance(1.0)
    cold = machine.diagnostics("i", simulation.now)

    assert (EndpointState.CONNECTING, None) == (opening.state, opening.last_activity)
    assert (EndpointState.CONNECTED, 0.5) == (warm.state, warm.last_activity)
    assert result_of(simulation, token).endpoints[Service.QUERY][0].id == warm.id == opening.id
    assert (ClusterState.ONLINE, [Service.KV]) == (cold.state, list(cold.endpoints))


def query_statistics(simulation: Asking) -> EndpointStatistics:
    """Return the statistics of the query service."""
    (found,) = (each for each in simulation.machine.statistics().endpoints if each.service is Service.QUERY)
    return found


def test_statistics_of_an_endpoint() -> None:
    """The statistics of an endpoint count opening, open and idle streams, requests in flight and queued requests."""
    simulation = started(max_http_connections=2)
    simulation.nodes[0].faults.always(Service.QUERY, delay(0.1))
    for _ in range(5):
        simulation.request(asking())
    opening = query_statistics(simulation)
    simulation.flow()
    busy = query_statistics(simulation)
    simulation.run()
    idle = query_statistics(simulation)

    assert (0, 2, 0, 0, 5) == (opening.open, opening.opening, opening.idle, opening.in_flight, opening.waiting)
    assert (2, 0, 0, 2, 3) == (busy.open, busy.opening, busy.idle, busy.in_flight, busy.waiting)
    assert (2, 0, 2, 0, 0) == (idle.open, idle.opening, idle.idle, idle.in_flight, idle.waiting)
    assert idle.circuit_breaker is not None


def test_the_error_of_an_unreachable_endpoint() -> None:
    """If an endpoint is unreachable, the report and the statistics have the error."""
    simulation = started(2)
    simulation.nodes.kill(1)
    token = simulation.inquire(Ping(None, "i", QUERY))
    simulation.run()
    alive, dead = result_of(simulation, token).endpoints[Service.QUERY]

    assert (PingState.OK, PingState.ERROR) == (alive.state, dead.state)
    assert f"{dead.remote}: connection refused" == dead.error
    assert dead.error in {each.last_error for each in simulation.machine.statistics().endpoints}
    assert int(dead.id, 16) > 0


@pytest.mark.parametrize(
    "fault", [None, faults.http_status(503, body=b"no"), hang_up(), drop_response(), refuse_connection()]
)
def test_pings_over_http_are_not_measured(fault: Fault | None) -> None:
    """A ping of services is one open operation; its requests cause no telemetry, retries, refusals or failures."""
    simulation = started(tracer=EVERYTHING, timeouts=ONE_SECOND)
    simulation.is_traced = True
    services = (Service.QUERY, Service.MANAGEMENT, Service.VIEWS)
    if fault == refuse_connection():
        simulation.nodes[0].faults.always(None, fault)
    elif fault is not None:
        for service in services:
            simulation.nodes[0].faults.always(service, fault)
    del simulation.actions[:]

    token = simulation.inquire(Ping(None, "i", services))
    open_operations = simulation.open_operations
    simulation.live(2.0)

    assert 3 == len(result_of(simulation, token).endpoints)
    assert (1, 0) == (open_operations, simulation.open_operations)
    assert 0 == simulation.count(couchbase.ReportRetry, couchbase.ReportRefusal, couchbase.ReportEnd)
    assert simulation.count(couchbase.ReportDispatch) == simulation.count(couchbase.ReportAnswer)
    assert {} == simulation.machine.statistics().retries_by_reason
    assert [] == simulation.clients[0].last_reports()
    breakers = [endpoint.circuit_breaker for endpoint in simulation.machine.statistics().endpoints]
    assert {0} == {breaker.failures for breaker in breakers if breaker is not None}


def test_abandoned_pings_over_http_are_not_measured() -> None:
    """An abandoned ping of services does not appear in any report."""
    simulation = started(tracer=EVERYTHING)
    for service in (Service.QUERY, Service.MANAGEMENT):
        simulation.nodes[0].faults.always(service, drop_response())
    token = simulation.inquire(Ping(None, "i", (Service.QUERY, Service.MANAGEMENT)))
    simulation.live(1.0)

    simulation.feed(couchbase.OperationAbandoned(token))

    assert 0 == simulation.open_operations
    assert [] == simulation.clients[0].last_reports()


def test_canaries_over_http_are_not_measured() -> None:
    """The canary of a circuit breaker is not an open operation and does not appear in any report."""
    simulation = started(tracer=EVERYTHING, timeouts=ONE_SECOND)
    simulation.nodes[0].faults.always(Service.QUERY, drop_response())
    for _ in range(20):
        simulation.finish(asking())
    simulation.clients[0].last_reports()
    del simulation.actions[:]
    while not simulation.count(SendBytes):
        simulation.now = simulation.wakeup
        simulation.flow()
    open_operations = simulation.open_operations
    simulation.live(10.0)

    assert [b"/admin/ping"] == [head.split()[1] for head in heads(simulation)[-1:]]
    assert 0 == open_operations
    assert 0 == simulation.count(couchbase.ReportRetry, couchbase.ReportRefusal, couchbase.ReportEnd)
    assert [] == simulation.clients[0].last_reports()
