"""Outbox: bytes that the machine has ordered to send and the driver has not yet written."""

from __future__ import annotations

from itertools import accumulate

import pytest

from triclinium_core.contract.neutral import Outbox
from triclinium_core.contract.neutral.outbox import WRITE_SIZE_MAX as MAX


@pytest.mark.parametrize(
    ("written", "put"),
    [
        ([MAX], [MAX - 1, 1]),
        ([MAX, 1], [MAX - 1, 1, 1]),
        ([MAX, 2], [MAX + 1, 1]),
        ([1, MAX], [1, MAX]),
        ([5, MAX, MAX, 3], [5, 2 * MAX, 3]),
    ],
)
def test_a_write_has_a_maximum_size(written: list[int], put: list[int]) -> None:
    """Pieces are joined in order up to the maximum, and only a piece beyond the maximum is cut."""
    outbox, order = Outbox(), (bytes(range(251)) * (4 * MAX // 251))[: sum(put)]
    for end, size in zip(accumulate(put), put, strict=True):
        outbox.put(order[end - size : end])
    writes = []
    while outbox:
        writes.append(bytes(outbox.take()))

    assert written == [len(write) for write in writes]
    assert (order, len(order)) == (b"".join(writes), outbox.handed_over)


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


def test_a_check_follows_direct_writes() -> None:
    """Bytes that were written without waiting count as handed over, and end no later check."""
    outbox = Outbox()
    outbox.handed_over += 100
    outbox.put(b"earlier")
    outbox.put(b"request", unless_readable=True)
    outbox.advance(len(outbox.peek()) // 2)

    assert (107, True) == (outbox.handed_over, outbox.is_checked)


def test_nothing_follows_a_gap() -> None:
    """Bytes that are put after ``clear`` are dropped."""
    outbox = Outbox()
    outbox.put(b"lost")
    outbox.clear()
    outbox.put(b"later", unless_readable=True)

    assert (False, False, 0) == (bool(outbox), outbox.is_checked, outbox.handed_over)
