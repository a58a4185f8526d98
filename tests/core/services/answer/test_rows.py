"""Rows of a streamed JSON document: the splitter finds the rows of ``json.loads``, with bounded work and memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import cycle, pairwise
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.core.services.answers import JSON as ANY_JSON
from tests.rows import rows
from triclinium_core.services.answer import rows as rows_module
from triclinium_core.services.answer.rows import LEVELS_AT_ONCE, MalformedRows, RowSplitter, ValueEnd

KEY = "results"
SPELLINGS = ('"results"', '"re\\u0073ults"', '"\\u0072\\u0065sults"')


class Cut(NamedTuple):
    """Result of splitting a body: its rows, and the rest of the document."""

    rows: Sequence[bytes]
    rest: bytes


def in_pieces(body: bytes, size: int) -> list[bytes]:
    """Return the body in pieces of ``size`` bytes."""
    return [body[start : start + size] for start in range(0, len(body), size)]


def at(body: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Return the body, split at the offsets ``cuts``, which are taken modulo its size plus one."""
    bounds = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    return [body[start:end] for start, end in pairwise(bounds)]


def split(pieces: Sequence[bytes | bytearray], **bounds: int) -> Cut:
    """Pass the pieces to a splitter. Return the rows and the rest."""
    splitter = RowSplitter(KEY, **bounds)
    found = [row for piece in pieces for row in splitter.feed(piece)]
    return Cut(found, splitter.finish())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just(KEY), inner, max_size=4),
    max_leaves=10,
)
MEMBERS = st.dictionaries(st.text().filter(lambda name: name != KEY), JSON, max_size=3)
SPACES = st.lists(st.text(" \t\r\n", max_size=2), min_size=1, max_size=7)
UNIFORM = st.builds(lambda row, count: [row] * count, JSON, st.integers(0, 12))
CUTS = st.lists(st.integers(0, 2000), max_size=20)


def written(value: object, spaces: Iterator[str], spelling: str, *, ascii_only: bool) -> str:
    """Return a value as JSON, with the next of ``spaces`` at every position that permits whitespace."""

    def text_of(part: object, key: str | None = None) -> str:
        match part:
            case dict():
                inner = ",".join(f"{text_of(name, name)}:{text_of(inner)}" for name, inner in part.items())
                text = f"{{{inner or next(spaces)}}}"
            case list():
                text = f"[{','.join(map(text_of, part)) or next(spaces)}]"
            case _:
                text = spelling if key == KEY else json.dumps(part, ensure_ascii=ascii_only)
        return f"{next(spaces)}{text}{next(spaces)}"

    return text_of(value)


@given(
    members=st.tuples(MEMBERS, MEMBERS),
    elements=st.lists(JSON, max_size=6) | UNIFORM,
    writing=st.tuples(SPACES, st.sampled_from(SPELLINGS), st.booleans()),
    cuts=CUTS,
)
def test_any_document_in_any_split(
    members: tuple[dict[str, object], dict[str, object]],
    elements: list[object],
    writing: tuple[list[str], str, bool],
    cuts: list[int],
) -> None:
    """For any document and split, the splitter returns the rows and rest that a JSON parser finds, byte for byte."""
    before, after = members
    after = {name: value for name, value in after.items() if name not in before}
    spaces, spelling, ascii_only = writing
    text = written({**before, KEY: elements, **after}, cycle(spaces), spelling, ascii_only=ascii_only)
    body = text.encode()
    expected = split([body])

    assert elements == [json.loads(row) for row in expected.rows]
    assert [*before, KEY, *after] == list(json.loads(expected.rest))
    assert {**before, KEY: [], **after} == json.loads(expected.rest)
    assert all(row == row.strip() and row in body for row in expected.rows)
    assert expected == split(at(body, cuts))
    assert expected == split(in_pieces(body, 1))


