"""Standard strategy: the order of its rules, its two backoffs, and its quota."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

from tests.core.retry.smithy.cases import Failure, Fixed, delays_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import AwsRetryNumbers, RetryError, SingleUseToken, StandardRetryStrategy


def standard(**options: Any) -> StandardRetryStrategy:
    """Return a strategy whose delays are the longest possible."""
    return StandardRetryStrategy(rng=Fixed(1.0), **options)


def refused(strategy: StandardRetryStrategy, token: SingleUseToken, error: Exception) -> RetryError:
    """Return the error with which the strategy refuses the retry."""
    with pytest.raises(RetryError) as caught:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
    return caught.value


def test_first_token() -> None:
    """The first attempt has no delay, and takes nothing from the quota."""
    strategy = standard()

    token = strategy.acquire_initial_retry_token(token_scope="s3")

    assert (0, 1, 0.0, 0, "s3") == (
        token.retry_count,
        token.attempt_count,
        token.retry_delay,
        token.quota_acquired,
        token.token_scope,
    )
    assert 500 == strategy.available_quota("s3")


@rows(
    ("numbers", "response", "available", "delays"),
    [
        (AwsRetryNumbers.OF_2020, "E", [495, 490], [1.0, 2.0]),
        (AwsRetryNumbers.OF_2020, "T", [495, 490], [1.0, 2.0]),
        (AwsRetryNumbers.OF_2020, "TO", [490, 480], [1.0, 2.0]),
        (AwsRetryNumbers.OF_2026, "E", [486, 472], [0.05, 0.1]),
        (AwsRetryNumbers.OF_2026, "T", [495, 490], [1.0, 2.0]),
        (AwsRetryNumbers.OF_2026, "TO", [486, 472], [0.05, 0.1]),
    ],
)
def test_the_cost_of_a_retry(
    numbers: AwsRetryNumbers, response: str, available: list[int], delays: list[float]
) -> None:
    """Each set of numbers has its own costs and its own backoffs (decision S4)."""
    for retries in (1, 2):
        strategy = standard(numbers=numbers)

        assert ("open", delays[:retries]) == delays_of(strategy, [response] * retries)
        assert available[retries - 1] == strategy.available_quota()


@rows(("numbers", "cost"), [(AwsRetryNumbers.OF_2020, 10), (AwsRetryNumbers.OF_2026, 5)])
def test_a_timeout_that_throttles(numbers: AwsRetryNumbers, cost: int) -> None:
    """An error that is both throttling and a timeout costs as much as a timeout, if the numbers have a timeout cost."""
    strategy = standard(numbers=numbers)
    token = strategy.refresh_retry_token_for_retry(
        token_to_renew=strategy.acquire_initial_retry_token(), error=Failure(throttling=True, timeout=True)
    )

    assert (cost, 500 - cost) == (token.quota_acquired, strategy.available_quota())


@rows(
    ("responses", "available"),
    [
        (["ok"], 500),
        (["E", "ok"], 500),
        (["E", "E", "ok"], 486),
        (["E", "T", "ok"], 486),
        (["T", "E", "ok"], 495),
        (["E", "N"], 486),
        (["E", "E", "E"], 472),
    ],
)
def test_a_success_restores_its_last_retry(responses: list[str], available: int) -> None:
    """A success restores the cost of its own attempt, but not of earlier attempts; a failure restores nothing."""
    strategy = standard()

    delays_of(strategy, responses)

    assert available == strategy.available_quota()


@rows(
    ("error", "clamped", "delay"),
    [
        (Failure(retry_after=0.01), False, 0.05),
        (Failure(retry_after=60.0), False, 60.0),
        (Failure(retry_after=60.0), True, 5.05),
        (Failure(retry_after=3.0), True, 3.0),
        (Failure(retry_after=0.01), True, 0.05),
        (Failure(retry_after=60.0, throttling=True), True, 6.0),
        (Failure(retry_after=-1.0), False, 0.05),
        (Failure(retry_after=math.nan), False, 0.05),
    ],
)
def test_retry_after(error: Failure, clamped: bool, delay: float) -> None:
    """A retry waits for its backoff or a longer ``retry_after``; clamping limits the excess to 5 s (decision S3)."""
    strategy = standard(clamp_retry_after=clamped)
    token = strategy.acquire_initial_retry_token()

    assert delay == strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error).retry_delay


@rows(("max_attempts", "retries"), [(0, 0), (1, 0), (2, 1), (3, 2), (None, 2)])
def test_attempts(max_attempts: int | None, retries: int) -> None:
    """The limit includes the first attempt, which is permitted whatever the limit is."""
    strategy = standard(max_attempts=max_attempts)

    ended, delays = delays_of(strategy, ["E"] * 5)

    assert retries == len(delays)
    assert f"attempt {retries + 1} was the last of max_attempts=" in ended
    assert 500 - 14 * retries == strategy.available_quota()


def test_quota_that_is_used_up() -> None:
    """If the quota refuses a retry, the error has the delay of the retry, and the quota does not change."""
    strategy = standard(quota_capacity=20)
    delays_of(strategy, ["E"])

    refusal = refused(strategy, strategy.acquire_initial_retry_token(), Failure(retry_after=2.0))

    for fact in ("costs 14", "all requests without a scope", "6 of 20", "successes refill it"):
        assert fact in str(refusal)
    assert 2.0 == refusal.retry_after
    assert "a greater quota_capacity" in delays_of(standard(quota_capacity=0), ["E"])[0]
    assert 6 == strategy.available_quota()
    assert ("open", [1.0]) == delays_of(strategy, ["T"])


def test_each_scope_has_its_own_quota() -> None:
    """Each scope has its own quota, so a failing service leaves the quota of other services unchanged (decision S5)."""
    strategy = standard(quota_capacity=14)

    delays_of(strategy, ["E"], "a")

    assert [0, 14, 14] == [strategy.available_quota(scope) for scope in ("a", "b", None)]
    assert "the quota of scope 'a' has 0 of 14 left" in delays_of(strategy, ["E"], "a")[0]
    assert "open" == delays_of(strategy, ["E"], "b")[0]


def test_a_copy_of_the_settings_shares_the_strategy() -> None:
    """``deepcopy`` of settings keeps the strategy, so the copy shares its quota."""
    strategy = standard()

    assert strategy is copy.deepcopy({"retry": strategy})["retry"]


class Whimsical:
    """Backoff that returns one delay, or raises it if it is an exception."""

    def __init__(self, delay: Any) -> None:
        self.delay = delay

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the delay, or raise it."""
        if isinstance(self.delay, Exception):
            raise self.delay
        return self.delay  # type: ignore[no-any-return]


@rows("delay", [math.nan, math.inf, -0.1, None, "1", True, 10**400, ZeroDivisionError("no delay")])
def test_an_invalid_backoff_delay(delay: Any) -> None:
    """If the backoff raises or returns an invalid delay, an error is raised, and quota and token stay unchanged."""
    for options, error in (("backoff", Failure()), ("throttling_backoff", Failure(throttling=True))):
        strategy = standard(**{options: Whimsical(delay)})
        token = strategy.acquire_initial_retry_token()

        with pytest.raises((ArgumentError, ZeroDivisionError), match="Whimsical computed delay=|no delay"):
            strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)

        assert 500 == strategy.available_quota()
        strategy.record_success(token=token)
