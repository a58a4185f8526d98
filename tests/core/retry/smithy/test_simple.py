"""Simple strategy: it limits the number of attempts, and has no quota."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.core.retry.smithy.cases import Failure, Fixed
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import ExponentialRetryBackoffStrategy, Jitter, RetryError, SimpleRetryStrategy


def delays_until_refused(strategy: SimpleRetryStrategy, error: Exception) -> tuple[list[float], RetryError]:
    """Fail one request until the strategy refuses a retry. Return the delays and the refusal."""
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
    """The default strategy permits four retries, with delays from 25 ms upwards and equal jitter."""
    delays, refusal = delays_until_refused(SimpleRetryStrategy(rng=Fixed(0.5)), Failure())

    assert [0.01875, 0.0375, 0.075, 0.15] == pytest.approx(delays)
    assert "attempt 5 was the last of max_attempts=5" in str(refusal)


@rows(("max_attempts", "retries"), [(0, 0), (1, 0), (2, 1), (9, 8)])
def test_attempts(max_attempts: int, retries: int) -> None:
    """The limit includes the first attempt, which is permitted whatever the limit is."""
    strategy = SimpleRetryStrategy(rng=Fixed(), max_attempts=max_attempts)

    assert max_attempts == strategy.max_attempts
    assert retries == len(delays_until_refused(strategy, Failure())[0])


def test_retry_after() -> None:
    """A retry waits for at least ``retry_after`` (decision S3), also after a throttling error."""
    error = Failure(retry_after=0.1, throttling=True)

    delays, _ = delays_until_refused(SimpleRetryStrategy(rng=Fixed(0.0), max_attempts=6), error)

    assert [0.1, 0.1, 0.1, 0.1, 0.2] == pytest.approx(delays)


def test_requests_share_no_quota() -> None:
    """Failed requests do not reduce the number of retries of later requests."""
    strategy = SimpleRetryStrategy(rng=Fixed())

    assert {4} == {len(delays_until_refused(strategy, Failure())[0]) for _ in range(50)}


def test_a_token_is_used_once() -> None:
    """If a token is used a second time, even after ``abandon``, an error names the token (decision S6)."""
    for use in ("record_success", "abandon"):
        strategy = SimpleRetryStrategy(rng=Fixed())
        token = strategy.acquire_initial_retry_token(token_scope="s3")
        getattr(strategy, use)(token=token)

        assert ("s3", True) == (token.token_scope, token.is_used)
        for again in (strategy.record_success, strategy.abandon):
            with pytest.raises(ArgumentError, match=r"^token=SingleUseToken\(token_scope='s3', .*been used"):
                again(token=token)
        with pytest.raises(ArgumentError, match=r"^token_to_renew=.*has been used"):
            strategy.refresh_retry_token_for_retry(token_to_renew=token, error=Failure())


def test_a_custom_backoff() -> None:
    """A custom backoff replaces the delays and is the value of ``backoff_strategy``."""
    backoff = ExponentialRetryBackoffStrategy(base=1.0, jitter=Jitter.NONE)
    strategy = SimpleRetryStrategy(rng=Fixed(), backoff=backoff)

    assert backoff is strategy.backoff_strategy
    assert [1.0, 2.0, 4.0, 8.0] == delays_until_refused(strategy, Failure())[0]


def test_a_copy_of_the_settings_shares_the_strategy() -> None:
    """``deepcopy`` of a strategy returns the strategy itself, so its tokens stay valid."""
    strategy = SimpleRetryStrategy(rng=Fixed())

    assert strategy is copy.deepcopy(strategy)


@rows(("parameter", "value"), [("max_attempts", -1), ("max_attempts", None), ("backoff", 0.5), ("rng", None)])
def test_invalid_arguments(parameter: str, value: Any) -> None:
    """An invalid argument raises an error that names the argument."""
    with pytest.raises(ArgumentError) as caught:
        SimpleRetryStrategy(**{"rng": Fixed(), parameter: value})

    assert parameter == caught.value.parameter
