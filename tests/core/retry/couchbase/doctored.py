"""Import of a module with changed source; tests use it to show the effect of a mistake in a table of the module."""

from __future__ import annotations

import inspect
from importlib.abc import SourceLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType


class _Doctored(SourceLoader):
    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._source = source

    def get_filename(self, fullname: str) -> str:
        """Return the path that tracebacks show."""
        return self._path

    def get_data(self, path: str | bytes) -> bytes:
        """Return the changed source."""
        return self._source.encode("utf-8")

    def path_stats(self, path: str | bytes) -> dict[str, float]:
        """Raise OSError, so that the import system caches no bytecode."""
        raise OSError


def import_with(module: ModuleType, old: str, new: str) -> ModuleType:
    """Import ``module`` again after replacing ``old`` in its source, and return this copy. ``module`` stays unchanged.

    Raises:
        Exception: the import of the changed source fails.
    """
    source = inspect.getsource(module)
    assert 1 == source.count(old), f"{old!r} stands {source.count(old)} times in {module.__name__}"
    spec = spec_from_loader(module.__name__, _Doctored(f"<changed {module.__name__}>", source.replace(old, new)))
    assert spec is not None
    assert spec.loader is not None
    changed = module_from_spec(spec)
    spec.loader.exec_module(changed)
    return changed
