"""Program of the page on Node, and messages for a package without its assets."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.serving import serving
from tests.hosts.folders import HOSTS, ROOT

EXAMPLES = ROOT / "docs" / "howto" / "examples"


@pytest.mark.hosts
def test_example_prints_its_output(node: str, folder: Path, tmp_path: Path) -> None:
    """The program of the page prints the output on the page."""
    program = tmp_path / "docs" / "howto" / "examples" / "node_client.mjs"
    program.parent.mkdir(parents=True)
    shutil.copy(EXAMPLES / program.name, program)
    package = tmp_path / "core" / "hosts" / "js"
    package.parent.mkdir(parents=True)
    package.symlink_to(folder / "node_modules" / "triclinium")
    with serving() as served:
        address = (served["connection_string"], served["username"], served["password"])
        ended = subprocess.run([node, program, *address], capture_output=True, text=True, check=True)

    assert (EXAMPLES / "node_client.txt").read_text(encoding="utf-8") == ended.stdout


@pytest.mark.hosts
def test_missing_assets_are_named(node: str, tmp_path: Path) -> None:
    """Without its assets, the package names the missing file and the description of what to do."""
    package = tmp_path / "js"
    shutil.copytree(HOSTS / "js", package, ignore=shutil.ignore_patterns("assets", "node_modules"))
    ended = subprocess.run([node, package / "triclinium.mjs"], capture_output=True, text=True, check=False)

    assert 1 == ended.returncode
    assert "assets/assets.json of the package triclinium cannot be read; make its assets as" in ended.stderr
