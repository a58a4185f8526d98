"""What ``import triclinium`` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import triclinium


def test_names_are_there_and_sorted() -> None:
    """``__all__`` is what the package offers."""
    assert sorted(triclinium.__all__) == triclinium.__all__
    assert all(hasattr(triclinium, name) for name in triclinium.__all__)


def test_the_import_brings_nothing_that_only_commands_need() -> None:
    """An application does not pay for the command line."""
    program = "import sys, triclinium; print(sorted({'click', 'rich', 'hypothesis', 'asyncio'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "[]" == run.stdout.strip()
