"""Services of a node: their authentication, their request log, and their connections while the node has a problem."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.core.testing.http_client import HttpClient, basic
from tests.core.testing.node_client import with_options
from tests.rows import rows
from triclinium_core import testing
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import delay

SLOW = testing.FakeAnswer(rows=[1, 2, 3], seconds_between_rows=1.0)


def size_of(actions: Sequence[testing.NodeAction]) -> int:
    """Return the number of bytes sent."""
    return sum(len(action.data) for action in actions if isinstance(action, testing.SendReply))


@rows(
    ("authorization", "status"),
    [
        (None, 401),
        (basic("Administrator:password"), 200),
        (basic("Administrator:wrong"), 401),
        (basic("Administrator"), 401),
        ("Basic !", 401),
        ("Bearer a.b.c", 200),
        ("Bearer d.e.f", 401),
        ("Digest x", 401),
    ],
)
def test_credentials(authorization: str | None, status: int) -> None:
    """A request needs a user with password, or a token; wrong credentials get the service's own error."""
    client = HttpClient(with_options(tokens=("a.b.c",)), authorization=authorization)
    answered = client.query("SELECT 1")

    assert (status, [] if status == 200 else [10000]) == (answered.status, answered.codes)
    assert [status == 200] == [request.applied for request in client.node.request_log]


@rows(
    ("service", "target", "status"),
    [
        (Service.QUERY, "/admin/ping", 200),
        (Service.SEARCH, "/api/ping", 200),
        (Service.SEARCH, "/api/index", 401),
        (Service.ANALYTICS, "/admin/ping", 401),
        (Service.VIEWS, "/", 401),
        (Service.MANAGEMENT, "/pools", 401),
    ],
)
def test_pings_without_credentials(service: Service, target: str, status: int) -> None:
    """Query and search answer a ping without credentials; every other request needs them."""
    client = HttpClient(testing.FakeNode(), service, authorization=None)

    assert status == client.ask("GET", target).status


@rows(("names", "status"), [(["ada"], 200), (["bob"], 401)])
def test_certificates(names: list[str], status: int) -> None:
    """A client needs no credentials if its certificate has the name of a user; with any other name it needs them."""
    client = HttpClient(with_options(certificate_users=("ada",)), authorization=None)
    client.node.certificate_shown(1, names)

    assert status == client.query("SELECT 1").status


@rows("fault", [None, testing.http_status(200, b"{}"), testing.close_announced(), testing.endless_body()])
def test_connect_is_refused(fault: testing.Fault | None) -> None:
    """CONNECT gets 501 and a closed connection, even if a fault or a script has a response with status 200."""
    client = HttpClient(testing.FakeNode(), Service.MANAGEMENT)
    client.node.script.answer(re.compile("CONNECT"), testing.FakeAnswer(body="{}"), service=Service.MANAGEMENT)
    if fault is not None:
        client.node.faults.next(Service.MANAGEMENT, fault)
    status = client.ask("CONNECT", "fake:80").status
    (request,) = client.node.request_log

    assert (501, True) == (status, client.is_hung_up)
    assert (501, None, False) == (request.status, request.fault, request.applied)


def test_requests_are_logged() -> None:
    """The log has each request with its response, or with the fault that struck the request before its execution."""
    client = HttpClient(testing.FakeNode())
    client.node.faults.next(Service.QUERY, testing.hang_up())
    client.send(client.encode_query("SELECT 1"))
    client = HttpClient(client.node, connection=2)
    client.query("SELECT 2")
    first, second = client.node.request_log

    assert ("POST", "/query/service", "SELECT 1", b'{"statement": "SELECT 1"}') == (
        first.method,
        first.target,
        first.statement,
        first.body,
    )
    assert (False, None, testing.hang_up()) == (first.applied, first.status, first.fault)
    assert (True, 200, None) == (second.applied, second.status, second.fault)
    assert second.is_answered
    assert len(client.received) == second.bytes_sent


