"""What a strategy reads off an error, whatever the error is.

Source: the Smithy Python retry design, "Error Classification": what is missing has its default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from triclinium_core.retry.smithy.protocols import Fault


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What an error says about retries, complete and checked."""

    is_retry_safe: bool | None = None
    """Whether a retry is allowed; None, like False, permits none."""
    retry_after: float | None = None
    """Seconds that should pass before a retry, finite and at least 0."""
    is_throttling_error: bool = False
    """Whether the service asked for fewer requests."""
    is_timeout_error: bool = False
    """Whether time ran out; since 2026 it costs what any error costs."""
    fault: Fault = None
    """Who is at fault; None where nobody knows. It decides nothing."""


def classify(error: Exception) -> ErrorInfo:
    """Return what ``error`` says about itself; an attribute that is missing, or makes no sense, has its default.

    An error comes from a peer's answer as often as from our own code, so that nothing it carries raises here.
    """
    safe = getattr(error, "is_retry_safe", None)
    fault = getattr(error, "fault", None)
    return ErrorInfo(
        is_retry_safe=safe if isinstance(safe, bool) else None,
        retry_after=_seconds(getattr(error, "retry_after", None)),
        is_throttling_error=getattr(error, "is_throttling_error", False) is True,
        is_timeout_error=getattr(error, "is_timeout_error", False) is True,
        fault=_FAULTS.get(fault) if isinstance(fault, str) else None,
    )


_FAULTS: Mapping[str, Fault] = {"client": "client", "server": "server"}


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


class ClassifiedError(Exception):
    """Says about retries what a caller says of an error that does not say it itself, in the attributes that strategies read.

    ``__cause__`` is the error.
    """

    def __init__(self, error: Exception, info: ErrorInfo) -> None:
        super().__init__(str(error))
        self.__cause__ = error
        self.is_retry_safe = info.is_retry_safe
        self.retry_after = info.retry_after
        self.is_throttling_error = info.is_throttling_error
        self.is_timeout_error = info.is_timeout_error
        self.fault = info.fault
        self.message = str(error)
