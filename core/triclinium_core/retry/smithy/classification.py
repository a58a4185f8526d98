"""Classification of an error of any type for a strategy.

Source: the Smithy Python retry design, "Error Classification": what is missing has its default.
"""

from __future__ import annotations

from typing import NamedTuple

from triclinium_core.checks import is_number, is_seconds
from triclinium_core.retry.smithy.protocols import PartyAtFault


class ErrorInfo(NamedTuple):
    """What an error says about retries, complete and checked."""

    is_retry_safe: bool | None = None
    """Whether a retry is allowed; None, like False, permits none."""
    retry_after: float | None = None
    """Seconds that should pass before a retry, finite and at least 0."""
    is_throttling_error: bool = False
    """Whether the service asked for fewer requests."""
    is_timeout_error: bool = False
    """Whether time ran out; since 2026 it costs what any error costs."""
    fault: PartyAtFault = None
    """Who is at fault; None where nobody knows. It decides nothing."""


def classify(error: BaseException) -> ErrorInfo:
    """Return what ``error`` says about itself; an attribute that is missing, or makes no sense, has its default.

    An error comes from a peer's answer as often as from our own code, so that nothing it carries raises here.
    """
    try:
        safe = getattr(error, "is_retry_safe", None)
        retry_after = getattr(error, "retry_after", None)
        throttling = getattr(error, "is_throttling_error", None)
        timeout = getattr(error, "is_timeout_error", None)
        fault = getattr(error, "fault", None)
    except Exception:
        # One of them is computed, and cannot be; the others count.
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
        # It is computed, and cannot be: as if it were not there.
        return None
    return found


def _seconds(value: object) -> float | None:
    if type(value) is not float:
        try:
            value = float(value) if is_number(value) else None  # type: ignore[arg-type]
        except Exception:
            # A number of somebody's own making.
            return None
    return value if is_seconds(value) else None


def _fault(value: object) -> PartyAtFault:
    if type(value) is not str:
        return None
    if value == "client":
        return "client"
    return "server" if value == "server" else None


class ClassifiedError(Exception):
    """Says about retries what a caller says of an error that does not say it itself, in the attributes that strategies read.

    ``__cause__`` is the error.
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
        # An error of the user's that cannot even say what it is.
        return type(error).__name__
