"""One module with every exception, and two that are Trio's as well."""

from __future__ import annotations

import pytest
import trio

import triclinium.errors
import triclinium_core.errors
from triclinium.errors import AmbiguousTooSlowError, UnambiguousTooSlowError


def test_every_exception_of_the_core_is_offered() -> None:
    """Whoever catches an exception needs to know one module only, and no subclass stands in the place of the core's."""
    of_the_core, offered = (
        {name: value for name, value in vars(module).items() if isinstance(value, type)}
        for module in (triclinium_core.errors, triclinium.errors)
    )

    assert {**of_the_core, **offered} == offered
    assert {"AmbiguousTooSlowError", "UnambiguousTooSlowError"} == offered.keys() - of_the_core.keys()


@pytest.mark.parametrize(
    ("expected", "kind"),
    [
        (triclinium_core.errors.AmbiguousTimeoutException, AmbiguousTooSlowError),
        (triclinium_core.errors.UnambiguousTimeoutException, UnambiguousTooSlowError),
    ],
)
def test_the_timeouts_of_a_block_are_both_the_sdks_and_trios(expected: type[Exception], kind: type[Exception]) -> None:
    """Either name catches them, and the core's own class stays free of Trio's."""
    assert issubclass(kind, expected)
    assert issubclass(kind, trio.TooSlowError)
    assert not issubclass(expected, trio.TooSlowError)
