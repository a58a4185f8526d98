"""Queue of operations that wait for a connection."""

from __future__ import annotations

from triclinium_core.runtime.kv.connection.waiting_line import WaitingLine


def test_first_come_first_served() -> None:
    """An operation that leaves the queue, or joins it again, loses its position; the other operations keep theirs."""
    line = WaitingLine()
    for token in (1, 2, 3, 4):
        line.join(token)
    line.leave(2)
    line.leave(99)
    line.join(2)

    assert 2 in line
    assert [1, 3] == [line.take_first(), line.take_first()]
    assert ((4, 2), 0) == (line.take_all(), len(line))


def test_the_peak_is_that_of_one_burst() -> None:
    """The peak of the queue starts again once the queue is empty."""
    line = WaitingLine()
    for token in (1, 2, 3):
        line.join(token)
    line.take_first()
    before = line.peak
    line.take_all()
    line.join(4)

    assert (3, 1) == (before, line.peak)
