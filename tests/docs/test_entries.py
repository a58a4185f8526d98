"""Corrections to autodoc's docstrings, signatures and base classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
from docutils import nodes  # type: ignore[import-untyped]
from docutils.utils import new_document  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.ext import napoleon
from sphinx.ext.napoleon.docstring import GoogleDocstring

from docs._ext.entries import (
    WithoutObject,
    keep_member,
    prepare_bases,
    prepare_docstring,
    prepare_signature,
    short_defaults,
)
from tests.docs.pages import ROOT
from tests.rows import rows
from triclinium import Service, errors
from triclinium.testing import FakeNodeOptions
from triclinium_core.kv.operation.results import Cas

pytestmark = pytest.mark.native

APP = cast("Sphinx", SimpleNamespace())
CONFIG = cast("Config", napoleon.Config())
SOURCES = sorted(
    path
    for folder in ("core/triclinium_core", "trio_client/triclinium")
    for path in (ROOT / folder).rglob("*.py")
    if "_cli" not in path.parts
)


def attribute_docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of the attributes of a module and its classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents: list[ast.Module | ast.ClassDef] = [tree]
    parents += [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for parent in parents:
        for pair in pairwise(parent.body):
            match pair:
                case (ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(docstring)))):
                    yield docstring


Kind = Literal["attribute", "data", "exception", "property"]


def as_shown(kind: Kind, docstring: str) -> str:
    """Return a docstring after processing by napoleon."""
    lines = docstring.splitlines()
    prepare_docstring(APP, kind, "name", None, None, lines)
    return str(GoogleDocstring(lines, CONFIG, what=kind, name="name"))


@rows("kind", ["attribute", "data", "property"])
@rows("words", ["The node: its faults.", "False: nothing is sent.", "One line.", "One.\n\nTwo: 2."])
def test_words_before_a_colon_are_kept(kind: Kind, words: str) -> None:
    """The words before a colon are not parsed as a type."""
    assert f"..\n\n{words}" == as_shown(kind, words)


def test_every_attribute_docstring_is_kept() -> None:
    """No docstring of an attribute is parsed as a type."""
    docstrings = [docstring for path in SOURCES for docstring in attribute_docstrings(path)]

    assert len(docstrings) > 100
    assert [] == [text for text in docstrings if ":type:" in as_shown("attribute", text)]


def test_rfc_numbers_are_hidden() -> None:
    """RFC numbers of exceptions are hidden from users."""
    assert "The bucket does not exist." == as_shown("exception", "The bucket does not exist (RFC 0058, 10).")


def test_a_new_type_has_its_own_docstring() -> None:
    """A new type has its own description, not that of NewType."""
    lines = ["NewType creates simple unique types."]
    prepare_docstring(APP, "class", "triclinium.Cas", Cas, None, lines)

    assert lines[0].startswith("Version of a document")


def test_undocumented_fields_have_no_text() -> None:
    """Python's default docstring of a named tuple field is removed."""
    lines = ["Alias for field number 1", ""]
    prepare_docstring(APP, "attribute", "name", None, None, lines)

    assert [] == lines


@dataclass
class Sample:
    """Class with long and unusual defaults."""

    options: FakeNodeOptions
    names: tuple[str, ...] = field(default_factory=tuple)


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("(a: int, /, b=1, *c, d: str='x', **e)", "(a: int, /, b=1, *c, d: str='x', **e)"),
        ("(a: ~x.Y = <factory>, *, b=<x.y.Json object>)", "(a: ~x.Y=..., *, b=Json())"),
        ("(a: Y = Y(b=<Colour.RED: 'red'>))", "(a: Y=Y(b=Colour.RED))"),
        ("(a=<no Python>)", "(a=<no Python>)"),
    ],
)
def test_defaults_are_shown_as_python(signature: str, expected: str) -> None:
    """Defaults are shown as Python code; a signature that is not Python is left unchanged."""
    assert expected == short_defaults(signature, Sample)


