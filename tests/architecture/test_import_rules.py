"""Rules for imports, each of which finds a planted violation at its location and accepts permitted code."""

from __future__ import annotations

import pytest

from tests.architecture import import_rules
from tests.architecture.source import SourceFile, parse

CLOCK = {"time": "the clock"}
LAYERS = (("house.errors",), ("house.wire", "house._fast"), ("house.node",), ("house",))


def tree(**texts: str) -> list[SourceFile]:
    """Return the modules of a package ``house``; ``init`` and ``a__b`` stand for ``house`` and ``house.a.b``."""
    names = {key: "house" if key == "init" else f"house.{key.replace('__', '.')}" for key in texts}
    return [parse(names[key], text, path=key, is_package=key == "init") for key, text in texts.items()]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (1, "import time"),
        (1, "import time as harmless"),
        (1, "import json, time"),
        (1, "from time import monotonic"),
        (2, "def late() -> None:\n    import time"),
        (3, "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from time import struct_time"),
        (2, "try:\n    import time.part\nexcept ImportError:\n    pass"),
    ],
)
def test_refused_imports(line: int, text: str) -> None:
    """A refused module is found in each form of import, also inside functions, conditions and try blocks."""
    findings = import_rules.refused_imports(tree(a=text), CLOCK)

    assert 1 == len(findings)
    assert findings[0].startswith(f"a:{line}: imports time")


@pytest.mark.parametrize("text", ["import timeit", "from house.time import x", "from house import time", "time = 3"])
def test_refused_imports_ignores_other_modules(text: str) -> None:
    """Modules with a longer name or of another package, and variables with the same name, are not refused."""
    assert [] == import_rules.refused_imports(tree(a=text), CLOCK)


def test_refused_imports_respects_excuses() -> None:
    """An excuse applies only to the module that it names."""
    findings = import_rules.refused_imports(tree(a="import time", b="import time"), CLOCK, [("house.a", "time")])

    assert ["b:1: imports time (the clock)"] == findings


OPEN = "class Door:\n    open: bool\n    def shut(self) -> bool:\n        return not self.open\nopen('/etc/passwd')"


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        (2, "datetime.datetime.now", "import datetime\nx = datetime.datetime.now()"),
        (2, "datetime.datetime.now", "import datetime as d\nx = d.datetime.now(d.UTC)"),
        (2, "datetime.datetime.now", "from datetime import datetime\nclock = datetime.now"),
        (2, "datetime.datetime.now", "from datetime import datetime as moment\nclock = moment.now"),
        (5, "open", OPEN),
        (1, "sys.modules", "from sys import modules"),
    ],
)
def test_refused_uses(line: int, name: str, text: str) -> None:
    """A use or import of a refused name is found under every alias, called or not; a field of that name is not."""
    assert [f"a:{line}: uses {name} (refused)"] == import_rules.refused_uses(tree(a=text), {name: "refused"}, {})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import msgspec", "msgspec"),
        ("from house.wire import header", "house.wire"),
        ("from house import wire", "house.wire"),
        ("from house import __all__", "house"),
        ("from .wire import header", "house.wire"),
        ("from . import wire", "house.wire"),
    ],
)
def test_imports_beyond(text: str, found: str) -> None:
    """Imports of other packages, and of other modules of the same package, absolute or relative, are found."""
    findings = import_rules.imports_beyond(tree(init="", errors=text, wire=""), {"house.errors": ()})

    assert [f"errors:1: house.errors does not import {found}; it may import the standard library"] == findings


def test_imports_beyond_permits_listed_modules() -> None:
    """The standard library and the modules in the policy are permitted for the package and the modules below it."""
    text = "import json\nfrom house.errors import Broken\nfrom house import errors\nfrom house.retry import backoff"
    sources = tree(errors="import enum", retry__machine=text, wire="import msgspec")

    assert [] == import_rules.imports_beyond(
        sources, {"house.errors": (), "house.retry": ("house.errors", "house.retry")}
    )


@pytest.mark.parametrize(
    "text",
    [
        "from house.node import x",
        "from house import node",
        "import house.node.deep",
        "from house.wire import y\nimport house",
    ],
)
def test_upward_imports(text: str) -> None:
    """An import of a module in a later layer is found in every form, including that of the package's own file."""
    findings = import_rules.upward_imports(tree(init="", errors="", wire__header=text, node="", node__deep=""), LAYERS)

    assert 1 == len(findings)
    assert "stands after house.wire.header" in findings[0]


def test_upward_imports_permits_earlier_layers() -> None:
    """Imports from a module's own layer and from earlier layers are permitted."""
    sources = tree(
        init="from house.node import x",
        errors="",
        wire__header="from house import errors\nfrom house._fast import scan\nimport house.wire.frame",
        node="from house.wire.header import x\nimport msgspec",
        _fast="from house.wire.header import scan",
    )

    assert [] == import_rules.upward_imports(sources, LAYERS)


def test_upward_imports_requires_a_layer() -> None:
    """A module without a layer is found."""
    assert ["attic: house.attic has no place in LAYERS; give it one"] == import_rules.upward_imports(
        tree(init="", attic=""), LAYERS
    )


def test_import_cycles() -> None:
    """Modules that import each other are found as one cycle, even under TYPE_CHECKING, but not their importers."""
    sources = tree(
        init="from house.a import x",
        a="if TYPE_CHECKING:\n    from house.b import x",
        b="import house.c",
        c="from house import a, d",
        d="",
    )

    assert ["house.a and house.b and house.c import one another"] == import_rules.import_cycles(sources)


