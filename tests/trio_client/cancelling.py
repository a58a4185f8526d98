"""Cancellation of a call at every moment, with one run for each moment.

A *moment* is the instant after a step of any task during the call, or after a timer woke a task. Another task or a
deadline cancels a scope at one of them. The randomness of the scheduler is seeded: up to its moment, a cancelled run
equals the run without a cancellation.
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

from tests.trio_client.recorded_telemetry import RecordingTracer
from triclinium import AbandonedOperation, Cluster, errors, fail_after
from triclinium.testing import FakeCluster, FakeNodeOptions, Service, open_fake_cluster

T = TypeVar("T")

VIRTUAL_DAY = 86_400.0
"""Virtual seconds after which a run counts as hanging, because no test waits that long."""


class Moments(trio.abc.Instrument):
    """Counter of the moments of a call, which cancels its scope at one of them.

    Args:
        cancel_at: number of the moment; 0 for the instant before the call, None for never.
    """

    def __init__(self, cancel_at: int | None = None) -> None:
        self.cancel_at = cancel_at
        self.count = 0
        """Number of moments of the call so far."""
        self.checkpoints = 0
        """Steps after which the caller's own task yielded."""
        self._tasks: Counter[str] = Counter()

    @property
    def tasks(self) -> Mapping[str, int]:
        """Number of live tasks for each name."""
        return {name: number for name, number in self._tasks.items() if number}

    @contextmanager
    def of_call(self, scope: trio.CancelScope) -> Iterator[None]:
        """Count the moments of the block, which is the call, from 0, and cancel ``scope`` at ``cancel_at``."""
        self.count = self.checkpoints = 0
        if self.cancel_at == 0:
            scope.cancel()
        # Install the instrument for the call only: most steps of a run are before or after it, and counting takes time.
        steps = _StepsOfCall(self, scope)
        trio.lowlevel.add_instrument(steps)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(steps)

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        """Count a new task."""
        self._tasks[task.name] += 1

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        """Count a finished task."""
        self._tasks[task.name] -= 1


class _StepsOfCall(trio.abc.Instrument):
    """Instrument that watches all tasks during a call and counts for ``moments``."""

    def __init__(self, moments: Moments, scope: trio.CancelScope) -> None:
        self._moments = moments
        self._scope = scope
        self._caller = trio.lowlevel.current_task()
        self._is_idle = False
        self._is_due = False

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count the moment after a step; count a checkpoint if the caller's own task made the step."""
        if task is self._caller:
            self._moments.checkpoints += 1
        self._pass()

    def before_io_wait(self, timeout: float) -> None:
        """Note that no task was ready, so that time may pass."""
        self._is_idle = True

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Note whether a task was woken by a timer."""
        self._is_due = self._is_due or self._is_idle

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count a moment if a timer has woken a task."""
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
    """Return the result of ``play`` in a deterministic run in virtual time.

    Args:
        seed: seed of the order in which trio runs tasks that are ready in the same pass.

    Raises:
        trio.TooSlowError: the run hangs.
    """
    scheduler_chance.seed(seed)

    async def limited() -> T:
        with trio.fail_after(VIRTUAL_DAY):
            return await play()

    return trio.run(limited, clock=MockClock(autojump_threshold=0), instruments=instruments)


class Runs(NamedTuple, Generic[T]):
    """Results of a call, one for each moment."""

    undisturbed: T
    """Result without a cancellation."""
    cancelled: Sequence[T]
    """Results of runs that are cancelled before the call, at its first moment, and so on up to its last moment."""
    moments: int
    checkpoints: int


def at_every_moment(play: Callable[[Moments], Awaitable[T]], *, seed: int = 0) -> Runs[T]:
    """Return the results of ``play`` without a cancellation, and with one at each moment in turn."""

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
    """Ending of a call."""

    outcome: str | None
    """Type name of the result or exception; None if the call was cancelled, so that it has neither."""
    was_caught: bool
    """Whether its scope caught a cancellation."""
    is_ambiguous: bool | None = None
    """Ambiguity that ``fail_after`` reported; None if it reported nothing."""
    abandoned: tuple[AbandonedOperation, ...] = ()


async def end_of(call: Callable[[], Awaitable[object]], moments: Moments) -> Ending:
    """Return the ending of a call within ``fail_after`` whose scope ``moments`` may cancel."""
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


Call = Callable[[Cluster], Awaitable[object]]
SETTLING_SECONDS = 6.0
"""Seconds until a client has settled: longer than any delay of these tests, shorter than the keep-alive interval."""


@dataclass(frozen=True, slots=True)
class Life:
    """One call of a cluster, and the state when the client has settled and later calls have succeeded."""

    ending: Ending
    changes: int
    """Number of executed requests to the management service that may change something."""
    connections: int
    open_operations: int
    tasks: Mapping[str, int]
    broken_rules: Sequence[str]
    """Names of the spans that broke a rule of telemetry."""


async def live(
    options: FakeNodeOptions,
    prepare: Callable[[FakeCluster, trio.Nursery], None],
    call: Call,
    use: Call,
    moments: Moments,
) -> Life:
    """Return the ending of a call to two nodes that ``moments`` may cancel, and the state after calls of ``use``."""
    tracer = RecordingTracer()
    async with open_fake_cluster(options=options, nodes=2) as fake, fake.open_client(tracer=tracer) as cluster:
        async with trio.open_nursery() as nursery:
            prepare(fake, nursery)
            ending = await end_of(partial(call, cluster), moments)
        for node in fake.nodes:
            node.faults.clear()
        await trio.sleep(SETTLING_SECONDS)
        await use(cluster)
        await cluster.bucket("travel").default_collection().upsert("ada", 1)
        logged = [each for node in fake.nodes for each in node.request_log]
        changes = sum(each.applied and each.service is Service.MANAGEMENT and each.method != "GET" for each in logged)
        left = cluster.statistics()
        return Life(ending, changes, len(left.connections), left.open_operations, moments.tasks, tracer.broken_rules)