def test_a_constant_is_shown_by_name() -> None:
    """A long default is shown as the name of its constant, or as an ellipsis if it has no name."""
    features, rows = (f"({', '.join(map(str, range(99)))})" for _ in range(2))

    shown = short_defaults(f"(*, port=1, features={features}, error_map={rows})", FakeNodeOptions)
    without_a_name = short_defaults(f"(*, collections={rows})", FakeNodeOptions)

    assert "(*, port=1, features=IMPLEMENTED_FEATURES, error_map=ERROR_MAP)" == shown
    assert "(*, collections=...)" == without_a_name


@asynccontextmanager
async def open_thing() -> Any:
    """Open it."""
    yield 1


@contextmanager
def acquire_thing() -> Iterator[int]:
    """Acquire it."""
    yield 1


@pytest.mark.parametrize(
    ("found", "returns", "expected"),
    [
        (open_thing, "AsyncIterator[int]", "AbstractAsyncContextManager[int]"),
        (acquire_thing, "Iterator[int]", "AbstractContextManager[int]"),
        (attribute_docstrings, "Iterator[str]", "Iterator[str]"),
        (print, "None", "None"),
    ],
)
def test_context_managers_have_their_type(found: object, returns: str, expected: str) -> None:
    """A decorated generator is shown as returning a context manager; the types of other functions are unchanged."""
    assert ("()", expected) == prepare_signature(APP, "function", "name", found, None, "()", returns)


def test_a_union_is_shown_by_name() -> None:
    """A named union is shown by its name, with and without modules, and as part of a larger type."""
    faults = "AnswerStatus | AnswerNotMyVbucket | ~a.b.HangUpBeforeApplying | DropResponse | Delay | "
    faults += "HangUpAfterApplying | HangUpMidReply | Garble | WrongLength"
    signature = f"(fault: {faults} | None, strategy: a.RetryStrategy | AsyncRetryStrategy | None = None)"
    shown = prepare_signature(APP, "function", "name", print, None, signature, f"{faults} | RefuseConnection")

    expected = "(fault: CommandFault | None, strategy: AnyRetryStrategy | None=None)", "CommandFault | RefuseConnection"

    assert expected == shown


@pytest.mark.parametrize(
    "signature",
    ["(driver: ClusterDriver)", "(driver: ~triclinium._cluster_driver.cluster_driver.ClusterDriver, name: str)"],
)
def test_internal_constructors_are_hidden(signature: str) -> None:
    """A constructor that takes internal types is hidden."""
    assert ("", "") == prepare_signature(APP, "class", "name", Sample, None, signature, "")


def test_attributes_have_no_signature() -> None:
    """An attribute has no signature, so nothing is returned."""
    assert prepare_signature(APP, "attribute", "name", 1, None, None, None) is None


def test_a_private_base_is_replaced() -> None:
    """A private base class is replaced by its own bases, without those that other bases imply."""
    bases: list[object] = list(errors.AmbiguousTooSlowError.__bases__)
    prepare_bases(APP, "name", errors.AmbiguousTooSlowError, None, bases)

    assert [errors.AmbiguousTimeoutException, "TooSlowError"] == [bases[0], getattr(bases[1], "__name__", "")]
    assert 2 == len(bases)


def test_the_base_object_is_hidden() -> None:
    """The line for the base class object is removed, and other base classes stay."""
    document = new_document("page")
    content = addnodes.desc_content()
    content += [nodes.paragraph("", text) for text in ("Bases: object", "What it is.", "Bases: CouchbaseException")]
    document += content
    WithoutObject(document).apply()

    assert ["What it is.", "Bases: CouchbaseException"] == [line.astext() for line in content]


def test_members_of_enumerations_are_kept() -> None:
    """A member of an enumeration keeps its entry without a docstring; autodoc decides about other attributes."""
    member = Service.QUERY

    assert keep_member(APP, "class", "QUERY", member, True, None) is False
    assert keep_member(APP, "class", "service", member, True, None) is None
    assert keep_member(APP, "class", "QUERY", "query", True, None) is None
