"""Base of the shipped strategies: a limit of attempts, errors without retry, and tokens that serve once.

Source: the Smithy Python retry design, "Specification", "Error Classification"; decisions S2, S3 and S16 to S20.
"""

from __future__ import annotations

from typing import Self

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.checks import check_integer
from triclinium_core.retry.smithy.backoff import backoff_delay, check_backoff
from triclinium_core.retry.smithy.classification import ErrorInfo, classify
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy, RetryError, RetryToken
from triclinium_core.retry.smithy.tokens import SingleUseToken, require_scope, require_token
from triclinium_core.shown import shown, total_repr

RETRY_AFTER_CLAMP = 5.0
"""Seconds by which a server's wish may lengthen a backoff where it is clamped (smithy-core 0.8)."""


class BaseRetryStrategy:
    """Retries what is safe to retry until ``max_attempts`` were made."""

    def __init__(self, max_attempts: int, backoff: RetryBackoffStrategy) -> None:
        self._max_attempts = check_integer(max_attempts, "max_attempts")
        self._backoff = check_backoff(backoff, "backoff")

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_attempts={self._max_attempts})"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        # Settings are copied for a call; what all calls share must not be.
        return self

    @property
    def max_attempts(self) -> int:
        """Attempts of one request, the first among them."""
        return self._max_attempts

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """What computes the delays; a strategy may have another one for throttling errors."""
        return self._backoff

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        """Return the token of a first attempt, which is never refused and takes nothing from a quota.

        Raises:
            ArgumentError: ``token_scope`` is neither a string nor None.
        """
        if token_scope is not None:
            require_scope(token_scope)
        return SingleUseToken(self, token_scope)

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> SingleUseToken:
        """Return the token of the next attempt; the one given is used up, also where there is none.

        Raises:
            RetryError: ``error`` is not safe to retry, the attempts are used up, or the quota is, and then
                ``retry_after`` has the delay that there would have been. ``error`` is its cause.
            ArgumentError: the token is used up or not from here, ``error`` is no exception, or the backoff computed
                no delay; nothing has changed then.
        """
        token = require_token(token_to_renew, self, "token_to_renew")
        if not isinstance(error, BaseException):
            raise ArgumentError(
                f"error={shown(error)} must be the exception that the attempt failed with", parameter="error"
            )
        info = classify(error)
        count, scope = token.retry_count + 1, token.token_scope
        refusal = self._refusal(info, count, scope)
        if refusal is not None:
            token.owner = None
            raise RetryError(f"{type(error).__name__} is not retried: {refusal}") from error
        delay = self._delay(info, count, token.retry_delay)
        token.owner = None
        return SingleUseToken(self, scope, count, delay, self._charge(error, info, scope, delay))

    def record_success(self, *, token: RetryToken) -> None:
        """Take back the token of the attempt that succeeded.

        Raises:
            ArgumentError: the token is used up, or not from here.
        """
        require_token(token, self, "token").owner = None

    def abandon(self, *, token: RetryToken) -> None:
        """Take back the token of an attempt that will not be made, such as one that its deadline leaves no time for.

        Raises:
            ArgumentError: the token is used up, or not from here.
        """
        require_token(token, self, "token").owner = None

    def _refusal(self, info: ErrorInfo, count: int, scope: str | None) -> str | None:
        """Return why there is no retry after attempt ``count``, before anything is asked of a quota; None where there is."""
        if info.is_retry_safe is not True:
            return f"its is_retry_safe is {info.is_retry_safe}, and only True permits it"
        if count >= self._max_attempts:
            return f"attempt {count} was the last of max_attempts={self._max_attempts}"
        return None

    def _delay(self, info: ErrorInfo, retry_attempt: int, previous: float) -> float:
        delay = backoff_delay(self._backoff, retry_attempt, previous)
        return at_least_retry_after(delay, info.retry_after, clamped=False)

    def _charge(self, error: Exception, info: ErrorInfo, scope: str | None, delay: float) -> int:
        """Return what a retry takes from a quota, having taken it; or raise RetryError."""
        return 0


def at_least_retry_after(delay: float, retry_after: float | None, *, clamped: bool) -> float:
    """Return the seconds to wait for: ``delay``, or what the server asked for where that is more.

    Args:
        clamped: whether the server's wish counts for ``RETRY_AFTER_CLAMP`` more than ``delay`` only.
    """
    if retry_after is None or retry_after <= delay:
        return delay
    return min(retry_after, delay + RETRY_AFTER_CLAMP) if clamped else retry_after
