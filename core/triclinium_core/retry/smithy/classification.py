"""Function that reads the retry information from an exception of any class, for a strategy.

Source: the Smithy Python retry design, "Error Classification": an attribute that is missing has its default.
"""

from __future__ import annotations

from typing import NamedTuple

from triclinium_core.checks import is_number, is_seconds
from triclinium_core.retry.smithy.protocols import PartyAtFault


class ErrorInfo(NamedTuple):
    """Complete retry information about an error."""

    is_retry_safe: bool | None = None
    """Whether a retry is safe. None, which means unknown, permits no retry, like False."""
    retry_after: float | None = None
    """Minimum delay before a retry, in seconds, finite and at least 0; None for no minimum."""
    is_throttling_error: bool = False
    """Whether the service requests a lower rate."""
    is_timeout_error: bool = False
    """Whether the error is a timeout. With the AWS parameters of 2026, this does not change the cost of a retry."""
    fault: PartyAtFault = None
    """Party that caused the error; None if unknown. No strategy of this package uses it."""


def classify(error: BaseException) -> ErrorInfo:
    """Return the retry information in the attributes of ``error``, with defaults for missing or invalid attributes.

    This function never raises, because the attributes may have values from a server's response.
    """
    try:
        safe = getattr(error, "is_retry_safe", None)
        retry_after = getattr(error, "retry_after", None)
        throttling = getattr(error, "is_throttling_error", None)
        timeout = getattr(error, "is_timeout_error", None)
        fault = getattr(error, "fault", None)
    except Exception:
        # One property raised an exception. Read each attribute separately, to keep the values of the others.
        safe, retry_after, throttling, timeout, fault = (_look(error, name) for name in ErrorInfo._fields)
    return ErrorInfo(
        safe if safe is True or safe is False else None,
        None if retry_after is None else _seconds(retry_after),
        throttling is True,
        timeout is True,
        None if fault is None else _fault(fault),
    )


def _look(error: BaseException, name: str) -> object:
    try:
        found: object = getattr(error, name, None)
    except Exception:
        # A property that raises counts as a missing attribute.
        return None
    return found


def _seconds(value: object) -> float | None:
    if type(value) is not float:
        try:
            value = float(value) if is_number(value) else None  # type: ignore[arg-type]
        except Exception:
            # Converting a number of a user's class may raise.
            return None
    return value if is_seconds(value) else None


def _fault(value: object) -> PartyAtFault:
    if type(value) is not str:
        return None
    if value == "client":
        return "client"
    return "server" if value == "server" else None


class ClassifiedError(Exception):
    """Wrapper of an error. The attributes that strategies read have the retry information.

    ``__cause__`` is the wrapped error.
    """

    def __init__(self, error: Exception, info: ErrorInfo) -> None:
        self.message: str = _text(error)
        super().__init__(self.message)
        self.__cause__: BaseException | None = error
        self.is_retry_safe: bool | None = info.is_retry_safe
        self.retry_after: float | None = info.retry_after
        self.is_throttling_error: bool = info.is_throttling_error
        self.is_timeout_error: bool = info.is_timeout_error
        self.fault: PartyAtFault = info.fault


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        # The ``__str__`` of a user's error class may raise.
        return type(error).__name__
