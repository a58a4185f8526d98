"""Base of the strategies in this package: it limits attempts, refuses unsafe retries, and issues single-use tokens.

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
"""Maximum number of seconds by which a server's ``retry_after`` lengthens a backoff if ``clamp_retry_after`` is True,
as in smithy-core 0.8."""


class BaseRetryStrategy:
    """Strategy that permits up to ``max_attempts`` attempts, and only retries that are safe."""

    def __init__(self, max_attempts: int, backoff: RetryBackoffStrategy) -> None:
        self._max_attempts = check_integer(max_attempts, "max_attempts")
        self._backoff = check_backoff(backoff, "backoff")

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_attempts={self._max_attempts})"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        # A caller may copy its settings for each call, but all calls must share the strategy.
        return self

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts of one request, including the first."""
        return self._max_attempts

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """Backoff that computes the delays. A strategy may use another backoff after throttling errors."""
        return self._backoff

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        """Return the token for a first attempt. Never refuse it, and take nothing from a quota.

        Raises:
            ArgumentError: ``token_scope`` is neither a string nor None.
        """
        if token_scope is not None:
            require_scope(token_scope)
        return SingleUseToken(self, token_scope)

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> SingleUseToken:
        """Return the token for the next attempt. ``token_to_renew`` is used up, even if this raises RetryError.

        Raises:
            RetryError: a retry after ``error`` is not safe, no attempt is left, the quota or budget is too low, or a
                breaker permits none. ``__cause__`` is ``error``. If the quota or budget is too low, ``retry_after`` is
                the delay that the retry would have had.
            ArgumentError: the token was used before or another strategy issued it, ``error`` is not an exception, or
                the backoff computed an invalid delay. In these cases, ``token_to_renew`` has not changed.
        """
        token = require_token(token_to_renew, self, "token_to_renew")
        if not isinstance(error, BaseException):
            raise ArgumentError(
                f"error={shown(error)} must be the exception with which the attempt failed", parameter="error"
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
        """Record that the attempt with ``token`` succeeded.

        Raises:
            ArgumentError: the token was used before, or another strategy issued it.
        """
        require_token(token, self, "token").owner = None

    def abandon(self, *, token: RetryToken) -> None:
        """Release the token of an attempt that will not be made, for example because the deadline is too close.

        Raises:
            ArgumentError: the token was used before, or another strategy issued it.
        """
        require_token(token, self, "token").owner = None

    def _refusal(self, info: ErrorInfo, count: int, scope: str | None) -> str | None:
        """Return why there is no retry after attempt ``count``, or None if only ``_charge`` can refuse it."""
        if info.is_retry_safe is not True:
            return f"its is_retry_safe is {info.is_retry_safe}; only True permits a retry"
        if count >= self._max_attempts:
            return f"attempt {count} was the last of max_attempts={self._max_attempts}"
        return None

    def _delay(self, info: ErrorInfo, retry_attempt: int, previous: float) -> float:
        delay = backoff_delay(self._backoff, retry_attempt, previous)
        return at_least_retry_after(delay, info.retry_after, clamped=False)

    def _charge(self, error: Exception, info: ErrorInfo, scope: str | None, delay: float) -> int:
        """Take the cost of a retry from any quota or budget, and return it. Raise RetryError if that is too low."""
        return 0


def at_least_retry_after(delay: float, retry_after: float | None, *, clamped: bool) -> float:
    """Return the seconds to wait: ``delay``, or the server's ``retry_after`` if that is longer.

    Args:
        clamped: whether the result is at most ``RETRY_AFTER_CLAMP`` longer than ``delay``.
    """
    if retry_after is None or retry_after <= delay:
        return delay
    return min(retry_after, delay + RETRY_AFTER_CLAMP) if clamped else retry_after
