"""Exception for an event that is impossible in the state of a machine."""

from __future__ import annotations


class InvalidEvent(RuntimeError):
    """The event is impossible in this state; nothing has changed."""
