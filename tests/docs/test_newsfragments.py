"""Names in the changelog and the newsfragments exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, object_at
from tests.rows import rows

pytestmark = pytest.mark.native

FRAGMENTS = sorted(path for path in (DOCS / "newsfragments").glob("*.*.md") if ".breaking." not in path.name)
"""All fragments except those on breaking changes, which name removed things."""
NAMES_ELSEWHERE = {
    "triclinium.connection",
    "triclinium.retry",
    "triclinium.timeout",
    "triclinium.call.duration",
    "triclinium_core.adapters.smithy_core.SmithyCoreRetryStrategy",
}
"""Loggers and metrics, which are not Python names, and names that need a newer Python."""


def names_in(page: Path) -> Iterator[str]:
    """Yield the fully qualified names on a page."""
    found = re.findall(r"`(triclinium(?:_core|_c)?(?:\.\w+)+)", page.read_text(encoding="utf-8"))
    yield from sorted({*found} - NAMES_ELSEWHERE)


def is_there(name: str) -> bool:
    """Return whether a module, an attribute or a field has this name."""
    try:
        object_at(name)
    except (ImportError, LookupError):
        return False
    return True


@rows("page", [ROOT / "CHANGELOG.md", *FRAGMENTS])
def test_names_on_the_page_exist(page: Path) -> None:
    """Every fully qualified Python name on the page exists."""
    assert [] == [name for name in names_in(page) if not is_there(name)]


@rows("page", [*(DOCS / "newsfragments").glob("*.*.md")])
def test_fragments_are_plain_markdown(page: Path) -> None:
    """Newsfragments have no Sphinx roles, because the changelog is also read outside Sphinx."""
    assert [] == re.findall(r"\{\w+(?::\w+)?\}`", page.read_text(encoding="utf-8"))


def test_a_missing_name_is_detected() -> None:
    """A missing name of a module or of an attribute is detected."""
    assert is_there("triclinium_core.contract.couchbase.events.OperationsSubmitted")
    assert not is_there("triclinium_core.kv.events.OperationsSubmitted")
    assert not is_there("triclinium.Cluster.get")
