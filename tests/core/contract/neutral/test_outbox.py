"""Bytes between their order and their write."""

from __future__ import annotations

from triclinium_core.contract.neutral import Outbox
from triclinium_core.contract.neutral.outbox import WRITE_SIZE_MAX


def test_pieces_are_joined_for_one_write() -> None:
    """``take`` returns all waiting bytes in order, and counts them as handed over."""
    outbox = Outbox()
    for piece in (b"one ", b"two ", b"three"):
        outbox.put(piece)

    assert b"one two three" == outbox.take()
    assert (13, False) == (outbox.handed_over, bool(outbox))


def test_a_write_has_a_maximum_size() -> None:
    """Pieces are joined up to the maximum, and a piece beyond the maximum is cut."""
    outbox, large = Outbox(), bytes(range(256)) * (WRITE_SIZE_MAX // 128)
    for piece in (b"small", large, b"end"):
        outbox.put(piece)
    writes = [bytes(outbox.take()) for _ in range(3)]

    assert [b"small", large[:WRITE_SIZE_MAX], large[WRITE_SIZE_MAX:]] == writes
    assert (len(b"small") + len(large), b"end") == (outbox.handed_over, outbox.take())


def test_unaccepted_bytes_still_wait() -> None:
    """After a write that the system accepted in part, the rest waits before later bytes and does not count."""
    outbox = Outbox()
    outbox.put(b"one ")
    outbox.put(b"two ")
    assert b"one two " == outbox.peek()
    outbox.advance(6)
    outbox.put(b"three")

    assert 6 == outbox.handed_over
    assert b"o three" == bytes(outbox.take())
    assert 13 == outbox.handed_over


def test_a_check_ends_with_the_write() -> None:
    """Checked bytes mark the outbox until a write begins, also if unchecked bytes follow, or until it is cleared."""
    outbox = Outbox()
    outbox.put(b"request", unless_readable=True)
    outbox.put(b"more")
    before = outbox.is_checked
    outbox.advance(1)
    after = outbox.is_checked
    outbox.put(b"request", unless_readable=True)
    outbox.clear()

    assert (True, False, False) == (before, after, outbox.is_checked)
    assert (1, False) == (outbox.handed_over, bool(outbox))


def test_a_check_outlasts_earlier_bytes() -> None:
    """While earlier bytes are written, checked bytes still mark the outbox, until their first one is written."""
    outbox = Outbox()
    outbox.put(b"earlier")
    outbox.put(b"", unless_readable=True)
    outbox.put(b"request", unless_readable=True)
    checks = []
    for size in (3, 4, 1):
        outbox.peek()
        outbox.advance(size)
        checks.append(outbox.is_checked)

    assert [True, True, False] == checks


def test_nothing_follows_a_gap() -> None:
    """Bytes that are put after ``clear`` are dropped."""
    outbox = Outbox()
    outbox.put(b"lost")
    outbox.clear()
    outbox.put(b"later", unless_readable=True)

    assert (False, False, 0) == (bool(outbox), outbox.is_checked, outbox.handed_over)
