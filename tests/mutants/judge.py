"""Test runs on a copy of the sources with one planted bug."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from tests.mutants.mutant import ROOT, SOURCES, Mutant

PROPERTIES = ("tests/properties/test_kv_machine.py",)
SECONDS_MAX = 300.0
"""Seconds after which a run counts as failed.
On an idle core, a run with the unchanged sources takes a quarter of that.
"""

HANGS = "(time is up)"

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_VIOLATION = re.compile(r"^E +(?:\S*\.)?(\w+: .*)$", re.MULTILINE)
_FAULT = re.compile(
    r"\b(DropResponse|Delay|AnswerStatus|AnswerNotMyVbucket|HangUpBeforeApplying|HangUpAfterApplying|HangUpMidReply"
    r"|Garble|WrongLength|RefuseConnection)\b|\b(refuse)\(\)"
)


@dataclass(frozen=True, slots=True)
class Run:
    """Result of running some tests."""

    failed: str | None
    """First test that failed, or ``HANGS``; None if all passed."""
    why: str
    """First line of the failed test's explanation."""
    faults: tuple[str, ...]
    """Names of the faults in the failing example of Hypothesis."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Finding:
    """Results of the tests with a planted bug."""

    mutant: Mutant
    problem: str
    """Reason why the bug could not be planted; empty if it was planted."""
    by_properties: Run | None = None
    by_units: Run | None = None

    @property
    def is_killed(self) -> bool:
        """Whether any test failed because of the bug."""
        return any(run is not None and run.failed for run in (self.by_properties, self.by_units))

    @property
    def summary(self) -> str:
        """Result in one line, for the progress of the command."""
        if self.problem:
            return f"cannot be planted: {self.problem}"
        runs = [run for run in (self.by_properties, self.by_units) if run is not None]
        return "; ".join(f"{run.failed or 'survives'} in {run.seconds:.0f} s" for run in runs)


def judge(mutant: Mutant, seconds_max: float, *, shrink: bool) -> Finding:
    """Plant a bug in a copy of the sources, run the tests there, and return their results."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        tree = Path(folder)
        for name in (*SOURCES, "tests"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        shutil.copy(ROOT / "pyproject.toml", tree)
        try:
            mutant.plant(tree)
        except ValueError as error:
            return Finding(mutant, str(error))
        profile = "shrink" if shrink else "find"
        by_properties = run_tests(tree, PROPERTIES, seconds_max, profile)
        return Finding(mutant, "", by_properties, run_tests(tree, mutant.tests, seconds_max, "find"))


def run_tests(tree: Path, tests: Sequence[str], seconds_max: float, profile: str) -> Run:
    """Run tests with the sources in ``tree`` until the first failure or the time limit, and return the result."""
    options = f"-x -q -n0 -p no:cacheprovider --hypothesis-profile={profile}"
    command = [sys.executable, "-m", "pytest", "-m", "", *options.split()]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tree / "core"), str(tree / "trio_client")]),
        "PYTHONPYCACHEPREFIX": str(tree / "bytecode"),
    }
    began = time.perf_counter()
    try:
        run = subprocess.run(
            [*command, *tests],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds_max,
        )
    except subprocess.TimeoutExpired:
        return Run(HANGS, HANGS, (), time.perf_counter() - began)
    seconds = time.perf_counter() - began
    failed, why = _FAILED.search(run.stdout), _VIOLATION.search(run.stdout)
    if run.returncode and failed is None:
        raise RuntimeError(f"the tests did not run:\n{run.stdout}\n{run.stderr}")
    faults = sorted({name for names in _FAULT.findall(run.stdout) for name in names if name})
    return Run(failed and failed[1], why[1] if why else "", tuple(faults), seconds)


def table(verdicts: Sequence[Finding]) -> Table:
    """Return a table of the tests that noticed each bug."""
    shown = Table("mutant", "plants", "the properties", "faults in their example", "the unit tests", show_lines=True)
    for verdict in verdicts:
        units, properties = verdict.by_units, verdict.by_properties
        shown.add_row(
            verdict.mutant.name,
            verdict.mutant.plants,
            (properties and (properties.why if properties.failed else "survives")) or verdict.problem,
            ", ".join(properties.faults) if properties else "",
            (units and (units.failed or "survives")) or "",
        )
    return shown