TOKENS = st.sampled_from(
    [
        *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b" ", b"\0", b"<", b"1", b"-1.5e3", b"null", b"nul", b'"x"'),
        *(
            b"\xff",
            "é".encode(),
            b"\\u00e9",
            b'"a":',
            b'"results"',
            b'"results":[',
            b'{"a":1}',
            b'{"a":1},{"a":',
            b'"},{"',
        ),
    ]
)
SOUP = st.lists(TOKENS, max_size=14).map(b"".join)
IN_ARRAY = SOUP.map(lambda soup: b'{"results":[{"a":0},{"a":0},' + soup + b"]}")


@given(body=st.binary() | SOUP | SOUP.map(lambda soup: b"{" + soup) | IN_ARRAY, cuts=CUTS)
def test_any_bytes(body: bytes, cuts: list[int]) -> None:
    """For any split, an object is accepted if and only if a JSON parser accepts it and it has no second row list."""
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        assert Cut([], body) == split(at(body, cuts))
    elif is_json(body) and [name for name, _ in json.loads(body, object_pairs_hook=list)].count(KEY) < 2:
        whole, found = json.loads(body), split(at(body, cuts))
        elements = whole.get(KEY)
        assert (elements if isinstance(elements, list) else []) == [json.loads(row) for row in found.rows]
        assert whole == {**json.loads(found.rest), **({KEY: elements} if KEY in whole else {})}
    else:
        for pieces in ([body], at(body, cuts), in_pieces(body, 1)):
            with pytest.raises(MalformedRows) as refused:
                split(pieces)
            assert str(refused.value).isprintable()


def is_json(body: bytes) -> bool:
    """Return whether msgspec can decode the body and all its strings are valid UTF-8."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
        body.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


@rows(
    ("body", "found", "rest"),
    [
        (b'{"results":[1,"a",{"b":[]},null]}', [b"1", b'"a"', b'{"b":[]}', b"null"], b'{"results":[]}'),
        (b' {"a":1 ,"results" : [ \r\n1\t, 2 ] }\n', [b"1", b"2"], b' {"a":1 ,"results" : [] }\n'),
        (b'{"results":[[1,2],[[3]]],"results2":[4]}', [b"[1,2]", b"[[3]]"], b'{"results":[],"results2":[4]}'),
        (b'{"re\\u0073ults":[1],"status":"ok"}', [b"1"], b'{"re\\u0073ults":[],"status":"ok"}'),
        (b'{"a":{"results":[1]},"b":[{"results":[2]}]}', [], b'{"a":{"results":[1]},"b":[{"results":[2]}]}'),
        (b'{"a":"results","b":["results",[3]]}', [], b'{"a":"results","b":["results",[3]]}'),
        (b'{"a":"\\"results\\":[1]","results":["]}"]}', [b'"]}"'], b'{"a":"\\"results\\":[1]","results":[]}'),
        (b'{"results":null,"errors":[{"code":3000}]}', [], b'{"results":null,"errors":[{"code":3000}]}'),
        (b'{"results":{"results":[1]}}', [], b'{"results":{"results":[1]}}'),
        (b'{"results":"[1]","x":[2]}', [], b'{"results":"[1]","x":[2]}'),
        (b'{"errors":[]}', [], b'{"errors":[]}'),
        (b"{}", [], b"{}"),
        (b'{"results":[ ]}', [], b'{"results":[]}'),
        (b"<html><body>502 Bad Gateway</body></html>", [], b"<html><body>502 Bad Gateway</body></html>"),
        (b'[{"results":[1]}]', [], b'[{"results":[1]}]'),
        (b"\xef\xbb\xbf{}", [], b"\xef\xbb\xbf{}"),
        (b" \n", [], b" \n"),
        (b"", [], b""),
    ],
)
def test_rows_and_rest(body: bytes, found: list[bytes], rest: bytes) -> None:
    """The elements of the top object's array for rows are returned as rows, byte for byte; the rest is unchanged."""
    assert Cut(found, rest) == split([body])
    assert Cut(found, rest) == split(in_pieces(body, 1))
    assert Cut(found, rest) == split([bytearray(body)])


LONE = st.sampled_from(
    [*(rb'{"a":"%b"}' % text for text in (rb"\ud800", rb"\uDFFFx", rb"\ud800A", rb"\ud800\ud83d\ude00"))]
)
WHOLE = st.sampled_from([rb'{"a":"\\ud800"}', rb'{"a":"\ud83d\ude00"}', b'{"a":"b"}', b"[1,2]", rb'{"\ud800":[{}]}'])


