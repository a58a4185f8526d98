"""Rule for decoders of JSON: the nesting of each text is checked before it is decoded."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from tests.architecture.source import SourceFile, definitions

DECODING = frozenset({"msgspec.json.decode", "json.loads", "json.load"})
"""Functions that decode JSON. Code must not import them alone, so that this rule finds each call."""
DECODER = "msgspec.json.Decoder"
CHECKS = frozenset({"bounded", "shallow", "shallow_text"})
"""Functions of ``triclinium_core.json_depth``."""
MODULES = frozenset({"json", "msgspec", "msgspec.json"})
"""Modules that code must import by these names."""


def unchecked_decoding(sources: Sequence[SourceFile], excused: Collection[tuple[str, str]]) -> list[str]:
    """Find JSON decoding without a check of the nesting, imports that could hide it, and excuses without a use.

    Args:
        sources: modules to examine.
        excused: module and function of each permitted call.
    """
    found: dict[tuple[str, str], list[str]] = {}
    findings = []
    for source in sources:
        if not any(module in source.text for module in MODULES):
            continue
        findings += [f"{source.path}:{line}: import the module of {name} instead" for line, name in _aliases(source)]
        for call in _decoding(source.tree):
            if not _is_checked(call):
                place = source.module, _function(source, call.lineno)
                found.setdefault(place, []).append(f"{source.path}:{call.lineno}: the text has not passed shallow()")
    findings += [each for place, lines in found.items() if place not in excused for each in lines]
    return findings + [f"{module}: {name} needs no excuse" for module, name in sorted(set(excused) - set(found))]


def _is_checked(call: ast.Call) -> bool:
    """Return whether the text is the result of a check. ``json.loads`` detects the encoding of bytes, so it needs text."""
    text = call.args[0] if call.args else None
    if not (isinstance(text, ast.Call) and isinstance(text.func, ast.Name) and text.func.id in CHECKS):
        return False
    return text.func.id == "shallow_text" or not ast.unparse(call.func).startswith("json.")


def _aliases(source: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield lines and names of imports that could hide a call of a decoder, and of uses of ``json.JSONDecoder``."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (
                (node.lineno, name)
                for name in names
                if name in {*DECODING, DECODER, "msgspec.json", "json.JSONDecoder"}
            )
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name) for each in node.names if each.asname and each.name in MODULES)
        if isinstance(node, ast.Attribute) and node.attr == "JSONDecoder" and ast.unparse(node.value) == "json":
            yield node.lineno, "json.JSONDecoder"


def _decoding(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that decode JSON: those of functions, of a decoder's methods, and of a method by another name."""
    decoders = {name for node in ast.walk(tree) for name in _decoder_names(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        receiver = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else called
        is_method = not isinstance(node.func, ast.Attribute) or node.func.attr in {"decode", "decode_lines"}
        if called in DECODING or (is_method and (receiver in decoders or receiver.startswith(f"{DECODER}("))):
            yield node


def _decoder_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement or a parameter binds to a decoder, or to its method."""
    if isinstance(node, ast.arg) and node.annotation is not None and DECODER in ast.unparse(node.annotation):
        yield node.arg
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and DECODER in ast.unparse(node.value):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (ast.unparse(target) for target in targets)


def _function(source: SourceFile, line: int) -> str:
    """Return the name of the innermost function around a line; empty outside of functions."""
    around = [
        (node.lineno, name)
        for name, node in definitions(source.tree)
        if not isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, default=(0, ""))[1]
