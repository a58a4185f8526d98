"""Module of all exceptions, two of which derive also from trio.TooSlowError."""

from __future__ import annotations

import pytest
import trio

import triclinium.errors
import triclinium_core.errors
from triclinium import errors


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


@pytest.mark.parametrize(
    ("expected", "kind"),
    [
        (triclinium_core.errors.AmbiguousTimeoutException, errors.AmbiguousTooSlowError),
        (triclinium_core.errors.UnambiguousTimeoutException, errors.UnambiguousTooSlowError),
    ],
)
def test_timeouts_of_blocks_have_two_bases(expected: type[Exception], kind: type[Exception]) -> None:
    """The timeouts of ``fail_after`` derive from the core's classes and trio.TooSlowError; the core's do not."""
    assert issubclass(kind, expected)
    assert issubclass(kind, trio.TooSlowError)
    assert not issubclass(expected, trio.TooSlowError)
