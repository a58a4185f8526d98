"""Fake nodes on real local ports."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio
import trio.testing
import trustme

from tests.rows import rows
from tests.trio_client.test_end_to_end_tls import has_ipv6
from tests.trio_client.testing.raw_client import get, open_raw_client
from triclinium import TimeoutOptions, errors
from triclinium.testing import FakeCluster, _node_server, _tcp_port, open_tcp_cluster, serve_tcp
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeNode, FakeNodes, hang_up_mid_reply, refuse_connection

PATIENT = TimeoutOptions(kv=60.0)
MANY = 600_000
"""Number of requests of 27 bytes each. They are more than the kernel buffers."""


@pytest.fixture
async def safety_net() -> AsyncIterator[None]:
    """Cancel a test that hangs."""
    with trio.fail_after(60):
        yield


@pytest.fixture
def occupied_port() -> Iterator[int]:
    """Yield a port that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert isinstance(port, int)
        yield port


@pytest.fixture(scope="module")
def ssl_context() -> ssl.SSLContext:
    """Return the context of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


def pair_of_ports() -> int:
    """Return a free port whose number plus two is a free port, too."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            assert isinstance(port, int)
            try:
                socket.create_server(("127.0.0.1", port + 2)).close()
            except (OSError, OverflowError):
                continue
        return port


async def upsert(fake: FakeCluster) -> None:
    """Write a document through a new client."""
    async with fake.open_client(timeouts=PATIENT) as cluster:
        await cluster.bucket("default").default_collection().upsert("ada", 1)


@pytest.mark.parametrize("tls", [False, True])
async def test_configs_have_the_real_ports(safety_net: None, ssl_context: ssl.SSLContext, tls: bool) -> None:
    """The ports in a config are those on which the node listens."""
    async with (
        open_tcp_cluster(FakeNode(), ssl_context=ssl_context if tls else None) as fake,
        open_raw_client(fake) as client,
    ):
        await client.get_ready()
        answer = await client.ask(Opcode.GET_CLUSTER_CONFIG)

    assert answer is not None
    services = json.loads(answer.value)["nodesExt"][0]["services"]
    assert f"couchbase://127.0.0.1:{services.pop('kv')}" == fake.connection_string
    others = set(fake.node.options.ports(tls=False).values()) | set(fake.node.options.ports(tls=True).values())
    assert others == {*services.values(), fake.node.options.port}
    assert tls == ("n1qlSSL" in services)


async def test_a_node_keeps_documents_on_its_port(safety_net: None) -> None:
    """Clients share the documents of a node on a free port, also if it is served again on the same port."""
    node, found = FakeNode(), []
    async with open_tcp_cluster(node) as fake:
        port = node.options.port
        assert (f"couchbase://127.0.0.1:{port}", None) == (fake.connection_string, fake.tls_connection_string)
        async with fake.open_client(timeouts=PATIENT) as cluster:
            await upsert(fake)
            found += [await cluster.bucket("default").default_collection().get("ada")]
    async with open_tcp_cluster(node, port=port) as again, again.open_client(timeouts=PATIENT) as cluster:
        found += [await cluster.bucket("default").default_collection().get("ada")]

    assert [1, 1] == [each.content for each in found]
    assert fake.connection_string == again.connection_string


@rows(
    ("parameter", "value"),
    [
        ("node", "127.0.0.1"),
        ("nodes", 0),
        ("nodes", 2),
        ("buckets", ["travel"]),
        ("replicas", 1),
        ("seed", 1),
        ("port", -1),
        ("port", 65536),
        ("port", "11210"),
        ("tls_port", True),
        ("ssl_context", "cert.pem"),
    ],
)
async def test_wrong_arguments_are_refused(safety_net: None, parameter: str, value: object) -> None:
    """A wrong argument raises with its name before anything listens."""
    arguments: dict[str, Any] = {"node": FakeNode(), parameter: value}

    with pytest.raises(errors.InvalidArgumentException) as caught:
        async with open_tcp_cluster(**arguments):
            raise AssertionError

    assert parameter == caught.value.parameter


