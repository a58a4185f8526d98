"""Every public name is in the reference, and every page of the reference names only what is there."""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType

import pytest

from tests.docs.pages import DOCS

REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("*.md")))

DIRECTIVE = re.compile(r"^\.\. (?:auto(?:class|function|exception)|py:data):: (\S+)$", re.MULTILINE)
MODULE = re.compile(r"^\.\. automodule:: (\S+)$", re.MULTILINE)
PUBLIC = ("triclinium", "triclinium.errors", "triclinium.testing", "triclinium_core", "triclinium_core.testing")

pytestmark = pytest.mark.native


def public_names(module: ModuleType) -> list[str]:
    """Return what a module offers."""
    names: list[str] = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    return names


def documented() -> list[object]:
    """Return every object that the reference has an entry for."""
    entries = [name.rpartition(".") for name in DIRECTIVE.findall(REFERENCE)]
    found = [getattr(import_module(module), name) for module, _, name in entries]
    for module in map(import_module, MODULE.findall(REFERENCE)):
        found += [getattr(module, name) for name in public_names(module)]
    return found


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_documented(module: str) -> None:
    """What a package offers can be looked up."""
    package = import_module(module)
    entries = documented()

    missing = [name for name in public_names(package) if not any(getattr(package, name) is entry for entry in entries)]

    assert [] == missing
