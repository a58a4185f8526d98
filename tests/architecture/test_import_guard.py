"""The guard refuses what no reading of the text can see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import import_guard


def guarded(folder: Path, text: str, excused: str = "") -> tuple[int, str]:
    """Return exit status and output of the guard over a package ``planted`` whose module holds ``text``."""
    package = folder / "planted"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "module.py").write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, import_guard.__file__, "planted", "time,random", excused, "planted", "planted.module"],
        cwd=folder,
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "" == run.stderr
    return run.returncode, run.stdout


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from time import monotonic",
        "__import__('ti' + 'me')",
        "import importlib\nimportlib.import_module('ti' + 'me')",
        "exec('import time')",
    ],
)
def test_refuses(tmp_path: Path, text: str) -> None:
    """A statement, a call with a composed name and executed text are refused alike."""
    assert (1, "planted.module imported time\n") == guarded(tmp_path, text)


def test_lets_others_import(tmp_path: Path) -> None:
    """What the standard library imports for itself is its own business."""
    text = "import tempfile, datetime, uuid\nmoment = datetime.datetime.strptime('2025', '%Y')\nfrom . import module"

    assert (0, "") == guarded(tmp_path, text)


@pytest.mark.parametrize(
    ("excused", "status"), [("planted.module:time", 0), ("planted:time", 1), ("planted.module:t", 1)]
)
def test_lets_an_excused_module_import(tmp_path: Path, excused: str, status: int) -> None:
    """An excuse holds for one module and what it names, and for nobody else."""
    assert status == guarded(tmp_path, "import time", excused)[0]
