"""Run of pytest inside Pyodide, for ``host.mjs``."""

from __future__ import annotations

import ast
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


class WithoutNative:
    """Plugin that leaves out modules that WebAssembly cannot import, and accepts the settings of missing plugins."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        """Accept the settings of pytest-trio and pytest-xdist, which the core's tests do not need."""
        parser.addini("trio_mode", "unused here", type="bool")
        parser.addoption("--numprocesses", help="unused here")
        parser.addoption("--dist", help="unused here")

    def pytest_report_header(self) -> str:
        """Show the interpreter."""
        return f"inside: {sys.implementation.name} {platform.python_version()} on {sys.platform}, {platform.machine()}"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore a module whose ``pytestmark`` has the mark native, before it is imported."""
        if collection_path.suffix == ".py" and is_native(collection_path.read_text(encoding="utf-8")):
            return True
        return None


def is_native(source: str) -> bool:
    """Return whether a module's text assigns ``pytest.mark.native``, alone or in a list, to ``pytestmark``."""
    # Search the text first, because parsing is slow and few modules have the mark.
    return "pytest.mark.native" in source and any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
        and any(isinstance(part, ast.Attribute) and part.attr == "native" for part in ast.walk(node.value))
        for node in ast.parse(source).body
    )


def main(arguments: Sequence[str]) -> int:
    """Run pytest with the plugin, and return its exit status."""
    return int(pytest.main(list(arguments), plugins=[WithoutNative()]))
