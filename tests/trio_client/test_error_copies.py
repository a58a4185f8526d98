"""Copies of exceptions that an object keeps."""

from __future__ import annotations

from typing import Any, Self

from triclinium import errors
from triclinium._error_copies import copy_of
from triclinium_core.error_context import ErrorContext


class SingleError(Exception):
    """Exception that cannot be created a second time."""

    exists = False

    def __new__(cls, *args: Any) -> Self:
        """Raise the second time."""
        if cls.exists:
            raise TypeError
        cls.exists = True
        return super().__new__(cls, *args)


def raised(error: Exception) -> Exception:
    """Return the exception after it was raised."""
    try:
        raise error
    except Exception as caught:
        return caught


def test_a_copy_has_everything_but_the_traceback() -> None:
    """A copy has the class, message, context, attributes, notes and cause of the exception, and no traceback."""
    error = errors.DocumentNotFoundException("no such document", ErrorContext(key="ada"))
    error.add_note("seen")
    error.__cause__ = KeyError("why")
    copied = copy_of(raised(error))
    copied.add_note("of the copy")

    assert copied is not error
    assert type(error) is type(copied)
    assert str(error) == str(copied)
    assert isinstance(copied, errors.DocumentNotFoundException)
    assert error.context is copied.context
    assert error.__cause__ is copied.__cause__
    assert (["seen"], ["seen", "of the copy"]) == (error.__notes__, copied.__notes__)
    assert copied.__traceback__ is None
    assert error.__traceback__ is not None


def test_an_exception_that_cannot_be_copied() -> None:
    """An exception whose class refuses a second object is returned itself."""
    error = SingleError("only")

    assert error is copy_of(error)
