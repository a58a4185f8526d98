"""What the package offers by itself: each name is loaded when it is asked for, and is what type checkers take it for."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module

import pytest

import triclinium_core

SEEN_BY_TYPE_CHECKERS = {
    alias.name: node.module
    for node in ast.walk(ast.parse(inspect.getsource(triclinium_core)))
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("triclinium_core.")
    for alias in node.names
}


@pytest.mark.parametrize("name", triclinium_core.__all__)
def test_offers(name: str) -> None:
    """A name is what the module has that type checkers are told of, and is listed."""
    module = import_module(SEEN_BY_TYPE_CHECKERS[name] or "")

    assert getattr(triclinium_core, name) is getattr(module, name)
    assert name in dir(triclinium_core)


def test_offers_nothing_else() -> None:
    """A name that nobody offers is missing as it is in any module."""
    assert sorted(SEEN_BY_TYPE_CHECKERS) == sorted(triclinium_core.__all__)
    with pytest.raises(AttributeError, match="module 'triclinium_core' has no attribute 'Nonsense'"):
        getattr(triclinium_core, "Nonsense")  # noqa: B009 - a type checker would refuse the attribute
