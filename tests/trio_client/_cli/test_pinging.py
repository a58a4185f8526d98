"""One node, asked what it is: how long that may take, and what is told when it took longer."""

from __future__ import annotations

import pytest

from triclinium import ConnectionStatistics, PasswordAuthenticator
from triclinium._cli._pinging import Plan, describe_silence, ping_node
from triclinium.testing import open_tcp_cluster
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

    assert "n:1: within 2 s it n:1: closed by the server" == describe_silence((lost,), 2.0, tls=True)
