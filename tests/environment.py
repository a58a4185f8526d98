"""Environment of a test run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}
"""Whether this run is the project's gate, in which a missing program or package is a failure."""

NEEDS_PYTHON: Mapping[str, tuple[int, int]] = {
    "core/adapters/test_smithy_core.py": (3, 12),
}
"""Oldest Python version of tests whose packages need a newer one than triclinium does, by path.

An older Python does not collect them, and the header of the run lists them. ``tests/wasm/run`` always collects them:
its Python is newer, and a missing package there is a failure.
"""


CACHE = Path(os.environ.get("TRICLINIUM_CACHE") or Path(__file__).parents[1] / ".cache").resolve()
"""Folder for files that later runs can reuse."""


def keep_bytecode() -> None:
    """Keep bytecode in the cache if the environment forbids it next to the sources.

    A run starts about a hundred interpreters; each would compile all of its imports.
    """
    if sys.dont_write_bytecode and sys.platform != "emscripten":
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(CACHE / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def left_out() -> list[str]:
    """Return the paths of tests that need a newer Python."""
    return [path for path, oldest in NEEDS_PYTHON.items() if sys.version_info < oldest]


def missing(what: str, remedy: str) -> NoReturn:
    """End the running test because ``what`` is not installed: skip it locally, and fail it in CI.

    Args:
        what: missing program or package.
        remedy: command that installs it.
    """
    message = f"{what} is missing; {remedy}"
    if IN_CI:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
