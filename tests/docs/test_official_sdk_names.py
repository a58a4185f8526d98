"""The tables for users of the official client name what triclinium has: each line runs, each name is looked up."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
import pytest
import trio

import triclinium
from tests.docs.pages import DOCS
from tests.public_names import PUBLIC
from tests.rows import rows
from triclinium.query import QueryResult
from triclinium.subdocument import LookupInSpec
from triclinium.testing import FakeAnswer, open_fake_cluster
from triclinium_core.kv.topology.connection_string import parse_connection_string

pytestmark = pytest.mark.native

PAGE = DOCS / "howto" / "from_the_official_sdk.md"
LINES = "Common lines"

HANDLES = tuple(PUBLIC[name] for name in ("Cluster", "Bucket", "Scope", "Collection", "BinaryCollection"))
OWNERS: Mapping[str, tuple[type, ...]] = {
    "Cluster, bucket and scope": HANDLES,
    "Documents": (PUBLIC["Collection"],),
    "Results": (PUBLIC["GetResult"],),
    "Exceptions": (PUBLIC["CouchbaseException"], PUBLIC["QueryIndexManager"]),
    "Options of the cluster": (PUBLIC["TimeoutOptions"],),
    "Options of operations": HANDLES,
}
"""Classes whose attributes a section names without the class."""
VALUES: Mapping[str, object] = {
    "triclinium": triclinium,
    "trio": trio,
    "timedelta": timedelta,
    "datetime": datetime,
    "T": dict,
    **dict.fromkeys(("cert_path", "key_path", "username", "password", "token", "i")),
}
"""Values of names that are neither public nor in a section's classes."""
TERMS = {"_default", "triclinium.*", "CASMismatchException"}
"""Code that names a collection, loggers, and an official spelling."""
TAKES_OPTIONS = (
    *(function for owner in HANDLES for _, function in inspect.getmembers(owner, inspect.isfunction)),
    *(PUBLIC[name] for name in ("open_cluster", "SearchRequest", "VectorSearch", "PasswordAuthenticator")),
)
PARAMETERS = {name for taker in TAKES_OPTIONS for name in inspect.signature(taker).parameters}
"""Options of the client and its operations."""


@dataclass(frozen=True)
class Instance:
    """Some object of a class, which is not the class and cannot be called."""

    kind: object


class Row(typing.NamedTuple):
    """Row of a table with its section and the code that is ours."""

    section: str
    ours: tuple[str, ...]
    note: str


def code_of(cell: str) -> tuple[str, ...]:
    """Return the code of a cell, without links."""
    return tuple(re.findall(r"(?<!\})`([^`]+)`", cell))


def table_rows() -> Iterator[Row]:
    """Yield the rows of all tables; what is the same in both clients is ours, too."""
    section = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            section = line.strip("# ")
        if line.startswith("| ") and not line.endswith("| here |"):
            *_, there, here = (cell.strip() for cell in line.strip("|").split("|"))
            same = code_of(there) if here.startswith("the same") and section not in {LINES, "Units"} else ()
            yield Row(section, (*same, *code_of(here)), here)


ROWS = list(table_rows())
RUN = [code for row in ROWS if row.section == LINES for code in row.ours]


def member(owner: object, name: str) -> object:
    """Return an attribute: for a property, an instance of its type; for a field, the annotation.

    Raises:
        LookupError: the object has no such attribute.
    """
    if isinstance(owner, Instance):
        owner = owner.kind
    found = inspect.getattr_static(owner, name, None)
    if isinstance(found, property):
        kind = typing.get_type_hints(found.fget)["return"]
        return Instance(typing.get_origin(kind) or kind)
    if hasattr(owner, name):
        return getattr(owner, name)
    for base in owner.__mro__ if isinstance(owner, type) else ():
        if name in inspect.get_annotations(base):
            return inspect.get_annotations(base)[name]
    raise LookupError(f"{owner!r} has no {name}")


def resolve(node: ast.expr, owners: tuple[type, ...]) -> object:
    """Return the object of an expression; check the arguments of calls.

    Raises:
        LookupError: there is no such name or attribute.
        TypeError: what is called is no function or class, or does not take these arguments.
    """
    if isinstance(node, ast.Attribute):
        return member(resolve(node.value, owners), node.attr)
    if isinstance(node, ast.Call):
        called = resolve(node.func, owners)
        if not (inspect.isroutine(called) or inspect.isclass(called)):
            raise TypeError(f"{ast.unparse(node.func)} is not callable")
        is_unbound = inspect.isfunction(called) and "." in called.__qualname__
        values = [each for each in node.args if ast.unparse(each) != "..."]
        given = [*([None] if is_unbound else []), *(resolve(each, owners) for each in values)]
        named = {each.arg or "": resolve(each.value, owners) for each in node.keywords}
        inspect.signature(called).bind_partial(*given, **named)
        return called
    if isinstance(node, ast.Name):
        return Instance(QueryResult) if node.id == "result" else value_of(node.id, owners)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            resolve(child, owners)
    return None


