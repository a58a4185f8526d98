"""Counts of function calls, a measure of cost that is the same on every machine."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EVENTS = frozenset({"call", "c_call"})


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count by name the calls of Python and C functions that the ``with`` block makes."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event in EVENTS:
            calls[frame.f_code.co_name if event == "call" else getattr(argument, "__name__", "")] += 1

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
