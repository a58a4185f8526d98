"""Lazy names of a package, which are loaded from their modules on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module


def lazy_names(
    package: MutableMapping[str, object], module_of: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Args:
        package: ``globals()`` of the package. Loaded names are stored there.
        module_of: module of each name.
    """

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}", name=name)
        value = package[name] = getattr(import_module(module_of[name]), name)
        return value

    def names() -> list[str]:
        return sorted({*package, *module_of})

    return load, names
