"""Every planted bug can still be planted; that it is noticed, ``python -m tests.mutants`` shows, and the gate of a few."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.mutant import ROOT, Mutant, drawn, mutants, read_mutant
from tests.rows import rows
from triclinium_core.testing.fakes import faults

pytestmark = pytest.mark.native
each_mutant = rows("mutant", mutants())


@each_mutant
def test_applies(mutant: Mutant) -> None:
    """The sources still have the lines that the patch makes wrong."""
    assert "" == mutant.apply(ROOT, "--check")


@each_mutant
def test_is_about_the_core(mutant: Mutant) -> None:
    """A bug is planted in what is tested, not in the tests, and the tests that should find it are there."""
    changed = [line.split()[1] for line in mutant.path.read_text(encoding="utf-8").splitlines() if line[:4] == "+++ "]

    assert changed
    assert [] == [name for name in changed if not name.startswith("b/core/triclinium_core/")]
    assert [] == [name for name in changed if name.startswith("b/core/triclinium_core/testing/")]
    assert [] == [name for name in mutant.tests if not (ROOT / name).exists()]


def test_every_fault_is_named() -> None:
    """Of each kind some header says that it shows the bug; whether it does, ``--shrink`` tells."""
    constructors = {
        name
        for name, value in vars(faults).items()
        if callable(value) and name.islower() and not name.startswith("_") and value.__module__ == faults.__name__
    }

    assert constructors == {mutant.fault for mutant in mutants()} - {"none"}


def test_a_number_draws_a_handful() -> None:
    """Always the same one, and with other numbers each of them comes up."""
    names = [mutant.name for mutant in mutants()]

    assert drawn(names, 7, 4) == drawn(reversed(names), 7, 4)
    assert set(names) == {name for number in range(100) for name in drawn(names, number, 4)}


def test_header_is_complete(tmp_path: Path) -> None:
    """A patch that does not say what it plants is refused."""
    path = tmp_path / "silent.patch"
    path.write_text("Plants: a bug\n\ndiff --git a/x b/x\n", encoding="utf-8")

    with pytest.raises(ValueError, match="silent.patch has the header"):
        read_mutant(path)
