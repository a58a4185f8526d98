"""What a machine raises when its driver tells it something that cannot be."""

from __future__ import annotations


class InvalidEvent(RuntimeError):
    """The caller fed an event that cannot happen in this state; nothing was changed."""
