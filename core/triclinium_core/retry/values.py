"""Decorator that makes frozen values as cheap to create as mutable ones."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

T = TypeVar("T")


def lean(cls: type[T]) -> type[T]:
    """Return ``cls``, a frozen dataclass without ``__post_init__``, with the ``__init__`` of a mutable one.

    A type checker refuses an assignment to a field, but Python executes it. Without this decorator, a retry would take
    about twice the instructions (callgrind, ``tests.bench --only core``). A class that defines its own ``__init__``
    keeps it.
    """
    del cls.__setattr__, cls.__delattr__
    if not cls.__dataclass_params__.init:  # type: ignore[attr-defined]
        return cls
    own = fields(cls)  # type: ignore[arg-type]
    copies: dict[str, Any] = {
        one.name: field(default=one.default, default_factory=one.default_factory, kw_only=one.kw_only) for one in own
    }
    annotations = {one.name: one.type for one in own}
    plain: type = dataclass(eq=False, repr=False)(
        type(cls.__name__, (), {"__module__": cls.__module__, "__annotations__": annotations, **copies})
    )
    cls.__init__ = plain.__init__  # type: ignore[misc, method-assign]
    return cls
