"""Cases in which no retry is possible, and the effect of the server's ``retry_after``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.retry.smithy.cases import Failure, Fixed
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import RetryError, SimpleRetryStrategy, SingleUseToken
from triclinium_core.retry.smithy.base import at_least_retry_after


@rows(
    ("safe", "retries", "reason"),
    [
        (True, 2, "attempt 3 was the last of max_attempts=3"),
        (True, 9, "attempt 10 was the last of max_attempts=3"),
        (False, 0, "its is_retry_safe is False"),
        (None, 0, f"its is_retry_safe is {None}"),
        (False, 2, "its is_retry_safe is False"),
    ],
)
def test_hopeless(safe: bool | None, retries: int, reason: str) -> None:
    """After an unsafe error or the last attempt, the retry is refused with the reason, and the token is used up."""
    strategy, error = SimpleRetryStrategy(rng=Fixed(), max_attempts=3), Failure(safe)
    token = SingleUseToken(strategy, None, retries)

    with pytest.raises(RetryError) as refused:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)

    assert str(refused.value).startswith(f"Failure is not retried: {reason}")
    assert (error, None, True) == (refused.value.__cause__, refused.value.retry_after, token.is_used)


@rows(
    ("delay", "retry_after", "clamped", "expected"),
    [
        (1.0, None, False, 1.0),
        (1.0, 0.0, False, 1.0),
        (1.0, 1.0, True, 1.0),
        (1.0, 4.0, False, 4.0),
        (1.0, 4.0, True, 4.0),
        (1.0, 6.0, True, 6.0),
        (1.0, 60.0, True, 6.0),
        (1.0, 60.0, False, 60.0),
        (1.0, None, True, 1.0),
    ],
)
def test_retry_after(delay: float, retry_after: float | None, clamped: bool, expected: float) -> None:
    """A delay is at least the backoff and ``retry_after``, which clamping limits to 5 s more than the backoff."""
    assert expected == at_least_retry_after(delay, retry_after, clamped=clamped)


@rows("error", [None, "it failed", Failure, object()])
def test_an_error_must_be_an_exception(error: Any) -> None:
    """If the error is not an instance of Exception, it is refused, and the token can still be used."""
    strategy = SimpleRetryStrategy(rng=Fixed())
    token = strategy.acquire_initial_retry_token()

    with pytest.raises(ArgumentError, match="^error=") as caught:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)

    assert ("error", False) == (caught.value.parameter, token.is_used)
