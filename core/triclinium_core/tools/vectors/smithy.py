"""Questions about Smithy: the fields of each, the function that answers it, and the clauses that decide the answer.

::

    backoff     jitter (NONE, EQUAL or DEFAULT, FULL, DECORRELATED), base_s, max_s, random, attempts
                -> delays_s, one for each of the attempts
    sequence    strategy (standard, adaptive, simple), numbers ("2020", "2026"), quota_capacity, max_attempts, random,
                operations: [{responses: [E, T, TO, N, ok]}]; simple has neither numbers nor quota
                -> available at the end, operations: [{result, attempts, delays_s}]

``random`` is the value of every random number, from 0 to 1. Operations run one after the other. ``result`` is the
response that the caller gets: the response to the last attempt. ``delays_s`` are the delays between attempts, so their
number is one less than the number of attempts.

Source: the Smithy Python retry design; decisions S3 to S9 and S14.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from triclinium_core.explain.explanation import plain_seconds
from triclinium_core.explain.smithy.explain import BACKOFF_CLAUSE, QUOTA_CLAUSE, RATE_CLAUSE, operation_in_json
from triclinium_core.explain.smithy.script import ScriptedClock, ScriptedResponse, play
from triclinium_core.retry import smithy
from triclinium_core.retry.backoff import ConstantRandom, Random
from triclinium_core.shown import in_json
from triclinium_core.tools.vectors.fields import AnswerFields, Ask, Clauses, MalformedQuestion, Question

JITTERS: Mapping[str, smithy.Jitter] = {
    "NONE": smithy.Jitter.NONE,
    "EQUAL": smithy.Jitter.EQUAL,
    "DEFAULT": smithy.Jitter.EQUAL,
    "FULL": smithy.Jitter.FULL,
    "DECORRELATED": smithy.Jitter.DECORRELATED,
}
"""Jitters by name. DEFAULT is the name of equal jitter in smithy-core."""

NUMBERS: Mapping[str, smithy.AwsRetryNumbers] = {
    "2020": smithy.AwsRetryNumbers.OF_2020,
    "2026": smithy.AwsRetryNumbers.OF_2026,
}
RESPONSES: Mapping[str, ScriptedResponse] = {response.value: response for response in ScriptedResponse}

Quota = Callable[[], int | None]
"""Function that returns the number of units left in a strategy's quota; None without a quota."""


def _answer_backoff(question: Question) -> AnswerFields:
    backoff = smithy.ExponentialRetryBackoffStrategy(
        jitter=question.choice("jitter", JITTERS),
        base=question.number("base_s"),
        max=question.number("max_s"),
        rng=_draws(question),
    )
    attempts = question.each("attempts", "whole numbers", Question.count)
    return {"delays_s": [plain_seconds(backoff.compute_next_backoff_delay(attempt)) for attempt in attempts]}


def _answer_sequence(question: Question) -> AnswerFields:
    clock = ScriptedClock()
    strategy, available = question.choice("strategy", STRATEGIES)(question, _draws(question), clock)
    scripts = question.each("operations", "objects", _responses)
    played = [_played(strategy, script, available, clock, index) for index, script in enumerate(scripts)]
    return {"available": available(), "operations": played}


def _played(
    strategy: smithy.RetryStrategy,
    script: Sequence[ScriptedResponse],
    available: Quota,
    clock: ScriptedClock,
    index: int,
) -> AnswerFields:
    steps = play(strategy, script, available, wait=clock.wait)
    if steps[-1].next_delay is not None:
        raise MalformedQuestion(
            f"operations[{index}].responses ends before the operation does: attempt {len(steps) + 1} has no response"
        )
    return operation_in_json(steps)


def _responses(operations: Question, name: str) -> Sequence[ScriptedResponse]:
    operation = operations[name]
    if not isinstance(operation, Mapping):
        raise MalformedQuestion(f"{name} is {in_json(operation)}, expected an object")
    where = f"{name}.responses"
    fields = Question({where: operation["responses"]} if "responses" in operation else {})
    responses = fields.each(where, "strings", _response)
    if not responses:
        raise MalformedQuestion(f"{where} is empty, expected at least one of {', '.join(RESPONSES)}")
    return responses


def _response(responses: Question, name: str) -> ScriptedResponse:
    return responses.choice(name, RESPONSES)


def _draws(question: Question) -> ConstantRandom:
    value = question.number("random")
    if value > 1:
        raise MalformedQuestion(f"random is {value}, expected a number from 0 to 1")
    return ConstantRandom(value)


def _simple(question: Question, rng: Random, clock: ScriptedClock) -> tuple[smithy.RetryStrategy, Quota]:
    strategy = smithy.SimpleRetryStrategy(rng=rng, max_attempts=question.count("max_attempts"))
    # A simple strategy uses no quota, so the quota in the question does not change.
    untouched = question.count("quota_capacity") if "quota_capacity" in question else None
    return strategy, lambda: untouched


def _with_quota(
    make: Callable[..., smithy.StandardRetryStrategy], question: Question, **arguments: object
) -> tuple[smithy.RetryStrategy, Quota]:
    capacity, attempts = question.count("quota_capacity"), question.count("max_attempts")
    strategy = make(numbers=_numbers(question), quota_capacity=capacity, max_attempts=attempts, **arguments)
    return strategy, strategy.available_quota


def _numbers(question: Question) -> smithy.AwsRetryNumbers:
    year = question.value("numbers")
    written = str(year) if isinstance(year, int) and not isinstance(year, bool) and 0 <= year <= 9999 else year
    return Question({"numbers": written}).choice("numbers", NUMBERS)


STRATEGIES: Mapping[str, Callable[[Question, Random, ScriptedClock], tuple[smithy.RetryStrategy, Quota]]] = {
    "standard": lambda question, rng, _: _with_quota(smithy.StandardRetryStrategy, question, rng=rng),
    "adaptive": lambda question, rng, clock: _with_quota(smithy.AdaptiveRetryStrategy, question, rng=rng, clock=clock),
    "simple": _simple,
}
"""Factories of the strategies that a question can name."""

ASKS: Mapping[str, Ask] = {"backoff": _answer_backoff, "sequence": _answer_sequence}
"""Functions that answer each kind of question."""


def _clauses_of_sequence(question: Question) -> tuple[str, ...]:
    of_strategy = {"standard": (QUOTA_CLAUSE,), "adaptive": (QUOTA_CLAUSE, RATE_CLAUSE)}
    return (*of_strategy.get(question.text("strategy"), ()), BACKOFF_CLAUSE)


CLAUSES: Mapping[str, Clauses] = {"backoff": lambda _: (BACKOFF_CLAUSE,), "sequence": _clauses_of_sequence}
"""Functions that return the clauses on each kind of question."""
