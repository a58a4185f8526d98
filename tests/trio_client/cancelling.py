"""Cancelling a call at every moment of its life, one run after the other.

A *moment* is the instant after a step of any task while the call is under way, or after something fell due. Whoever may
cancel a scope, another task or a deadline, does it at one of them. The scheduler's chance is fixed: the run that is
cancelled at a moment is, up to that moment, the run that was not cancelled.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import trio
from trio._core._run import _r as scheduler_chance
from trio.testing import MockClock

from triclinium import AbandonedOperation, errors, fail_after

T = TypeVar("T")

VIRTUAL_DAY = 86_400.0
"""Longer than anything a test waits for: a run that is not over by then hangs."""


class Moments(trio.abc.Instrument):
    """Counts the moments of a call, and cancels its scope at one of them.

    Args:
        cancel_at: which one; 0 for the instant before the call, None for never.
    """

    def __init__(self, cancel_at: int | None = None) -> None:
        self.cancel_at = cancel_at
        self.count = 0
        """Moments of the call so far."""
        self.checkpoints = 0
        """Steps after which the caller's own task let others run."""
        self._tasks: Counter[str] = Counter()

    @property
    def tasks(self) -> Mapping[str, int]:
        """How many tasks of each name are alive."""
        return {name: number for name, number in self._tasks.items() if number}

    @contextmanager
    def of_call(self, scope: trio.CancelScope) -> Iterator[None]:
        """Count as long as the block runs, beginning with 0."""
        self.count = self.checkpoints = 0
        if self.cancel_at == 0:
            scope.cancel()
        # Most steps of a run are before the call or after it, where each hook would only cost time.
        steps = _StepsOfCall(self, scope)
        trio.lowlevel.add_instrument(steps)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(steps)

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        """Note a birth."""
        self._tasks[task.name] += 1

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        """Note a death."""
        self._tasks[task.name] -= 1


class _StepsOfCall(trio.abc.Instrument):
    """Watches all tasks while a call is under way, and has ``moments`` count."""

    def __init__(self, moments: Moments, scope: trio.CancelScope) -> None:
        self._moments = moments
        self._scope = scope
        self._caller = trio.lowlevel.current_task()
        self._is_idle = False
        self._is_due = False

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note a moment, and which task had it."""
        if task is self._caller:
            self._moments.checkpoints += 1
        self._pass()

    def before_io_wait(self, timeout: float) -> None:
        """Note that time passes now, if no task is ready."""
        self._is_idle = True

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Note whether it was the time that woke a task."""
        self._is_due = self._is_due or self._is_idle

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note a moment where something fell due before it."""
        if self._is_due:
            self._pass()
        self._is_idle = self._is_due = False

    def _pass(self) -> None:
        self._moments.count += 1
        if self._moments.count == self._moments.cancel_at:
            self._scope.cancel()


def run_in_virtual_time(
    play: Callable[[], Awaitable[T]], *, instruments: Sequence[trio.abc.Instrument] = (), seed: int = 0
) -> T:
    """Return what ``play`` returns; nothing of the run is left to chance, and none of it takes time.

    Args:
        seed: of the order in which Trio runs tasks that are ready at once.

    Raises:
        trio.TooSlowError: it hangs.
    """
    scheduler_chance.seed(seed)

    async def limited() -> T:
        with trio.fail_after(VIRTUAL_DAY):
            return await play()

    return trio.run(limited, clock=MockClock(autojump_threshold=0), instruments=instruments)


class Runs(NamedTuple, Generic[T]):
    """What came of a call, once for each moment."""

    undisturbed: T
    """Not cancelled at all."""
    cancelled: Sequence[T]
    """Cancelled before it began, and then at its first moment, at its second, and so on to its last."""
    moments: int
    checkpoints: int


def at_every_moment(play: Callable[[Moments], Awaitable[T]], *, seed: int = 0) -> Runs[T]:
    """Return what ``play`` returns when its call is not cancelled, and when it is, at each moment in turn."""

    def run(moments: Moments) -> T:
        return run_in_virtual_time(partial(play, moments), instruments=[moments], seed=seed)

    never = Moments()
    undisturbed = run(never)
    cancelled: list[T] = []
    while True:
        moments = Moments(cancel_at=len(cancelled))
        outcome = run(moments)
        if moments.count < len(cancelled):
            return Runs(undisturbed, cancelled, never.count, never.checkpoints)
        cancelled.append(outcome)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended."""

    outcome: str | None
    """What it returned or raised by itself, as a word; None where it did neither."""
    was_caught: bool
    """Whether its scope caught a cancellation."""
    is_ambiguous: bool | None = None
    """What ``fail_after`` said; None where it had nothing to say."""
    abandoned: tuple[AbandonedOperation, ...] = ()


async def end_of(call: Callable[[], Awaitable[object]], moments: Moments) -> Ending:
    """Return how a call within ``fail_after`` ends, of which ``moments`` may cancel the scope."""
    outcome: str | None = None
    scope = trio.CancelScope()
    try:
        with fail_after(math.inf) as scope, moments.of_call(scope):
            try:
                outcome = type(await call()).__name__
            except errors.CouchbaseException as error:
                outcome = type(error).__name__
    except (errors.AmbiguousTooSlowError, errors.UnambiguousTooSlowError) as error:
        is_ambiguous = isinstance(error, errors.AmbiguousTooSlowError)
        return Ending(outcome, scope.cancelled_caught, is_ambiguous, error.operations)
    return Ending(outcome, scope.cancelled_caught)
