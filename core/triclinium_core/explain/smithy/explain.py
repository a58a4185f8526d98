"""Explanation of the attempts of operations with a Smithy strategy, and of the delays between them.

``explain`` contains no retry rules. It passes the responses to a strategy, the object that clients share, and describes
the results.

Source: the Smithy Python retry design; decisions S2 to S9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from triclinium_core.argument_error import ArgumentError
from triclinium_core.explain.explanation import Explanation, Outcome, Sentence, plain_seconds
from triclinium_core.explain.smithy.script import PlayedAttempt, ScriptedResponse, play
from triclinium_core.retry.checks import check_seconds
from triclinium_core.retry.smithy import AdaptiveRetryStrategy, SimpleRetryStrategy, StandardRetryStrategy
from triclinium_core.shown import shown

BACKOFF_CLAUSE = "design page, Backoff Strategy; decisions S3 and S7"
QUOTA_CLAUSE = "decision S4"
CLASSIFICATION_CLAUSE = "design page, Error Classification; decision S2"
REFUSAL_CLAUSE = "design page, Specification"
END_CLAUSE = "decision S8"
RATE_CLAUSE = "decision S9"
CLAUSES = (BACKOFF_CLAUSE, QUOTA_CLAUSE, CLASSIFICATION_CLAUSE, REFUSAL_CLAUSE, END_CLAUSE, RATE_CLAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmithyCase:
    """Consecutive operations, and the responses to their attempts.

    Args:
        strategy: strategy of all operations. The operations change its quota.
        operations: responses of each operation, at least one. Responses after the end of an operation are unused.
        retry_after: delay that every error requests, in seconds; None for none.
        wait: function that gets the delay before each attempt, in seconds, to advance an adaptive strategy's clock;
            None without such a clock.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    strategy: StandardRetryStrategy | SimpleRetryStrategy
    operations: Sequence[Sequence[ScriptedResponse]]
    retry_after: float | None = None
    wait: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, StandardRetryStrategy | SimpleRetryStrategy):
            raise ArgumentError(
                f"strategy={shown(self.strategy)} must be a StandardRetryStrategy or a SimpleRetryStrategy",
                parameter="strategy",
            )
        if not self.operations or not all(self.operations):
            raise ArgumentError(
                f"operations={shown(self.operations)} must contain one or more operations, each with one or more "
                "responses",
                parameter="operations",
            )
        for response in (response for responses in self.operations for response in responses):
            if not isinstance(response, ScriptedResponse):
                raise ArgumentError(
                    f"operations contains {shown(response)}, but each response must be one of "
                    f"{', '.join(map(str, ScriptedResponse))}",
                    parameter="operations",
                )
        if self.retry_after is not None:
            check_seconds(self.retry_after, "retry_after")


def explain(case: SmithyCase) -> Explanation:
    """Return the attempts and the outcome of each operation, and the number of units left in the quota, if any."""
    quota = case.strategy if isinstance(case.strategy, StandardRetryStrategy) else None

    def available() -> int | None:
        return None if quota is None else quota.available_quota()

    before = available()
    operations = [
        play(case.strategy, script, available, retry_after=case.retry_after, wait=case.wait)
        for script in case.operations
    ]
    allowed_rate = case.strategy.allowed_rate if isinstance(case.strategy, AdaptiveRetryStrategy) else None
    sentences = tuple(_sentences(operations, before, allowed_rate))
    words = " ".join(sentence.text for sentence in sentences)
    return Explanation(
        facts={
            "strategy": type(case.strategy).__name__,
            "max_attempts": case.strategy.max_attempts,
            "quota_capacity": None if quota is None else quota.quota_capacity,
            "available": operations[-1][-1].available,
            "allowed_rate": None if allowed_rate is None else plain_seconds(allowed_rate),
            "operations": [
                {
                    "action": str(_outcome_of(attempts)),
                    **operation_in_json(attempts),
                    "steps": [_in_json(attempt) for attempt in attempts],
                }
                for attempts in operations
            ],
        },
        steps=sentences,
        clauses=tuple(clause for clause in CLAUSES if f"({clause})" in words),
    )