async def test_several_nodes(safety_net: None, ssl_context: ssl.SSLContext) -> None:
    """Each of several nodes has its own ports, which are in all configs and in the connection string."""
    async with (
        open_tcp_cluster(nodes=3, replicas=1, ssl_context=ssl_context) as fake,
        open_raw_client(fake, 2) as client,
    ):
        await client.get_ready()
        answer = await client.ask(Opcode.GET_CLUSTER_CONFIG)

        assert answer is not None
        found = json.loads(answer.value)
        assert 1 == len(fake.nodes.replica_holders_of("ada"))
        ports = [node.options.port for node in fake.nodes]
        assert 6 == len({*ports, *(node.options.tls_port for node in fake.nodes)})
        assert ports == [node["services"]["kv"] for node in found["nodesExt"]]
        assert [False, False, True] == [node.get("thisNode", False) for node in found["nodesExt"]]
        assert f"couchbase://{','.join(f'127.0.0.1:{port}' for port in ports)}" == fake.connection_string
        assert [0, 0, 4] == [len(node.command_log) for node in fake.nodes]


async def test_ports_of_several_nodes_are_two_apart(safety_net: None) -> None:
    """Nodes created before they are served have ports two apart; a first port without room for that is refused."""
    nodes, port = FakeNodes(nodes=2), pair_of_ports()
    async with open_tcp_cluster(nodes, port=port) as fake:
        assert nodes is fake.nodes
        assert [port, port + 2] == [node.options.port for node in nodes]
    with pytest.raises(errors.InvalidArgumentException, match="from 0 to 65533"):
        async with open_tcp_cluster(nodes, port=65534):
            raise AssertionError


@pytest.mark.parametrize(
    "host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on loopback"))]
)
async def test_a_dead_node_refuses_connections(safety_net: None, host: str) -> None:
    """A dead node closes its connections and its ports, another continues, and the same ports open again."""
    async with open_tcp_cluster(nodes=2, host=host) as fake, open_raw_client(fake, 1) as client:
        await client.get_ready()
        ports = fake.nodes[1].options.ports(tls=False).values()
        fake.nodes.kill(1)

        assert await client.hear() is None
        for port in ports:
            with pytest.raises(OSError, match="failed"):
                await trio.open_tcp_stream(host, port)
        async with open_raw_client(fake, 0) as another:
            await another.get_ready()
        fake.nodes.revive(1)
        async with open_raw_client(fake, 1) as again:
            await again.get_ready()
        for port in ports:
            async with await trio.open_tcp_stream(host, port):
                pass


async def test_port_of_dead_node_is_reserved(safety_net: None) -> None:
    """Another program cannot take the port of a dead node, even with SO_REUSEADDR and after connections."""
    async with open_tcp_cluster(FakeNode()) as fake, open_raw_client(fake) as client:
        await client.get_ready()
        fake.nodes.kill(0)
        thief = socket.socket()
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with thief, pytest.raises(OSError, match="in use"):
            thief.bind(("127.0.0.1", fake.node.options.port))
        fake.nodes.revive(0)
        await upsert(fake)


@pytest.mark.parametrize("is_planned", [False, True])
async def test_node_without_its_port_stays_dead(
    safety_net: None, monkeypatch: pytest.MonkeyPatch, is_planned: bool
) -> None:
    """If a port cannot be opened again, the command fails, its node stays dead, and the other nodes continue."""
    async with open_tcp_cluster(nodes=2) as fake:
        with monkeypatch.context() as patch:
            patch.setattr(_tcp_port, "_bound", _port_is_taken)
            if is_planned:
                ended = trio.Event()
                fake.nodes.set_change_listener(lambda change: ended.set() if change.is_end else None)
                fake.nodes.kill(1, for_seconds=0.02)
                await ended.wait()
            else:
                fake.nodes.kill(1)
                with pytest.raises(errors.InvalidArgumentException, match="opened again"):
                    fake.nodes.revive(1)
                with pytest.raises(errors.InvalidArgumentException, match="opened again"):
                    fake.nodes.cut_off(1)
            assert [True, False] == [node.is_listening for node in fake.nodes]
            assert is_planned == (fake.nodes.changes[-1].error is not None)
            async with open_raw_client(fake, 0) as other:
                await other.get_ready()
        fake.nodes.revive(1)
        async with open_raw_client(fake, 1) as again:
            await again.get_ready()


