"""When a retry is out of the question, whatever strategy is asked.

Source: the Smithy Python retry design, "Error Classification"; decisions S2, S3.
"""

from __future__ import annotations

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.smithy.classification import ErrorInfo, classify
from triclinium_core.retry.smithy.protocols import RetryError
from triclinium_core.retry.smithy.tokens import SingleUseToken

RETRY_AFTER_CLAMP = 5.0
"""Seconds by which a server's wish may lengthen a backoff where it is clamped (smithy-core 0.8)."""


def require_error(error: Exception) -> ErrorInfo:
    """Return what ``error`` says of retries.

    Raises:
        InvalidArgumentException: it is no exception.
    """
    if not isinstance(error, BaseException):
        raise InvalidArgumentException(
            f"error={error!r} must be the exception that the attempt failed with", parameter="error"
        )
    return classify(error)


def refuse_hopeless(token: SingleUseToken, error: Exception, info: ErrorInfo, max_attempts: int) -> None:
    """Raise RetryError, and use up ``token``, where the error or the number of attempts permits no retry."""
    if info.is_retry_safe is not True:
        token.use()
        raise RetryError(
            f"{type(error).__name__} is not retried: its is_retry_safe is {info.is_retry_safe}, and only True permits it"
        ) from error
    if token.retry_count + 1 >= max_attempts:
        token.use()
        raise RetryError(
            f"{type(error).__name__} is not retried: attempt {token.attempt_count} was the last of "
            f"max_attempts={max_attempts}"
        ) from error


def at_least_retry_after(delay: float, retry_after: float | None, *, clamped: bool) -> float:
    """Return the seconds to wait for: ``delay``, or what the server asked for where that is more.

    Args:
        clamped: whether the server's wish counts for ``RETRY_AFTER_CLAMP`` more than ``delay`` only.
    """
    if retry_after is None or retry_after <= delay:
        return delay
    return min(retry_after, delay + RETRY_AFTER_CLAMP) if clamped else retry_after
