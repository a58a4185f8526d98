"""HTML pages of the reference, which have a correct entry for every public name."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import DOCS
from tests.public_names import MODULES
from triclinium_core.testing.driver_laws import LAWS

PUBLIC = (
    *(module.__name__ for module in MODULES),
    "triclinium.testing",
    "triclinium_core",
    "triclinium_core.testing",
    "triclinium_core.testing.driver_laws",
)
BEYOND = (
    "triclinium_core.testing.state_machine.KVStateMachine",
    "triclinium_core.testing.state_machine.TokenStateMachine",
    *(f"{law.__module__}.{law.__name__}" for law in LAWS),
)
"""Public names without a package: names of modules that need an extra, and the laws, which share one name."""

ENTRY = re.compile(r'<dt class="sig sig-object py" id="([\w.]+)">(.*?)</dt>', re.DOTALL)
MODULE = re.compile(r'id="module-([\w.]+)"')
SIGNATURE_LENGTH_MAX = 1100
"""Maximum number of characters, enough for nearly thirty options. A longer signature shows a value that is useless."""

pytestmark = [pytest.mark.native, pytest.mark.long]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the HTML pages of the reference."""
    folder: Path = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ("", 0) == (run.stderr, run.returncode)
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted((folder / "reference").glob("*.html")))


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    names: list[str] = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    return names


def names_of(found: object) -> set[str]:
    """Return the public names of one object."""
    modules = [import_module(module) for module in PUBLIC]
    return {
        f"{module.__name__}.{name}"
        for module in modules
        for name in public_names(module)
        if getattr(module, name) is found
    }


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_an_entry(reference: str, module: str) -> None:
    """Every public object of a package has an entry under one of its names."""
    entries = {name for name, _ in ENTRY.findall(reference)}
    package = import_module(module)
    found = {name: getattr(package, name) for name in public_names(package)}
    objects = {name: value for name, value in found.items() if not isinstance(value, ModuleType)}
    modules = {value.__name__ for value in found.values() if isinstance(value, ModuleType)}

    assert [] == [name for name, value in objects.items() if not names_of(value) & entries]
    assert modules <= set(MODULE.findall(reference))


@pytest.mark.parametrize("name", BEYOND)
def test_names_without_a_package_have_entries(reference: str, name: str) -> None:
    """Public names that no package exports have entries as well."""
    assert name in {entry for entry, _ in ENTRY.findall(reference)}


def test_signatures_are_readable(reference: str) -> None:
    """No signature shows a memory address, a private type, or a very long value."""
    texts = [
        (name, " ".join(html.unescape(re.sub(r"<[^>]+>", "", signature)).split()))
        for name, signature in ENTRY.findall(reference)
    ]
    wrong = [
        name
        for name, text in texts
        if len(text) > SIGNATURE_LENGTH_MAX or re.search(r"<|ForwardRef|\b(?:Driver|NodeServer)\b", text)
    ]

    assert len(texts) > 200
    assert [] == wrong


def test_no_docstring_is_parsed_as_a_type(reference: str) -> None:
    """Words before a colon are not parsed as a type."""
    assert "Raises<span" in reference
    assert "Type<span" not in reference


def test_python_default_docstrings_are_hidden(reference: str) -> None:
    """Python's docstrings of new types and named tuple fields do not appear."""
    assert "NewType creates" not in reference
    assert "Alias for field" not in reference
