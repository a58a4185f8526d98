"""Extended errors: two texts in a body, or any nonsense."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.kv.operation.error_body import BODY_SIZE_BYTES_MAX, ErrorDetails, parse_error_body
from triclinium_core.shown import SERVER_TEXT_MAX, cut


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error":{"context":"no room","ref":"1f2e"}}', ErrorDetails("no room", "1f2e")),
        (b'{"error":{"context":"no room"}}', ErrorDetails("no room", None)),
        (b'{"error":{"ref":"1f2e"},"more":[1]}', ErrorDetails(None, "1f2e")),
        (b'{"error":{"context":null,"ref":null}}', ErrorDetails()),
        (b'{"error":{}}', ErrorDetails()),
        (b'{"manifest_uid":"1f"}', ErrorDetails()),
        (b"{}", ErrorDetails()),
    ],
)
def test_texts(body: bytes, expected: ErrorDetails) -> None:
    """Both may be missing; everything else in the body is ignored."""
    assert expected == parse_error_body(body)


@rows(
    "body",
    [
        b"",
        b"Not found",
        b"[]",
        b"null",
        b"{",
        b' {"error":{"ref":"x"}}',
        b'{"error":{"ref":"x"}}trailing',
        b'{"error":null}',
        b'{"error":"text"}',
        b'{"error":[]}',
        b'{"error":{"context":5,"ref":"x"}}',
        b'{"error":{"context":{"a":1}}}',
        b'{"error":{"ref":"\xff"}}',
        b'{"error":' + b'{"x":' * 100_000,
        b'{"x":' + b"[" * 100_000,
        b'{"error":{"ref":"x"}}' + b" " * BODY_SIZE_BYTES_MAX,
    ],
)
def test_no_texts(body: bytes) -> None:
    """What has another form has no texts, and never raises."""
    assert ErrorDetails() == parse_error_body(body)


def test_long_texts_are_cut() -> None:
    """A server does not fill the log."""
    context, ref = "ä" * 5_000, "r" * 10_000

    assert ErrorDetails(cut(context), cut(ref)) == parse_error_body(
        json.dumps({"error": {"context": context, "ref": ref}}).encode()
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "context", "ref", "x"]), children, max_size=3)
    ),
    max_leaves=8,
)


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_hostile_bodies(body: bytes) -> None:
    """Two texts of bounded length, or none."""
    details = parse_error_body(body)

    for text in (details.context, details.ref):
        assert text is None or len(text) <= SERVER_TEXT_MAX
