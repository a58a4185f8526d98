r"""Lone surrogates in JSON escapes: the search and the replacement, compared with ``json.loads``."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from tests.core.runtime.kv.counting import counted
from triclinium_core.services.answer.surrogates import HALVES_MAX, first_lone_surrogate, without_lone_surrogates

PARTS = st.sampled_from(
    [rb"\ud83d", rb"\ude00", rb"\uDBFF", rb"\uDFFF", rb"\u0041", rb"\\", rb"\"", b"ud800", b"a", b"\\n"]
)


@given(st.lists(PARTS, max_size=8))
def test_any_string(parts: list[bytes]) -> None:
    """The search returns the offset of the first lone surrogate; a replacement changes nothing but lone surrogates."""
    text = b'"' + b"".join(parts) + b'"'
    seen: str = json.loads(text)
    expected = ["\ufffd" if "\ud800" <= each <= "\udfff" else each for each in seen]
    lone = first_lone_surrogate(text)
    without = without_lone_surrogates(text)

    assert ("".join(expected), len(text)) == (json.loads(without), len(without))
    assert (lone is None) == (without == text)
    if lone is not None:
        before = json.loads(text[: lone.offset] + b'"')
        assert (before, json.loads(f'"{lone.escape}"')) == (seen[: len(before)], seen[len(before)])


@pytest.mark.parametrize("count", [4095, 4096, 4097, 4098, 10_000, 10_001])
def test_backslashes_in_front_of_an_escape(count: int) -> None:
    """An escape after backslashes counts only if the number of these backslashes is even, for any number."""
    text = b'"a' + b"\\" * count + rb"\ud800"

    assert (count % 2 == 0) == (first_lone_surrogate(text) is not None)


@pytest.mark.parametrize("escape", [rb"\ud83d\ude00", rb"\\ud800"], ids=["pairs", "escaped"])
def test_the_search_is_limited(escape: bytes) -> None:
    """The search stops after a fixed number of surrogates, and does not find a lone surrogate after them."""
    near, far = escape * (HALVES_MAX - 1) + rb"\ud800", escape * 20 * HALVES_MAX + rb"\ud800"
    with counted() as calls:
        found = first_lone_surrogate(far)

    assert found is None
    assert far == without_lone_surrogates(far)
    assert len(near) - 6 == getattr(first_lone_surrogate(near), "offset", None)
    assert calls.total() < 20 * HALVES_MAX
