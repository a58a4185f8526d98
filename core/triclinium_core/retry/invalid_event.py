"""Exception of a machine for an event that is impossible in its state."""

from __future__ import annotations


class InvalidEvent(RuntimeError):
    """The caller fed an event that cannot happen in this state; nothing was changed."""
