"""Conversion of plain data, from TOML and options, to the values of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from triclinium_core import errors

T = TypeVar("T")


def convert(table: Mapping[str, object], kind: type[T]) -> T:
    """Return ``table`` as a value of the type ``kind``.

    Raises:
        InvalidArgumentException: a value is out of range. The exception replaces the msgspec error that wraps it.
        msgspec.ValidationError: a value has the wrong type, or a name is unknown.
    """
    try:
        return msgspec.convert(table, kind, strict=True)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, errors.InvalidArgumentException):
            raise error.__cause__ from None
        raise
