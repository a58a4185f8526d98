"""Lookup of the files and tests that the pages name."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.docs.pages import ROOT

TEST_FOLDERS = (ROOT / "tests", ROOT / "tests" / "core", ROOT / "tests" / "trio_client")
"""Folders to which the paths of tests on the pages are relative."""


def named(cell: str) -> list[str]:
    """Return the files, and tests in files, that a cell names."""
    return re.findall(r"`([^`]+\.py(?:::\w+)?)`", cell)


@cache
def functions_of(path: Path) -> frozenset[str]:
    """Return the names of all functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def exists(name: str, folders: tuple[Path, ...]) -> bool:
    """Return whether one of the folders has the file, and the file has the test if ``name`` includes one."""
    path, _, test = name.partition("::")
    return any((folder / path).is_file() and (not test or test in functions_of(folder / path)) for folder in folders)
