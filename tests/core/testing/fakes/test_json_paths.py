"""Paths, as kv_engine's documents and subjson's parser have them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triclinium_core.retry.kv_status import Status
from triclinium_core.testing.fakes.json_paths import LEVELS_MAX, JsonPath, PathFailed, parse_path


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "path",
    [
        ".",
        ".a",
        "a..b",
        "a[",
        "a[0",
        "a]",
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


@given(st.text(alphabet='ab.[]`0-1\\"\n', max_size=12))
def test_any_text(path: str) -> None:
    """It is a path, or it is refused."""
    try:
        components = parse_path(path)
    except PathFailed:
        return

    assert all(component == -1 or component for component in components if component != 0)
