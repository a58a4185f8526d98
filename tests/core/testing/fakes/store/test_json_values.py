"""JSON paths in the syntax of the server, and operations at a path with their results and errors."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.kv.operation.subdocument.specs import MutationMacro
from triclinium_core.kv.wire.subdocument import PathOpcode as Op
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.store import json_values

S = Status
DOCUMENT = '{"a":{"b":[1,"x",null]},"n":5,"f":1.5,"big":9223372036854775808,"l":[],"o":{},"s":"text","t":true}'
BIGGEST, SMALLEST = 2**63 - 1, -(2**63)
READS = (Op.GET, Op.EXISTS, Op.COUNT)


def changed(opcode: Op, path: str, values: bytes = b"", *, creates: bool = False, of: str = DOCUMENT) -> object:
    """Return the changed document."""
    document = json.loads(of)
    json_values.change(opcode, document, json_values.Change(json_values.parse_path(path), values, creates))
    return document


def fails(opcode: Op, path: str, values: bytes = b"1", *, creates: bool = False, of: str = DOCUMENT) -> S:
    """Return the status of a failed change."""
    with pytest.raises(json_values.PathFailed) as caught:
        changed(opcode, path, values, creates=creates, of=of)
    return caught.value.status


@pytest.mark.parametrize(
    ("opcode", "path", "expected"),
    [
        (Op.GET, "a.b[0]", b"1"),
        (Op.GET, "a.b[-1]", b"null"),
        (Op.GET, "a", b'{"b":[1,"x",null]}'),
        (Op.GET, "f", b"1.5"),
        (Op.EXISTS, "a.b", b""),
        (Op.COUNT, "a.b", b"3"),
        (Op.COUNT, "a", b"1"),
        (Op.COUNT, "l", b"0"),
        (Op.COUNT, "", b"8"),
    ],
)
def test_reads(opcode: Op, path: str, expected: bytes) -> None:
    """A read returns the value as JSON, nothing for an existence check, or the number of elements."""
    assert expected == json_values.look_up(opcode, json.loads(DOCUMENT), json_values.parse_path(path))


@rows(
    ("opcodes", "path", "status"),
    [
        (READS, "x", S.SUBDOC_PATH_NOT_FOUND),
        (READS, "a.x.y", S.SUBDOC_PATH_NOT_FOUND),
        (READS, "a.b[3]", S.SUBDOC_PATH_NOT_FOUND),
        (READS, "l[0]", S.SUBDOC_PATH_NOT_FOUND),
        (READS, "l[-1]", S.SUBDOC_PATH_NOT_FOUND),
        (READS, "a[0]", S.SUBDOC_PATH_MISMATCH),
        (READS, "a.b.c", S.SUBDOC_PATH_MISMATCH),
        (READS, "s.x", S.SUBDOC_PATH_MISMATCH),
        (READS, "n[0]", S.SUBDOC_PATH_MISMATCH),
        ((Op.COUNT,), "s", S.SUBDOC_PATH_MISMATCH),
    ],
)
def test_reads_of_missing_paths(opcodes: tuple[Op, ...], path: str, status: S) -> None:
    """A missing path that could exist is not found; a path that cannot, or lacks elements to count, is a mismatch."""
    for opcode in opcodes:
        with pytest.raises(json_values.PathFailed) as caught:
            json_values.look_up(opcode, json.loads(DOCUMENT), json_values.parse_path(path))

        assert status is caught.value.status


@rows(("opcode", "path", "values", "before", "after"), [
        (Op.INSERT, "x", b"[1]", "{}", {"x": [1]}),
        (Op.INSERT, "a[0].x", b"1", '{"a":[{}]}', {"a": [{"x": 1}]}),
        (Op.UPSERT, "x", b"2", '{"x":1}', {"x": 2}),
        (Op.UPSERT, "x.y", b"2", '{"x":{}}', {"x": {"y": 2}}),
        (Op.REPLACE, "x", b"2", '{"x":1}', {"x": 2}),
        (Op.REPLACE, "[1]", b"2", "[0,1]", [0, 2]),
        (Op.REPLACE, "[-1]", b"2", "[0,1]", [0, 2]),
        (Op.REMOVE, "x", b"", '{"x":1,"y":2}', {"y": 2}),
        (Op.REMOVE, "x[0]", b"", '{"x":[1,2]}', {"x": [2]}),
        (Op.REMOVE, "[-1]", b"", "[1,2]", [1]),
        (Op.ARRAY_APPEND, "x", b"2,[3]", '{"x":[1]}', {"x": [1, 2, [3]]}),
        (Op.ARRAY_APPEND, "", b"2", "[1]", [1, 2]),
        (Op.ARRAY_PREPEND, "x", b"2, 3", '{"x":[1]}', {"x": [2, 3, 1]}),
        (Op.ARRAY_PREPEND, "", b"2", "[]", [2]),
        (Op.ARRAY_INSERT, "[1]", b"9,8", "[0,1]", [0, 9, 8, 1]),
        (Op.ARRAY_INSERT, "[0]", b"9", "[]", [9]),
        (Op.ARRAY_INSERT, "[2]", b"9", "[0,1]", [0, 1, 9]),
        (Op.ARRAY_ADD_UNIQUE, "", b"1", "[1.0,true,\"1\"]", [1.0, True, "1", 1]),
        (Op.ARRAY_ADD_UNIQUE, "x", b"null", '{"x":[]}', {"x": [None]}),
        (Op.COUNT_BY, "x", b"-3", '{"x":1}', {"x": -2}),
        (Op.COUNT_BY, "x", b"5", "{}", {"x": 5}),
        (Op.COUNT_BY, "[0]", b"5", "[1]", [6]),
    ])  # fmt: skip
def test_changes(opcode: Op, path: str, values: bytes, before: str, after: object) -> None:
    """Each operation makes the change that its name describes."""
    result = changed(opcode, path, values, of=before)

    assert json.dumps(after) == json.dumps(result)


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        (Op.INSERT, {"x": {"y": {"z": 1}}}),
        (Op.UPSERT, {"x": {"y": {"z": 1}}}),
        (Op.ARRAY_APPEND, {"x": {"y": {"z": [1]}}}),
        (Op.ARRAY_PREPEND, {"x": {"y": {"z": [1]}}}),
        (Op.ARRAY_ADD_UNIQUE, {"x": {"y": {"z": [1]}}}),
        (Op.COUNT_BY, {"x": {"y": {"z": 1}}}),
    ],
)
def test_created_parents(opcode: Op, expected: object) -> None:
    """Parent objects are created only if requested; array elements never are."""
    assert expected == changed(opcode, "x.y.z", b"1", creates=True, of="{}")
    assert S.SUBDOC_PATH_NOT_FOUND is fails(opcode, "x.y.z", of="{}")
    for path in ("x[0].z", "l[0].z"):
        assert S.SUBDOC_PATH_NOT_FOUND is fails(opcode, path, creates=True, of='{"l":[]}')
    assert S.SUBDOC_PATH_MISMATCH is fails(opcode, "s.y.z", creates=True)


@pytest.mark.parametrize("opcode", [Op.ARRAY_APPEND, Op.ARRAY_PREPEND, Op.ARRAY_ADD_UNIQUE])
def test_array_operations_on_other_values(opcode: Op) -> None:
    """An array operation on another type is a mismatch, and one on a missing path is not found."""
    for path in ("o", "s", "n", ""):
        assert S.SUBDOC_PATH_MISMATCH is fails(opcode, path)
    assert S.SUBDOC_PATH_NOT_FOUND is fails(opcode, "x")
    assert S.SUBDOC_PATH_NOT_FOUND is fails(opcode, "l[0]", creates=True)


@rows(
    ("opcode", "path", "status"),
    [
        (Op.INSERT, "n", S.SUBDOC_PATH_EXISTS),
        (Op.INSERT, "l[0]", S.SUBDOC_PATH_INVALID),
        (Op.UPSERT, "a.b[0]", S.SUBDOC_PATH_INVALID),
        (Op.UPSERT, "n[0]", S.SUBDOC_PATH_MISMATCH),
        (Op.REPLACE, "x", S.SUBDOC_PATH_NOT_FOUND),
        (Op.REPLACE, "l[0]", S.SUBDOC_PATH_NOT_FOUND),
        (Op.REMOVE, "x", S.SUBDOC_PATH_NOT_FOUND),
        (Op.REMOVE, "a.b[7]", S.SUBDOC_PATH_NOT_FOUND),
        (Op.ARRAY_INSERT, "a.b[4]", S.SUBDOC_PATH_NOT_FOUND),
        (Op.ARRAY_INSERT, "x[0]", S.SUBDOC_PATH_NOT_FOUND),
        (Op.ARRAY_INSERT, "a.b[-1]", S.SUBDOC_PATH_INVALID),
        (Op.ARRAY_INSERT, "a.b", S.SUBDOC_PATH_INVALID),
        (Op.ARRAY_INSERT, "o[0]", S.SUBDOC_PATH_MISMATCH),
        (Op.INSERT, "s.x", S.SUBDOC_PATH_MISMATCH),
        (Op.UPSERT, "l.x", S.SUBDOC_PATH_MISMATCH),
        (Op.COUNT_BY, "l[0]", S.SUBDOC_PATH_NOT_FOUND),
        (Op.COUNT_BY, "s.x", S.SUBDOC_PATH_MISMATCH),
        (Op.COUNT_BY, "s", S.SUBDOC_PATH_MISMATCH),
        (Op.COUNT_BY, "f", S.SUBDOC_PATH_MISMATCH),
        (Op.COUNT_BY, "t", S.SUBDOC_PATH_MISMATCH),
        (Op.COUNT_BY, "big", S.SUBDOC_NUMBER_OUT_OF_RANGE),
    ],
)
def test_changes_that_fail(opcode: Op, path: str, status: S) -> None:
    """A change fails on a missing or unsuitable path, an existing key, or a value of another type or range."""
    assert status is fails(opcode, path)


@rows("values", [b"x", b"{", b" ", b"1 2", b'1,"k":2', b"\xff", b'"\xff"'])
@rows(
    ("opcode", "path"),
    [
        (Op.INSERT, "x"),
        (Op.UPSERT, "n"),
        (Op.REPLACE, "n"),
        (Op.ARRAY_APPEND, "l"),
        (Op.ARRAY_PREPEND, "l"),
        (Op.ARRAY_INSERT, "l[0]"),
        (Op.ARRAY_ADD_UNIQUE, "l"),
    ],
)
def test_invalid_json_values(opcode: Op, path: str, values: bytes) -> None:
    """A value that is not JSON is refused."""
    assert S.SUBDOC_VALUE_CANNOT_INSERT is fails(opcode, path, values)


@pytest.mark.parametrize("values", [b"[]", b"{}", b"1,2"])
def test_values_that_cannot_be_unique(values: bytes) -> None:
    """Only single values without elements can be added as unique, and only to arrays of such values."""
    assert S.SUBDOC_VALUE_CANNOT_INSERT is fails(Op.ARRAY_ADD_UNIQUE, "l", values)
    assert S.SUBDOC_PATH_MISMATCH is fails(Op.ARRAY_ADD_UNIQUE, "", b"1", of="[[]]")
    assert S.SUBDOC_PATH_EXISTS is fails(Op.ARRAY_ADD_UNIQUE, "a.b", b'"x"')


@pytest.mark.parametrize("delta", [b"0", b"-0", b"1.0", b"x", b"", b"01", b"+1", b"9223372036854775808", b"1e3"])
def test_deltas(delta: bytes) -> None:
    """A delta must be a whole number of 64 bits other than 0."""
    assert S.SUBDOC_DELTA_INVALID is fails(Op.COUNT_BY, "n", delta)


@pytest.mark.parametrize(("number", "delta"), [(BIGGEST, 1), (SMALLEST, -1), (1, BIGGEST), (-2, SMALLEST)])
def test_numbers_out_of_range(number: int, delta: int) -> None:
    """A counter that would exceed 64 bits is refused instead of wrapping around."""
    document = f'{{"n":{number}}}'

    assert S.SUBDOC_VALUE_CANNOT_INSERT is fails(Op.COUNT_BY, "n", b"%d" % delta, of=document)
    assert {"n": number - 1 if delta > 0 else number + 1} == changed(
        Op.COUNT_BY, "n", b"%d" % (-1 if delta > 0 else 1), of=document
    )


def test_counter_returns_its_number() -> None:
    """A counter operation returns the new number; other changes return nothing."""
    assert b"8" == json_values.change(Op.COUNT_BY, {"n": 5}, json_values.Change(("n",), b"3", False))
    assert b"-3" == json_values.change(Op.COUNT_BY, {}, json_values.Change(("n",), b"-3", False))
    assert b"" == json_values.change(Op.UPSERT, {}, json_values.Change(("n",), b"3", False))


def test_macros_are_stored_unexpanded() -> None:
    """A change stores a macro itself, to be expanded later."""
    document: dict[str, object] = {}
    json_values.change(Op.UPSERT, document, json_values.Change(("a",), MutationMacro.CAS, False))
    json_values.change(Op.ARRAY_APPEND, document, json_values.Change(("b",), MutationMacro.SEQ_NO, True))

    assert {"a": MutationMacro.CAS, "b": [MutationMacro.SEQ_NO]} == document
    with pytest.raises(json_values.PathFailed):
        json_values.change(Op.COUNT_BY, document, json_values.Change(("c",), MutationMacro.CAS, False))


def nested(levels: int) -> str:
    """Return arrays nested in one another."""
    return "[" * levels + "]" * levels


def test_nesting_limit() -> None:
    """Objects and arrays count towards the depth; a document that is too deep is neither read nor changed."""
    deepest, too_deep = nested(json_values.LEVELS_MAX), nested(json_values.LEVELS_MAX + 1)

    assert (0, 1, 3, json_values.LEVELS_MAX) == tuple(
        map(json_values.depth, (1, [], {"a": 1, "b": [[]], "c": []}, json.loads(deepest)))
    )
    with pytest.raises(json_values.PathFailed) as caught:
        json_values.look_up(Op.GET, json.loads(too_deep), (0,))
    assert S.SUBDOC_DOCUMENT_TOO_DEEP is caught.value.status
    assert S.SUBDOC_DOCUMENT_TOO_DEEP is fails(Op.ARRAY_APPEND, "", of=too_deep)
    assert S.SUBDOC_VALUE_TOO_DEEP is fails(Op.UPSERT, "x", deepest.encode(), of="{}")
    assert changed(Op.UPSERT, "x", nested(json_values.LEVELS_MAX - 1).encode(), of="{}")


@pytest.mark.parametrize("data", [b"", b"x", b"[", b"[" * 100_000])
def test_invalid_json(data: bytes) -> None:
    """Data that is not JSON raises ValueError, even if it is nested deeply."""
    with pytest.raises(ValueError, match=r"."):
        json_values.decode_json(data)


@rows(
    ("path", "components"),
    [
        ("", ()),
        ("type", ("type",)),
        ("a.b.c", ("a", "b", "c")),
        ("a.", ("a",)),
        ("a[0].b", ("a", 0, "b")),
        ("a[10][2]", ("a", 10, 2)),
        ("a[-1]", ("a", -1)),
        ("[0]", (0,)),
        ("[0].a", (0, "a")),
        ("[0][-1]", (0, -1)),
        ("`dot.ted.field`.sub", ("dot.ted.field", "sub")),
        ("`a[0]`[1]", ("a[0]", 1)),
        ("`back``tick`", ("back`tick",)),
        ("`a`.`b`", ("a", "b")),
        ("pre`.`post", ("pre.post",)),
        (r"quote\"d", ('quote"d',)),
        (r"back\\slash", ("back\\slash",)),
        ("Ἀριθμός.💡", ("Ἀριθμός", "💡")),
        ("a b-c", ("a b-c",)),
        ("0", ("0",)),
    ],
)
def test_components(path: str, components: json_values.JsonPath) -> None:
    """Dots separate keys, brackets hold indexes, and backticks quote special characters."""
    assert components == json_values.parse_path(path)


@rows(
    "path",
    [
        ".",
        ".a",
        "a..b",
        "a[",
        "a[0",
        "a]",
        "a\0b",
        "]",
        "a[x]",
        "a[1x]",
        "a[-2]",
        "a[]",
        "a[ 1]",
        "a[\u0661]",
        "a[1]b",
        "a[9999999999999999999]",
        "`a",
        "a`",
        "``",
        'a"b',
        "a\nb",
        r"a\x",
        r"a\u0041",
        "a\\",
    ],
)
def test_invalid_paths(path: str) -> None:
    """An invalid path, such as one with an unclosed bracket, an empty key or an unknown escape, is refused."""
    with pytest.raises(json_values.PathFailed) as caught:
        json_values.parse_path(path)

    assert Status.SUBDOC_PATH_INVALID is caught.value.status


@pytest.mark.parametrize(("component", "first"), [("[0]", "[0]"), (".a", "a")])
def test_deepest_path(component: str, first: str) -> None:
    """The document itself is one level, so a path has at least one component fewer than the limit."""
    assert json_values.LEVELS_MAX - 1 == len(json_values.parse_path(first + component * (json_values.LEVELS_MAX - 2)))
    with pytest.raises(json_values.PathFailed) as caught:
        json_values.parse_path(first + component * (json_values.LEVELS_MAX - 1))
    assert Status.SUBDOC_PATH_TOO_BIG is caught.value.status


CHARACTERS = 'ab.[]`0-1\\"\n\tἈ💡'


def written(components: json_values.JsonPath) -> str:
    """Return a path with all keys in backticks."""
    parts = [
        f"[{part}]" if isinstance(part, int) else f".`{json.dumps(part, ensure_ascii=False)[1:-1].replace('`', '``')}`"
        for part in components
    ]
    return "".join(parts).removeprefix(".")


@given(st.lists(st.text(CHARACTERS, min_size=1, max_size=6) | st.integers(-1, 10**18 - 1), max_size=8).map(tuple))
def test_any_components(components: json_values.JsonPath) -> None:
    """Any list of keys and indexes can be written as a path and parsed again."""
    assert components == json_values.parse_path(written(components))


@given(st.text(CHARACTERS, max_size=12))
def test_any_text(path: str) -> None:
    """Any string is refused, or parsed like the path with all its keys in backticks."""
    try:
        components = json_values.parse_path(path)
    except json_values.PathFailed as refused:
        assert Status.SUBDOC_PATH_INVALID is refused.status
        return

    assert components == json_values.parse_path(written(components))
