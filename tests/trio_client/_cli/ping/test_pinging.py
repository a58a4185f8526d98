"""Ping of one node: its time limit, the report when the limit expires, and the text of an error."""

from __future__ import annotations

from tests.rows import rows
from triclinium import PasswordAuthenticator
from triclinium._cli.ping.pinging import Plan, describe_error, describe_silence, ping_node
from triclinium.health import ConnectionStatistics
from triclinium.testing import open_tcp_cluster
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeNode, FakeNodeOptions, drop_response


async def test_a_limit_ends_the_wait() -> None:
    """A node that stops responding is reported with the connections that were ready before."""
    options = FakeNodeOptions(vbuckets=128)
    plan = Plan(PasswordAuthenticator(options.username, options.password), "default", None, 1.0)
    async with open_tcp_cluster(FakeNode(options)) as fake:
        fake.node.faults.always(Opcode.SELECT_BUCKET, drop_response())

        node = await ping_node(parse_connection_string(fake.connection_string), plan)

    assert [None] == [found.negotiated.bucket for found in node.connections]
    assert node.problem is not None
    assert node.problem.startswith(f"{node.node}: within 1 s ")


def refused(node: str, more: str = "") -> errors.CouchbaseException:
    """Return the error of an operation whose node refuses connections."""
    context = ErrorContext(operation="noop", last_dispatch_error=f"{node}: connection refused{more}")
    return errors.CouchbaseException("noop: the node could not be reached", context)


@rows(
    ("state", "expected"),
    [
        ("CONNECTING", "no connection"),
        ("AUTHENTICATING", "authentication"),
        ("JOINING", "a cluster config"),
        ("READY", "a NOOP"),
    ],
)
def test_each_silent_state_is_described(state: str, expected: str) -> None:
    """The description of a timeout follows the state of the newest connection."""
    ready = ConnectionStatistics(node="n:1", bucket=None, state="READY")
    newest = ConnectionStatistics(node="n:1", bucket="default", state=state)
    silence = describe_silence((ready, newest), 2.0, tls=False)

    assert silence.startswith("n:1: within 2 s ")
    assert expected in silence


@rows(
    ("last_error", "expected"),
    [("n:1: closed\nby the server", "closed by the server"), (None, "the connection was lost")],
)
def test_a_connection_lost_at_the_time_limit(last_error: str | None, expected: str) -> None:
    """A connection that was lost at the time limit is described on one line, with its last error if there is one."""
    lost = ConnectionStatistics(node="n:1", bucket=None, state="LOST", last_error=last_error)

    silence = describe_silence((lost,), 2.0, tls=True)
    assert silence.startswith(f"n:1: {expected}; ")
    assert silence.endswith(" 2 s")


NODE = "127.0.0.1:11210"


@rows(
    ("connection_string", "error", "expected"),
    [
        (
            "couchbase://127.0.0.1",
            errors.CouchbaseException(f"noop: {NODE}: does not know HELLO", ErrorContext(operation="noop")),
            f"{NODE}: does not know HELLO",
        ),
        (
            "couchbase://127.0.0.1",
            errors.CouchbaseException("noop: no", ErrorContext(last_dispatch_error=f"{NODE}: connection\nreset")),
            f"{NODE}: connection reset",
        ),
        (
            "couchbases://127.0.0.1",
            refused("127.0.0.1:11207"),
            "127.0.0.1:11207: connection refused; nothing listens there; KV with TLS is on 11207",
        ),
        (
            "memcached://127.0.0.1",
            errors.CouchbaseException("noop: it is late", ErrorContext(operation="noop")),
            "127.0.0.1:11211: it is late; ",
        ),
    ],
)
def test_an_error_omits_the_operation(connection_string: str, error: errors.CouchbaseException, expected: str) -> None:
    """The description of an error omits the NOOP, begins with the address, and stays on one line."""
    assert describe_error(error, parse_connection_string(connection_string)).startswith(expected)
