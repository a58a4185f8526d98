"""Errors of a call that makes several requests, if the call times out or is cancelled.

Source: SDK-RFC 0058, 13 and 14: the timeout is ambiguous if something was or may have been changed; decision D60.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from triclinium_core import errors
from triclinium_core.error_context import ErrorContext, story

_LONGER = "fix the named problem, or use a longer TimeoutOptions(management=...)"


class TimeIsUp(Exception):
    """Exception that the driver throws into a call to end it.

    Args:
        elapsed: seconds since the call began.
        timeout: timeout of the call in seconds; None if its caller cancelled it.
        given_up: error context of the abandoned step; None during a pause.
        is_ambiguous: whether the abandoned step may have been applied.
    """

    def __init__(
        self, elapsed: float, timeout: float | None, given_up: ErrorContext | None = None, *, is_ambiguous: bool = False
    ) -> None:
        super().__init__("the management timeout has passed")
        self.elapsed = elapsed
        self.timeout = timeout
        self.given_up = given_up
        self.is_ambiguous = is_ambiguous


class Progress:
    """Progress of a call, for the error if its time is up."""

    def __init__(self) -> None:
        self.is_applied: bool = False
        """Whether the change was made, so that only waiting remains."""
        self.awaited: tuple[str, ...] = ()
        """States that keep the call waiting, as texts for messages."""


@contextmanager
def progress_of(context: ErrorContext) -> Iterator[Progress]:
    """Yield a record of a call's progress, and convert a ``TimeIsUp`` that the block raises into a timeout error.

    Args:
        context: error context of the call. Its ``operation`` is the operation that the user called.

    Raises:
        AmbiguousTimeoutException: the call ended early, and something was or may have been applied.
        UnambiguousTimeoutException: the call ended early, and nothing was applied.
    """
    progress = Progress()
    try:
        yield progress
    except TimeIsUp as up:
        raise _too_late(context, progress, up) from None


def _too_late(call: ErrorContext, progress: Progress, up: TimeIsUp) -> errors.TimeoutException:
    """Return the error of a call that ends early. The context has the call's request and the last step's attempts."""
    known = up.given_up if up.given_up is not None else ErrorContext()
    context = replace(
        known,
        **{name: getattr(call, name) for name in _OF_THE_CALL},
        elapsed=up.elapsed,
        timeout=up.timeout,
        state=None,
        awaited=() if known.connections else progress.awaited,
    )
    name, after = call.operation, f"after {up.elapsed:g} s"
    if progress.is_applied:
        text = f"{name}: done, but not yet everywhere {after}{story(context)}; the change remains in effect: {_LONGER}"
        return errors.AmbiguousTimeoutException(text, context)
    if up.is_ambiguous:
        text = f"{name}: not done {after}{story(context)}; it may have been applied: check before you call it again"
        return errors.AmbiguousTimeoutException(text, context)
    return errors.UnambiguousTimeoutException(f"{name}: not done {after}{story(context)}; nothing was applied", context)


_OF_THE_CALL = (
    "service",
    "operation",
    "idempotent",
    "bucket",
    "scope",
    "collection",
    "http_method",
    "http_path",
    "client_context_id",
    "statement",
    "parameters",
    "index",
)
