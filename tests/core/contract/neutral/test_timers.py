"""Timers: a heap that is ordered by time, and whose size is proportional to the number of active timers."""

from __future__ import annotations

import math
import weakref

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.contract.neutral import TimerId, Timers
from triclinium_core.contract.neutral.timers import SWEEP_SIZE_MIN

KIND = TimerKind.RETRY


def drain(timers: Timers[TimerKind], now: float) -> list[object]:
    """Return the subjects of all due timers, in the order in which the timers fire."""
    fired: list[object] = []
    newest = timers.newest
    while (due := timers.pop_due(now, newest)) is not None:
        fired.append(due[1])
    return fired


def test_fires_with_kind_and_subject() -> None:
    """A due timer returns its kind and subject once; cancelling an unknown timer has no effect."""
    timers: Timers[TimerKind] = Timers()
    timers.cancel(None)
    timers.cancel(TimerId(10**6))
    timers.schedule(2.0, TimerKind.CANARY, "node")

    assert timers.pop_due(1.999, timers.newest) is None
    assert 2.0 == timers.wakeup
    assert (TimerKind.CANARY, "node") == timers.pop_due(2.0, timers.newest)
    assert timers.pop_due(2.0, timers.newest) is None
    assert 0 == len(timers)


def test_a_new_timer_waits_for_the_next_event() -> None:
    """A timer that is scheduled while timers fire waits for the next event, even if it is due immediately."""
    timers: Timers[TimerKind] = Timers()
    timers.schedule(1.0, KIND, "old")
    newest = timers.newest

    assert (KIND, "old") == timers.pop_due(1.0, newest)

    timers.schedule(1.0, KIND, "new")

    assert timers.pop_due(1.0, newest) is None
    assert 1.0 == timers.wakeup
    assert (KIND, "new") == timers.pop_due(1.0, timers.newest)


def test_cancelled_timers_are_swept_out() -> None:
    """The heap drops cancelled timers, so it stays small after many operations have completed."""
    timers: Timers[TimerKind] = Timers()
    kept = [timers.schedule(1000.0 + number, KIND, number) for number in range(10)]
    for number in range(10_000):
        timers.cancel(timers.schedule(100.0 + number, KIND, "gone"))

    assert 10 == len(timers) == len(kept)
    assert SWEEP_SIZE_MIN + 1 >= len(timers._heap)
    assert [*range(10)] == drain(timers, 2000.0)


def test_a_cancelled_timer_releases_its_subject() -> None:
    """A cancelled timer releases its subject immediately, even if the timer is due much later."""

    class Subject:
        pass

    timers: Timers[TimerKind] = Timers()
    subject = Subject()
    found = weakref.ref(subject)
    timers.schedule(1.0, KIND, "earlier")
    timer = timers.schedule(2.0, KIND, subject)
    del subject
    is_kept = found() is not None
    timers.cancel(timer)

    assert (True, None) == (is_kept, found())


def test_every_kind_has_its_sentence() -> None:
    """Each kind of timer has its own description."""
    assert 24 == len(TimerKind) == len({kind.value for kind in TimerKind})
    assert all(" " in kind.value for kind in TimerKind)


class TimersAgainstAList(RuleBasedStateMachine):
    """State machine that compares the heap of timers with a plain dictionary.

    Due timers fire in the order of their times, then of their scheduling. Their subjects are complex numbers, which
    cannot be compared. A timer at infinity or NaN never fires.
    """

    def __init__(self) -> None:
        super().__init__()
        self.timers: Timers[TimerKind] = Timers()
        self.model: dict[TimerId, float] = {}
        self.all: list[TimerId] = []
        self.now = 0.0

    @rule(delay=st.sampled_from([0.0, 0.5, 1.0, 3.0, math.inf, math.nan]))
    def schedule(self, delay: float) -> None:
        timer = self.timers.schedule(self.now + delay, KIND, complex(len(self.all)))
        self.all.append(timer)
        if delay < math.inf:
            self.model[timer] = self.now + delay

    @rule(position=st.integers(0, 200))
    def cancel(self, position: int) -> None:
        if self.all:
            timer = self.all[position % len(self.all)]
            self.timers.cancel(timer)
            self.model.pop(timer, None)

    @rule()
    def cancel_all_but_one(self) -> None:
        for timer in [*self.model][1:]:
            self.timers.cancel(timer)
            del self.model[timer]

    @rule(count=st.integers(1, 80))
    def schedule_many(self, count: int) -> None:
        for _ in range(count):
            self.schedule(3.0)

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.now += seconds
        due = sorted((when, timer) for timer, when in self.model.items() if when <= self.now)
        assert [self.all.index(timer) for _, timer in due] == drain(self.timers, self.now)
        for _, timer in due:
            del self.model[timer]

    @invariant()
    def agrees(self) -> None:
        assert len(self.model) == len(self.timers)
        assert min(self.model.values(), default=math.inf) == self.timers.wakeup


TestTimersAgainstAList = TimersAgainstAList.TestCase
