"""What is left out inside WebAssembly is what says so, and nothing else."""

from __future__ import annotations

import pytest

from tests.architecture.policy import CLIENT, CORE, EXTENSION, ROOT
from tests.architecture.source import imports, names_of, read_package
from tests.wasm.inside import is_native


@pytest.mark.parametrize(
    ("expected", "source"),
    [
        (True, "pytestmark = pytest.mark.native"),
        (True, "pytestmark = [pytest.mark.live, pytest.mark.native]"),
        (False, "pytestmark = pytest.mark.live"),
        (False, "native = pytest.mark.native"),
        (False, "@pytest.mark.native\ndef test_one() -> None: ..."),
        (False, ""),
    ],
)
def test_native_modules_say_so(expected: bool, source: str) -> None:
    """Only a module-wide mark leaves out the whole module; marked functions are deselected by name."""
    assert expected is is_native(source)


def test_what_runs_inside_imports_what_is_inside() -> None:
    """The core's tests, and what of the tests these import, need neither trio nor the other two packages."""
    sources = {source.module: source for source in read_package(ROOT / "tests", ROOT)}
    beneath = {module: set[str]() for module in sources}
    for found in imports(list(sources.values()), names_of(list(sources.values()))):
        beneath[found.importer].add(found.target)
    inside = [
        module for module, source in sources.items() if module.startswith("tests.core.") and not is_native(source.text)
    ]
    missing, reached = set[str](), set(inside)
    while inside:
        module = inside.pop()
        for target in beneath[module]:
            if target.partition(".")[0] in {"trio", CLIENT.package, EXTENSION.package}:
                missing.add(f"{module} imports {target}")
            elif target in sources and target not in reached:
                reached.add(target)
                inside.append(target)

    assert set() == missing
    assert any(target.startswith(CORE.package) for module in reached for target in beneath[module])
