"""Duration of the longest events, each with as much data as the bounds permit a node to send. The target is 50 ms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from tests.bench.turns import Effort, Row, Stopwatch, measure
from tests.full_events import FULL_EVENTS, FULL_ROWS, FullEvent
from triclinium_core import errors
from triclinium_core.services.json_values import decode_json


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    for name, make in FULL_EVENTS.items():
        yield from measure("bounds: one event", name, {"triclinium": partial(turn, make)}, effort)
    for name, text in FULL_ROWS.items():
        yield from measure("bounds: one row", name, {"triclinium": partial(row_turn, text)}, effort)


def turn(make: Callable[[], FullEvent]) -> Mapping[str, float]:
    """Return the cost of one event."""
    full = make()
    with Stopwatch() as watch:
        full.handle()
    return watch.processor(1)


def row_turn(make: Callable[[], bytes]) -> Mapping[str, float]:
    """Return the cost of decoding a row into objects, or of refusing it."""
    row = make()
    with Stopwatch() as watch, suppress(errors.DecodingFailureException):
        decode_json(row, object, "the row is")
    return watch.processor(1)
