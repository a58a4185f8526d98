"""Package of the client for Node, and programs that use it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.folders import HOSTS

PROGRAMS = Path(__file__).parent / "programs"

SECONDS_MAX = 500
"""Seconds after which a program has failed."""

RunNode = Callable[..., list[Any]]
"""Function that runs a program with texts or JSON values as arguments, and returns the JSON of its lines."""


@pytest.fixture(scope="session")
def folder(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the programs, in which the package is installed."""
    return installed(tmp_path_factory.mktemp("node"), assets)


def installed(folder: Path, assets: Path) -> Path:
    """Copy the programs to a folder, and install the package there as npm would. Return the folder."""
    package = folder / "node_modules" / "triclinium"
    package.mkdir(parents=True)
    names = json.loads((HOSTS / "js" / "package.json").read_text(encoding="utf-8"))["files"]
    for name in {"package.json", *names} - {"assets"}:
        shutil.copy(HOSTS / "js" / name, package)
    (package / "assets").symlink_to(assets)
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def run_node(node: str, folder: Path) -> RunNode:
    """Return a function that runs a program."""

    def run(program: str, *arguments: object, options: tuple[str, ...] = ()) -> list[Any]:
        texts = [each if isinstance(each, str) else json.dumps(each) for each in arguments]
        command = [node, *options, str(folder / program), *texts]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX, cwd=folder)
        assert 0 == ended.returncode, ended.stderr[-3000:] + ended.stdout[-1000:]
        return [json.loads(line) for line in ended.stdout.splitlines()]

    return run