@pytest.mark.parametrize("fault", [None, delay(9.0), testing.drop_response()], ids=["slow", "late", "never"])
def test_lost_client_is_logged(fault: object) -> None:
    """The log shows that a client left before its response was complete, and how much of it the node had sent."""
    node = testing.FakeNode()
    node.script.answer("slow", SLOW)
    if fault is not None:
        node.faults.next(Service.QUERY, fault)  # type: ignore[arg-type]
    patient, hasty = HttpClient(node), HttpClient(node, connection=2)
    patient.query("SELECT 1") if fault is None else None
    hasty.send(hasty.encode_query("slow"))
    hasty.wait(1.5)
    node.connection_lost(2, 1.5)
    node.connection_lost(1, 1.5)

    logged = node.request_log[-1]
    assert len(hasty.received) == logged.bytes_sent
    assert [True, False] == [logged.client_hung_up, logged.is_answered]
    assert [False] * (len(node.request_log) - 1) == [request.client_hung_up for request in node.request_log[:-1]]
    assert 0 == node.connections
    assert float("inf") == node.wakeup


def test_rows_are_sent_at_their_times() -> None:
    """Each row is sent when it is due, the first one with the start of the response."""
    client = HttpClient(testing.FakeNode())
    client.node.script.answer("slow", SLOW)
    client.send(client.encode_query("slow"))
    client.wait(1.5)
    early = client.body
    client.wait(2.0)

    assert early.endswith(b"\n2")
    assert (0.0, 1.0, 2.0) == tuple(sorted(set(client.answered().times)))


def test_killed_node_closes_its_connections() -> None:
    """A killed node sends no more of a response and accepts no connections; the other node still responds."""
    nodes = testing.FakeNodes(nodes=2)
    client = HttpClient(nodes[1])
    nodes.script.answer("slow", SLOW)
    client.send(client.encode_query("slow"))
    before = client.received
    nodes.kill(1)
    client.wait(9.0)

    assert before.endswith(b"\n1\r\n")
    assert (before, True) == (client.received, client.is_hung_up)
    assert not nodes[1].accepts(9.0)
    assert HttpClient(nodes[0], connection=3, now=9.0).query("SELECT 1").status == 200


def test_a_partition_loses_nothing() -> None:
    """Bytes of both sides arrive when a cut is healed, and not before."""
    nodes = testing.FakeNodes(nodes=2)
    client = HttpClient(nodes[0])
    nodes.cut_off(0)
    client.send(client.encode_query("SELECT 1 AS one"))
    client.wait(5.0)
    before = client.received
    nodes.rejoin(0)
    client.wait(5.0)

    assert (b"", [{"one": 1}]) == (before, client.answered().rows)


def test_slow_node_answers_late() -> None:
    """A slow node delays the complete response once, not each row."""
    nodes = testing.FakeNodes(nodes=1)
    client = HttpClient(nodes[0])
    nodes.script.answer("slow", SLOW)
    nodes.slow_down(0, 10)
    client.send(client.encode_query("slow"))
    client.wait(12.0)

    times = client.answered().times
    assert (10.0, 12.0) == (times[0], times[-1])


def test_services_can_be_removed_and_added() -> None:
    """A removed service has no port, is missing in configs and closes its connections; added again, it has its port."""
    nodes = testing.FakeNodes(nodes=2)
    client = HttpClient(nodes[1])
    port = nodes[1].options.service_ports[Service.QUERY]
    nodes.set_services(1, {Service.KV})
    client.wait(0.0)

    assert client.is_hung_up
    assert HttpClient(nodes[1], connection=2).is_hung_up
    assert nodes.find("127.0.0.1", port) is None
    assert 2 == nodes.map.version.revision

    nodes.set_services(1, frozenset(Service))

    assert testing.NodePort(nodes[1], Service.QUERY) == nodes.find("127.0.0.1", port)


def test_unread_response_is_bounded() -> None:
    """A node creates a large response only as fast as the client reads it."""
    node = testing.FakeNode()
    node.script.answer("large", testing.FakeAnswer(rows=["x" * 1000], repeat=1_000_000))
    node.connection_opened(1, 0.0, service=Service.QUERY, unsent_size_max=1)
    asking = HttpClient(testing.FakeNode()).encode_query("large")
    sizes = [size_of(node.bytes_received(1, asking, 0.0))]
    for _ in range(10):
        sizes.append(size_of(node.replies_written(1, sizes[-1], 0.0)))

    assert 0 < min(sizes)
    assert max(sizes) < 100_000
    assert not node.request_log[0].is_answered


def test_faults_for_others_spare_a_request() -> None:
    """A fault for a command, or for another service, strikes no request and stays queued."""
    node = testing.FakeNode()
    node.faults.next(Opcode.GET, testing.hang_up())
    node.faults.next(Service.SEARCH, testing.hang_up())
    answered = HttpClient(node).query("SELECT 1")

    assert (200, None) == (answered.status, node.request_log[0].fault)
    assert 2 == node.faults.pending
