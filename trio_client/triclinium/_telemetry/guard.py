"""Calls into a tracer or a meter that may fail: an operation does not fail with them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
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

    def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what ``function`` returns; None where it raises an Exception."""
        try:
            return function(*args, **kwargs)
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                logger.exception(
                    "%r failed in %s; operations go on without it, and further failures are not logged",
                    self._subject,
                    getattr(function, "__qualname__", function),
                )
            return None
