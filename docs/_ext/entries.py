"""How the entries of the reference read: what autodoc makes of docstrings, signatures and base classes is put right here."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from enum import Enum
from typing import NewType, get_args

from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.transforms import SphinxTransform

from docs._ext.tables import RFC_NUMBER
from triclinium_core.checks import Duration
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy
from triclinium_core.testing.fakes.faults import CommandFault, Fault

FIELD_WITHOUT_WORDS = re.compile(r"Alias for field number \d+")
"""What Python says of a field of a named tuple that has no docstring."""

_MODULE = r"~?(?:\w+\.)*"
"""What may stand before a name in a signature."""

PRIVATE_TYPES = re.compile(rf": {_MODULE}(?:ClusterDriver|NodeServer)\b")
"""What no user has: a constructor that takes one is called by the package alone."""

ALIASES = {
    alias: re.compile(r" \| ".join(_MODULE + member.__name__ for member in get_args(union)))
    for alias, union in (
        ("Fault", Fault),
        ("CommandFault", CommandFault),
        ("AnyRetryStrategy", AnyRetryStrategy),
        ("Duration", Duration),
    )
}
"""Unions that have a name, as a signature writes them; the ones that contain others stand first."""

DEFAULT_LENGTH_MAX = 60
"""Characters of a default that a reader still takes in."""


def prepare_docstring(  # noqa: PLR0917  # what Sphinx passes
    app: Sphinx, kind: str, name: str, found: object, options: object, lines: list[str]
) -> None:
    """Take a docstring before napoleon reads it.

    The numbers of RFC 0058 go, for users are not to see them. An empty comment in front keeps napoleon from taking the
    words before a colon for a type.
    """
    lines[:] = [RFC_NUMBER.sub("", line) for line in lines]
    if isinstance(found, NewType):
        # Its own docstring is that of all new types.
        documented = ModuleAnalyzer.for_module(found.__module__).find_attr_docs()
        lines[:] = documented[("", found.__name__)]
    if FIELD_WITHOUT_WORDS.fullmatch(" ".join(lines).strip()):
        lines.clear()
    if lines and kind in {"attribute", "data", "property"}:
        lines[:0] = ["..", ""]


def prepare_signature(  # noqa: PLR0917  # what Sphinx passes
    app: Sphinx, kind: str, name: str, found: object, options: object, signature: str | None, returns: str | None
) -> tuple[str, str] | None:
    """Return what is shown between the name and the docstring; None for what autodoc has."""
    if signature is None:
        return None
    if isinstance(found, type) and (_is_made_by_others(found, signature) or _is_made_as_its_base(found)):
        return "", ""
    shown = returns or ""
    for alias, union in ALIASES.items():
        signature, shown = union.sub(alias, signature), union.sub(alias, shown)
    function = inspect.unwrap(found) if callable(found) else found
    if function is not found and inspect.isasyncgenfunction(function):
        shown = shown.replace("AsyncIterator[", "AbstractAsyncContextManager[")
    elif function is not found and inspect.isgeneratorfunction(function):
        shown = shown.replace("Iterator[", "AbstractContextManager[")
    return short_defaults(signature, found), shown


def prepare_bases(app: Sphinx, name: str, found: object, options: object, bases: list[object]) -> None:
    """Replace a private base class by those of its own bases that say something new."""
    for private in [base for base in bases if isinstance(base, type) and base.__name__.startswith("_")]:
        place = bases.index(private)
        others = [base for base in bases if isinstance(base, type) and base is not private]
        bases[place : place + 1] = [
            base for base in private.__bases__ if not any(issubclass(other, base) for other in others)
        ]


def _is_made_by_others(found: type, signature: str) -> bool:
    is_protocol = getattr(found, "_is_protocol", False)
    return is_protocol or issubclass(found, Enum) or PRIVATE_TYPES.search(signature) is not None


def _is_made_as_its_base(found: type) -> bool:
    return issubclass(found, BaseException) and "__init__" not in vars(found)


class WithoutObject(SphinxTransform):
    """Classes that inherit from nothing have no line that says so."""

    default_priority = 420

    def apply(self) -> None:
        """Remove the lines."""
        for content in self.document.findall(addnodes.desc_content):
            for line in [child for child in content if child.astext() == "Bases: object"]:
                content.remove(line)


def short_defaults(signature: str, found: object) -> str:
    """Return a signature whose defaults are Python, and none too long: a constant's name or an ellipsis stands instead."""
    signature = signature.replace("<factory>", "...")
    signature = re.sub(r"<[\w.]*?(\w+) object>", r"\1()", signature)
    # Members of enumerations inside of a default.
    signature = re.sub(r"<(\w+\.[A-Z_]+): [^<>]*>", r"\1", signature)
    try:
        (function,) = ast.parse(f"def function{signature}: ...").body
    except SyntaxError:
        return signature
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    arguments.defaults = [
        _short(argument, default, found)
        for argument, default in zip(
            positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
        )
    ]
    arguments.kw_defaults = [
        default and _short(argument, default, found)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return f"({ast.unparse(arguments)})"


def _short(argument: ast.arg, default: ast.expr, found: object) -> ast.expr:
    if len(ast.unparse(default)) <= DEFAULT_LENGTH_MAX or not callable(found):
        return default
    value = inspect.signature(found).parameters[argument.arg].default
    constants = vars(sys.modules[found.__module__])
    names = [name for name, constant in constants.items() if name.isupper() and constant is value]
    return ast.Name(names[0]) if names else ast.Constant(...)
