"""Functions that let a package load its names or its modules when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from importlib import import_module
from importlib.util import find_spec


def lazy_names(
    package: MutableMapping[str, object], module_of: Mapping[str, str], modules: Sequence[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    If a name is missing, the AttributeError names the module among ``modules`` that exports it, if there is one.

    Args:
        package: ``globals()`` of the package. ``__getattr__`` stores each loaded name there.
        module_of: module that defines each name.
        modules: modules of the package to load on first use; each has ``__all__``.
    """
    own_name = str(package["__name__"])

    def load(name: str) -> object:
        if name in modules:
            return import_module(f"{own_name}.{name}")
        if name not in module_of:
            raise AttributeError(missing(name), name=name)
        value = package[name] = getattr(import_module(module_of[name]), name)
        return value

    def missing(name: str) -> str:
        text = f"module {own_name!r} has no attribute {name!r}"
        if not name.startswith("_") and find_spec(f"{own_name}.{name}") is None:
            for module in modules:
                if name in import_module(f"{own_name}.{module}").__all__:
                    return f"{text}; use {own_name}.{module}.{name}"
        return text

    def names() -> list[str]:
        return sorted({*package, *module_of, *modules})

    return load, names


def lazy_modules(
    package: MutableMapping[str, object], modules: Sequence[str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package that loads some of its modules on first use.

    Args:
        package: ``globals()`` of the package.
        modules: modules of the package to load on first use.
    """
    own_name = str(package["__name__"])

    def load(name: str) -> object:
        if name in modules:
            return import_module(f"{own_name}.{name}")
        raise AttributeError(f"module {own_name!r} has no attribute {name!r}", name=name)

    return load, lambda: sorted({*package, *modules})
