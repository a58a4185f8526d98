"""Number of times that one call passes from one module to another, which a reader of the code has to follow."""

from __future__ import annotations

import pytest
import trio

from tests.bench.module_changes import module_changes

pytestmark = pytest.mark.native

CHANGES_MAX = {"get": 36, "upsert with one retry": 132, "query": 154}


def test_module_changes() -> None:
    """A get, an upsert with one retry, and a query with one row change modules no more often than their maxima."""
    found = trio.run(module_changes)

    assert {} == {name: count for name, count in found.items() if count > CHANGES_MAX[name]}
    assert CHANGES_MAX.keys() == found.keys()
