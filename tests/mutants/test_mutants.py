"""The patches fit the sources of today; ``python -m tests.mutants`` judges them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.judge import applies, patches

pytestmark = pytest.mark.native


@pytest.mark.parametrize("patch", patches(), ids=lambda patch: patch.stem)
def test_applies(patch: Path) -> None:
    """A patch that does not apply plants nothing, so it would survive unseen."""
    assert applies(patch)


@pytest.mark.parametrize("patch", patches(), ids=lambda patch: patch.stem)
def test_says_what_it_plants(patch: Path) -> None:
    """Every patch begins with a sentence that names the defect."""
    assert patch.read_text().startswith("Plants: ")
