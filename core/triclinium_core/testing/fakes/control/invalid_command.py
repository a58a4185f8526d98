"""Error of a command that cannot be carried out, whether it is text, JSON or a call in Python."""

from __future__ import annotations

from collections.abc import Iterable

from triclinium_core import errors


class InvalidCommand(errors.InvalidArgumentException):
    """Exception for a command for fake nodes that has an invalid field, or is impossible now.

    Nothing was changed, unless a command for all nodes failed at one of them: the nodes before it were changed.

    Args:
        message: text of the error.
        field: name of the invalid field.
        allowed: allowed values of the field, or descriptions of them; empty if no value of it would help.
    """

    def __init__(self, message: str, *, field: str, allowed: Iterable[str] = ()) -> None:
        super().__init__(message, parameter=field)
        self.allowed: tuple[str, ...] = tuple(allowed)

    @property
    def field(self) -> str:
        """Name of the invalid field."""
        return self.parameter

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (self.message, self.parameter, self.allowed)


def _rebuilt(message: str, field: str, allowed: tuple[str, ...]) -> InvalidCommand:
    return InvalidCommand(message, field=field, allowed=allowed)
