"""Errors of a call of several requests when its time is over or its caller leaves.

Source: SDK-RFC 0058 "Timeouts": what was changed decides whether the timeout is ambiguous; decision D60.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from triclinium_core import errors
from triclinium_core.error_context import ErrorContext, story

_LONGER = "see to what is named, or give it longer with TimeoutOptions(management=...)"


class TimeIsUp(Exception):
    """Thrown into a call that has to end.

    Args:
        elapsed: seconds since the call began.
        timeout: seconds that it was given; None where its caller left.
        given_up: what is known of the step that is given up; None during a pause.
        is_ambiguous: whether that step may have been applied.
    """

    def __init__(
        self, elapsed: float, timeout: float | None, given_up: ErrorContext | None = None, *, is_ambiguous: bool = False
    ) -> None:
        super().__init__("time is up")
        self.elapsed = elapsed
        self.timeout = timeout
        self.given_up = given_up
        self.is_ambiguous = is_ambiguous


class Progress:
    """How far a call has come."""

    def __init__(self) -> None:
        self.is_applied: bool = False
        """Whether the change was made, so that the rest is waiting."""
        self.awaited: tuple[str, ...] = ()
        """In words, what is still awaited."""


@contextmanager
def progress_of(context: ErrorContext) -> Iterator[Progress]:
    """Give the block a record for the progress of a call.

    Args:
        context: what errors tell of the call; its operation is the one that the user called.

    Raises:
        AmbiguousTimeoutException: time is up, and something was applied, or may have been.
        UnambiguousTimeoutException: time is up, and nothing was applied.
    """
    progress = Progress()
    try:
        yield progress
    except TimeIsUp as up:
        raise _too_late(context, progress, up) from None


def _too_late(call: ErrorContext, progress: Progress, up: TimeIsUp) -> errors.TimeoutException:
    """Return what a call ends with: what it was about, and what its last step has met."""
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
        text = f"{name}: done, but not yet everywhere {after}{story(context)}; what was done stays: {_LONGER}"
        return errors.AmbiguousTimeoutException(text, context)
    if up.is_ambiguous:
        text = f"{name}: not done {after}{story(context)}; it may have been applied: look before you call it again"
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
