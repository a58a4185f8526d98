"""What is put right of autodoc's docstrings, signatures and base classes."""

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

from docs._ext.entries import WithoutObject, prepare_bases, prepare_docstring, prepare_signature, short_defaults
from tests.docs.pages import ROOT
from tests.rows import rows
from triclinium import errors
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
    """Yield the strings that stand below the names of a module, and of its classes."""
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
    """Return what napoleon makes of a docstring."""
    lines = docstring.splitlines()
    prepare_docstring(APP, kind, "name", None, None, lines)
    return str(GoogleDocstring(lines, CONFIG, what=kind, name="name"))


@rows("kind", ["attribute", "data", "property"])
@rows("words", ["The node: its faults.", "False: nothing is sent.", "One line.", "One.\n\nTwo: 2."])
def test_keeps_the_words_before_a_colon(kind: Kind, words: str) -> None:
    """They are no type."""
    assert f"..\n\n{words}" == as_shown(kind, words)


def test_keeps_the_words_of_every_attribute() -> None:
    """No docstring below an attribute loses a line or becomes a field."""
    docstrings = [docstring for path in SOURCES for docstring in attribute_docstrings(path)]

    assert len(docstrings) > 100
    assert [] == [text for text in docstrings if ":type:" in as_shown("attribute", text)]


def test_hides_the_numbers_of_the_rfc() -> None:
    """Users are not to see them."""
    assert "The bucket does not exist." == as_shown("exception", "The bucket does not exist (RFC 0058, 10).")


def test_says_what_a_new_type_is() -> None:
    """Not what new types are."""
    lines = ["NewType creates simple unique types."]
    prepare_docstring(APP, "class", "triclinium.Cas", Cas, None, lines)

    assert lines[0].startswith("Version of a document")


def test_says_nothing_of_a_field_that_has_no_words() -> None:
    """Its position is no help."""
    lines = ["Alias for field number 1", ""]
    prepare_docstring(APP, "attribute", "name", None, None, lines)

    assert [] == lines


@dataclass
class Sample:
    """A class with long and odd defaults."""

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
def test_writes_defaults_as_python(signature: str, expected: str) -> None:
    """Or leaves a signature alone."""
    assert expected == short_defaults(signature, Sample)


def test_names_a_constant_instead_of_its_value() -> None:
    """And shows an ellipsis where a long value has no name."""
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
def lend_thing() -> Iterator[int]:
    """Lend it."""
    yield 1


@pytest.mark.parametrize(
    ("found", "returns", "expected"),
    [
        (open_thing, "AsyncIterator[int]", "AbstractAsyncContextManager[int]"),
        (lend_thing, "Iterator[int]", "AbstractContextManager[int]"),
        (attribute_docstrings, "Iterator[str]", "Iterator[str]"),
        (print, "None", "None"),
    ],
)
def test_says_what_is_a_context_manager(found: object, returns: str, expected: str) -> None:
    """Its decorator is not seen in its annotation."""
    assert ("()", expected) == prepare_signature(APP, "function", "name", found, None, "()", returns)


def test_calls_a_union_by_its_name() -> None:
    """Where it has one, with and without modules, as a part of a larger type too."""
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
def test_hides_how_users_do_not_make_things(signature: str) -> None:
    """A constructor that takes what they do not have."""
    assert ("", "") == prepare_signature(APP, "class", "name", Sample, None, signature, "")


def test_leaves_attributes_alone() -> None:
    """They have no signature."""
    assert prepare_signature(APP, "attribute", "name", 1, None, None, None) is None


def test_shows_what_stands_behind_a_private_base() -> None:
    """And nothing that another base is as well."""
    bases: list[object] = list(errors.AmbiguousTooSlowError.__bases__)
    prepare_bases(APP, "name", errors.AmbiguousTooSlowError, None, bases)

    assert [errors.AmbiguousTimeoutException, "TooSlowError"] == [bases[0], getattr(bases[1], "__name__", "")]
    assert 2 == len(bases)


def test_that_a_class_inherits_from_nothing_is_not_said() -> None:
    """Other base classes are."""
    document = new_document("page")
    content = addnodes.desc_content()
    content += [nodes.paragraph("", text) for text in ("Bases: object", "What it is.", "Bases: CouchbaseException")]
    document += content
    WithoutObject(document).apply()

    assert ["What it is.", "Bases: CouchbaseException"] == [line.astext() for line in content]
