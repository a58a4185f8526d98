"""Declarations for TypeScript, compiled in strict mode, and compared with the module and with the core."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.hosts.folders import HOSTS
from tests.hosts.installing import install_with_npm
from triclinium_core import errors, work
from triclinium_core.contract.neutral import outbox

TYPES = Path(__file__).parent / "types"

DECLARATIONS = HOSTS / "js" / "triclinium.d.ts"

ERRORS = [
    (kind.__name__, kind.__bases__[0].__name__)
    for kind in vars(errors).values()
    if isinstance(kind, type) and kind.__module__ == errors.__name__
]
"""Exceptions of the core with their bases, bases first."""


@pytest.mark.hosts
def test_programs_are_typed_as_declared(folder: Path, tmp_path: Path) -> None:
    """The compiler accepts a program that uses every export, and refuses each marked line of a wrong program."""
    project = tmp_path / "types"
    install_with_npm("typescript", TYPES, project)
    shutil.copytree(
        folder / "node_modules" / "triclinium",
        project / "node_modules" / "triclinium",
        ignore=shutil.ignore_patterns("assets"),
    )
    compiler = project / "node_modules" / "typescript" / "bin" / "tsc"
    compiled = subprocess.run(["node", compiler, "-p", "."], cwd=project, check=False, capture_output=True, text=True)

    assert (0, "") == (compiled.returncode, compiled.stdout)


def test_accepted_program_uses_every_export() -> None:
    """The program for the compiler uses every name that the declarations export, and no other."""
    exported = r"^export (?:class|namespace|type|interface|function) (\w+)"

    assert set(re.findall(exported, DECLARATIONS.read_text("utf-8"), re.M)) == set(
        re.findall(r"\bt\.(\w+)", (TYPES / "accepted.ts").read_text("utf-8"))
    )


def test_declared_errors_are_those_of_the_core() -> None:
    """The declarations have the exceptions of the core, each with its base."""
    declared = re.findall(r"^  class (\w+) extends (\w+)", DECLARATIONS.read_text("utf-8"), re.M)

    assert [("CouchbaseException", "Error"), *ERRORS[1:]] == declared


def test_limits_are_only_in_the_core() -> None:
    """No module of the client for Node repeats a limit of the core as a number."""
    limits = {work.PIECE_SIZE_BYTES_MAX, work.WORK_OF_A_PASS_MAX, work.WORK_BEFORE_TIME_MAX, outbox.WRITE_SIZE_MAX}
    modules = [*(HOSTS / "js").glob("*.mjs"), HOSTS / "js" / "host.py"]
    texts = [number for module in modules for number in re.findall(r"\d[\d_]*(?: \* \d+)*", module.read_text("utf-8"))]

    assert not limits & {math.prod(map(int, text.split(" * "))) for text in texts}


@pytest.mark.hosts
def test_assets_list_the_errors_of_the_core(assets: Path) -> None:
    """The assets have the exceptions of the core, bases first."""
    listed = json.loads((assets / "assets.json").read_text(encoding="utf-8"))["errors"]

    assert ERRORS == [*listed.items()]
