"""Module of all exceptions."""

from __future__ import annotations

import triclinium.errors
import triclinium_core.errors


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
