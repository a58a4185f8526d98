"""Paths, as kv_engine's documents and subjson's parser have them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.testing.fakes.store.json_paths import LEVELS_MAX, JsonPath, PathFailed, parse_path


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
def test_components(path: str, components: JsonPath) -> None:
    """Keys by dots, indexes in brackets, backticks around what would mean something else."""
    assert components == parse_path(path)


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
def test_what_is_no_path(path: str) -> None:
    """Brackets and backticks that do not close, keys without a character, escapes that JSON does not know."""
    with pytest.raises(PathFailed) as caught:
        parse_path(path)

    assert Status.SUBDOC_PATH_INVALID is caught.value.status


@pytest.mark.parametrize(("component", "first"), [("[0]", "[0]"), (".a", "a")])
def test_the_deepest_path(component: str, first: str) -> None:
    """The document is a level of its own, so that a path has one less."""
    assert LEVELS_MAX - 1 == len(parse_path(first + component * (LEVELS_MAX - 2)))
    with pytest.raises(PathFailed) as caught:
        parse_path(first + component * (LEVELS_MAX - 1))
    assert Status.SUBDOC_PATH_TOO_BIG is caught.value.status


CHARACTERS = 'ab.[]`0-1\\"\n\tἈ💡'


def written(components: JsonPath) -> str:
    """Return a path, every key of it in backticks."""
    parts = [
        f"[{part}]" if isinstance(part, int) else f".`{json.dumps(part, ensure_ascii=False)[1:-1].replace('`', '``')}`"
        for part in components
    ]
    return "".join(parts).removeprefix(".")


@given(st.lists(st.text(CHARACTERS, min_size=1, max_size=6) | st.integers(-1, 10**18 - 1), max_size=8).map(tuple))
def test_any_components(components: JsonPath) -> None:
    """Whatever a document may have as a key or an index has a path."""
    assert components == parse_path(written(components))


@given(st.text(CHARACTERS, max_size=12))
def test_any_text(path: str) -> None:
    """It is refused as no path, or means the same as the path written with every key in backticks."""
    try:
        components = parse_path(path)
    except PathFailed as refused:
        assert Status.SUBDOC_PATH_INVALID is refused.status
        return

    assert components == parse_path(written(components))