@given(found=st.lists(LONE | WHOLE, max_size=8), separator=st.sampled_from([b",", b" ,\n"]), cuts=CUTS)
def test_lone_surrogates_stay_in_rows(found: list[bytes], separator: bytes, cuts: list[int]) -> None:
    """Rows with lone surrogates, which JSON's grammar permits, are returned unchanged for any split."""
    body = b'{"results":[' + separator.join(found) + b"]}"

    for pieces in ([body], at(body, cuts), in_pieces(body, 1)):
        assert Cut(found, b'{"results":[]}') == split(pieces)


@rows(
    ("body", "offset"),
    [
        (b'{"results":[1,]}', 14),
        (rb'{"results":["\ud800",nul]}', 22),
        (rb'{"results":["\ud800"],"a":"\ud801"}', 27),
        (b'{"results":[,1]}', 12),
        (b'{"results":[1 2]}', 14),
        (b'{"results":["a","\xe9"]}', 17),
        (b'{"results":[0,nul]}', 15),
        (b'{"results":[{"a":1]]}', 18),
        (b'{"results":[1}', 13),
        (b'{"results":[1', 13),
        (b'{"results":[{"a":"', 18),
        (b'{"results":[1]', 14),
        (b'{"results":[1],', 15),
        (b"{", 1),
        (b'{"results":[1],"results":[2]}', 24),
        (b'{"results":null,"re\\u0073ults":[2]}', 30),
        (b'{"results" [1]}', 11),
        (b'{"results":[1]}{', 15),
        (b"{{ name }}", 1),
        (b'{"\\x":1}', 5),
        (b'{"\xe9":1}', 4),
        (b'{"results":[1],"a":[}}', 20),
        (b'{"a":[}}', 6),
        (b'{"results":[1,2],"a":"\xe9"}', 22),
    ],
)
def test_invalid_documents(body: bytes, offset: int) -> None:
    """An invalid, truncated or ambiguous document raises MalformedRows with the byte offset."""
    for size in (len(body), 1):
        with pytest.raises(MalformedRows, match=rf"^byte {offset} of the body: "):
            split(in_pieces(body, size))


DEEP = b"[" * 200_000 + b"]" * 200_000


@rows(
    "body",
    [
        b'{"results":[%b]}' % DEEP,
        b'{"results":[[1],[1],[1],%b,[1],[1]]}' % DEEP,
        b'{"a":%b}' % DEEP,
    ],
)
def test_deep_nesting(body: bytes) -> None:
    """A document that is nested too deeply raises MalformedRows."""
    for size in (len(body), 1_000):
        with pytest.raises(MalformedRows, match=r"^byte \d+ of the body: .*too deep"):
            split(in_pieces(body, size))


def test_a_refused_document_stays_refused() -> None:
    """After the splitter has refused a document, every call raises the first error, and the splitter holds no data."""
    splitter = RowSplitter(KEY)
    with pytest.raises(MalformedRows) as refused:
        splitter.feed(b'{"a":"b","results":[{"c":1},{"d"]')

    for call in (splitter.finish, lambda: splitter.feed(b"1")):
        with pytest.raises(MalformedRows) as again:
            call()
        assert str(refused.value) == str(again.value)
    assert 0 == splitter.held


