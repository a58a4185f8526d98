"""Imports a module a second time with its source changed, to show what a mistake in one of its tables does."""

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
        """Return the place that tracebacks show."""
        return self._path

    def get_data(self, path: str | bytes) -> bytes:
        """Return the changed source."""
        return self._source.encode("utf-8")

    def path_stats(self, path: str | bytes) -> dict[str, float]:
        """Say that nothing is known of the file, so that no byte code is kept."""
        raise OSError


def import_with(module: ModuleType, old: str, new: str) -> ModuleType:
    """Return ``module`` imported anew, with the one ``old`` in its source replaced; the imported one is untouched.

    Raises:
        Exception: whatever the import of the changed source raises.
    """
    source = inspect.getsource(module)
    assert 1 == source.count(old), f"{old!r} stands {source.count(old)} times in {module.__name__}"
    spec = spec_from_loader(module.__name__, _Doctored(f"<changed {module.__name__}>", source.replace(old, new)))
    assert spec is not None
    assert spec.loader is not None
    changed = module_from_spec(spec)
    spec.loader.exec_module(changed)
    return changed
