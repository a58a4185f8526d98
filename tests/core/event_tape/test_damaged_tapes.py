"""Damaged tapes: each raises an error that names a line, or is replayed, and never raises another exception."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from tests.core.event_tape.tapes import small_tape
from triclinium_core.decision_tape.reading import TapeError
from triclinium_core.event_tape.replay import Replayed, replay

TAPE: Sequence[bytes] = small_tape()

LEAVES = (
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from([0, -1, 2**63, 10**4_000, 1e308])
)
NAMES = st.sampled_from(["$", "$user", "$bytes", "$enum", "$error", "$list", "$map", "$int", "line", "event", "now"])
TAGGED = st.sampled_from(
    [
        {"$": "BytesReceived", "stream": "x", "data": None},
        {"$": "OperationSubmitted", "token": 10**30, "operation": None},
        {"$": "OperationsSubmitted", "submissions": [None]},
        {"$": "RowsWanted", "token": {"$list": []}},
        {"$": "StrategyDecided", "token": 1, "answer": {"$user": ["x", 0, ""]}},
        {"$": "TimePassed", "unsent": {"$map": [["a", 1]]}, "unread": 5},
        {"$error": ["Exception", "Exception", "x"]},
        {"$user": ["x", 1, "token strategy"]},
        {"line": "call", "method": "error_context", "now": "x", "digest": [], "token": [1]},
        {"line": "permit", "token": 1, "answers": [{"of": "1 acquire", "gave": "x"}]},
    ]
)
VALUES = st.recursive(
    LEAVES | TAGGED, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2), max_leaves=6
)


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Return every container in a JSON value with each of its keys or indexes."""
    names = list(data) if isinstance(data, dict) else list(range(len(data))) if isinstance(data, list) else []
    return [(data, name) for name in names] + [place for name in names for place in _places(data[name])]


def _json(value: object) -> bytes:
    # The largest number has 4,001 digits; Python converts at most 4,300.
    return json.dumps(value).encode()


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a tape with up to three random changes."""
    tape = list(TAPE)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(tape) - 1))
        match draw(st.sampled_from(["edit", "edit", "edit", "drop", "swap", "repeat", "splice", "nest", "cut"])):
            case "edit":
                data = [json.loads(tape[at]) if tape[at] in TAPE else None]
                container, name = draw(st.sampled_from(_places(data)))
                container[name] = draw(VALUES)
                tape[at] = _json(data[0]) + b"\n"
            case "drop" if len(tape) > 1:
                del tape[at]
            case "swap":
                other = draw(st.integers(0, len(tape) - 1))
                tape[at], tape[other] = tape[other], tape[at]
            case "repeat":
                tape.insert(at, tape[at])
            case "splice":
                start = draw(st.integers(0, len(tape[at])))
                tape[at] = tape[at][:start] + draw(st.binary(max_size=4)) + tape[at][start + 1 :]
            case "nest":
                deep = draw(st.sampled_from([100, 100_000]))
                tape[at] = b'{"line":"event","now":' + b"[" * deep + b"]" * deep + b',"event":null,"digest":[]}\n'
            case "cut":
                tape = [*tape[:at], tape[at][: draw(st.integers(0, len(tape[at])))]]
        tape = tape or [b""]
    return b"".join(tape)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tape=damaged(), size=st.sampled_from([1 << 20, 1_000]))
def test_damaged_tapes_are_refused_or_differ(tape: bytes, size: int) -> None:
    """A tape with edited, reordered, repeated, cut or deeply nested lines raises TapeError, or is replayed."""
    chunks = (tape[at : at + size] for at in range(0, len(tape), size))
    try:
        result = replay(chunks)
    except TapeError as error:
        assert 1 <= error.line <= tape.count(b"\n") + 1
        assert str(error).isprintable()
    else:
        assert isinstance(result, Replayed)
        assert result.difference is None or result.difference.line <= tape.count(b"\n") + 1
        assert str(result.difference).isprintable()
