"""Services of a fake cluster over streams in memory, over TCP and over TLS."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import h11
import pytest
import trio
import trio.testing
import trustme

from tests.core.testing.http_client import BASIC
from triclinium import testing

KINDS = ("memory", "tcp", "tls")


@pytest.fixture
async def safety_net() -> AsyncIterator[None]:
    """Cancel a test that hangs."""
    with trio.fail_after(60):
        yield


def serving(kind: str) -> AbstractAsyncContextManager[testing.FakeCluster]:
    """Return the block of a fake cluster of two nodes, in memory, over TCP or over TLS."""
    if kind == "memory":
        return testing.open_fake_cluster(nodes=2)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return testing.open_tcp_cluster(nodes=2, ssl_context=context if kind == "tls" else None)


async def connected(
    fake: testing.FakeCluster, kind: str, service: testing.Service = testing.Service.QUERY
) -> trio.abc.Stream:
    """Return a stream to a service of the second node."""
    options = fake.nodes[1].options
    port = options.ports(tls=kind == "tls")[service]
    stream = (await fake.connector.connect(options.host, port, tls=False)).stream
    if kind != "tls":
        return stream
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    return trio.SSLStream(stream, trusting, https_compatible=True)


def encode(http: h11.Connection, statement: str) -> bytes:
    """Return an encoded query."""
    body = json.dumps({"statement": statement}).encode()
    headers = {"host": "fake", "authorization": BASIC, "content-length": str(len(body))}
    request = h11.Request(method="POST", target="/query/service", headers=list(headers.items()))
    return b"".join(http.send(event) or b"" for event in (request, h11.Data(data=body), h11.EndOfMessage()))


async def ask(stream: trio.abc.Stream, statement: str) -> Any:
    """Return the response to a query."""
    http, body = h11.Connection(h11.CLIENT), b""
    await stream.send_all(encode(http, statement))
    while True:
        match http.next_event():
            case h11.NEED_DATA:
                http.receive_data(bytes(await stream.receive_some()))
            case h11.Data(data=data):
                body += data
            case h11.EndOfMessage():
                return json.loads(body)
            case _:
                pass


@pytest.mark.parametrize("kind", KINDS)
async def test_queries_are_answered_on_the_configs_port(safety_net: None, kind: str) -> None:
    """The port that the config lists responds to queries, several of them on one connection."""
    async with serving(kind) as fake:
        fake.nodes.script.answer("SELECT t.* FROM t", testing.FakeAnswer(rows=[{"a": 1}]))
        async with await connected(fake, kind) as stream:
            answers = [await ask(stream, statement) for statement in ("SELECT 1 AS one", "SELECT t.* FROM t")]

        assert [[{"one": 1}], [{"a": 1}]] == [answer["results"] for answer in answers]
        assert ["SELECT 1 AS one", "SELECT t.* FROM t"] == [each.statement for each in fake.nodes[1].request_log]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_large_response_is_complete(safety_net: None, kind: str) -> None:
    """A response is complete even if it is larger than the node's buffer for a client."""
    async with serving(kind) as fake:
        fake.nodes.script.answer("large", testing.FakeAnswer(rows=["x" * 1000], repeat=10_000))
        async with await connected(fake, kind) as stream:
            answer = await ask(stream, "large")

        assert 10_000 == len(answer["results"]) == answer["metrics"]["resultCount"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_closed_client_is_logged(safety_net: None, kind: str) -> None:
    """The log of requests shows that a client closed its connection before the response."""
    async with serving(kind) as fake:
        node = fake.nodes[1]
        node.faults.next(testing.Service.QUERY, testing.drop_response())
        async with await connected(fake, kind) as stream:
            await stream.send_all(encode(h11.Connection(h11.CLIENT), "SELECT 1"))
            while not node.request_log:
                await trio.testing.wait_all_tasks_blocked(0.001)
        while node.connections:
            await trio.testing.wait_all_tasks_blocked(0.001)

        assert node.request_log[0].client_hung_up


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_that_closes_midway_is_logged(safety_net: None, kind: str) -> None:
    """The rest of a response is not produced if the client closes its connection."""
    async with serving(kind) as fake:
        node = fake.nodes[1]
        fake.nodes.script.answer("large", testing.FakeAnswer(rows=["x" * 1000], repeat=100_000))
        async with await connected(fake, kind) as stream:
            await stream.send_all(encode(h11.Connection(h11.CLIENT), "large"))
            await stream.receive_some()
        while node.connections:
            await trio.testing.wait_all_tasks_blocked(0.001)

        assert (True, False) == (node.request_log[0].client_hung_up, node.request_log[0].is_answered)


async def test_a_service_that_a_node_lacks(safety_net: None) -> None:
    """A service that the node lacks has no listener, in memory or over TCP."""
    only_kv = testing.FakeNodeOptions(services=frozenset({testing.Service.KV}))
    async with testing.open_tcp_cluster(testing.FakeNodes(only_kv, nodes=2)) as fake:
        assert {testing.Service.KV} == set(fake.nodes[1].options.ports(tls=False))
    async with testing.open_fake_cluster(options=only_kv) as fake:
        with pytest.raises(ConnectionRefusedError):
            await fake.connector.connect("127.0.0.1", fake.node.options.service_ports[testing.Service.QUERY], tls=False)
