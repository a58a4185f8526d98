"""Rules for imports and uses. Each takes parsed sources and returns findings of one line each.

They check the text, including imports under TYPE_CHECKING; ``import_guard.py`` checks the imports at run time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence

from tests.architecture.source import SourceFile, exported, imports, is_standard, is_within, names_of, origin, uses


def refused_imports(
    sources: Sequence[SourceFile], refused: Mapping[str, str], excused: Iterable[tuple[str, str]] = ()
) -> list[str]:
    """Find imports of modules that the package must not use, except excused ones."""
    excused = set(excused)
    return [
        f"{found.place}: imports {found.target} ({refused[found.root]})"
        for found in imports(sources)
        if found.root in refused and (found.importer, found.root) not in excused
    ]


def refused_uses(
    sources: Sequence[SourceFile], refused: Mapping[str, str], excused: Mapping[tuple[str, str], str]
) -> list[str]:
    """Find uses of refused names, such as those of the clock or the disk, under any alias, except excused ones."""
    return [
        f"{source.path}:{line}: uses {name} ({refused[name]})"
        for source in sources
        for line, name in uses(source)
        if name in refused and (source.module, name) not in excused
    ]


def imports_beyond(sources: Sequence[SourceFile], allowed_of: Mapping[str, Sequence[str]]) -> list[str]:
    """Find imports of anything but the standard library and the modules that the package may import."""
    all_imports = list(imports(sources, names_of(sources)))
    return [
        f"{found.place}: {package} does not import {found.target}; "
        f"it may import {' and '.join(['the standard library', *allowed])}"
        for package, allowed in allowed_of.items()
        for found in all_imports
        if is_within(found.importer, package)
        and not is_standard(found.target)
        and not any(is_within(found.target, name) for name in allowed)
    ]


def upward_imports(sources: Sequence[SourceFile], layers: Sequence[Sequence[str]]) -> list[str]:
    """Find imports of modules in a later layer, and modules without a layer.

    The longest name that contains a module determines its layer; the root package's name applies to its own
    ``__init__`` only. The ``__init__`` of a package of packages, which has only a docstring, needs no layer.
    """
    ranks = {name: rank for rank, layer in enumerate(layers) for name in layer}
    root = sources[0].root

    def rank_of(module: str) -> int | None:
        places = [name for name in ranks if module == name or (name != root and is_within(module, name))]
        return ranks[max(places, key=len)] if places else None

    findings = [
        f"{source.path}: {source.module} has no place in LAYERS; give it one"
        for source in sources
        if rank_of(source.module) is None and not (source.is_package and len(source.tree.body) == 1)
    ]
    for found in imports(sources, names_of(sources)):
        here, there = rank_of(found.importer), rank_of(found.target)
        if here is not None and there is not None and here < there:
            findings.append(f"{found.place}: {found.target} stands after {found.importer}")
    return findings


def import_cycles(sources: Sequence[SourceFile]) -> list[str]:
    """Find modules that import each other, directly or in a cycle."""
    beneath: dict[str, set[str]] = {source.module: set() for source in sources}
    for found in imports(sources, names_of(sources)):
        if found.target in beneath:
            beneath[found.importer].add(found.target)
    reached = {module: _reached(module, beneath) for module in beneath}
    circles = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in beneath
        if module in reached[module]
    }
    return [f"{' and '.join(circle)} import one another" for circle in sorted(circles)]


def _reached(start: str, beneath: Mapping[str, set[str]]) -> set[str]:
    """Return all direct and indirect imports of a module."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = beneath[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def strangers_meeting(sources: Sequence[SourceFile], strangers: Sequence[tuple[str, str]]) -> list[str]:
    """Find imports of one package in the other, in both directions: the two must be independent."""
    all_imports = list(imports(sources, names_of(sources)))
    return [
        f"{found.place}: {here} does not know {there}"
        for pair in strangers
        for here, there in (pair, pair[::-1])
        for found in all_imports
        if is_within(found.importer, here) and is_within(found.target, there)
    ]


def imports_past_the_door(sources: Sequence[SourceFile], hidden: str, door: str) -> list[str]:
    """Find imports of ``hidden`` in any module but ``door``."""
    return [
        f"{found.place}: only {door} imports {hidden}"
        for found in imports(sources)
        if found.root == hidden and found.importer != door
    ]


