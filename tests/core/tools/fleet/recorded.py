"""Clients of a fleet that record each operation, so that tests can check laws for each operation."""

from __future__ import annotations

from dataclasses import dataclass, field

from triclinium_core.retry.backoff import Random
from triclinium_core.tools.fleet.scenario import Fleet
from triclinium_core.tools.fleet.service import AttemptOutcome
from triclinium_core.tools.fleet.strategies import Call, MakeProcess, Process


@dataclass(eq=False, slots=True)
class Story:
    """Record of one operation."""

    began: float
    deadline: float
    sent_at: list[float] = field(default_factory=list)
    ended: list[tuple[str, float]] = field(default_factory=list)


class RecordedCall(Call):
    """Call that records its sends and its end, and passes all events on."""

    __slots__ = ("attempt_timeout", "call", "story")
    records_success = True

    def __init__(self, call: Call, stories: list[Story]) -> None:
        super().__init__(call.began, call.deadline)
        self.call = call
        self.attempt_timeout = call.attempt_timeout
        self.story = Story(call.began, call.deadline)
        stories.append(self.story)

    def begin(self, now: float) -> float | None:
        return self.call.begin(now)

    def dispatch(self, outcome: AttemptOutcome | None, now: float) -> None:
        self.story.sent_at.append(now)
        self.call.dispatch(outcome, now)

    def fail(self, outcome: AttemptOutcome, now: float) -> float | None:
        resume_at = self.call.fail(outcome, now)
        if resume_at is None:
            self.story.ended.append(("failed", now))
        return resume_at

    def resume(self, now: float) -> bool:
        sends = self.call.resume(now)
        if not sends:
            self.story.ended.append(("gave up", now))
        return sends

    def succeed(self, now: float) -> None:
        self.story.ended.append(("succeeded", now))
        self.call.succeed(now)

    def expire(self, now: float) -> None:
        self.story.ended.append(("expired", now))
        self.call.expire(now)


def recorded(make_process: MakeProcess, stories: list[Story]) -> MakeProcess:
    """Return a factory of processes that record their operations in ``stories``."""

    def make(fleet: Fleet, rng: Random) -> Process:
        process = make_process(fleet, rng)
        return lambda began, deadline: RecordedCall(process(began, deadline), stories)

    return make