def test_import_cycles_of_a_package() -> None:
    """A module that imports from the package that re-exports it is found, and so is one that imports itself."""
    sources = tree(init="from house.a import x", a="from house import y", b="import house.b")

    assert ["house and house.a import one another", "house.b import one another"] == import_rules.import_cycles(sources)


@pytest.mark.parametrize(("here", "there"), [("left", "right"), ("right", "left")])
def test_strangers_meeting(here: str, there: str) -> None:
    """An import of one of two independent packages in the other is found, in both directions."""
    sources = tree(**{f"{here}__deep": f"from house.{there} import x", there: "", "wire": f"import house.{here}"})

    findings = import_rules.strangers_meeting(sources, [("house.left", "house.right")])

    assert [f"{here}__deep:1: house.{here} does not know house.{there}"] == findings


def test_imports_past_the_door() -> None:
    """An import of the hidden module is found in every module except the one that may import it."""
    sources = tree(_fast="import hidden", wire="def late() -> None:\n    from hidden.deep import scan")

    assert ["wire:2: only house._fast imports hidden"] == import_rules.imports_past_the_door(
        sources, "hidden", "house._fast"
    )


@pytest.mark.parametrize(
    "text",
    [
        "from house._fast import scan",
        "from house import _fast",
        "import house._fast",
        "from house.wire import _secret",
        "from house.wire import unlisted",
        "from house.wire import *",
        "import house.wire\nx = house.wire._secret",
        "from house import wire\nx = wire.Frame._secret",
    ],
)
def test_private_uses(text: str) -> None:
    """Names with underscores, names missing from ``__all__`` and star imports are found."""
    provider = tree(init="", _fast="", wire="__all__ = ['Frame']")

    findings = import_rules.private_uses([parse("guest", text)], provider)

    assert 1 == len(findings)
    assert findings[0].startswith("guest.py:")


def test_private_uses_permits_public_names() -> None:
    """Listed names, modules, names of modules without ``__all__``, dunders and the user's own names are permitted."""
    text = (
        "from house import wire, node\nfrom house.wire import Frame\nfrom house.node import Node\n"
        "from guest._private import x\nversion = node.__name__\ny = x._z"
    )
    provider = tree(init="__all__ = []", wire="__all__ = ['Frame']", node="class Node: ...")

    assert [] == import_rules.private_uses([parse("guest", text)], provider)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from house.retry.machine import Machine", "house.retry.machine.Machine"),
        ("import house.retry.machine", "house.retry.machine"),
        ("from house.retry import machine", "house.retry.machine"),
        ("from house import Machine", "house.retry.machine.Machine"),
        ("from house import Renamed", "house.retry.machine.Machine"),
        ("from house import machine", "house.retry.machine"),
        ("from house.retry.machine import *", "house.retry.machine.*"),
    ],
)
def test_decisions_taken(text: str, found: str) -> None:
    """Names of the deciding package are found, whether imported directly or through a re-export."""
    provider = tree(
        init="from house.retry import machine\nfrom house.retry.machine import Machine, Machine as Renamed, Strategy",
        retry="",
        retry__machine="class Machine: ...\nclass Strategy: ...",
    )

    findings = import_rules.decisions_taken(
        [parse("guest", text)], provider, "house.retry", frozenset({"Strategy"}), "guest._cli"
    )

    assert [f"guest.py:1: the driver decides nothing, so it has no use for {found}"] == findings


def test_decisions_taken_permits_signatures_and_commands() -> None:
    """Names for signatures are permitted everywhere, and the commands may import other names, too."""
    provider = tree(init="from house.retry import Strategy", retry="class Strategy: ...\nclass Machine: ...")
    sources = [
        parse(
            "guest", "from house import Strategy\nfrom house.retry import Strategy as S\nfrom house.kv import Client"
        ),
        parse("guest._cli.explain", "from house.retry import Machine"),
    ]

    assert [] == import_rules.decisions_taken(sources, provider, "house.retry", frozenset({"Strategy"}), "guest._cli")


def test_undeclared_imports() -> None:
    """An import of an undeclared package is found, and so is one of a package that only another module may use."""
    sources = tree(
        wire="import json\nimport declared.part\nimport house.node", node="import extra", testing__a="import extra"
    )

    findings = import_rules.undeclared_imports(
        [*sources, *tree(fast="import known\nimport stray")],
        frozenset({"declared"}),
        {"house.testing": frozenset({"extra"})},
        [("house.fast", "known")],
    )

    assert [
        "node:1: extra is no declared dependency of house",
        "fast:2: stray is no declared dependency of house",
    ] == findings


def test_unused_dependencies() -> None:
    """A dependency that no module imports is found unless it is excused."""
    findings = import_rules.unused_dependencies(
        tree(wire="from used.part import x"), frozenset({"used", "forgotten", "linked"}), ["linked"]
    )

    assert ["house: declares forgotten and never imports it"] == findings


def test_requirement_names() -> None:
    """Versions, extras and markers are removed, hyphens become underscores, and listed names are replaced."""
    requirements = ["Trio>=0.31", "triclinium-core==0.1", "hypothesis[cli] ; python_version < '4'", "cffi"]

    assert frozenset({"trio", "triclinium_core", "hypothesis", "cffi"}) == import_rules.requirement_names(requirements)
    assert frozenset({"dns"}) == import_rules.requirement_names(["dnspython[trio]>=2"], {"dnspython": "dns"})


def test_mentions() -> None:
    """A word is found in string constants, and not in names."""
    findings = import_rules.mentions(tree(a="WORD = 1\nx = 'say WORD'\ny = f'{x} WORD'"), "WORD")

    assert ["a:2: mentions WORD", "a:3: mentions WORD"] == findings
