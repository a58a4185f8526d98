"""Program that imports modules, and reports each refused import at run time, whatever the source text looks like.

Usage: ``python import_guard.py PREFIX REFUSED[,REFUSED...] EXCUSED[,EXCUSED...] MODULE [MODULE ...]``

Only imports by modules below PREFIX are refused; the standard library and other packages may import anything. EXCUSED
pairs, ``importer:imported``, are permitted. The exit status is 1 if there was a refusal, with one line for each.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Mapping, Sequence

genuine_import = builtins.__import__
genuine_import_module = importlib.import_module


def main(prefix: str, refused: frozenset[str], excused: frozenset[str], modules: Sequence[str]) -> int:
    """Import the modules under guard and return the exit status."""
    refusals = guard(prefix, refused, excused)
    for module in modules:
        genuine_import_module(module)
    sys.stdout.write("".join(f"{refusal}\n" for refusal in refusals))
    return bool(refusals)


def guard(prefix: str, refused: frozenset[str], excused: frozenset[str]) -> list[str]:
    """Guard all imports of this process from now on. Return the list to which each refused import is added."""
    refusals: list[str] = []

    def check(importer: object, name: str) -> None:
        root = name.partition(".")[0]
        if f"{importer}.".startswith(f"{prefix}.") and root in refused and f"{importer}:{root}" not in excused:
            refusals.append(f"{importer} imported {name}")

    def guarded_import(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        # Ignore an import by an extension module: it has its caller's globals, and passes a list for ``fromlist``.
        if level == 0 and not isinstance(fromlist, list):
            check((globals or sys._getframe(1).f_globals).get("__name__"), name)
        return genuine_import(name, globals, locals, fromlist or (), level)

    def guarded_import_module(name: str, package: str | None = None) -> object:
        check(sys._getframe(1).f_globals.get("__name__"), name)
        return genuine_import_module(name, package)

    builtins.__import__ = guarded_import  # type: ignore[assignment]
    importlib.import_module = guarded_import_module  # type: ignore[assignment]
    return refusals


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], frozenset(sys.argv[2].split(",")), frozenset(sys.argv[3].split(",")), sys.argv[4:]))
