"""Counts of what a connection has received."""

from __future__ import annotations

from triclinium_core.runtime.kv.connection.received import Received


def test_work() -> None:
    """The work of a parser is added to the work for the bytes."""
    received = Received(work=5)
    received.add_work(2)

    assert 7 == received.work


def test_accounts_are_separate() -> None:
    """Two connections have separate server times."""
    first, second = Received(), Received()
    first.server_time.answers += 1

    assert 0 == second.server_time.answers
