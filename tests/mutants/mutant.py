"""A patch file and its header."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PATCHES = Path(__file__).parent / "patches"
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug."""

    path: Path
    plants: str
    """What is wrong, as a sentence."""
    fault: str
    """Name of the fault that shows it; ``none`` where it shows without one."""
    tests: tuple[str, ...]
    """Unit tests that should find it."""

    @property
    def name(self) -> str:
        """Its name in tables and on the command line."""
        return self.path.stem

    def apply(self, tree: Path, *options: str) -> str:
        """Apply the patch to the sources in ``tree``, and return what was wrong with that; empty for nothing."""
        command = ["git", "apply", *options, str(self.path)]
        # Within a checkout, git would skip what its ignore rules name.
        return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False).stderr


def read_mutant(path: Path) -> Mutant:
    """Return a mutant.

    Raises:
        ValueError: its header lacks a line, or has one more.
    """
    header: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("diff "):
            break
        if line:
            name, _, text = line.partition(": ")
            header[name] = text
    if set(header) != {"Plants", "Fault", "Tests"} or not all(header.values()):
        raise ValueError(f"{path.name} has the header {header}; it must have Plants, Fault and Tests, a line each")
    return Mutant(path, header["Plants"], header["Fault"], tuple(header["Tests"].split()))


def mutants() -> list[Mutant]:
    """Return all planted bugs, by name."""
    return [read_mutant(path) for path in sorted(PATCHES.glob("*.patch"))]


def drawn(names: Iterable[str], number: int, count: int) -> list[str]:
    """Return so many of the names, the same ones for the same number."""
    return sorted(random.Random(number).sample(sorted(names), count))
