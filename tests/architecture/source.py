"""Modules in the form that the architecture rules check: the parsed text with every branch and function."""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Parsed module; ``module`` is its dotted name and ``path`` appears in findings."""

    module: str
    path: str
    text: str
    tree: ast.Module
    is_package: bool

    @property
    def root(self) -> str:
        """Import package of the module."""
        return self.module.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Import:
    """One import: of the module ``target``, or of ``name`` from it."""

    path: str
    line: int
    importer: str
    target: str
    name: str | None

    @property
    def root(self) -> str:
        """Imported package."""
        return self.target.partition(".")[0]

    @property
    def place(self) -> str:
        """Location of the import in findings."""
        return f"{self.path}:{self.line}"


def parse(module: str, text: str, *, path: str | None = None, is_package: bool = False) -> SourceFile:
    """Parse the file, and return the module that the rules check."""
    return SourceFile(module, path or f"{module}.py", text, ast.parse(text), is_package)


def read_package(folder: Path, root: Path) -> list[SourceFile]:
    """Return every module below ``folder``, with paths relative to ``root``."""
    with collector_paused():
        return [read_module(file, folder, root) for file in sorted(folder.rglob("*.py"))]


def read_module(file: Path, folder: Path, root: Path) -> SourceFile:
    """Return one module below ``folder``, with its path relative to ``root``."""
    path = file.relative_to(root).as_posix()
    text = file.read_text(encoding="utf-8")
    return parse(module_name(file, folder), text, path=path, is_package=file.stem == "__init__")


def module_name(file: Path, folder: Path) -> str:
    """Return the dotted name of a module below ``folder``."""
    parts = file.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector, which would search many new objects without finding garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def names_of(sources: Iterable[SourceFile]) -> frozenset[str]:
    """Return the dotted names of all modules."""
    return frozenset(source.module for source in sources)


def is_within(module: str, package: str) -> bool:
    """Return whether ``module`` is ``package`` or is below it."""
    return module == package or module.startswith(f"{package}.")


def is_standard(module: str) -> bool:
    """Return whether the module belongs to the standard library."""
    return module.partition(".")[0] in sys.stdlib_module_names


def imports(sources: Iterable[SourceFile], modules: frozenset[str] = frozenset()) -> Iterator[Import]:
    """Yield all imports; ``from package import module`` is an import of the module if ``modules`` has its name."""
    for source in sources:
        for node in _import_statements(source):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(source.path, node.lineno, source.module, alias.name, None)
            else:
                base = origin(source, node)
                for alias in node.names:
                    whole = f"{base}.{alias.name}"
                    target, name = (whole, None) if whole in modules else (base, alias.name)
                    yield Import(source.path, node.lineno, source.module, target, name)


@cache
def _import_statements(source: SourceFile) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(source.tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def origin(source: SourceFile, node: ast.ImportFrom) -> str:
    """Return the absolute name of the module that the statement imports from."""
    if not node.level:
        return node.module or ""
    package = source.module.split(".")
    kept = package[: len(package) - node.level + source.is_package]
    return ".".join([*kept, node.module] if node.module else kept)


def local_names(source: SourceFile) -> dict[str, str]:
    """Return the dotted name that each imported name of the module stands for."""
    meanings = {}
    for node in _import_statements(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                meanings[bound] = alias.name if alias.asname else bound
        else:
            for alias in node.names:
                meanings[alias.asname or alias.name] = f"{origin(source, node)}.{alias.name}"
    return meanings


def uses(source: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything that is read, or imported with ``from``, under any local name."""
    meanings = local_names(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            name = _dotted(node, meanings)
            if name is not None:
                yield node.lineno, name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, f"{origin(source, node)}.{alias.name}"


def _dotted(node: ast.expr, meanings: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return meanings.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, meanings)
        return None if base is None else f"{base}.{node.attr}"
    return None


def definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Yield all functions and classes with their qualified names, nested ones too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            yield f"{prefix}{node.name}", node
            yield from definitions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from definitions(node, prefix)


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of one scope, with those inside ``if`` and ``try``, without those of nested scopes."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from statements([*node.body, *node.orelse])
        if isinstance(node, ast.Try):
            yield from statements([line for handler in node.handlers for line in handler.body])


def exported(source: SourceFile) -> list[str] | None:
    """Return the module's ``__all__``, or None if it has none.

    Raises:
        ValueError: ``__all__`` is not a literal, so no tool can read it.
    """
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and is_all(node):
            return [str(name) for name in ast.literal_eval(node.value)]
    return None


def is_all(node: ast.Assign) -> bool:
    """Return whether the statement assigns ``__all__``."""
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
