"""Target that splits rows of a mutated document, cut anywhere, and compares them with those of a complete parser."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from tests.fuzz.target import Attack
from triclinium_core.services.answer.rows import MalformedRows, RowSplitter

DOCUMENTS: Sequence[tuple[str, bytes]] = (
    (
        "results",
        b'{\n"requestID": "7",\n"signature": {"*":"*"},\n"results": [\n'
        + b",\n".join(b'{"id":%d,"tags":["a",{"id":1},{"id":2}],"text":"},{\\"id\\":"}' % number for number in range(9))
        + b'\n],\n"errors": [{"code":12009,"msg":"DML","results":[1,2]}],\n"status": "errors"\n}\n',
    ),
    (
        "results",
        b'{"results":[ 17\n, -1.5e3\n, "r\xc3\xa9sum\xc3\xa9"\n, null\n, [[1],[2]]\n, true ]\n\t,"metrics":{"size":6}}',
    ),
    (
        "hits",
        b'{"status":{"total":1},"hits":['
        + b",".join(b'{"index":"i","locations":{"f":[{"pos":1},{"pos":2}]},"fields":{}}' for _ in range(6))
        + b'],"facets":{}}',
    ),
    (
        "rows",
        b'{"total_rows":3,"rows":[\r\n' + b",\r\n".join([b'{"id":"a","key":[1],"value":null}'] * 12) + b"\r\n]\r\n}\n",
    ),
    ("results", b'{"errors":[{"code":3000,"msg":"syntax error"}],"results":null,"re\\u0073ult":[1],"a":[[[[[[]]]]]]}'),
    ("rows", b"<html><body>502 Bad Gateway</body></html>"),
)
"""Documents, each with the key of its rows. The last document is not JSON."""

SPOKEN = b'{}[],:"\\ \n\t0123456789-+.eEnultrfas/bu'
IN_JSON = bytes(SPOKEN[byte % len(SPOKEN)] if byte < 0x80 else byte for byte in range(256))
"""Translation of the bytes of an edit, which makes half of all bytes meaningful in JSON."""


def play_rows(attack: Attack) -> None:
    """Play one attack to its end, and check that splitter and parser agree.

    Raises:
        AssertionError: they disagree, or the result depends on the cuts.
    """
    key, honest = DOCUMENTS[attack.scene % len(DOCUMENTS)]
    edits = tuple(replace(edit, replacement=edit.replacement.translate(IN_JSON)) for edit in attack.edits)
    attack = replace(attack, edits=edits, tail=attack.tail.translate(IN_JSON))
    body = attack.data(honest)
    found = _split(key, attack.pieces(honest))

    assert found == _split(key, [body])
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        assert ([], body) == found
    elif not _is_json(body) or [name for name, _ in json.loads(body, object_pairs_hook=list)].count(key) > 1:
        assert found is None
    else:
        assert found is not None
        whole, (rows, rest) = json.loads(body), found
        if isinstance(whole.get(key), list):
            assert whole[key] == [json.loads(row) for row in rows]
            whole[key] = []
        assert whole == json.loads(rest)


def _split(key: str, pieces: Iterable[bytes]) -> tuple[Sequence[bytes], bytes] | None:
    """Return rows and rest, or None if they are refused."""
    splitter = RowSplitter(key)
    try:
        rows = [row for piece in pieces for row in splitter.feed(piece)]
        return rows, splitter.finish()
    except MalformedRows as error:
        assert str(error).isprintable(), "an error is one line"
        return None


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
        body.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
