"""Lazy names of a package: each is loaded from its module on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module


def lazy_names(
    package: MutableMapping[str, object], module_of: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Args:
        package: its ``globals()``, where a name stays that was asked for.
        module_of: where each name is that it offers.
    """

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}", name=name)
        value = package[name] = getattr(import_module(module_of[name]), name)
        return value

    def names() -> list[str]:
        return sorted({*package, *module_of})

    return load, names
