"""The result of ``explain``: how operations go, attempt by attempt, as data, as JSON and in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import assert_never

from triclinium_core.explain.smithy.script import ERRORS, Response, Step

BACKOFF_CLAUSE = "design page, Backoff Strategy; decisions S3 and S7"
QUOTA_CLAUSE = "decision S4"
CLASSIFICATION_CLAUSE = "design page, Error Classification; decision S2"
REFUSAL_CLAUSE = "design page, Specification"
END_CLAUSE = "decision S8"
RATE_CLAUSE = "decision S9"
CLAUSES = (BACKOFF_CLAUSE, QUOTA_CLAUSE, CLASSIFICATION_CLAUSE, REFUSAL_CLAUSE, END_CLAUSE, RATE_CLAUSE)


@unique
class Outcome(StrEnum):
    """What becomes of an operation."""

    COMPLETE = "complete"
    FAIL = "fail"
    OPEN = "open"
    """A further attempt is permitted, and nobody said what it ends with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How operations go that share a strategy."""

    strategy: str
    """Class name of the strategy."""
    max_attempts: int
    quota_capacity: int | None
    """None where there is no quota."""
    available_before: int | None
    """What the quota had before the first operation."""
    operations: Sequence[Sequence[Step]]
    """The attempts of each, at least one."""
    allowed_rate: float | None = None
    """Requests a second that are allowed after the last operation; None where nothing limits them."""

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """What becomes of each operation."""
        return [outcome_of(steps) for steps in self.operations]

    @property
    def clauses(self) -> tuple[str, ...]:
        """Every clause that a sentence names."""
        told = " ".join(self.sentences())
        return tuple(clause for clause in CLAUSES if f"({clause})" in told)

    def to_json(self) -> dict[str, object]:
        """Return the explanation as JSON values, always with the same keys."""
        return {
            "strategy": self.strategy,
            "max_attempts": self.max_attempts,
            "quota_capacity": self.quota_capacity,
            "available": self.operations[-1][-1].available,
            "allowed_rate": None if self.allowed_rate is None else seconds(self.allowed_rate),
            "operations": [
                {
                    "action": str(outcome_of(steps)),
                    **operation_in_json(steps),
                    "steps": [_in_json(step) for step in steps],
                }
                for steps in self.operations
            ],
            "clauses": list(self.clauses),
        }

    def sentences(self) -> list[str]:
        """Return the explanation in plain words, each step with its clause; the last one says what comes of it all."""
        script = "; ".join(",".join(step.response for step in steps) for steps in self.operations)
        return [f"The attempts end with {script}.", *self._steps()]

    def _steps(self) -> Iterator[str]:
        before = self.available_before
        for number, steps in enumerate(self.operations, start=1):
            operation = f"Operation {number}, attempt" if len(self.operations) > 1 else "Attempt"
            for attempt, step in enumerate(steps, start=1):
                held = (
                    f" waits {seconds(step.delay)} s for the rate ({RATE_CLAUSE}), and"
                    if step.delay and attempt == 1
                    else ""
                )
                yield f"{operation} {attempt}{held} {_consequence(step, before)}"
                before = step.available
            yield _end(steps)
        if self.allowed_rate is not None:
            yield f"From now on {seconds(self.allowed_rate)} requests a second are allowed ({RATE_CLAUSE})."


def _consequence(step: Step, before: int | None) -> str:
    if step.response is Response.OK:
        return f"succeeds.{_quota(step, before)}"
    ended = f"ends with {step.response.meaning}."
    if step.next_delay is None:
        permitted = ERRORS[step.response].is_retry_safe is True
        clause = REFUSAL_CLAUSE if permitted else CLASSIFICATION_CLAUSE
        return f"{ended} The strategy permits no further attempt: {step.refusal} ({clause})."
    return f"{ended} It is tried again in {seconds(step.next_delay)} s ({BACKOFF_CLAUSE}).{_quota(step, before)}"


def _quota(step: Step, before: int | None) -> str:
    if before is None or step.available is None:
        return ""
    if step.available == before:
        return f" The quota stays at {before} ({QUOTA_CLAUSE})."
    verb = "takes" if step.available < before else "gives back"
    where = "from" if step.available < before else "to"
    return f" This {verb} {abs(step.available - before)} {where} the quota, which then has {step.available} ({QUOTA_CLAUSE})."


def _end(steps: Sequence[Step]) -> str:
    attempts = "1 attempt" if len(steps) == 1 else f"{len(steps)} attempts"
    took = f"after {attempts} and {seconds(sum(step.delay for step in steps))} s of waiting"
    match outcome_of(steps):
        case Outcome.COMPLETE:
            return f"So the caller gets the result, {took}."
        case Outcome.FAIL:
            return f"So the caller gets the error of the last attempt, {took} ({END_CLAUSE})."
        case Outcome.OPEN:
            return "So there is a further attempt, and what it ends with decides."
        case unexpected:
            assert_never(unexpected)


def outcome_of(steps: Sequence[Step]) -> Outcome:
    """Return what becomes of an operation with these attempts."""
    last = steps[-1]
    if last.response is Response.OK:
        return Outcome.COMPLETE
    return Outcome.FAIL if last.next_delay is None else Outcome.OPEN


def operation_in_json(steps: Sequence[Step]) -> dict[str, object]:
    """Return what the caller gets from an operation, and what that took, as JSON values."""
    return {
        "result": str(steps[-1].response),
        "attempts": len(steps),
        "delays_s": [seconds(step.delay) for step in steps[1:]],
    }


def _in_json(step: Step) -> dict[str, object]:
    return {
        "response": str(step.response),
        "meaning": step.response.meaning,
        "delay_s": seconds(step.delay),
        "next_delay_s": None if step.next_delay is None else seconds(step.next_delay),
        "available": step.available,
        "refusal": step.refusal,
    }


def seconds(delay: float) -> int | float:
    """Return ``delay`` without the noise of binary fractions: an int where it is whole."""
    rounded = round(delay, 9)
    return int(rounded) if rounded.is_integer() else rounded
