"""One node, asked what it is: how long that may take, and what is told when it took longer."""

from __future__ import annotations

import pytest

from triclinium import ConnectionStatistics, PasswordAuthenticator
from triclinium._cli._pinging import Plan, describe_error, describe_silence, ping_node
from triclinium.testing import open_tcp_cluster
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeNode, FakeNodeOptions, drop_response


async def test_a_limit_ends_the_wait() -> None:
    """A node that stops answering is told of, with what it did say before."""
    options = FakeNodeOptions(vbuckets=128)
    plan = Plan(PasswordAuthenticator(options.username, options.password), "default", None, 1.0)
    async with open_tcp_cluster(FakeNode(options)) as fake:
        fake.node.faults.always(Opcode.SELECT_BUCKET, drop_response())

        node = await ping_node(parse_connection_string(fake.connection_string), plan)

    assert [None] == [found.negotiated.bucket for found in node.connections]
    assert f"{node.node}: within 1 s it did not answer with a bucket and a cluster config" == node.problem


def refused(node: str, more: str = "") -> CouchbaseException:
    """Return what an operation fails with where nobody listens."""
    context = ErrorContext(operation="noop", last_dispatch_error=f"{node}: connection refused{more}")
    return CouchbaseException("noop: the node could not be reached", context)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("CONNECTING", "n:1: within 2 s it took no connection; a firewall may swallow it"),
        ("AUTHENTICATING", "n:1: within 2 s it did not finish authentication"),
        ("JOINING", "n:1: within 2 s it did not answer with a bucket and a cluster config"),
        ("READY", "n:1: within 2 s it did not answer a NOOP"),
    ],
)
def test_every_silence_has_its_words(state: str, expected: str) -> None:
    """By where the newest connection stands."""
    ready = ConnectionStatistics(node="n:1", bucket=None, state="READY")
    newest = ConnectionStatistics(node="n:1", bucket="default", state=state)

    assert expected == describe_silence((ready, newest), 2.0, tls=False)


def test_a_connection_that_is_lost_when_time_is_up() -> None:
    """It says why itself."""
    lost = ConnectionStatistics(node="n:1", bucket=None, state="LOST", last_error="n:1: closed\nby the server")

    assert "n:1: closed by the server; not done within 2 s" == describe_silence((lost,), 2.0, tls=True)


def test_a_connection_that_is_lost_and_does_not_say_why() -> None:
    """Then at least that."""
    lost = ConnectionStatistics(node="n:1", bucket=None, state="LOST")

    assert "n:1: the connection was lost; not done within 2 s" == describe_silence((lost,), 2.0, tls=True)


NODE = "127.0.0.1:11210"


@pytest.mark.parametrize(
    ("connection_string", "error", "expected"),
    [
        (
            "couchbase://127.0.0.1",
            CouchbaseException(f"noop: {NODE}: does not know HELLO", ErrorContext(operation="noop")),
            f"{NODE}: does not know HELLO",
        ),
        (
            "couchbase://127.0.0.1",
            CouchbaseException("noop: the server answered BUSY [0x85]", ErrorContext(operation="noop")),
            f"{NODE}: the server answered BUSY [0x85]",
        ),
        (
            "couchbase://127.0.0.1",
            CouchbaseException("noop: no", ErrorContext(last_dispatch_error=f"{NODE}: connection\nreset")),
            f"{NODE}: connection reset",
        ),
        (
            "couchbase://127.0.0.1",
            refused(NODE),
            f"{NODE}: connection refused; nothing listens there; KV is on 11210, or 11207 with TLS",
        ),
        (
            "couchbases://127.0.0.1",
            refused("127.0.0.1:11207"),
            "127.0.0.1:11207: connection refused; nothing listens there; KV with TLS is on 11207",
        ),
        (
            "memcached://127.0.0.1",
            refused("127.0.0.1:11211"),
            "127.0.0.1:11211: connection refused; nothing listens there; memcached is on 11211",
        ),
        (
            "couchbase://127.0.0.1:8091",
            refused("127.0.0.1:8091", "; 8091 is a port of the web console, KV listens on 11210"),
            "127.0.0.1:8091: connection refused; 8091 is a port of the web console, KV listens on 11210",
        ),
        (
            "memcached://127.0.0.1",
            CouchbaseException("noop: it is late", ErrorContext(operation="noop")),
            "127.0.0.1:11211: it is late; if it is no plain memcached, connect with couchbase://",
        ),
    ],
)
def test_errors_are_told_once_and_without_the_operation(
    connection_string: str, error: CouchbaseException, expected: str
) -> None:
    """Who pings does not know of NOOPs; the address stands at the beginning, and the next step at the end."""
    assert expected == describe_error(error, parse_connection_string(connection_string))