def test_a_row_is_returned_with_its_last_byte() -> None:
    """A row is returned when its last byte arrives; a number is returned when the byte after the number arrives."""
    body = b'{"results":[{"a":1},{"a":2}, {"a":[{"a":3}]},"x\\"",17 ,[]],"z":0}'
    ends = [
        body.index(row) + len(row) for row in (b'{"a":1}', b'{"a":2}', b'{"a":[{"a":3}]}', b'"x\\""', b"17 ", b"[]")
    ]
    splitter = RowSplitter(KEY)

    assert ends == [end for end, byte in enumerate(in_pieces(body, 1), 1) for _ in splitter.feed(byte)]
    for end in range(len(body)):
        whole = RowSplitter(KEY)
        assert len([1 for row_end in ends if row_end <= end]) == len(whole.feed(body[:end]))


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_size_limits(size: int) -> None:
    """A row or rest of the maximum size is accepted and a larger one refused; whitespace between rows is ignored."""
    row, bounds = b'{"a":"%b"}' % (b"x" * 92), {"row_size_bytes_max": 100, "rest_size_bytes_max": 40}
    body = b'{"results":[1,2,%b,%b %b],"b":"%b"}'
    fits = body % (row, b" " * 500, row, b"y" * 19)

    assert Cut([b"1", b"2", row, row], b'{"results":[],"b":"%b"}' % (b"y" * 19)) == split(
        in_pieces(fits, size), **bounds
    )
    large = row.replace(b"x", b"xx", 1)
    above = body % (row, b"", large, b"")
    with pytest.raises(MalformedRows, match=rf"^byte {above.index(large)} of the body: a row has more than 100 bytes$"):
        split(in_pieces(above, size), **bounds)
    with pytest.raises(MalformedRows, match="rows has more than 40 bytes$"):
        split(in_pieces(body % (row, b"", row, b"y" * 20), size), **bounds)


@rows("begin", [b'{"results":["', b'{"results":[{"a":1},{"a":1},{"', b'{"a":"', b'{"', b'{"a":[', b" "])
def test_endless_bodies_are_refused(begin: bytes) -> None:
    """A row, member or name that does not end is refused at its size limit, and the splitter then holds no data."""
    splitter = RowSplitter(KEY, row_size_bytes_max=1_000, rest_size_bytes_max=1_000)
    splitter.feed(begin)
    held = [splitter.held]
    with pytest.raises(MalformedRows, match="more than 1000 bytes"):
        held += (splitter.held for _ in range(20) if not splitter.feed(b" " * 100))

    assert held == sorted(held)
    assert held[-1] <= 1_000 + len(begin)
    assert 0 == splitter.held


def test_whitespace_between_rows_is_not_held() -> None:
    """Whitespace between rows, which a server may send as keep-alive, is not held."""
    splitter = RowSplitter(KEY, rest_size_bytes_max=1_000)
    splitter.feed(b'{"results":[1,')
    held = splitter.held
    for _ in range(20):
        splitter.feed(b" " * 100)

    assert held == splitter.held
    assert [b"2"] == splitter.feed(b"2]}")


