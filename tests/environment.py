"""What the machine that runs the tests offers."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}
"""Whether this run is the project's gate, where nothing may be missing."""

NEEDS_PYTHON: Mapping[str, tuple[int, int]] = {
    "core/adapters/test_smithy_core.py": (3, 12),
}
"""Tests of packages that do not install on every Python that we support, by path, and the oldest that they install on.

They are not collected on an older one, and the header of the run says so. ``tests/wasm/run`` has them in any case: its
Python is newer than all of them, and a package that is missing there is a failure.
"""


CACHE = Path(os.environ.get("TRICLINIUM_CACHE") or Path(__file__).parents[1] / ".cache").resolve()
"""Where runs keep what the next one need not make again."""


def keep_bytecode() -> None:
    """Keep bytecode in the cache where the environment wants none beside the sources.

    A run starts some hundred interpreters; each would compile all that it imports.
    """
    if sys.dont_write_bytecode and sys.platform != "emscripten":
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(CACHE / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def left_out() -> list[str]:
    """Return the paths of what this Python is too old for."""
    return [path for path, oldest in NEEDS_PYTHON.items() if sys.version_info < oldest]


def missing(what: str, remedy: str) -> NoReturn:
    """End the running test because ``what`` is not installed: a skip at a desk, a failure in CI.

    Args:
        what: the program or package that a fixture looked for.
        remedy: how to get it, as a command.
    """
    message = f"{what} is missing; {remedy}"
    if IN_CI:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
