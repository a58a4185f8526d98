"""Module of all exceptions."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import triclinium.errors
import triclinium_core.errors
from triclinium_core.errors import CouchbaseException


def test_the_module_exports_every_exception() -> None:
    """``triclinium.errors`` exports every exception of the core."""
    of_the_core = {
        name
        for name, value in vars(triclinium_core.errors).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }

    of_the_client = {
        "AmbiguousTooSlowError",
        "BulkFailure",
        "ErrorContext",
        "RowsNotReadError",
        "UnambiguousTooSlowError",
    }

    assert of_the_core | of_the_client == set(triclinium.errors.__all__)


def test_exceptions_are_those_of_the_core() -> None:
    """The exported exceptions are the same objects as those of the core."""
    names = triclinium_core.errors.__dict__.keys() & set(triclinium.errors.__all__)

    assert [] == [
        name for name in names if getattr(triclinium_core.errors, name) is not getattr(triclinium.errors, name)
    ]


def test_exceptions_that_are_never_raised() -> None:
    """The docstring of an exception says that the client never raises it if and only if no other module names it."""
    modules = [Path(inspect.getfile(module)) for module in (triclinium.errors, triclinium_core.errors)]
    code = "".join(
        path.read_text() for module in modules for path in module.parent.rglob("*.py") if path not in modules
    )
    named = set(re.findall(r"\w+(?:Exception|Error)\b", code))
    kinds = [
        kind
        for kind in vars(triclinium_core.errors).values()
        if isinstance(kind, type) and issubclass(kind, CouchbaseException)
    ]

    assert {kind for kind in kinds if kind.__name__ not in named} == {
        kind for kind in kinds if "The client never raises it" in (kind.__doc__ or "")
    }
