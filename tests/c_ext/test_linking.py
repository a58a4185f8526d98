"""Linking of the C module."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such table"),
]


def test_symbols_are_resolved_at_load_time() -> None:
    """The dynamic section of the module has the flag BIND_NOW, and its program headers a segment GNU_RELRO."""
    module = import_module("triclinium_c._scan")
    found = subprocess.run(["readelf", "-dlW", str(module.__file__)], capture_output=True, text=True, check=True)

    assert "BIND_NOW" in found.stdout
    assert "GNU_RELRO" in found.stdout
