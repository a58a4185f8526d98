"""Files of planted bugs, which must fit the sources; ``python -m tests.mutants`` checks that tests notice the bugs."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from tests.mutants.mutant import ROOT, SOURCES, Mutant, SourceChange, drawn, mutants, read_mutant, sources_of
from tests.rows import rows
from triclinium_core.testing.fakes import faults

pytestmark = pytest.mark.native
OUR_SOURCES = sources_of(ROOT)
each_mutant = rows("mutant", mutants())


@each_mutant
def test_can_be_planted(mutant: Mutant) -> None:
    """The sources contain the lines of a bug exactly once, and the changed sources are valid Python."""
    changed = mutant.planted(OUR_SOURCES)

    assert changed
    for path, text in changed.items():
        assert text != OUR_SOURCES[path]
        ast.parse(text)


@each_mutant
def test_its_unit_tests_exist(mutant: Mutant) -> None:
    """The unit tests that a bug's file names exist."""
    assert mutant.tests
    assert [] == [name for name in mutant.tests if not (ROOT / name).exists()]


@rows(
    ("text", "count"),
    [
        ("class A:\n    def f(self) -> int:\n        return 1\n", 1),
        ("def f(self) -> int:\n    return 1\n\n\nclass A:\n    def f(self) -> int:\n        return 1\n", 2),
        ("def f(self) -> int:\n    return 2\n", 0),
        ("def f(self) -> int:\n        return 1\n", 0),
    ],
)
def test_lines_are_found_at_any_indentation(tmp_path: Path, text: str, count: int) -> None:
    """Lines are found at any indentation if they occur exactly once; otherwise nothing is changed."""
    mutant = Mutant(
        "a bug.", "none", ("tests",), (SourceChange("def f(self) -> int:\n    return 1\n", "def g() -> None: ...\n"),)
    )
    path = tmp_path / SOURCES[0] / "somewhere" / "else.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if count == 1:
        mutant.plant(tmp_path)
        assert "class A:\n    def g() -> None: ...\n" == path.read_text(encoding="utf-8")
        return
    with pytest.raises(ValueError, match=f"are in the sources {count} times"):
        mutant.plant(tmp_path)
    assert text == path.read_text(encoding="utf-8")


def test_every_fault_is_named() -> None:
    """For each kind of fault, a bug's file names it as the fault that exposes the bug; ``--shrink`` checks this."""
    constructors = {
        name
        for name, value in vars(faults).items()
        if callable(value) and name.islower() and not name.startswith("_") and value.__module__ == faults.__name__
    }

    assert constructors == {mutant.fault for mutant in mutants()} - {"none"}


def test_a_number_selects_some_bugs() -> None:
    """A number always selects the same bugs, and a hundred numbers select all of them."""
    names = [mutant.name for mutant in mutants()]

    assert drawn(names, 7, 4) == drawn(reversed(names), 7, 4)
    assert set(names) == {name for number in range(100) for name in drawn(names, number, 4)}


def test_a_file_is_complete(tmp_path: Path) -> None:
    """A file without a required field is refused."""
    path = tmp_path / "silent.toml"
    path.write_text('plants = "a bug."\n', encoding="utf-8")

    with pytest.raises(msgspec.ValidationError, match="fault"):
        read_mutant(path)
