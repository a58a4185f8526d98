"""Where values end, for any value in any cut."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.services.answer import value_end
from triclinium_core.services.answer.value_end import LEVELS_AT_ONCE, ValueEnd

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def end_of(text: bytes, cuts: list[int]) -> int | None:
    """Return where the value ends that the text begins with, in all of the text; None where it has no end."""
    value, bounds = ValueEnd(), sorted({1, len(text), *(1 + cut % len(text) for cut in cuts)})
    value.begin(text[0])
    for start, stop in pairwise(bounds):
        found = value.go_on(text[start:stop])
        if found >= 0:
            return start + found
    return None


@given(value=VALUES, ascii_only=st.booleans(), behind=st.sampled_from([b",", b" ,", b"]", b"\n}"]), data=st.data())
def test_any_value(value: object, ascii_only: bool, behind: bytes, data: st.DataObject) -> None:
    """Whatever the value and the cut, its end is found, and not before it is there."""
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    cuts = data.draw(st.lists(st.integers(0, len(text))))

    assert len(text) == end_of(text + behind, cuts)
    assert None is end_of(text[: data.draw(st.integers(1, max(1, len(text) - 1)))], cuts)


@rows(
    "text",
    [
        rb'""',
        rb'"\\"',
        rb'"\""',
        rb'"\\\""',
        rb'"a\\\\"',
        rb'"\",\"]"',
        rb'["\\","\"","a\"b\\"]',
        rb'{"\"}":{"\\":"]"},"a":"\\\""}',
    ],
)
def test_escapes(text: bytes) -> None:
    """A quote ends a string unless an odd number of backslashes stands in front of it, wherever the pieces are cut."""
    body = text + b',"'

    assert len(text) == end_of(body, [])
    assert len(text) == end_of(body, list(range(len(body))))
    assert {len(text)} == {end_of(body, [first, second]) for first in range(len(body)) for second in range(len(body))}


@pytest.mark.parametrize("levels", [1, LEVELS_AT_ONCE, LEVELS_AT_ONCE + 1, 20_000])
def test_any_depth(levels: int) -> None:
    """Brackets close at any depth, and those in strings do not count."""
    text = b'[{"]":"\\"}"},' * levels + b"0" + b"]" * levels

    assert len(text) == end_of(text + b"]", [])
    assert len(text) == end_of(text + b"]", list(range(0, len(text), 7)))


def test_each_byte_is_stepped_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the pieces of a value are, no byte of it is stepped over again."""
    stepped_over = 0
    match = value_end._match_balanced

    def counted(data: bytes, position: int) -> object:
        nonlocal stepped_over
        found = match(data, position)
        stepped_over += value_end.end_of(found) - position
        return found

    monkeypatch.setattr(value_end, "_match_balanced", counted)
    text = b'{"a":[' + b'{"b":[{"c":[{"d":[]}]}]},' * 1_000 + b"0]}"

    assert len(text) == end_of(text, list(range(0, len(text), 10)))
    assert stepped_over <= len(text)
