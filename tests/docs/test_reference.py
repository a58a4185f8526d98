"""HTML pages of the reference, which have a correct entry for every public name."""

from __future__ import annotations

import html
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import ClassVar, get_args, get_origin, get_type_hints

import dns.asyncresolver
import pytest

from tests.docs.pages import DOCS
from tests.public_names import MODULES
from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.contract.neutral import LossCause, ReportLevel
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

UNLOADABLE = () if find_spec("smithy_core") else ("triclinium_core.adapters.smithy_core",)
"""Modules that need a newer Python; the build replaces what they import."""

ENTRY = re.compile(r'<dt class="sig sig-object py" id="([\w.]+)">(.*?)</dt>', re.DOTALL)
MODULE = re.compile(r'id="module-([\w.]+)"')
SIGNATURE_LENGTH_MAX = 1100
"""Maximum number of characters, enough for nearly thirty options. A longer signature shows a value that is useless."""

pytestmark = [pytest.mark.native, pytest.mark.long]


# A worker of pytest-xdist that returns to this module must not build the pages again.
@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the HTML pages."""
    folder: Path = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ("", 0) == (run.stderr, run.returncode)
    return folder


@pytest.fixture(scope="module")
def reference(built: Path) -> str:
    """Return the HTML pages of the reference."""
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted((built / "reference").glob("*.html")))


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
    """No signature shows a memory address or an internal type, or is longer than the maximum."""
    texts = [
        (name, " ".join(html.unescape(re.sub(r"<[^>]+>", "", signature)).split()))
        for name, signature in ENTRY.findall(reference)
    ]
    wrong = [
        name
        for name, text in texts
        if len(text) > SIGNATURE_LENGTH_MAX
        or re.search(r"<|ForwardRef|\b(?:ClusterDriver|MachineDriver|NodeServer)\b", text)
    ]

    assert len(texts) > 200
    assert [] == wrong


def test_no_docstring_is_parsed_as_a_type(reference: str) -> None:
    """Words before a colon are not parsed as a type, and Python's docstrings of new types and fields do not appear."""
    assert "Raises<span" in reference
    assert "Type<span" not in reference
    assert "NewType creates" not in reference
    assert "Alias for field" not in reference


def object_of(entry: str) -> object:
    """Return the object of an entry; None for an attribute that is missing or that only instances have."""
    name, *parts = entry.split(".")
    found: object = import_module(name)
    for part in parts:
        name = f"{name}.{part}"
        is_unloaded = isinstance(found, ModuleType) and not hasattr(found, part)
        found = import_module(name) if is_unloaded else getattr(found, part, None)
    return found


def enums_in(kind: object) -> set[type[Enum]]:
    """Return the enumerations in a type, including those in unions, containers and callables."""
    if isinstance(kind, list | tuple):
        return {found for part in kind for found in enums_in(part)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {kind}
    return enums_in(get_args(kind))


def types_of(found: object) -> Mapping[str, object]:
    """Return the types in the signature of a function or property, or of the fields of a class."""
    function = found.fget if isinstance(found, property) else inspect.unwrap(found) if callable(found) else None
    if not (inspect.isclass(function) or inspect.isfunction(function)):
        return {}
    # Some modules import names only for type checkers.
    known = {"defaultdict": defaultdict, "dns": dns, "Mapping": Mapping}
    return get_type_hints(function, localns=known)


def test_every_enumeration_in_use_has_entries(reference: str) -> None:
    """Every enumeration in a documented signature or field has an entry, and so has each of its members."""
    entries = {name for name, _ in ENTRY.findall(reference)}
    objects = {name: object_of(name) for name in entries if not name.startswith(UNLOADABLE)}
    used: set[type[Enum]] = {
        found
        for documented in objects.values()
        for name, kind in types_of(documented).items()
        if get_origin(kind) is not ClassVar and not name.startswith("_")
        for found in enums_in(kind)
    }
    names = {enum: [name for name, found in objects.items() if found is enum] for enum in used}

    assert {LossCause, AbandonReason, ReportLevel} <= used
    assert [] == [enum for enum in used if not names[enum]]
    assert [] == [
        f"{enum}.{member}"
        for enum in used
        for member in enum.__members__
        if not any(f"{name}.{member}" in entries for name in names[enum])
    ]


def test_laws_are_not_in_the_index(built: Path, reference: str) -> None:
    """The laws have entries in the reference, but none in the general index, which they would crowd."""
    index = (built / "genindex.html").read_text(encoding="utf-8")
    laws = [f"{law.__module__}.{law.__name__}" for law in LAWS]

    assert len(laws) > 20
    assert "triclinium.open_cluster" in index
    assert [] == [law for law in laws if law in index]


def test_short_code_in_cells_has_its_class(built: Path) -> None:
    """``couchbase://`` in a table has the class that keeps it in one piece on a narrow screen."""
    page = (built / "howto" / "connect.html").read_text(encoding="utf-8")

    assert re.search(r'<td>.*?<code class="[^"]*\bshort\b[^"]*"><span class="pre">couchbase://<', page)