def _port_is_taken(family: int, address: object) -> socket.socket:
    raise OSError("address in use")


async def test_planned_restart_needs_no_traffic(safety_net: None) -> None:
    """Nodes without traffic restart at their time, and for as long as the command lasts."""
    ended = trio.Event()
    async with open_tcp_cluster(nodes=2) as fake:
        fake.nodes.set_change_listener(lambda change: ended.set() if change.is_end else None)
        fake.nodes.restart(1, at_seconds=0.02, for_seconds=0.02)
        await ended.wait()
    began, over = fake.nodes.changes

    assert [("restart", 1, False), ("restart", 1, True)] == [
        (each.name, each.node, each.is_end) for each in (began, over)
    ]
    assert began.now >= 0.02
    assert over.now >= 0.04


@rows("name", ["port", "tls_port"])
async def test_a_port_that_is_taken(
    safety_net: None, ssl_context: ssl.SSLContext, occupied_port: int, name: str
) -> None:
    """A port that is in use, with TLS or without, raises the system's exception."""
    ports: dict[str, Any] = {name: occupied_port}
    with pytest.raises(OSError, match="in use"):
        async with open_tcp_cluster(FakeNode(), ssl_context=ssl_context, **ports):
            raise AssertionError


async def test_serve_tcp_in_the_callers_nursery(safety_net: None) -> None:
    """``serve_tcp`` reports when it is ready, and releases its port when it is cancelled."""
    async with trio.open_nursery() as nursery:
        fake = await nursery.start(serve_tcp, FakeNode())
        await upsert(fake)
        nursery.cancel_scope.cancel()

    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", fake.node.options.port)


async def test_a_refused_connection_is_reset(safety_net: None) -> None:
    """A connection that a fault refuses is reset, and the client gets one later."""
    async with open_tcp_cluster(FakeNode()) as fake:
        fake.node.faults.next(None, refuse_connection(), times=3)
        await upsert(fake)

        assert 0 == fake.node.faults.pending
        fake.node.faults.next(None, refuse_connection())
        async with await trio.open_tcp_stream("127.0.0.1", fake.node.options.port) as stream:
            with pytest.raises(trio.BrokenResourceError):
                await stream.receive_some()


async def test_bytes_before_hanging_up_arrive(safety_net: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that the node sent before it closed the connection arrive, even if it has unread requests."""
    monkeypatch.setattr(_node_server, "LINGER_SECONDS", 60.0)
    received = b""
    async with open_tcp_cluster(FakeNode()) as fake, open_raw_client(fake) as client:
        await client.get_ready()
        fake.node.documents.put("default", "ada", b"1")
        fake.node.faults.next(Opcode.GET, hang_up_mid_reply(bytes_sent=5))
        await client.stream.send_all(get("ada") * MANY)
        while data := await client.stream.receive_some():
            received += data

    assert 5 == len(received)


@rows("said", [b"", b"\x16", b"\x16\x03\x01\x00\x05hello"])
async def test_a_failed_handshake_affects_no_other_client(
    safety_net: None, ssl_context: ssl.SSLContext, said: bytes
) -> None:
    """If a client closes or sends invalid bytes during the handshake, the server drops it and serves other clients."""
    async with open_tcp_cluster(FakeNode(), ssl_context=ssl_context) as fake:
        port = fake.node.options.tls_port
        assert port is not None
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(said or b" ")
        await upsert(fake)

    assert fake.node.documents.get("default", "ada") is not None
