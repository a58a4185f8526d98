"""Fixture that runs the tests of a module with both header decoders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from triclinium_core._speedups import Implementation, implementation, use_implementation


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.native] * (name == "c")) for name in get_args(Implementation)],
)
def each_implementation(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    """Run the tests of a module with each decoder, then restore the previous decoder."""
    before = implementation()
    use_implementation(request.param)
    yield implementation()
    use_implementation(before)
