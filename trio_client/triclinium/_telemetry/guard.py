"""Calls into a tracer or a meter that may fail: an operation does not fail with them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from triclinium_core.telemetry.tracing import AttributeValue, RequestSpan

T = TypeVar("T")

logger = logging.getLogger("triclinium.telemetry")


class Guard:
    """Calls what belongs to a user, and logs the first exception that comes of it; the others are passed over.

    Args:
        subject: the tracer or the meter, which the log names.
    """

    def __init__(self, subject: object) -> None:
        self._subject = subject
        self._has_failed = False

    def __call__(self, use: Callable[[], T]) -> T | None:
        """Return what ``use`` returns; None where it raises an Exception.

        Args:
            use: looks up the method that it calls as well: it may be missing, or a property that raises.
        """
        try:
            return use()
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                logger.exception(
                    "%r failed; operations go on without it, and further failures are not logged", self._subject
                )
            return None

    def set_attribute(self, span: RequestSpan, key: str, value: AttributeValue) -> None:
        """Tell one fact about a span."""
        self(lambda: span.set_attribute(key, value))
