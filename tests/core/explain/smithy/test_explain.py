"""Explanations of operations under a Smithy strategy, as the strategy itself produces them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from tests.core.retry.smithy.cases import Fixed
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.explain.explanation import Explanation, Outcome
from triclinium_core.explain.smithy.explain import SmithyCase, explain
from triclinium_core.explain.smithy.script import ScriptedClock, ScriptedResponse
from triclinium_core.retry import smithy

E, T, TO, N, OK = (
    ScriptedResponse.RETRY_SAFE,
    ScriptedResponse.THROTTLING,
    ScriptedResponse.TIMEOUT,
    ScriptedResponse.NOT_RETRY_SAFE,
    ScriptedResponse.OK,
)


def standard(quota: int = 500) -> smithy.StandardRetryStrategy:
    """Return a strategy with the AWS numbers of 2026 whose random source always returns 0.5."""
    return smithy.StandardRetryStrategy(rng=Fixed(0.5), numbers=smithy.AwsRetryNumbers.OF_2026, quota_capacity=quota)


@rows(
    ("case", "facts"),
    [
        (
            SmithyCase(strategy=standard(), operations=[[E, T, OK]]),
            [
                *(
                    "E,T,ok",
                    "safe to retry",
                    "0.025 s",
                    "takes 14",
                    "has 486",
                    "throttling",
                    "1 s",
                    "takes 5",
                    "has 481",
                ),
                *(" 5 to the quota", "the result, after 3 attempts and 1.025 s"),
            ],
        ),
        (
            SmithyCase(strategy=standard(14), operations=[[E, TO], [N, OK], [OK]]),
            [
                *("E,TO; N; ok", "Operation 1, attempt 2", "timeout", "has 0 of 14 left"),
                *("Operation 2", "is_retry_safe is False", "after 1 attempt and", "Operation 3", " 1 to the quota"),
            ],
        ),
        (
            SmithyCase(strategy=smithy.SimpleRetryStrategy(rng=Fixed(0.5)), operations=[[E]], retry_after=3),
            ["in 3 s", "there is a further attempt"],
        ),
        (SmithyCase(strategy=standard(), operations=[[OK, E]]), ["end with ok.", "stays at 500"]),
    ],
)
def test_sentences_contain_all_facts(case: SmithyCase, facts: list[str]) -> None:
    """The sentences have the expected facts of each case in order, and all clauses."""
    explanation = explain(case)
    words = " ".join(explanation.sentences())
    places = [words.find(fact) for fact in facts]

    assert -1 not in places
    assert sorted(places) == places
    assert [] == [clause for clause in explanation.clauses if clause not in words]


def test_as_data() -> None:
    """The JSON of an explanation has all of its facts and clauses."""
    explanation = explain(SmithyCase(strategy=standard(20), operations=[[E, E]]))

    assert {
        "strategy": "StandardRetryStrategy",
        "max_attempts": 3,
        "quota_capacity": 20,
        "available": 6,
        "allowed_rate": None,
        "operations": [
            {
                "action": "fail",
                "result": "E",
                "attempts": 2,
                "delays_s": [0.025],
                "steps": [
                    {
                        "response": "E",
                        "meaning": "an error that is safe to retry",
                        "delay_s": 0,
                        "next_delay_s": 0.025,
                        "available": 6,
                        "refusal": None,
                    },
                    {
                        "response": "E",
                        "meaning": "an error that is safe to retry",
                        "delay_s": 0.025,
                        "next_delay_s": None,
                        "available": 6,
                        "refusal": "a retry costs 14, and the quota of all requests without a scope has 6 of 20 left; "
                        "successes refill it",
                    },
                ],
            }
        ],
        "clauses": [
            "design page, Backoff Strategy; decisions S3 and S7",
            "decision S4",
            "design page, Specification",
            "decision S8",
        ],
    } == explanation.to_json()


@rows(
    ("responses", "expected"),
    [([E, E, E, OK], Outcome.FAIL), ([E, E], Outcome.OPEN), ([TO, OK], Outcome.COMPLETE), ([N, OK], Outcome.FAIL)],
)
def test_outcomes(responses: Sequence[ScriptedResponse], expected: Outcome) -> None:
    """An operation completes, fails, or stays open if its responses run out."""
    assert (expected,) == explain(SmithyCase(strategy=standard(), operations=[responses])).outcomes


def steps_of(explanation: Explanation) -> list[list[dict[str, Any]]]:
    """Return the attempts of each operation."""
    return [operation["steps"] for operation in cast(Any, explanation.facts["operations"])]


def test_every_attempt_is_one_step() -> None:
    """Each attempt is one step, and the next delay of a step is the delay of the following step."""
    (steps,) = steps_of(explain(SmithyCase(strategy=standard(), operations=[[E, TO, T, OK]])))

    assert [E, TO, T] == [step["response"] for step in steps]
    assert [step["next_delay_s"] for step in steps[:-1]] == [step["delay_s"] for step in steps[1:]]


def test_adaptive_strategy_delays_the_next_operation() -> None:
    """After the service has throttled, first attempts wait too, and the explanation has the allowed rate."""
    clock = ScriptedClock()
    strategy = smithy.AdaptiveRetryStrategy(rng=Fixed(0.5), clock=clock, numbers=smithy.AwsRetryNumbers.OF_2026)

    explanation = explain(SmithyCase(strategy=strategy, operations=[[T, OK], [OK]], wait=clock.wait))

    operations = steps_of(explanation)
    (throttled, _), (held_back,) = operations
    assert 0 == throttled["delay_s"] < held_back["delay_s"]
    assert clock() == pytest.approx(sum(step["delay_s"] for steps in operations for step in steps))
    assert strategy.allowed_rate == explanation.facts["allowed_rate"]
    *_, second, end, rate = explanation.sentences()
    assert f"Operation 2, attempt 1 waits {held_back['delay_s']} s" in second
    assert "(decision S9)" in second
    assert f"after 1 attempt and {held_back['delay_s']} s of waiting." in end
    assert f" {strategy.allowed_rate} requests a second (decision S9)." in rate
    assert "decision S9" in explanation.clauses


@rows(
    ("change", "parameter"),
    [
        ({"strategy": "standard"}, "strategy"),
        ({"operations": []}, "operations"),
        ({"operations": [[E], []]}, "operations"),
        ({"operations": [["E"]]}, "operations"),
        ({"retry_after": -1}, "retry_after"),
        ({"retry_after": float("nan")}, "retry_after"),
    ],
)
def test_refuses(change: dict[str, object], parameter: str) -> None:
    """An invalid argument raises ArgumentError with the parameter's name."""
    with refusal_of(parameter):
        SmithyCase(**({"strategy": standard(), "operations": [[E]]} | change))  # type: ignore[arg-type]