def _sentences(
    operations: Sequence[Sequence[PlayedAttempt]], before: int | None, allowed_rate: float | None
) -> Iterator[Sentence]:
    script = "; ".join(",".join(attempt.response for attempt in attempts) for attempts in operations)
    yield Sentence(f"The attempts end with {script}.")
    for number, attempts in enumerate(operations, start=1):
        operation = f"Operation {number}, attempt" if len(operations) > 1 else "Attempt"
        for count, attempt in enumerate(attempts, start=1):
            held = ""
            if attempt.delay and count == 1:
                held = f" waits {plain_seconds(attempt.delay)} s for the rate limit ({RATE_CLAUSE}), and"
            yield Sentence(f"{operation} {count}{held} {_consequence(attempt, before)}")
            before = attempt.available
        yield Sentence(_end(attempts), _outcome_of(attempts))
    if allowed_rate is not None:
        yield Sentence(
            f"Afterwards, the rate limit is {plain_seconds(allowed_rate)} requests a second ({RATE_CLAUSE})."
        )


def _consequence(attempt: PlayedAttempt, before: int | None) -> str:
    if attempt.response is ScriptedResponse.OK:
        return f"succeeds.{_quota(attempt, before)}"
    ended = f"ends with {attempt.response.meaning}."
    if attempt.next_delay is None:
        is_unsupported = attempt.response is ScriptedResponse.NOT_RETRY_SAFE
        clause = CLASSIFICATION_CLAUSE if is_unsupported else REFUSAL_CLAUSE
        return f"{ended} The strategy permits no further attempt: {attempt.refusal} ({clause})."
    return (
        f"{ended} It is retried in {plain_seconds(attempt.next_delay)} s ({BACKOFF_CLAUSE}).{_quota(attempt, before)}"
    )


def _quota(attempt: PlayedAttempt, before: int | None) -> str:
    if before is None or attempt.available is None:
        return ""
    if attempt.available == before:
        return f" The quota stays at {before} ({QUOTA_CLAUSE})."
    verb = "takes" if attempt.available < before else "returns"
    where = "from" if attempt.available < before else "to"
    return f" This {verb} {abs(attempt.available - before)} {where} the quota, which then has {attempt.available} ({QUOTA_CLAUSE})."


def _end(attempts: Sequence[PlayedAttempt]) -> str:
    count = "1 attempt" if len(attempts) == 1 else f"{len(attempts)} attempts"
    took = f"after {count} and {plain_seconds(sum(attempt.delay for attempt in attempts))} s of waiting"
    outcome = _outcome_of(attempts)
    if outcome is Outcome.COMPLETE:
        return f"So the caller gets the result, {took}."
    if outcome is Outcome.FAIL:
        return f"So the caller gets the error of the last attempt, {took} ({END_CLAUSE})."
    return "So there is a further attempt, whose response decides."


def _outcome_of(attempts: Sequence[PlayedAttempt]) -> Outcome:
    """Return the outcome of an operation with these attempts."""
    last = attempts[-1]
    if last.response is ScriptedResponse.OK:
        return Outcome.COMPLETE
    return Outcome.FAIL if last.next_delay is None else Outcome.OPEN


def operation_in_json(attempts: Sequence[PlayedAttempt]) -> dict[str, object]:
    """Return the result, the number of attempts and the delays of an operation as JSON values."""
    return {
        "result": str(attempts[-1].response),
        "attempts": len(attempts),
        "delays_s": [plain_seconds(attempt.delay) for attempt in attempts[1:]],
    }


def _in_json(attempt: PlayedAttempt) -> dict[str, object]:
    return {
        "response": str(attempt.response),
        "meaning": attempt.response.meaning,
        "delay_s": plain_seconds(attempt.delay),
        "next_delay_s": None if attempt.next_delay is None else plain_seconds(attempt.next_delay),
        "available": attempt.available,
        "refusal": attempt.refusal,
    }
