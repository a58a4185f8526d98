"""Build of the component, and its interface."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from enum import Enum
from pathlib import Path

import pytest

from tests.hosts.component.preparing import BUILD, COMPONENTIZE, INTERFACE, run
from tests.hosts.folders import ROOT
from tests.rows import rows
from triclinium_core.retry.couchbase import HandedOver, RetryReason, Service
from triclinium_core.tools.vectors.couchbase import STRATEGIES

LINES_MAX = 300
"""Maximum number of lines of the component."""


@rows(
    ("name", "members"),
    [
        ("reason", RetryReason.__members__),
        ("service", Service.__members__),
        ("handed-over", HandedOver.__members__),
        ("strategy", STRATEGIES),
    ],
)
def test_enumerations_are_those_of_the_core(name: str, members: dict[str, Enum]) -> None:
    """Each enumeration of the interface has the names of the core in the same order."""
    (cases,) = re.findall(rf"enum {name} {{(.*?)}}", INTERFACE.read_text(encoding="utf-8"), re.DOTALL)

    assert [member.lower().replace("_", "-") for member in members] == re.findall(r"[a-z-]+", cases)


def test_the_component_is_small() -> None:
    """The sources of the component have at most 300 lines."""
    sources = [path for path in BUILD.parent.iterdir() if path.is_file()]

    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources) <= LINES_MAX


def build(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the build with additional environment variables."""
    command, settings = [sys.executable, BUILD, *arguments], os.environ | environment
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=False)


@pytest.mark.native
@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--nothing", "a"]], ids=["none", "two", "option"])
def test_wrong_arguments_have_status_two(arguments: list[str]) -> None:
    """Wrong arguments end the build with status 2 and its usage."""
    done = build(*arguments)

    assert 2 == done.returncode
    assert done.stderr.startswith("usage: build.py")


@pytest.mark.native
def test_failed_builds_have_status_one(tmp_path: Path) -> None:
    """Without uv, or with a file in place of the folder, the build ends with status 1 and names the cause."""
    folder = tmp_path / "built"
    without_uv, file = build(folder, PATH=str(tmp_path)), build(BUILD)

    assert (1, 1) == (without_uv.returncode, file.returncode)
    assert f"the component cannot be built in {folder}: " in without_uv.stderr
    assert "'uvx'" in without_uv.stderr
    assert f"the component cannot be built in {BUILD}: " in file.stderr


@pytest.mark.hosts
def test_exports_have_the_types_of_the_interface(component: Path, tmp_path: Path) -> None:
    """The exported functions pass strict type checking against the bindings that componentize-py generates."""
    run(*COMPONENTIZE, "-d", INTERFACE, "-w", "retry", "bindings", tmp_path)
    check = tmp_path / "check.py"
    check.write_text(
        "import wit_world.exports\nimport adapter\n\n"
        "decisions: wit_world.exports.Decisions = adapter.Decisions()\n"
        "machines: wit_world.exports.Machines = adapter.Machines()\n",
        encoding="utf-8",
    )
    folders = os.pathsep.join(map(str, (tmp_path, BUILD.parent, ROOT / "core")))
    command = (sys.executable, "-m", "mypy", "--strict", "--config-file=", check, BUILD.parent / "adapter.py")
    done = subprocess.run(
        command, env=os.environ | {"MYPYPATH": folders}, capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert ("Success: no issues found in 2 source files\n", "") == (done.stdout, done.stderr)


@pytest.mark.hosts
def test_wheel_and_archive_contain_no_hosts(tmp_path: Path) -> None:
    """Neither the wheel nor the source archive of the core contains a file of the hosts."""
    run("uv", "build", "--quiet", "--out-dir", tmp_path, ROOT / "core")
    (wheel,), (archive,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as built, tarfile.open(archive) as packed:
        names = [*built.namelist(), *packed.getnames()]

    assert any(name.endswith("triclinium_core/retry/__init__.py") for name in names)
    assert [] == [name for name in names if "hosts" in Path(name).parts]
