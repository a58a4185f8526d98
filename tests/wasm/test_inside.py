"""What is left out inside WebAssembly is what says so, and nothing else."""

from __future__ import annotations

import pytest

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
