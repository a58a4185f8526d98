"""Planted bug: lines of the sources, and their replacement.

The lines are found in any file and at any indentation, so a bug still fits after files, modules and classes around it
are renamed. They must occur exactly once in the sources.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

SNIPPETS = Path(__file__).parent / "snippets"
ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("core/triclinium_core", "trio_client/triclinium")
NOT_THE_PRODUCT = "testing"
"""Name of packages that only tests use. A bug in them would not show that tests of the product work."""


class SourceChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lines of the sources, and their replacement, which is empty if the lines are removed."""

    find: str
    plant: str


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"changes": "change"}):
    """Planted bug, with the fields of its file."""

    plants: str
    """Description of the bug, as a sentence."""
    fault: str
    """Name of the fault that exposes the bug; ``none`` if a test finds the bug without a fault."""
    tests: tuple[str, ...]
    """Unit tests that should find the bug without the properties."""
    changes: tuple[SourceChange, ...]
    name: str = ""
    """Name of the bug in tables and on the command line, which is the name of its file."""

    def planted(self, sources: Mapping[Path, str]) -> Mapping[Path, str]:
        """Return the changed files with their new contents.

        Raises:
            ValueError: some lines do not occur exactly once in the sources.
        """
        changed = dict[Path, str]()
        for change in self.changes:
            find = change.find.splitlines()
            places = [place for path, text in sources.items() for place in _places(path, changed.get(path, text), find)]
            if len(places) != 1:
                raise ValueError(f"these lines are in the sources {len(places)} times; expected once:\n{change.find}")
            ((path, at, indent),) = places
            lines = changed.get(path, sources[path]).splitlines()
            lines[at : at + len(find)] = textwrap.indent(change.plant, indent).splitlines()
            changed[path] = "\n".join([*lines, ""])
        return changed

    def plant(self, tree: Path) -> None:
        """Change the sources in ``tree``.

        Raises:
            ValueError: some lines do not occur there exactly once; nothing was changed.
        """
        for path, text in self.planted(sources_of(tree)).items():
            path.write_text(text, encoding="utf-8")


def sources_of(tree: Path) -> Mapping[Path, str]:
    """Return the files in which bugs are planted."""
    return {
        path: path.read_text(encoding="utf-8")
        for folder in SOURCES
        for path in sorted((tree / folder).rglob("*.py"))
        if NOT_THE_PRODUCT not in path.relative_to(tree).parts
    }


def _places(path: Path, text: str, find: Sequence[str]) -> Iterator[tuple[Path, int, str]]:
    """Yield the positions of the lines in a file, with their indentation."""
    if find[0] not in text:
        return
    lines = text.splitlines()
    for at, line in enumerate(lines):
        indent = line.removesuffix(find[0])
        wanted = textwrap.indent("\n".join(find), indent).splitlines()
        if line.endswith(find[0]) and not indent.strip() and lines[at : at + len(find)] == wanted:
            yield path, at, indent


def read_mutant(path: Path) -> Mutant:
    """Return a mutant.

    Raises:
        msgspec.ValidationError: its file does not have exactly the fields of a mutant.
    """
    return msgspec.structs.replace(msgspec.toml.decode(path.read_bytes(), type=Mutant), name=path.stem)


def mutants() -> list[Mutant]:
    """Return all planted bugs, sorted by name."""
    return [read_mutant(path) for path in sorted(SNIPPETS.glob("*.toml"))]


def drawn(names: Iterable[str], number: int, count: int) -> list[str]:
    """Return a random selection of ``count`` names. The number determines the selection."""
    return sorted(random.Random(number).sample(sorted(names), count))
