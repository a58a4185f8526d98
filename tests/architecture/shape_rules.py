"""Rules for the shape of files. Each takes parsed sources and returns findings of one line each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from tests.architecture.source import Definition, SourceFile, definitions, exported, imports, is_all, statements


def too_long(sources: Sequence[SourceFile], function_lines_max: int, excused: Iterable[str]) -> list[str]:
    """Find functions that are longer than the limit, and excuses that no function needs."""
    over: dict[str, str] = {}
    for source in sources:
        for name, node in definitions(source.tree):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > function_lines_max and not isinstance(node, ast.ClassDef):
                over[f"{source.path}:{name}"] = f"{lines} lines, more than {function_lines_max}"
    excused = set(excused)
    findings = [f"{place}: {length}" for place, length in over.items() if place not in excused]
    return findings + [f"{place}: is within the limit and needs no excuse" for place in sorted(excused - set(over))]


def long_files(sources: Sequence[SourceFile], file_lines_max: int) -> list[str]:
    """Find files that are longer than the limit."""
    return [
        f"{source.path}: {lines} lines, more than {file_lines_max}"
        for source in sources
        if (lines := len(source.text.splitlines())) > file_lines_max
    ]


def missing_docstrings(sources: Sequence[SourceFile]) -> list[str]:
    """Find modules, and public classes, functions and methods, without a docstring.

    A method needs no docstring if a Protocol of the package documents its name.
    """
    documented = {
        method
        for source in sources
        for _, node in definitions(source.tree)
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
        for method, words in _public_definitions(node)
        if ast.get_docstring(words)
    }
    findings = []
    for source in sources:
        if not ast.get_docstring(source.tree):
            findings.append(f"{source.path}:1: the module has no docstring")
        findings += [
            f"{source.path}:{node.lineno}: {name} has no docstring"
            for name, node in _public_definitions(source.tree)
            if not ast.get_docstring(node) and not ("." in name and node.name in documented)
        ]
    return findings


def _public_definitions(parent: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Yield definitions that a caller can use. Leave out overloads, setters, deleters and definitions in functions."""
    for node in statements(parent.body):
        if not isinstance(node, Definition) or node.name.startswith("_"):
            continue
        marks = {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}
        if marks & {"overload", "setter", "deleter"}:
            continue
        yield f"{prefix}{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from _public_definitions(node, f"{prefix}{node.name}.")


def untrue_exports(sources: Sequence[SourceFile]) -> list[str]:
    """Find an ``__all__`` that is unsorted, has duplicates or undefined names, or leaves out a public definition.

    A package that re-exports names must have one.
    """
    findings = []
    for source in sources:
        names = exported(source)
        defined, own = _bindings(source.tree)
        if names is None:
            if source.is_package and defined:
                findings.append(f"{source.path}: re-exports names and has no __all__")
            continue
        findings += [
            f"{source.path}: __all__ names {name}, which is not there" for name in names if name not in defined
        ]
        findings += [f"{source.path}: __all__ leaves out {name}" for name in sorted(own - set(names))]
        if names != sorted(set(names), key=export_order):
            findings.append(f"{source.path}: __all__ is not sorted, or repeats a name")
    return findings


def export_order(name: str) -> tuple[int, list[tuple[int, int, str]]]:
    """Return a sort key, the order of ruff's RUF022: constants, classes, the rest; numbers in them by value."""
    rank = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    parts = re.findall(r"\d+|\D+", name)
    return rank, [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _bindings(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Return the names that the module defines, imports or assigns, and its public functions and classes."""
    defined: set[str] = set()
    own: set[str] = set()
    for node in statements(tree.body):
        if isinstance(node, Definition):
            defined.add(node.name)
            own |= set() if node.name.startswith("_") else {node.name}
        elif isinstance(node, ast.Import):
            defined |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            defined |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return defined, own


def foreign_writes(sources: Sequence[SourceFile], owner: str) -> list[str]:
    """Find assignments, outside the module of a class, to attributes of its objects or to those attributes' values.

    An object of the class is recognised by the annotation of its parameter or variable, and by its name: that of the
    class in lower case.

    Args:
        owner: dotted name of the class.
    """
    module, _, name = owner.rpartition(".")
    if not any(source.module == module and name in dict(definitions(source.tree)) for source in sources):
        return [f"{owner}: there is no such class"]
    return [
        f"{source.path}:{node.lineno}: {ast.unparse(node)} is written outside of {name}"
        for source in sources
        if source.module != module and any((found.target, found.name) == (module, name) for found in imports([source]))
        for node in _writes_of(source.tree, name)
    ]


def _writes_of(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    """Yield the assigned and deleted attributes of objects of a class."""
    objects = {name.lower()}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            target = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
            if re.fullmatch(rf"{name}( \| None)?", ast.unparse(node.annotation)):
                objects.add(target)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
            continue
        root: ast.expr = node
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if isinstance(root, ast.Name) and root.id in objects:
            yield node


def packages_with_code(sources: Sequence[SourceFile], excused: Iterable[str]) -> list[str]:
    """Find an ``__init__`` that has more than a docstring, imports and ``__all__``."""
    excused = set(excused)
    return [
        f"{source.path}:{node.lineno}: a package's own file only re-exports"
        for source in sources
        if source.is_package and source.module not in excused
        for node in source.tree.body
        if not _is_reexport(node)
    ]


def _is_reexport(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Assign) and is_all(node))


def wordless_tests(sources: Sequence[SourceFile]) -> list[str]:
    """Find tests without a docstring that is one paragraph and ends like a sentence."""
    return [
        f"{source.path}:{node.lineno}: {name} needs a docstring of one sentence"
        for source in sources
        for name, node in definitions(source.tree)
        if node.name.startswith("test_")
        and not isinstance(node, ast.ClassDef)
        and (not (words := ast.get_docstring(node) or "").endswith((".", "?", "!")) or "\n\n" in words)
    ]


def long_test_names(sources: Sequence[SourceFile], words_max: int) -> list[str]:
    """Find tests whose names have too many words; the docstring has the details."""
    return [
        f"{source.path}:{node.lineno}: {node.name} has more than {words_max} words"
        for source in sources
        for _, node in definitions(source.tree)
        if node.name.startswith("test_") and len(node.name.split("_")) - 1 > words_max
    ]


def words_in(sources: Sequence[SourceFile], words: Sequence[str]) -> list[str]:
    """Find lines that have one of ``words``, or its plural in s, with no letter beside it, in any case."""
    pattern = re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, words))})s?(?![a-z])", re.IGNORECASE)
    return [
        f"{source.path}:{number}: has {found[0]!r}"
        for source in sources
        for number, line in enumerate(source.text.splitlines(), 1)
        if (found := pattern.search(line))
    ]
