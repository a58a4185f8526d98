"""Copies of exceptions, for objects that keep an exception and raise it to their callers."""

from __future__ import annotations


def copy_of(error: Exception) -> Exception:
    """Return a copy of an exception, without its traceback.

    If the kept exception itself were raised, it would form a cycle with the frames of the caller. The copy has the
    same class, arguments, attributes, notes and cause. Return the exception itself if it cannot be copied.
    """
    # Avoid the constructor: the user's class may have one with other arguments or side effects.
    try:
        copied = type(error).__new__(type(error), *error.args)
    except Exception:
        # The original is raised and forms a cycle, which the garbage collector frees.
        return error
    notes = {"__notes__": [*error.__notes__]} if hasattr(error, "__notes__") else {}
    copied.__dict__.update({**error.__dict__, **notes})
    copied.__cause__, copied.__suppress_context__ = error.__cause__, error.__suppress_context__
    return copied
