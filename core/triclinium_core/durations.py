"""Durations as they are given: seconds, or a ``timedelta``."""

from __future__ import annotations

from datetime import timedelta


def in_seconds(duration: float | timedelta) -> float:
    """Return the seconds of a duration. What is neither comes back as it is, for the check that refuses it."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration
