"""Java servers from Maven, cached by the gate, or in ``.cache`` next to the sources."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.environment import CACHE, missing

DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

DOWNLOAD_SECONDS = 300.0
"""Seconds after which a repository counts as unavailable."""

NO_ANSWER = "Could not transfer"
"""Maven's message for an unavailable repository; a missing artifact has a different message."""


class JavaProgram(NamedTuple):
    """Paths that are needed to start a server."""

    java: str
    path: Path
    """Jar of the server, or folder with its jars."""


def fetched(path: Path, fetch: Callable[[Path], Path]) -> JavaProgram:
    """Return a server from the cache, so that ``path`` is always complete: ``fetch`` builds it in another folder first.

    If a program is missing, skip the test locally and fail it in CI. If Maven's repository does not respond, skip the
    test everywhere.

    Args:
        fetch: function of a folder, which builds the server there and returns its path.
    """
    java = shutil.which("java") or missing("java", "on Debian: apt-get install default-jre-headless")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            fetch(Path(folder)).replace(path)
    return JavaProgram(java, path)


def run_maven(goal: str, *options: str, artifact: str) -> None:
    """Run a Maven goal that needs an artifact, or end the test as ``fetched`` describes."""
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
