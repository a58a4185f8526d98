"""Helper that checks how an argument is rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from triclinium_core import errors


def refused(parameter: str, make: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Check that the call raises an error whose ``parameter`` and message name the rejected argument."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make(*arguments, **options)
    assert parameter == caught.value.parameter
    assert parameter in str(caught.value)
