"""Guard of imports at run time, which reports imports that the text of a module does not show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import import_guard


def guarded(folder: Path, text: str, excused: str = "") -> tuple[int, str]:
    """Return exit status and output of the guard over a package ``planted`` with a module of this text."""
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
def test_refused_imports_fail(tmp_path: Path, text: str) -> None:
    """An import of a refused module is found in a statement, in a call with a composed name and in executed text."""
    assert (1, "planted.module imported time\n") == guarded(tmp_path, text)


def test_other_packages_may_import_anything(tmp_path: Path) -> None:
    """Modules of the standard library may import refused modules."""
    text = "import tempfile, datetime, uuid\nmoment = datetime.datetime.strptime('2025', '%Y')\nfrom . import module"

    assert (0, "") == guarded(tmp_path, text)


@pytest.mark.parametrize(
    ("excused", "status"), [("planted.module:time", 0), ("planted:time", 1), ("planted.module:t", 1)]
)
def test_an_excused_module_may_import(tmp_path: Path, excused: str, status: int) -> None:
    """An excuse applies only to its module and its import."""
    assert status == guarded(tmp_path, "import time", excused)[0]
