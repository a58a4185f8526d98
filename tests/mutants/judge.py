"""Plant each defect in a copy of the tree, and see which test notices it first."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATCHES = Path(__file__).resolve().parent
COPIED = ("core", "trio_client", "c_ext", "tests", "pyproject.toml")
PROPERTIES = ("tests/properties",)
UNIT_TESTS = ("tests/core",)
SECONDS_MAX = 900
"""For one run of a suite; a defect that makes it hang is noticed too, at this price."""

_FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """What became of one defect."""

    mutant: str
    property_test: str | None
    """The first property that noticed it; None where none did."""
    unit_test: str | None

    @property
    def is_killed(self) -> bool:
        """Whether any test noticed it."""
        return self.property_test is not None or self.unit_test is not None


def patches() -> Sequence[Path]:
    """Return all patches, by name."""
    return sorted(PATCHES.glob("*.patch"))


def applies(patch: Path, tree: Path = ROOT) -> bool:
    """Tell whether the patch fits the sources."""
    return _git_apply(patch, tree, "--check").returncode == 0


def judge(patch: Path, workshop: Path) -> Sentence:
    """Return what becomes of one defect, planted in a fresh copy below ``workshop``.

    Raises:
        ValueError: the patch does not apply.
    """
    tree = workshop / patch.stem
    tree.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", "build", ".hypothesis"))
        else:
            shutil.copy(source, tree / name)
    applied = _git_apply(patch, tree)
    if applied.returncode:
        raise ValueError(f"{patch.name} does not apply: {applied.stderr.strip()}")
    sentence = Sentence(patch.stem, first_failure(tree, PROPERTIES), first_failure(tree, UNIT_TESTS))
    shutil.rmtree(tree)
    return sentence


def first_failure(tree: Path, suites: Sequence[str]) -> str | None:
    """Return the first test that fails in ``tree``, or None where all pass."""
    paths = ":".join(str(tree / name) for name in ("core", "trio_client", "c_ext"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *suites]
    environment = {
        "PYTHONPATH": paths,
        "PATH": "/usr/bin:/bin",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tree / ".hypothesis"),
    }
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS_MAX} s"
    if run.returncode == 0:
        return None
    found = _FIRST_FAILURE.search(run.stdout)
    if found is None:
        raise RuntimeError(f"{suites} did not run: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return found[1]


def _git_apply(patch: Path, tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "apply", *options, str(patch)]
    # Below a repository git would look for the files from its top, so the copy pretends to be none.
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
