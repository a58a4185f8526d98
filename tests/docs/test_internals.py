"""Pages on the internals name only existing code, and pages on drivers name all events and actions."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args, get_origin

import pytest

from tests.architecture.policy import CLIENT, CORE, ROOT
from tests.docs.pages import DOCS
from tests.rows import rows
from triclinium_core.contract.couchbase import Action, Event
from triclinium_core.retry.cassandra import CassandraAction, CassandraEvent

pytestmark = pytest.mark.native

ARCHITECTURE, HACKING = DOCS / "internals" / "architecture.md", DOCS / "internals" / "hacking.md"
LINES_MAX = 250
BASES = (CORE.sources, CLIENT.sources, ROOT, ROOT / "docs" / "_ext")
"""Base folders of paths on these pages. ``hacking.md`` gives only the names of some files in the last folder."""


def spans_of(page: Path) -> list[str]:
    """Return the code spans of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [span for role, span in re.findall(r"(\{\w+\})?`([^`]+)`", text) if not role]


def names_on(page: str) -> set[str]:
    """Return the first words of the code spans of a page."""
    return set(re.findall(r"`(\w+)", (DOCS / page).read_text(encoding="utf-8")))


class Defined(NamedTuple):
    """One class of the sources: its members and the names of its bases."""

    members: frozenset[str]
    bases: Sequence[str]


def classes_in(path: Path) -> Iterator[tuple[str, Defined]]:
    """Yield the classes of a file by name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            methods = (each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            yield node.name, Defined(frozenset(methods), [each.id for each in node.bases if isinstance(each, ast.Name)])


CLASSES = defaultdict[str, list[Defined]](list)
"""Classes of the sources by name. Several classes may have one name."""
for _each in (CORE, CLIENT):
    for _path in _each.sources.rglob("*.py"):
        for _name, _found in classes_in(_path):
            CLASSES[_name].append(_found)


def is_defined(name: str) -> bool:
    """Return whether the core or the client defines this class, or this method of a class, possibly inherited."""
    kind, _, member = name.partition(".")
    return any(
        not member or member in found.members or any(is_defined(f"{base}.{member}") for base in found.bases)
        for found in CLASSES.get(kind, ())
    )


@rows("page", [ARCHITECTURE, HACKING])
def test_files_and_folders_exist(page: Path) -> None:
    """Each file, and each folder written with a slash, is in the tree, under one of the bases."""
    paths = [span for span in spans_of(page) if re.fullmatch(r"[\w./]+\.py|[\w.]+/[\w./]*", span)]

    assert len(paths) > 10
    assert [] == [path for path in paths if not any((base / path).exists() for base in BASES)]


def test_names_in_the_architecture_page_exist() -> None:
    """Each ``Class`` and ``Class.method`` in the text and in the picture is defined in the core or in the client."""
    (picture,) = re.findall(r"^```text\n(.*?)^```$", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    drawn = {word for word in re.findall(r"\b[A-Z]\w+\b", picture) if re.search("[a-z][A-Z]", word)}
    named = {span for span in spans_of(ARCHITECTURE) if re.fullmatch(r"[A-Z]\w*[a-z]\w*(\.\w+)?", span)}

    assert len(named) > 30
    # KeyboardInterrupt is a class of Python.
    assert set() == {name for name in drawn | named if not is_defined(name)} - {"KeyboardInterrupt"}


def test_the_architecture_page_is_short() -> None:
    """The page has a maximum number of lines, so that no list on it grows with the tree."""
    assert len(ARCHITECTURE.read_text(encoding="utf-8").splitlines()) <= LINES_MAX


@pytest.mark.parametrize(
    ("page", "events", "actions"),
    [
        ("howto/embed_the_core.md", Event, Action),
        ("howto/cassandra_driver.md", CassandraEvent, CassandraAction),
    ],
)
def test_driver_pages_name_all_events_and_actions(page: str, events: object, actions: object) -> None:
    """A page for authors of drivers names each event and each action."""
    assert set() == {
        (get_origin(kind) or kind).__name__ for kind in (*get_args(events), *get_args(actions))
    } - names_on(page)
