"""Corrections of what autodoc shows in the reference: docstrings, signatures and base classes."""

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
"""Pattern of the docstring that Python gives to a field of a named tuple if the field has none."""

_MODULE = r"~?(?:\w+\.)*"
"""Pattern of the optional module before a name in a signature."""

PRIVATE_TYPES = re.compile(rf": {_MODULE}(?:ClusterDriver|NodeServer)\b")
"""Pattern of a parameter with a private type. Only the package calls a constructor that has one."""

ALIASES = {
    alias: re.compile(r" \| ".join(_MODULE + member.__name__ for member in get_args(union)))
    for alias, union in (
        ("Fault", Fault),
        ("CommandFault", CommandFault),
        ("AnyRetryStrategy", AnyRetryStrategy),
        ("Duration", Duration),
    )
}
"""Pattern of each union as signatures spell it out, by alias; a union that contains another union precedes it."""

DEFAULT_LENGTH_MAX = 60
"""Maximum number of characters of a default value that a signature shows."""


def prepare_docstring(  # noqa: PLR0917  # signature of Sphinx
    app: Sphinx, kind: str, name: str, found: object, options: object, lines: list[str]
) -> None:
    """Prepare a docstring for napoleon.

    Remove the numbers of RFC 0058, which users must not see. An empty comment at the start prevents napoleon from
    parsing the words before a colon as a type.
    """
    lines[:] = [RFC_NUMBER.sub("", line) for line in lines]
    if isinstance(found, NewType):
        # A ``NewType`` has the docstring of its class, so show the one below the assignment.
        documented = ModuleAnalyzer.for_module(found.__module__).find_attr_docs()
        lines[:] = documented[("", found.__name__)]
    if FIELD_WITHOUT_WORDS.fullmatch(" ".join(lines).strip()):
        lines.clear()
    if lines and kind in {"attribute", "data", "property"}:
        lines[:0] = ["..", ""]


def prepare_signature(  # noqa: PLR0917  # signature of Sphinx
    app: Sphinx, kind: str, name: str, found: object, options: object, signature: str | None, returns: str | None
) -> tuple[str, str] | None:
    """Return the signature and the return annotation to show, or None to keep those of autodoc.

    Both are empty for a class that users do not create, and for an exception that inherits its constructor.
    """
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


def keep_member(  # noqa: PLR0917  # signature of Sphinx
    app: Sphinx, kind: str, name: str, found: object, is_skipped: bool, options: object
) -> bool | None:
    """Return False for a member of an enumeration, which needs no docstring to be shown, else None for the default."""
    return False if isinstance(found, Enum) and found.name == name else None


def prepare_bases(app: Sphinx, name: str, found: object, options: object, bases: list[object]) -> None:
    """Replace a private base class with its own bases, except those that another base class already inherits."""
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
    """Transform that removes the line "Bases: object" from classes without a base."""

    default_priority = 420

    def apply(self) -> None:
        """Remove every line "Bases: object"."""
        for content in self.document.findall(addnodes.desc_content):
            for line in [child for child in content if child.astext() == "Bases: object"]:
                content.remove(line)


def short_defaults(signature: str, found: object) -> str:
    """Return a signature with short defaults in Python syntax: a long default becomes a name or an ellipsis."""
    signature = signature.replace("<factory>", "...")
    signature = re.sub(r"<[\w.]*?(\w+) object>", r"\1()", signature)
    # Python shows an enumeration's member as ``<Kind.NAME: value>``; keep only ``Kind.NAME``.
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
