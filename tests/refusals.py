"""Expected refusals of invalid arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from triclinium_core.argument_error import ArgumentError
from triclinium_core.errors import InvalidArgumentException


@contextmanager
def refusal_of(
    parameter: str, match: str | None = None, *, said: str = "", kind: type[ArgumentError] = ArgumentError
) -> Iterator[pytest.ExceptionInfo[ArgumentError]]:
    """Check that the block raises an error of this kind about one parameter.

    Args:
        parameter: name that the error has.
        match: pattern in the text of the error.
        said: literal part of the text of the error.
        kind: class of the error.
    """
    with pytest.raises(kind, match=match) as caught:
        yield caught

    assert parameter == caught.value.parameter
    assert said in str(caught.value)


def refused(parameter: str, make: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Check that the call raises InvalidArgumentException, whose ``parameter`` and text name the refused argument."""
    with refusal_of(parameter, said=parameter, kind=InvalidArgumentException):
        make(*arguments, **options)
