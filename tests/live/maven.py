"""Java servers from Maven, cached by the gate, or in ``.cache`` next to the sources."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.environment import CACHE, missing

DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

DOWNLOAD_SECONDS = 300.0
"""Seconds after which a repository counts as unavailable."""

NO_ANSWER = "Could not transfer"
"""Maven's message for an unavailable repository; a missing artifact has a different message."""


def find_java() -> str:
    """Return the path of Java; if it is missing, skip the test locally and fail it in CI."""
    return shutil.which("java") or missing("java", "on Debian: apt-get install default-jre-headless")


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """Yield a folder in which the caller builds ``target`` and then moves it, so that ``target`` is always complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        yield Path(folder)


def run_maven(goal: str, *options: str, artifact: str) -> None:
    """Run a Maven goal that needs an artifact.

    If Maven is missing, skip the test locally and fail it in CI. If its repository does not respond, skip the test
    everywhere.
    """
    maven = shutil.which("mvn") or missing("mvn", "on Debian: apt-get install maven")
    CACHE.mkdir(parents=True, exist_ok=True)
    command = [
        maven,
        "--batch-mode",
        f"-Dmaven.repo.local={CACHE / 'maven'}",
        "--update-snapshots",
        f"{DEPENDENCY_PLUGIN}:{goal}",
        *options,
    ]
    # Skip the test even in CI, because these servers come from an external repository.
    reason = f"Maven's repository does not answer, so {artifact} cannot be had; its tests did not run"
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(reason)
    if run.returncode and NO_ANSWER in run.stdout + run.stderr:
        pytest.skip(reason)
    assert 0 == run.returncode, run.stdout + run.stderr
