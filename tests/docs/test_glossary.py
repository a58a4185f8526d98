"""The glossary: its terms, and the words that it retires."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, rows_of
from tests.prose.sentences import ROOT, prose_of, tracked_files

pytestmark = pytest.mark.native

PAGE = DOCS / "internals" / "glossary.md"
TERMS_MAX = 60

TERMS = [row for row in rows_of(PAGE) if len(row) == 3 and row[0] != "term"]
RETIRED = frozenset(word for row in rows_of(PAGE) if len(row) == 2 for word in row[0].split(", ")) - {"retired"}


def words_of(name: str) -> set[str]:
    """Return the words of an identifier in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the identifiers of a file that are defined, used or passed, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for attribute in ("name", "id", "attr", "arg"):
            name = getattr(node, attribute, None)
            if isinstance(name, str):
                yield getattr(node, "lineno", 0), name


def test_each_term_has_a_meaning() -> None:
    """The terms are few, sorted and different, and each has a meaning."""
    terms = [term for term, _, _ in TERMS]

    assert 0 < len(terms) <= TERMS_MAX
    assert sorted(set(terms), key=str.lower) == terms
    assert all(len(meaning) > 10 for _, meaning, _ in TERMS)


def test_no_term_is_retired() -> None:
    """A word of the glossary is not a retired word."""
    assert RETIRED
    assert not RETIRED & {word for term, _, _ in TERMS for word in term.split()}


@cache
def suspects() -> list[Path]:
    """Return the files and pages with a retired word. Other ones need no parsing, which is slow."""
    return [path for path in tracked_files(".py", ".md") if words_of(path.read_text(encoding="utf-8")) & RETIRED]


def test_names_have_no_retired_words() -> None:
    """No identifier of the sources, the tests and the examples contains a retired word."""
    found = {
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in suspects()
        if path.suffix == ".py"
        for line, name in names_in(path)
        if words_of(name) & RETIRED
    }

    assert set() == found


def test_prose_has_no_retired_words() -> None:
    """No docstring, comment, message or page contains a retired word."""
    pattern = re.compile(rf"\b(?:{'|'.join(sorted(RETIRED))})\b", re.IGNORECASE)
    found = {
        f"{prose.path}:{prose.line}: {match[0]}"
        for path in suspects()
        for prose in prose_of(path)
        for match in pattern.finditer(prose.text)
    }

    assert set() == found
