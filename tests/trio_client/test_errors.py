"""One module with every exception, and two that are Trio's as well."""

from __future__ import annotations

import pytest
import trio

import triclinium.errors
import triclinium_core.errors
from triclinium import errors


def test_every_exception_of_the_core_is_offered() -> None:
    """Whoever catches an exception needs to know one module only."""
    of_the_core = {
        name
        for name, value in vars(triclinium_core.errors).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }

    of_the_client = {"AmbiguousTooSlowError", "UnambiguousTooSlowError", "ErrorContext", "RowsNotReadError"}

    assert of_the_core | of_the_client == set(triclinium.errors.__all__)


def test_the_exceptions_are_the_cores_own() -> None:
    """No subclass stands in the place of what the machine raises."""
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
def test_the_timeouts_of_a_block_are_both_the_sdks_and_trios(expected: type[Exception], kind: type[Exception]) -> None:
    """Either name catches them, and the core's own class stays free of Trio's."""
    assert issubclass(kind, expected)
    assert issubclass(kind, trio.TooSlowError)
    assert not issubclass(expected, trio.TooSlowError)
