"""Cases in which no retry is possible, and values that are not exceptions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.retry.smithy.cases import Failure, Fixed
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import RetryError, SimpleRetryStrategy, SingleUseToken


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


@rows("error", [None, "it failed", Failure, object()])
def test_an_error_must_be_an_exception(error: Any) -> None:
    """If the error is not an instance of Exception, it is refused, and the token can still be used."""
    strategy = SimpleRetryStrategy(rng=Fixed())
    token = strategy.acquire_initial_retry_token()

    with pytest.raises(ArgumentError, match="^error=") as caught:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)

    assert ("error", False) == (caught.value.parameter, token.is_used)
