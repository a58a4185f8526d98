"""What the news tell of exists under the names that they give it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.rows import rows

pytestmark = pytest.mark.native

FRAGMENTS = sorted(path for path in (DOCS / "newsfragments").glob("*.*.md") if ".breaking." not in path.name)
"""All but what names things that are gone."""
NAMES_ELSEWHERE = {
    "triclinium.connection",
    "triclinium.retry",
    "triclinium.timeout",
    "triclinium.call.duration",
    "triclinium_core.adapters.smithy_core.SmithyCoreRetryStrategy",
}
"""Loggers and metrics, which are no names of Python, and what needs a package for a newer Python."""


def names_in(page: Path) -> Iterator[str]:
    """Yield the dotted names of the packages that a page gives in full."""
    found = re.findall(r"`(triclinium(?:_core|_c)?(?:\.\w+)+)", page.read_text(encoding="utf-8"))
    yield from sorted({*found} - NAMES_ELSEWHERE)


def is_there(name: str) -> bool:
    """Tell whether a module, an attribute or a field has this name."""
    parts = name.split(".")
    found: object = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], start=2):
        fields: dict[str, object] = getattr(found, "__annotations__", {})
        if part in fields:
            return number == len(parts)
        try:
            found = getattr(found, part) if hasattr(found, part) else importlib.import_module(".".join(parts[:number]))
        except ModuleNotFoundError:
            return False
    return True


@rows("page", [ROOT / "CHANGELOG.md", *FRAGMENTS])
def test_what_is_named_is_there(page: Path) -> None:
    """A reader of a release can import each name in full."""
    assert [] == [name for name in names_in(page) if not is_there(name)]


@rows("page", [*(DOCS / "newsfragments").glob("*.*.md")])
def test_it_is_plain_markdown(page: Path) -> None:
    """The changelog is read where nobody knows the roles of Sphinx."""
    assert [] == re.findall(r"\{\w+(?::\w+)?\}`", page.read_text(encoding="utf-8"))


def test_a_name_that_is_not_there_is_found_out() -> None:
    """Of a module, and of an attribute."""
    assert is_there("triclinium_core.contract.couchbase.events.OperationsSubmitted")
    assert not is_there("triclinium_core.kv.events.OperationsSubmitted")
    assert not is_there("triclinium.Cluster.get")
