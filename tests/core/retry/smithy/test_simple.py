"""The simple strategy: it counts attempts, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.core.retry.smithy.cases import Failure, Fixed
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy, Jitter
from triclinium_core.retry.smithy.protocols import RetryError
from triclinium_core.retry.smithy.simple import SimpleRetryStrategy


def delays_until_refused(strategy: SimpleRetryStrategy, error: Exception) -> tuple[list[float], RetryError]:
    """Let one request fail until no retry is permitted."""
    token = strategy.acquire_initial_retry_token()
    delays: list[float] = []
    while True:
        assert (len(delays), len(delays) + 1) == (token.retry_count, token.attempt_count)
        try:
            token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        except RetryError as refusal:
            assert token.is_used
            return delays, refusal
        delays.append(token.retry_delay)


def test_delays() -> None:
    """Four retries, from 25 ms on, half of each delay random."""
    delays, refusal = delays_until_refused(SimpleRetryStrategy(rng=Fixed(0.5)), Failure())

    assert [0.01875, 0.0375, 0.075, 0.15] == pytest.approx(delays)
    assert "Failure is not retried: attempt 5 was the last of max_attempts=5" == str(refusal)


@pytest.mark.parametrize(("max_attempts", "retries"), [(0, 0), (1, 0), (2, 1), (9, 8)])
def test_attempts(max_attempts: int, retries: int) -> None:
    """The first attempt counts, and is made whatever the limit."""
    strategy = SimpleRetryStrategy(rng=Fixed(), max_attempts=max_attempts)

    assert max_attempts == strategy.max_attempts
    assert retries == len(delays_until_refused(strategy, Failure())[0])


@pytest.mark.parametrize("safe", [False, None])
def test_not_safe_to_retry(safe: bool | None) -> None:
    """Nothing but True permits a retry (decision S2)."""
    error = Failure(safe)

    delays, refusal = delays_until_refused(SimpleRetryStrategy(rng=Fixed()), error)

    assert [] == delays
    assert error is refusal.__cause__


def test_retry_after() -> None:
    """It waits for as long as the server asks (decision S3), and ignores what kind of error it was."""
    error = Failure(retry_after=0.1, throttling=True)

    delays, _ = delays_until_refused(SimpleRetryStrategy(rng=Fixed(0.0), max_attempts=6), error)

    assert [0.1, 0.1, 0.1, 0.1, 0.2] == pytest.approx(delays)


def test_nothing_is_shared() -> None:
    """However many requests fail, the next one is retried."""
    strategy = SimpleRetryStrategy(rng=Fixed())

    assert {4} == {len(delays_until_refused(strategy, Failure())[0]) for _ in range(1000)}


def test_a_token_is_used_once() -> None:
    """The second use is an error that names the token (decision S6)."""
    strategy = SimpleRetryStrategy(rng=Fixed())
    token = strategy.acquire_initial_retry_token(token_scope="s3")
    strategy.record_success(token=token)

    assert "s3" == token.token_scope
    with pytest.raises(InvalidArgumentException, match=r"^token=SingleUseToken\(token_scope='s3', .*has been used"):
        strategy.record_success(token=token)
    with pytest.raises(InvalidArgumentException, match=r"^token_to_renew=.*has been used"):
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=Failure())


def test_abandoned() -> None:
    """The token of an attempt that is not made is used up as well."""
    strategy = SimpleRetryStrategy(rng=Fixed())
    token = strategy.acquire_initial_retry_token()

    strategy.abandon(token=token)

    assert token.is_used
    with pytest.raises(InvalidArgumentException, match="has been used"):
        strategy.abandon(token=token)


def test_a_backoff_of_ones_own() -> None:
    """It replaces the delays, and can be seen."""
    backoff = ExponentialRetryBackoffStrategy(base=1.0, jitter=Jitter.NONE)
    strategy = SimpleRetryStrategy(rng=Fixed(), backoff=backoff)

    assert backoff is strategy.backoff_strategy
    assert [1.0, 2.0, 4.0, 8.0] == delays_until_refused(strategy, Failure())[0]


def test_a_copy_of_the_settings_shares_the_strategy() -> None:
    """Its tokens are good for it where settings are copied for a call."""
    strategy = SimpleRetryStrategy(rng=Fixed())

    assert strategy is copy.deepcopy(strategy)


@pytest.mark.parametrize(
    ("parameter", "value"), [("max_attempts", -1), ("max_attempts", None), ("backoff", 0.5), ("rng", None)]
)
def test_arguments_that_make_no_sense(parameter: str, value: Any) -> None:
    """The error names the argument and its value."""
    with pytest.raises(InvalidArgumentException) as caught:
        SimpleRetryStrategy(**{"rng": Fixed(), parameter: value})

    assert parameter == caught.value.parameter


def test_a_scope_that_is_none() -> None:
    """A scope is a string or None, also where it separates nothing."""
    scope: Any = 1

    with pytest.raises(InvalidArgumentException, match="token_scope=1"):
        SimpleRetryStrategy(rng=Fixed()).acquire_initial_retry_token(token_scope=scope)
