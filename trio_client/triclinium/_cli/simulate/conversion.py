"""Conversion of plain data, from TOML and options, to the values of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from triclinium_core import errors

T = TypeVar("T")


def convert(table: Mapping[str, object], kind: type[T]) -> T:
    """Return the value of this type.

    Raises:
        InvalidArgumentException: a value is out of range. The msgspec error around it is removed.
        msgspec.ValidationError: a value has the wrong type, or a name is unknown.
    """
    try:
        return msgspec.convert(table, kind, strict=True)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, errors.InvalidArgumentException):
            raise error.__cause__ from None
        raise
