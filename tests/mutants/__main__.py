"""``python -m tests.mutants [NAME…]``: judge the named defects, or all; exit 1 when one survives."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.mutants.judge import judge, patches


def main(names: list[str]) -> int:
    """Print one row a defect: who noticed it first, among the properties and among the unit tests."""
    chosen = [patch for patch in patches() if not names or patch.stem in names]
    survivors = 0
    with tempfile.TemporaryDirectory() as workshop:
        for patch in chosen:
            sentence = judge(patch, Path(workshop))
            survivors += not sentence.is_killed
            print(f"{'killed' if sentence.is_killed else 'SURVIVED':8}  {sentence.mutant}", flush=True)
            print(f"          property: {sentence.property_test or 'none'}")
            print(f"          unit:     {sentence.unit_test or 'none'}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} planted defects were noticed")
    return 1 if survivors or not chosen else 0


sys.exit(main(sys.argv[1:]))