def private_uses(sources: Sequence[SourceFile], provider: Sequence[SourceFile]) -> list[str]:
    """Find uses of names that the provider does not export.

    A name is public if none of its parts starts with an underscore and, if its module has an ``__all__``, it is
    listed there or is itself a module.
    """
    root, exports = provider[0].root, {source.module: exported(source) for source in provider}
    findings = [
        f"{source.path}:{line}: {name} is private"
        for source in sources
        for line, name in uses(source)
        if is_within(name, root) and _is_private(name)
    ]
    for found in imports(sources, names_of(provider)):
        offered = exports.get(found.target)
        whole = f"{found.target}.{found.name}" if found.name else found.target
        if found.root != root:
            continue
        if _is_private(whole):
            findings.append(f"{found.place}: {whole} is private")
        elif found.name == "*":
            findings.append(f"{found.place}: * hides the names that it imports from {found.target}")
        elif found.name and offered is not None and found.name not in offered:
            findings.append(f"{found.place}: {found.name} is not in __all__ of {found.target}")
    return sorted(set(findings))


def _is_private(dotted: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in dotted.split("."))


def decisions_taken(
    sources: Sequence[SourceFile], provider: Sequence[SourceFile], package: str, may_name: frozenset[str], exempt: str
) -> list[str]:
    """Find imports of names of ``package`` that are not permitted, even if another module re-exports the name.

    Ignore importers in ``exempt``.
    """
    modules, by_name = names_of(provider), {source.module: source for source in provider}
    findings = []
    for found in imports(sources, modules):
        module, name = _defined_in(found.target, found.name, by_name)
        if not is_within(found.importer, exempt) and is_within(module, package) and name not in may_name:
            what = f"{module}.{name}" if name else module
            findings.append(f"{found.place}: the driver decides nothing, so it has no use for {what}")
    return findings


def _defined_in(module: str, name: str | None, by_name: Mapping[str, SourceFile]) -> tuple[str, str | None]:
    """Follow re-exports to the module that defines the name, or to the module that the name denotes."""
    source = by_name.get(module)
    for node in source.tree.body if source is not None and name is not None else ():
        if isinstance(node, ast.ImportFrom) and source is not None:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    base = origin(source, node)
                    whole = f"{base}.{alias.name}"
                    return (whole, None) if whole in by_name else _defined_in(base, alias.name, by_name)
    return module, name


def undeclared_imports(
    sources: Sequence[SourceFile],
    declared: frozenset[str],
    extras: Mapping[str, frozenset[str]],
    excused: Iterable[tuple[str, str]],
) -> list[str]:
    """Find imports of distributions that the pyproject does not declare.

    Args:
        declared: import names of the dependencies.
        extras: import names of an extra, by the package that may use it.
        excused: importing module and import name of intended exceptions.
    """
    excused = set(excused)
    own = sources[0].root
    return [
        f"{found.place}: {found.root} is no declared dependency of {own}"
        for found in imports(sources)
        if not is_standard(found.target)
        and found.root != own
        and found.root not in declared
        and (found.importer, found.root) not in excused
        and not any(is_within(found.importer, package) and found.root in names for package, names in extras.items())
    ]


def unused_dependencies(sources: Sequence[SourceFile], declared: frozenset[str], excused: Iterable[str]) -> list[str]:
    """Find dependencies that no source imports, except excused ones."""
    needless = declared - {found.root for found in imports(sources)} - set(excused)
    return [f"{sources[0].root}: declares {name} and never imports it" for name in sorted(needless)]


def requirement_names(requirements: Iterable[str], imported_as: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the import names of requirements.

    Args:
        imported_as: import names that differ from the distribution's name by more than hyphens.
    """
    matches = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    names = (match[0].lower().replace("-", "_") for match in matches if match)
    return frozenset((imported_as or {}).get(name, name) for name in names)


def mentions(sources: Sequence[SourceFile], word: str) -> list[str]:
    """Find string constants that contain the word."""
    return [
        f"{source.path}:{node.lineno}: mentions {word}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and word in node.value
    ]
