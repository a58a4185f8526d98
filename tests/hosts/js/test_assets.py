"""Program that collects Pyodide and the wheels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.folders import HOSTS

pytestmark = pytest.mark.native


def collect(*arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the program, with ``settings`` as its only environment variables if there are any."""
    command = [sys.executable, str(HOSTS / "js" / "assets.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=settings or None)


def test_other_contents_are_kept(tmp_path: Path) -> None:
    """A folder with other contents is refused with status 1, and keeps them."""
    (tmp_path / "thesis.txt").write_text("ten years of work", encoding="utf-8")
    run = collect(tmp_path)

    assert 1 == run.returncode
    assert "other contents" in run.stderr
    assert ["thesis.txt"] == [path.name for path in tmp_path.iterdir()]


def test_a_missing_tool_leaves_nothing(tmp_path: Path) -> None:
    """Without npm, the program ends with status 1 and names it, and the folder does not exist."""
    run = collect(tmp_path / "assets", PATH=str(tmp_path))

    assert 1 == run.returncode
    assert "npm" in run.stderr
    assert [] == list(tmp_path.iterdir())


def test_no_folder_is_an_error() -> None:
    """Without arguments, the program ends with status 2."""
    assert 2 == collect().returncode


@pytest.mark.hosts
def test_assets_are_complete(assets: Path) -> None:
    """The record lists every wheel, and a second run leaves it unchanged."""
    record = (assets / "assets.json").read_bytes()
    wheels = sorted(path.name for path in (assets / "wheels").iterdir())
    run = collect(assets)
    contents = json.loads(record)

    assert 0 == run.returncode
    assert record == (assets / "assets.json").read_bytes()
    assert sorted([*contents["wheels"], contents["snappy"]]) == wheels
    assert (assets / "pyodide" / "pyodide.mjs").is_file()
