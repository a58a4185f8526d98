"""Arguments that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from triclinium_core import errors


def refused(parameter: str, make: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Expect that an argument is refused by its name, which stands in the message too."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make(*arguments, **options)
    assert parameter == caught.value.parameter
    assert parameter in str(caught.value)
