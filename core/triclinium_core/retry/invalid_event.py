"""Exception for an event that a machine cannot accept in its current state."""

from __future__ import annotations


class InvalidEvent(RuntimeError):
    """The machine cannot accept the event in its current state. The event has changed nothing."""
