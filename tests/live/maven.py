"""What Maven brings: Java servers that are kept in the cache of the gate, or in ``.cache`` beside the sources."""

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
"""A repository that has not answered by then does not answer."""

NO_ANSWER = "Could not transfer"
"""What Maven says of a repository that does not answer; of one that lacks an artifact it says something else."""


def find_java() -> str:
    """Return where Java is; ends the test where it is missing: a skip at a desk, a failure in CI."""
    return shutil.which("java") or missing("java", "on Debian: apt-get install default-jre-headless")


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """Give a folder to bring ``target`` to, which is then moved: only a whole one ever stands in its place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        yield Path(folder)


def run_maven(goal: str, *options: str, artifact: str) -> None:
    """Have Maven do something that needs an artifact.

    Ends the test where Maven is missing: a skip at a desk, a failure in CI. Where its repository does not answer, it is
    a skip everywhere.
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
    # Only these servers may be missing in CI: they come from a repository that is not ours to keep up.
    reason = f"Maven's repository does not answer, so {artifact} cannot be had; its tests did not run"
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(reason)
    if run.returncode and NO_ANSWER in run.stdout + run.stderr:
        pytest.skip(reason)
    assert 0 == run.returncode, run.stdout + run.stderr
