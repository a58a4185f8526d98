"""Programs and files that the tests of hosts share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import CACHE, missing
from tests.hosts.folders import ROOT
from tests.live.conftest import (
    common_mock,
    couchbase_mock,
    key,
    memcached,
    memcached_program,
    mock_program,
    mortal_memcached,
    served,
)

__all__ = [
    "common_mock",
    "couchbase_mock",
    "key",
    "memcached",
    "memcached_program",
    "mock_program",
    "mortal_memcached",
    "served",
]


@pytest.fixture(scope="session")
def node() -> str:
    """Return the path of Node."""
    return shutil.which("node") or missing("node", "install Node.js 20.5 or later")


@pytest.fixture(scope="session")
def npm(node: str) -> str:
    """Return the path of npm."""
    return shutil.which("npm") or missing("npm", "install it with Node.js")


@pytest.fixture(scope="session")
def assets(npm: str) -> Path:
    """Return the folder with Pyodide and the wheels of the core, which is kept in the cache."""
    folder = CACHE / "hosts" / "assets"
    program = ROOT / "core" / "hosts" / "js" / "assets.py"
    run = subprocess.run([sys.executable, program, folder], capture_output=True, text=True, check=False)
    if run.returncode:
        missing("Pyodide or a wheel for it", f"see why: {run.stderr[-500:]}")
    return folder
