"""Rows from the body of a query response: triclinium's splitter, a push parser, and a parser of the complete body.

All parsers get the same bytes; push parsers get them in pieces, as from a socket. The results differ: triclinium
returns the checked JSON text of each row, the other parsers return rows decoded into Python objects. A second variant
of triclinium therefore decodes each row with msgspec.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module

import msgspec

from tests.bench.turns import Effort, Row, Stopwatch, measure
from triclinium_core.services.answer.rows import RowSplitter

ROW_SIZES = (100, 500)
BODY_SIZE = 2_000_000
PIECE_SIZES: Mapping[str, int] = {"64 KiB": 65_536, "4 KiB": 4_096}
KEY = "results"
PADDING = '"bio":""'
MS_A_MEGABYTE = "ms of processor time per MB"

Consume = Callable[[bytes, int], int]
"""Function of a body and the size of its pieces, which returns the number of rows."""


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    contenders: Mapping[str, Consume | None] = {
        "RowSplitter": split,
        "RowSplitter, rows decoded": split_and_decode,
        "ijson": with_ijson if importlib.util.find_spec("ijson") else None,
        "json.loads": whole,
    }
    for row_size in ROW_SIZES:
        count = effort.of(BODY_SIZE // row_size)
        body = answer(count, row_size)
        for pieces, piece_size in PIECE_SIZES.items():
            turns = {
                name: None if consume is None else partial(turn, consume, body, piece_size, count)
                for name, consume in contenders.items()
            }
            yield from measure("services: rows of a body", f"rows of {row_size} B, pieces of {pieces}", turns, effort)


def answer(count: int, row_size: int) -> bytes:
    """Return the body of a response with ``count`` rows, as the query service writes it."""

    def row(number: int) -> str:
        fields = {"airline": f"A{number % 100:02}", "id": number, "stops": [{"day": number % 7}, {"day": 0}]}
        text = json.dumps(fields, separators=(",", ":"))
        return f'{text[:-1]},"bio":"{"b" * (row_size - len(text) - len(PADDING) - 1)}"}}'

    listed = ",\n".join(map(row, range(count)))
    return f'{{\n"requestID": "7",\n"results": [\n{listed}\n],\n"status": "success"\n}}\n'.encode()


def turn(consume: Consume, body: bytes, piece_size: int, count: int) -> Mapping[str, float]:
    """Return the cost per row and per megabyte."""
    with Stopwatch() as watch:
        found = consume(body, piece_size)
    if found != count:
        raise AssertionError(f"number of rows found: {found}; expected: {count}")
    (cost,) = (a_row := watch.processor(count)).values()
    return {**a_row, MS_A_MEGABYTE: cost * count / len(body) * 1e3}


def pieces_of(body: bytes, size: int) -> Iterator[bytes]:
    """Yield the body in pieces."""
    return (body[start : start + size] for start in range(0, len(body), size))


def split(body: bytes, piece_size: int) -> int:
    """Split rows, and keep none."""
    splitter, found = RowSplitter(KEY), 0
    for piece in pieces_of(body, piece_size):
        found += len(splitter.feed(piece))
    splitter.finish()
    return found


def split_and_decode(body: bytes, piece_size: int) -> int:
    """Split rows, and decode each."""
    splitter, found, decode = RowSplitter(KEY), 0, msgspec.json.Decoder().decode
    for piece in pieces_of(body, piece_size):
        for row in splitter.feed(piece):
            decode(row)
            found += 1
    splitter.finish()
    return found


def with_ijson(body: bytes, piece_size: int) -> int:
    """Push the body through ijson's fastest parser."""
    ijson = import_module("ijson")
    events = ijson.sendable_list()
    parser, found = ijson.items_coro(events, f"{KEY}.item", use_float=True), 0
    for piece in pieces_of(body, piece_size):
        parser.send(piece)
        found += len(events)
        events.clear()
    parser.close()
    return found


def whole(body: bytes, _: int) -> int:
    """Parse the body when it is complete."""
    return len(json.loads(body)[KEY])
