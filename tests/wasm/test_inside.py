"""Selection of tests inside WebAssembly, which leaves out only marked modules."""

from __future__ import annotations

import pytest

from tests.architecture.policy import CLIENT, CORE, EXTENSION, ROOT
from tests.architecture.source import collector_paused, imports, module_name, read_module
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
def test_only_module_marks_are_native(expected: bool, source: str) -> None:
    """Only a mark in ``pytestmark`` leaves out a module; one in another variable or on a function does not."""
    assert expected is is_native(source)


def test_core_tests_import_only_the_core() -> None:
    """The core's tests and the test modules that they import need neither trio nor the other two packages."""
    folder = ROOT / "tests"
    files = {module_name(file, folder): file for file in folder.rglob("*.py")}
    modules = frozenset(files)
    inside = [
        module
        for module, file in files.items()
        if module.startswith("tests.core.") and not is_native(file.read_text(encoding="utf-8"))
    ]
    missing, reached, imported = set[str](), set(inside), set[str]()
    with collector_paused():
        while inside:
            source = read_module(files[inside.pop()], folder, ROOT)
            for target in {found.target for found in imports([source], modules)}:
                imported.add(target)
                if target.partition(".")[0] in {"trio", CLIENT.package, EXTENSION.package}:
                    missing.add(f"{source.module} imports {target}")
                elif target in files and target not in reached:
                    reached.add(target)
                    inside.append(target)

    assert set() == missing
    assert any(target.startswith(CORE.package) for target in imported)