def test_a_foreign_body_is_cut() -> None:
    """If a body is not a JSON object, only its first bytes are kept."""
    splitter = RowSplitter(KEY, rest_size_bytes_max=1_000)
    for _ in range(100):
        assert [] == splitter.feed(b"<p>Bad Gateway</p>" * 10)

    assert 1_000 == splitter.held
    assert (b"<p>Bad Gateway</p>" * 100)[:1_000] == splitter.finish()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Patch the decoder. Return the list to which each later call of the decoder appends the size of its text."""
    sizes: list[int] = []
    decode = rows_module._decode_rows

    def counted(text: bytearray) -> list[msgspec.Raw]:
        sizes.append(len(text) - 2)
        return decode(text)

    monkeypatch.setattr(rows_module, "_decode_rows", counted)
    return sizes


ROW = b'{"id":17,"tags":[{"id":1},{"id":2}],"text":"},{\\"id\\":"}'
HOSTILE = {
    "rows alike": [ROW] * 2_000,
    "a boundary in every string": [b'{"id":"%b"}' % (b'},{\\"id\\"},{' * 10)] * 500,
    "a boundary within every row": [b'{"id":[%b]}' % b",".join([b'{"id":1}'] * 20)] * 500,
    "one row like many": [b'{"id":1}', b'{"id":1}', b'{"id":[%b]}' % b",".join([b'{"id":1}'] * 10_000)],
    "one string like many rows": [b'{"id":1}', b'{"id":1}', b'{"id":"%b"}' % (b"},{" * 30_000)],
    "one long text": [b'"a"', b'"b"', b'"%b"' % (b'\\"' * 50_000)],
    "numbers": [b"%d" % number for number in range(20_000)],
}
"""Lists of rows that are hard to split, most of them because the rows contain boundaries."""


@pytest.mark.parametrize("size", [64, 1_000, 16_384])
@pytest.mark.parametrize("kind", HOSTILE)
def test_work_is_linear(kind: str, size: int, decoded: list[int]) -> None:
    """On average, the decoder gets each byte of the rows at most three times, even if rows resemble boundaries."""
    body = b'{"results":[%b]}' % b",".join(HOSTILE[kind])

    assert Cut(HOSTILE[kind], b'{"results":[]}') == split(in_pieces(body, size))
    assert sum(decoded) <= 3 * len(body)


@pytest.mark.parametrize("separator", [b",", b",\n", b"\n, ", b",\r\n"], ids=repr)
@pytest.mark.parametrize("row", [ROW, b'{"b":{"a":1}}', b"[1,[2]]", b'"text"', b"17"], ids=bytes.decode)
def test_similar_rows_are_decoded_together(
    row: bytes, separator: bytes, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Similar rows of one piece are decoded in one call, and only the rows at its two ends are scanned."""
    stepped = 0
    go_on = ValueEnd.go_on

    def counted(self: ValueEnd, data: bytes, position: int = 0) -> int:
        nonlocal stepped
        stepped += 1
        return go_on(self, data, position)

    monkeypatch.setattr(ValueEnd, "go_on", counted)
    body = b'{"results":[%b]}' % separator.join([row] * 1_000)
    pieces = in_pieces(body, 2_000)

    assert [row] * 1_000 == split(pieces).rows
    assert len(decoded) <= (most := 2 * len(pieces) + 1)
    assert stepped <= 2 * most


def value_end(text: bytes, cuts: list[int]) -> int | None:
    """Return the offset of the end of the first value in the text, or None if the value has no end."""
    value, bounds = ValueEnd(), sorted({1, len(text), *(1 + cut % len(text) for cut in cuts)})
    value.begin(text[0])
    for start, stop in pairwise(bounds):
        found = value.go_on(text[start:stop])
        if found >= 0:
            return start + found
    return None


@given(value=ANY_JSON, ascii_only=st.booleans(), behind=st.sampled_from([b",", b" ,", b"]", b"\n}"]), data=st.data())
def test_any_value(value: object, ascii_only: bool, behind: bytes, data: st.DataObject) -> None:
    """The scanner finds the end of any value for any split, and not before the end has arrived."""
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    cuts = data.draw(st.lists(st.integers(0, len(text))))

    assert len(text) == value_end(text + behind, cuts)
    assert None is value_end(text[: data.draw(st.integers(1, max(1, len(text) - 1)))], cuts)


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
    """A quote ends a string unless an odd number of backslashes precedes it, for any split."""
    body = text + b',"'

    assert len(text) == value_end(body, [])
    assert len(text) == value_end(body, list(range(len(body))))
    assert {len(text)} == {
        value_end(body, [first, second]) for first in range(len(body)) for second in range(len(body))
    }


@pytest.mark.parametrize("levels", [1, LEVELS_AT_ONCE, LEVELS_AT_ONCE + 1, 20_000])
def test_any_depth(levels: int) -> None:
    """Brackets close at any depth, and those in strings do not count."""
    text = b'[{"]":"\\"}"},' * levels + b"0" + b"]" * levels

    assert len(text) == value_end(text + b"]", [])
    assert len(text) == value_end(text + b"]", list(range(0, len(text), 7)))


def test_each_byte_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte of a value is scanned once, however small the pieces are."""
    stepped_over = 0
    match = rows_module._match_balanced

    def counted(data: bytes, position: int) -> re.Match[bytes]:
        nonlocal stepped_over
        found = match(data, position)
        stepped_over += found.end() - position
        return found

    monkeypatch.setattr(rows_module, "_match_balanced", counted)
    text = b'{"a":[' + b'{"b":[{"c":[{"d":[]}]}]},' * 1_000 + b"0]}"

    assert len(text) == value_end(text, list(range(0, len(text), 10)))
    assert stepped_over <= len(text)
