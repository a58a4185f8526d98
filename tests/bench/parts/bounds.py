"""The longest events: each has as much data as the bounds permit a node to send. The target is 50 milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from tests.bench.turns import Effort, Row, Stopwatch, measure
from tests.full_events import FULL_EVENTS, FullEvent


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    for name, make in FULL_EVENTS.items():
        yield from measure("bounds: one event", name, {"triclinium": partial(turn, make)}, effort)


def turn(make: Callable[[], FullEvent]) -> Mapping[str, float]:
    """Return the cost of one event."""
    full = make()
    with Stopwatch() as watch:
        full.handle()
    return watch.processor(1)
