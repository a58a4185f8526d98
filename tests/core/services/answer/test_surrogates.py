r"""Which escapes are lone surrogates: those that ``json.loads`` makes one of."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from triclinium_core.services.answer.surrogates import first_lone_surrogate, without_lone_surrogates

PARTS = st.sampled_from(
    [rb"\ud83d", rb"\ude00", rb"\uDBFF", rb"\uDFFF", rb"\u0041", rb"\\", rb"\"", b"ud800", b"a", b"\\n"]
)


@given(st.lists(PARTS, max_size=8))
def test_any_string(parts: list[bytes]) -> None:
    """The first is found where it stands, and without them all else is the same."""
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
