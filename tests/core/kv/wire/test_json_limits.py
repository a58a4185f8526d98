"""Limits of the JSON documents that a server sends."""

from __future__ import annotations

import pytest

from triclinium_core.kv.wire.json_limits import JsonLimits

LIMITS = JsonLimits(size_bytes_max=20, objects_max=2, parts_max=5)


@pytest.mark.parametrize(
    ("document", "excess"),
    [
        (b"", None),
        (b'{"a":[1,2],"b":{}}', None),
        (b" " * 20, None),
        (b" " * 21, "21 bytes"),
        (b"{{{", "3 objects"),
        (b'["{{{"]', "3 objects"),
        (b"[[[[[[", "6 parts"),
        (b"[1,2,3,4,5,6]", "6 parts"),
    ],
)
def test_excess(document: bytes, excess: str | None) -> None:
    """``excess`` describes the first limit that a document exceeds, and returns None if it exceeds no limit."""
    found = LIMITS.excess(document)

    assert found is None if excess is None else found is not None and found.startswith(f"{excess};")
