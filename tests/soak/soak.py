"""Run of one soak, with the nodes' process and the client, and the complaints about its results."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import trio

from tests.live.line_process import LineProcess
from tests.soak.figures import MEMORY, Samples, living_tasks, open_files, own_figures
from tests.soak.work import COUNTER_START, OPCODES, READS, Known, Work
from triclinium import Cluster, Collection, PasswordAuthenticator, errors, open_cluster
from triclinium.health import ClientStatistics
from triclinium.tapes import EventTape
from triclinium_core.contract.couchbase import TimerKind

MEMORY_SECONDS_MIN = 120.0
"""Duration in seconds of a run below which its memory is not checked."""
SETTLE_SECONDS = 200.0
"""Seconds after the final reads in which the client must become idle."""
ATTEMPTS = 40
"""Number of attempts to read a document after the faults, because on a busy machine reconnecting takes time."""
READ_SECONDS = 300.0
"""Maximum seconds for the final reads, each of which also has its own timeout."""
POLL_SECONDS = 0.05
MANY = 100
"""Number of operations of one kind, of which at least one must succeed."""
ROUTINE_TIMERS = {
    TimerKind.KEEP_ALIVE,
    TimerKind.CONFIG_POLL,
    TimerKind.CIRCUIT_BREAKER,
    TimerKind.TELEMETRY,
}
"""Kinds of timers that an idle client may have."""


@dataclass
class SoakReport:
    """Results of a soak."""

    seconds: float
    known: Known
    nodes: Mapping[str, Any] = field(default_factory=dict)
    samples: Samples = field(default_factory=Samples)
    statistics: ClientStatistics | None = None
    timers_left: list[str] = field(default_factory=list)
    waiters_left: int = 0
    tasks_left: int = 0
    files_left: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    documents: dict[str, object] = field(default_factory=dict)
    unreachable: list[str] = field(default_factory=list)
    """Exceptions of the documents that could not be read after the faults."""

    def complaints(self) -> list[str]:
        """Return a line for each problem that the results show."""
        return [*self._about_leftovers(), *self._about_operations(), *self._about_documents(), *self._about_memory()]

    def _about_leftovers(self) -> Iterator[str]:
        statistics = self.statistics
        assert statistics is not None
        for what, left in (
            ("open operations", statistics.open_operations),
            ("requests in flight", statistics.in_flight),
            ("waiters", self.waiters_left),
            ("tasks", self.tasks_left),
            ("open files", self.files_left),
            ("timers without a waiter", len(self.timers_left)),
        ):
            if left:
                yield f"{left} {what} are left {self.timers_left if 'timers' in what else ''}"
        yield from (f"unreachable once all was well: {text}" for text in self.unreachable)

    def _about_operations(self) -> Iterator[str]:
        for stranger in self.known.strangers[:10]:
            yield f"an unexpected failure: {stranger!r}"
        applied = self.nodes["applied"]
        for kind, reported in self.known.reported.items():
            if reported.begun != reported.succeeded + reported.failed.total():
                yield f"{kind}: {reported.begun} begun, but {reported.succeeded} succeeded and {reported.failed.total()} failed"
            if not reported.succeeded and reported.begun >= MANY:
                yield f"{kind}: none succeeded"
            done, most = applied.get(OPCODES[kind].name, 0), reported.succeeded + reported.maybe
            if kind not in READS and not reported.succeeded <= done <= most:
                yield f"{kind}: applied {done} times; callers know of {reported.succeeded} to {most}"

    def _about_documents(self) -> Iterator[str]:
        for key, counted in self.known.counters.items():
            found = self.counters[key] - COUNTER_START
            least = counted.up - counted.down - counted.maybe_down
            most = counted.up + counted.maybe_up - counted.down
            if not least <= found <= most:
                yield f"{key} went to {found}; callers know of {least} to {most}"
        for key, own in self.known.own.items():
            allowed = [own.certain, *(value for _, value in own.maybe)]
            if self.documents[key] not in allowed:
                yield f"{key} is {self.documents[key]!r}, and {own.certain!r} was written last"

    def _about_memory(self) -> Iterator[str]:
        if self.seconds < MEMORY_SECONDS_MIN:
            return
        for name in MEMORY:
            found = self.samples.trend(name)
            if not found.is_flat:
                yield f"{name} grew by {found.growth:.1%}, from {found.first:,.0f} to {found.last:,.0f}"


class Soak:
    """Runner of one soak.

    Args:
        seconds: duration of the faults; longer on a busy machine that has not begun ``operations`` by then.
        tasks: number of concurrent tasks.
        pause: average seconds between two operations of a task.
        interval: seconds between two samples.
        operations: minimum number of operations.
        tape: path of the client's event tape, which grows by about 80 MB a minute; None for no tape.
    """

    def __init__(
        self,
        *,
        seconds: float,
        tasks: int,
        seed: int,
        pause: float,
        interval: float,
        operations: int = 0,
        tape: Path | None = None,
    ) -> None:
        self._seconds = seconds
        self._tasks = tasks
        self._seed = seed
        self._pause = pause
        self._interval = interval
        self._operations = operations
        self._tape = None if tape is None else EventTape(tape)
        self._process = LineProcess([sys.executable, "-m", "tests.soak.nodes", str(seed)])

    def run(self) -> SoakReport:
        """Run the soak, and return its results."""
        with self._process:
            return trio.run(self._run, self._process.hear())

    async def _run(self, place: Mapping[str, Any]) -> SoakReport:
        authenticator = PasswordAuthenticator(place["username"], place["password"])
        # Call the nodes once before counting, because the first call opens resources that stay open, such as a thread.
        await self._ask("tally")
        tasks, files = living_tasks(), open_files()
        async with open_cluster(place["connection_string"], authenticator, tape=self._tape) as cluster:
            work = Work(cluster, seed=self._seed, pause=self._pause)
            report = SoakReport(self._seconds, work.known)
            await work.prepare()
            async with trio.open_nursery() as nursery:
                for number in range(self._tasks):
                    nursery.start_soon(work.toil, number)
                await self._watch(report, work)
                work.stopped = True
            report.nodes = await self._ask("calm")
            with trio.fail_after(READ_SECONDS):
                await self._read_all(report, work.store)
            await self._settle(report, cluster)
            report.nodes = await self._ask("tally")
        report.tasks_left = living_tasks() - tasks
        report.files_left = open_files() - files
        return report

    async def _ask(self, what: str) -> Mapping[str, Any]:
        return await trio.to_thread.run_sync(partial(self._process.ask, do=what))

    async def _watch(self, report: SoakReport, work: Work) -> None:
        began = trio.current_time()
        while (elapsed := trio.current_time() - began) < self._seconds or work.known.begun < self._operations:
            nodes_resident = (await self._ask("tally"))["resident"]
            open_operations = work.cluster.statistics().open_operations
            report.samples.add(elapsed, open_operations=open_operations, nodes_resident=nodes_resident, **own_figures())
            await trio.sleep(self._interval)

    async def _read_all(self, report: SoakReport, store: Collection) -> None:
        """Read all known documents concurrently, after the faults."""

        async def read(key: str, found: dict[str, Any]) -> None:
            failure: errors.CouchbaseException | None = None
            for _ in range(ATTEMPTS):
                try:
                    document = await store.get_or_none(key)
                except errors.CouchbaseException as error:
                    failure = error
                else:
                    found[key] = None if document is None else document.content
                    return
            report.unreachable.append(repr(failure))

        async with trio.open_nursery() as nursery:
            for key in report.known.counters:
                nursery.start_soon(read, key, report.counters)
            for key in report.known.own:
                nursery.start_soon(read, key, report.documents)

    async def _settle(self, report: SoakReport, cluster: Cluster) -> None:
        """Wait until the client is idle or the time is up, and record statistics, waiters and timers that are left."""
        driver: Any = cluster._driver
        timers = driver._machine._timers

        def timers_left() -> list[str]:
            return [kind.name for kind, _ in timers._live.values() if kind not in ROUTINE_TIMERS]

        def is_busy() -> bool:
            statistics = cluster.statistics()
            return bool(statistics.in_flight or statistics.open_operations or timers_left())

        with trio.move_on_after(SETTLE_SECONDS):
            while is_busy():  # noqa: ASYNC110 - there is no event to wait for
                await trio.sleep(POLL_SECONDS)
        report.statistics = cluster.statistics()
        report.waiters_left = len(driver._waiters.open) + len(driver._consultations.open) + len(driver._events)
        report.timers_left = timers_left()
