"""Replies that wait until they are due."""

from __future__ import annotations

import math

import pytest

from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.testing.fakes.actions import SendReply
from triclinium_core.testing.fakes.outbox import Outbox
from triclinium_core.testing.fakes.state import Connection

UNORDERED = frozenset({HelloFeature.UNORDERED_EXECUTION})


def connection(number: int = 1, features: frozenset[HelloFeature] = UNORDERED) -> Connection:
    """Return a connection with these features."""
    made = Connection(number)
    made.features = features
    return made


def test_what_need_not_wait_is_sent() -> None:
    """And nothing is kept."""
    outbox = Outbox()

    assert [SendReply(1, b"a")] == outbox.send(connection(), b"a", 5.0, 0.0)
    assert math.inf == outbox.due


def test_what_waits_is_sent_when_it_is_due() -> None:
    """Not before; replies of one instant in the order in which they came."""
    outbox, client = Outbox(), connection()
    ordered = [outbox.send(client, data, 5.0, delay) for data, delay in ((b"late", 2.0), (b"a", 1.0), (b"b", 1.0))]
    early = outbox.take_due(5.9)
    due, waiting = outbox.due, client.delayed_replies

    assert [[], [], []] == ordered
    assert ([], 6.0, 3) == (early, due, waiting)
    assert [SendReply(1, b"a"), SendReply(1, b"b")] == outbox.take_due(6.0)
    assert [SendReply(1, b"late")] == outbox.take_due(9.0)
    assert 0 == client.delayed_replies


@pytest.mark.parametrize(("features", "sent"), [(UNORDERED, [SendReply(1, b"b")]), (frozenset(), [])])
def test_whether_a_reply_may_overtake(features: frozenset[HelloFeature], sent: list[SendReply]) -> None:
    """Without unordered execution it waits for those before it."""
    outbox, client = Outbox(), connection(features=features)
    outbox.send(client, b"a", 0.0, 1.0)

    assert sent == outbox.send(client, b"b", 0.0, 0.0)


def test_what_a_lost_connection_was_due_is_dropped() -> None:
    """What others wait for is not."""
    outbox, lost, other = Outbox(), connection(1), connection(2)
    for client in (lost, other):
        outbox.send(client, b"a", 0.0, 1.0)
    outbox.forget(lost)

    assert [SendReply(2, b"a")] == outbox.take_due(1.0)
