"""Results of the tests of one file, from the lines of the report."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """Result of one test."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


class OfficialResult(msgspec.Struct, frozen=True):
    """Result of one test; ``reason`` is empty for a passed test."""

    test: str
    outcome: Outcome
    reason: str = ""
    row: str = ""
    """Unsupported feature that explains a failure."""


class Event(msgspec.Struct, frozen=True):
    """One line of the report."""

    event: str
    test: str
    phase: str = ""
    reason: str = ""


class FileReport:
    """Results of one test file, collected over all processes that ran it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.seconds = 0.0
        self._results: dict[str, OfficialResult] = {}
        self._collected: dict[str, None] = {}
        self._running: str | None = None

    @property
    def results(self) -> list[OfficialResult]:
        """Results in the order in which the tests ended."""
        return list(self._results.values())

    @property
    def left(self) -> list[str]:
        """Tests that were collected and have no result."""
        return [test for test in self._collected if test not in self._results]

    def add(self, events: Iterable[Event]) -> None:
        """Add the events of one process."""
        for event in events:
            match event.event:
                case "collected":
                    self._collected[event.test] = None
                case "started":
                    self._running = event.test
                case "failed":
                    self._set(event.test, Outcome.FAILED, event.reason, phase=event.phase)
                case "skipped":
                    self._set(event.test, Outcome.NOT_APPLICABLE, event.reason)
                case "rerun":
                    self._results.pop(event.test, None)
                case "passed" if event.phase == "call":
                    self._set(event.test, Outcome.PASSED)
                case "passed" if event.phase == "teardown":
                    self._running = None

    def process_ended(self, why: str) -> None:
        """Count the running test as failed, because its process has ended."""
        if self._running is not None:
            self._set(self._running, Outcome.FAILED, why)
            self._running = None

    def give_up(self, why: str) -> None:
        """Count all tests without a result as failed; count the file as one failed test if no test was collected."""
        for test in self.left or ([] if self._results else [self.path]):
            self._set(test, Outcome.FAILED, why)

    def _set(self, test: str, outcome: Outcome, reason: str = "", *, phase: str = "call") -> None:
        if phase in ("setup", "teardown"):
            reason = f"{phase}: {reason}"
        known = self._results.get(test)
        # A failed teardown replaces a passed test; a passed phase replaces no failure.
        if known is None or known.outcome is not Outcome.FAILED:
            self._results[test] = OfficialResult(test, outcome, reason)


def read_events(lines: Iterable[str]) -> list[Event]:
    """Return the events of a report; leave out a last line that the process did not complete."""
    events = []
    for line in lines:
        try:
            events.append(msgspec.json.decode(line, type=Event))
        except msgspec.DecodeError:
            break
    return events
