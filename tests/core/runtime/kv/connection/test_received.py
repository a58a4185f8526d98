"""Account of what a connection receives."""

from __future__ import annotations

from triclinium_core.runtime.kv.connection.received import Received


def test_work() -> None:
    """A parser adds its work to that of the bytes."""
    received = Received(work=5)
    received.add_work(2)

    assert 7 == received.work


def test_accounts_are_separate() -> None:
    """Each connection has the server time of its own."""
    first, second = Received(), Received()
    first.server_time.answers += 1

    assert 0 == second.server_time.answers
