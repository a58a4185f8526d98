"""Reading of tapes, including damaged ones."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from functools import cache

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.core.decision_tape.recorded import Recorded, tape_of
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.reading import TapeError, TapeReader
from triclinium_core.decision_tape.replay import replay
from triclinium_core.testing.simulation.history import play

HEADER = b'{"tape":"decisions","version":1,"core":"1.0","at":0.0}\n'
END = b'{"type":"end","at":9.0,"reason":"saved"}\n'
READY = b'{"type":"connection","at":1.0,"stream":1,"event":"ready"}\n'


@cache
def recorded_lines() -> tuple[bytes, ...]:
    """Return the lines of the first client's tape in a simulated history."""
    clients = Recorded(300)
    play(3, make_machine=clients.make_machine)
    return tuple(tape_of(*clients.made[0]).splitlines(keepends=True))


def read(tape: bytes) -> TapeReader:
    """Read and replay a whole tape, and return its reader."""
    reader = TapeReader([tape[start : start + 1000] for start in range(0, len(tape), 1000)])
    for _, fact in reader:
        if isinstance(fact, lines.Operation):
            replay(fact)
    return reader


@pytest.mark.parametrize(
    ("tape", "line", "wanted"),
    [
        (b"", 1, "header"),
        (b"\x1b[2J\n", 1, "header"),
        (b'{"tape":"events","version":1}\n', 1, "header"),
        (HEADER.replace(b"1,", b"2,"), 1, "format 2"),
        (HEADER + b"{}\n" + END, 2, "operation"),
        (HEADER + READY + b'{"type":"breaker","at":0.5,"state":"open"}\n', 3, "before"),
        (HEADER + READY[:-1].replace(b"ready", b"\x1b[31m") + b"\n", 2, "connection"),
        (HEADER + READY.replace(b'"ready"', b'"ready","node":"\\u001b[2J"') + END, 2, "connection"),
        (HEADER + END + READY, 3, "end"),
        (HEADER + READY.replace(b"1.0", b"1e999") + END, 2, "connection"),
        (HEADER + b"[" * 100_000 + b"\n", 2, "connection"),
        (HEADER + b'{"a":' * 100_000 + b"\n", 2, "connection"),
        (HEADER + b" " * (lines.LINE_SIZE_MAX + 1), 2, "bytes"),
    ],
)
def test_a_damaged_line_is_named(tape: bytes, line: int, wanted: str) -> None:
    """A line that is not valid raises an error with its number and what was expected, as a short printable text."""
    with pytest.raises(TapeError, match=wanted) as caught:
        read(tape)

    assert line == caught.value.line
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_a_missing_end_is_a_cut() -> None:
    """A tape that ends with the reserved line, or in the middle of its lines, is read up to there and has no end."""
    assert read(HEADER + READY + b" " * 199 + b"\n").end is None
    assert read(HEADER + READY).end is None
    assert read(HEADER + READY + READY[:20]).end is None
    assert read(HEADER + READY + END).end is not None


def endless() -> Iterator[bytes]:
    """Yield the pieces of a tape with a line of a gigabyte."""
    yield HEADER
    for _ in range(1000):
        yield b"x" * 1_000_000


def test_a_huge_line_takes_constant_memory() -> None:
    """A line of a gigabyte is refused as soon as it is too long."""
    tracemalloc.start()
    with pytest.raises(TapeError):
        list(TapeReader(endless()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 8 * lines.LINE_SIZE_MAX


@given(st.data())
def test_damaged_tapes_are_refused_or_read(data: st.DataObject) -> None:
    """A tape with cut, removed, exchanged or edited lines raises only TapeError, and one with all lines is read."""
    tape = list(recorded_lines())
    kept = data.draw(st.sampled_from(["all", "fewer", "exchanged", "cut", "edited"]))
    place = data.draw(st.integers(0, len(tape) - 2))
    if kept == "fewer":
        del tape[place : place + data.draw(st.integers(1, 20))]
    elif kept == "exchanged":
        tape[place], tape[place + 1] = tape[place + 1], tape[place]
    elif kept == "cut":
        tape[place] = tape[place][: data.draw(st.integers(0, len(tape[place])))]
    elif kept == "edited":
        tape[place] = edited(data, tape[place])
    damaged = b"".join(tape)

    try:
        read(damaged)
    except TapeError as error:
        assert kept != "all"
        assert 1 <= error.line <= len(tape) + 1


VALUES = (
    st.sampled_from([[], {}, 2**70]) | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
)


def edited(data: st.DataObject, line: bytes) -> bytes:
    """Return a line in which one value, at any depth, is replaced."""
    document = json.loads(line)
    inner = document
    while True:
        key = data.draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        if isinstance(inner[key], dict | list) and inner[key] and data.draw(st.booleans()):
            inner = inner[key]
            continue
        inner[key] = data.draw(VALUES)
        return json.dumps(document).encode() + b"\n"


def test_every_line_round_trips() -> None:
    """Each recorded line is decoded and encoded to the same bytes."""
    header, *others = recorded_lines()

    assert header == msgspec.json.encode(TapeReader([header]).header) + b"\n"
    for line in others:
        assert line == msgspec.json.encode(msgspec.json.decode(line, type=lines.Fact)) + b"\n"