def value_of(name: str, owners: tuple[type, ...]) -> object:
    """Return what a name stands for in a section.

    Raises:
        LookupError: there is no such name.
    """
    for known in (VALUES, PUBLIC, vars(builtins)):
        if name in known:
            return known[name]
    for owner in owners:
        try:
            return member(owner, name)
        except LookupError:
            continue
    if name in PARAMETERS:
        return name
    raise LookupError(f"{name} is neither public, nor in {owners}, nor an option")


def look_up(code: str, section: str) -> None:
    """Look up all names of one piece of code.

    Raises:
        LookupError: there is no such name or attribute.
        TypeError: what is called is no function or class, or does not take these arguments.
        InvalidArgumentException: there is no such scheme or option of a connection string.
        AssertionError: no call has such an option, or the option of a connection string has another value.
    """
    owners = OWNERS.get(section, ())
    if code in TERMS:
        return
    if code.endswith("://"):
        parse_connection_string(f"{code}host")
    elif code.startswith("async for"):
        (loop,) = ast.parse(f"async def look(): \n {code}: pass").body[0].body  # type: ignore[attr-defined]
        member(resolve(loop.iter, owners), "__aiter__")
    elif assigned := re.fullmatch(r"(\w+)=(.*)", code):
        option, value = assigned.groups()
        if section == "Units":
            assert parse_connection_string(f"couchbase://host?{code}").options[option] == value
        else:
            assert option in PARAMETERS, option
            resolve(ast.parse(value.replace("…", "...") or "None", mode="eval").body, owners)
    else:
        resolve(ast.parse(code.replace("…", "..."), mode="eval").body, owners)


def kind_of(code: str, section: str) -> object:
    """Return the outermost attribute of a class that code reads, unevaluated: ``binary`` of ``binary.append``."""
    names = re.findall(r"\w+", code)
    owners = (PUBLIC[names.pop(0)],) if names[0] in PUBLIC else OWNERS.get(section, ())
    return next(
        (found for owner in owners if (found := inspect.getattr_static(owner, names[0], None)) is not None), None
    )


@rows("row", [row for row in ROWS if row.section != LINES])
def test_every_name_of_a_row_exists(row: Row) -> None:
    """Every name in a row exists, and every callable in it takes the arguments of its call."""
    for code in row.ours:
        look_up(code, row.section)


@rows("row", [row for row in ROWS if row.section != LINES])
def test_kinds_of_attributes_are_true(row: Row) -> None:
    """If a row mentions a property, a method or an attribute, the names in it are of that kind."""
    for code in row.ours:
        kind = kind_of(code, row.section) if re.search(r"\b(propert|methods? that|an attribute)", row.note) else None
        if "propert" in row.note:
            assert isinstance(kind, property), code
        elif "method" in row.note and kind is not None:
            assert inspect.isfunction(kind), code
        elif kind is not None:
            assert not inspect.isroutine(kind), code


@rows(
    ("code", "section"),
    [
        ("Cluster.nothing", "Cluster, bucket and scope"),
        ("nothing", "Documents"),
        ("binary().append", "Documents"),
        ("nothing=", "Options of the cluster"),
        ("PasswordAuthenticator(nothing=1)", "Authenticators and transcoders"),
        ("NothingException", "Exceptions"),
    ],
)
def test_a_wrong_name_is_found(code: str, section: str) -> None:
    """A name, an attribute, an option or an argument that does not exist raises, and so does the call of a property."""
    with pytest.raises((LookupError, TypeError, AssertionError)):
        look_up(code, section)


class Person(msgspec.Struct):
    """Document of the table's lines."""

    name: str


def test_the_lines_are_complete() -> None:
    """The first table has at most two fewer pieces of code to run than lines."""
    assert len(RUN) >= len([row for row in ROWS if row.section == LINES]) - 2


@pytest.mark.parametrize("code", RUN)
async def test_a_common_line_runs(code: str, autojump_clock: trio.testing.MockClock) -> None:
    """Every line of the first table runs against a cluster."""
    block = re.sub(r": (?=async )", ":\n    ", code) + ("\n" + " " * 8 + "pass" if code.endswith(":") else "")
    program = "async def run():\n" + textwrap.indent(block, " " * 4)

    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        fake.nodes.script.answer("… $n", FakeAnswer(rows=[1]))
        people = cluster.bucket("default").default_collection()
        await people.upsert("k", {"name": "Ada", "a": "x", "b": 1})
        await people.upsert("counter", 1)
        found = await people.lookup_in("k", [LookupInSpec.get("a")])
        names = {
            **PUBLIC,
            "triclinium": triclinium,
            "timedelta": timedelta,
            "Person": Person,
            "open_cluster": functools.partial(triclinium.open_cluster, connector=fake.connector),
            "cluster": cluster,
            "people": people,
            "result": found,
            "u": "Administrator",
            "p": "password",
            "k": "counter" if "increment" in code else "k",
            "v": 1,
            "keys": ["k"],
            "items": {"k": 1},
        }
        exec(program, names)  # noqa: S102  # the page's own lines
        await names["run"]()
