"""Terms of a call: its strategy and options, which are checked before the first attempt."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry import calls, smithy

SIMPLE = smithy.SimpleRetryStrategy(rng=random.Random(0))


async def slow(*args: Any, **given: Any) -> Any:
    """Do nothing, asynchronously."""


class Later:
    """Asynchronous strategy."""

    acquire_initial_retry_token = refresh_retry_token_for_retry = record_success = abandon = slow


def test_strategies_of_both_kinds() -> None:
    """A strategy counts as asynchronous only if its methods are asynchronous."""
    at_once = SimpleNamespace(
        acquire_initial_retry_token=print, refresh_retry_token_for_retry=print, record_success=print
    )

    assert [False, True, False] == [calls.CallTerms(found).is_async for found in (SIMPLE, Later(), at_once)]


class Half(Later):
    """Strategy with one synchronous method."""

    def record_success(self, *, token: smithy.RetryToken) -> None:  # type: ignore[override]  # the base is asynchronous
        """Do nothing: no test calls this."""


@rows(
    ("parameter", "value", "said"),
    [
        *(
            ("strategy", value, "must be an object such as StandardRetryStrategy")
            for value in (None, smithy.StandardRetryStrategy, object(), "standard")
        ),
        (
            "strategy",
            SimpleNamespace(acquire_initial_retry_token=print),
            "lacks refresh_retry_token_for_retry, record_success$",
        ),
        ("strategy", Half(), "acquire_initial_retry_token, refresh_retry_token_for_retry"),
        ("token_scope", 3, "token_scope=3 must be a string or None"),
        ("name", 3, "name=3 must be a string or None"),
        *(("hooks", value, "hooks") for value in (print, "hooks", [3], (slow,), None)),
    ],
)
def test_invalid_terms(parameter: str, value: object, said: str) -> None:
    """Invalid terms are refused before the first attempt, and the error names the parameter."""
    calls.check_hooks([print])

    with refusal_of(parameter, said):
        calls.CallTerms(**{"strategy": SIMPLE, parameter: value})  # type: ignore[arg-type]


def test_results_are_accepted_by_default() -> None:
    """A result is accepted without ``retry_result``, and retried if ``retry_result`` returns True."""
    assert calls.CallTerms[int](SIMPLE).info_of_result(1) is None
    assert smithy.ErrorInfo(is_retry_safe=True) == calls.CallTerms[int](
        SIMPLE, retry_result=lambda _: True
    ).info_of_result(1)


def test_refusals_of_any_library() -> None:
    """An exception of any library counts as a refusal if its class or a base class is named ``RetryError``."""
    foreign = type("RetryError", (Exception,), {})
    below = type("QuotaError", (foreign,), {})

    assert [True, True, True, False] == [
        calls.is_refusal(kind()) for kind in (smithy.RetryError, foreign, below, ValueError)
    ]


@rows(
    ("report", "facts"),
    [
        (
            calls.RetryScheduled("get", 1, 0.5, ValueError("no"), None),
            ["get", "0.500 s", "attempt 1", "ValueError: no"],
        ),
        (
            calls.RetryGivenUp("get", 3, calls.RetryEnding.EXHAUSTED, None, None),
            ["get", "no attempt is left", "attempt 3", "a result"],
        ),
        (calls.RetrySucceeded("get", 2, None), ["get", "succeeded", "attempt 2"]),
    ],
)
def test_reports_are_sentences(report: object, facts: list[str]) -> None:
    """The text of a report has the name of the call, the attempt and the result."""
    assert [] == [fact for fact in facts if fact not in str(report)]


def test_a_token_is_abandoned_once() -> None:
    """If the strategy's ``abandon`` is synchronous, the terms call it once for each token."""
    strategy = smithy.StandardRetryStrategy(rng=random.Random(0))
    shape = smithy.as_async(strategy)
    error = smithy.ClassifiedError(OSError(), smithy.ErrorInfo(is_retry_safe=True))
    for terms in (calls.CallTerms[None](strategy), calls.CallTerms[None](shape), calls.CallTerms[None](Later())):
        token = strategy.refresh_retry_token_for_retry(
            token_to_renew=strategy.acquire_initial_retry_token(), error=error
        )
        terms.abandon(None)
        terms.abandon(token)
        terms.abandon(token)

    assert 500 - 14 == strategy.available_quota()
