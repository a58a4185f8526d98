"""The page for users of the official client covers its methods, specifications, exceptions and options."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import couchbase
import pytest
from couchbase import exceptions, subdocument
from couchbase.binary_collection import BinaryCollection
from couchbase.bucket import Bucket
from couchbase.cluster import Cluster
from couchbase.collection import Collection
from couchbase.management.buckets import BucketManager
from couchbase.management.collections import CollectionManager
from couchbase.management.queries import QueryIndexManager
from couchbase.management.search import SearchIndexManager
from couchbase.management.users import UserManager
from couchbase.scope import Scope

from tests.docs.pages import DOCS, code_of, rows_of
from tests.public_names import PUBLIC
from tests.rows import rows

pytestmark = pytest.mark.native

ROWS = [row for row in rows_of(DOCS / "howto" / "from_the_official_sdk.md") if len(row) == 2]
SPANS = " ".join(code_of(*(row[0] for row in ROWS)))
THERE = {*re.findall(r"[\w.]+", SPANS), *re.findall(r"\w+", SPANS)}
"""Names in the left columns, complete and by their parts."""

MANAGERS = (BucketManager, CollectionManager, QueryIndexManager, SearchIndexManager, UserManager)
NOT_MANAGED = {"bucket_describe", "get_index_stats", "get_all_index_stats"}
"""Methods of the official managers that triclinium's managers lack."""


def names_of(thing: object) -> set[str]:
    """Return the public names of a class or module."""
    return {name for name in dir(thing) if not name.startswith("_")}


def options() -> Iterator[str]:
    """Yield the arguments of the official option classes, except the classes for transactions and numbers."""
    path = Path(couchbase.__path__[0], "logic", "options.py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name.endswith("OptionsBase"):
            for part in ast.walk(node):
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    yield from (argument.arg for argument in [*part.args.args, *part.args.kwonlyargs])


@rows("kind", [Cluster, Bucket, Scope])
def test_every_method_of_handles_has_a_row(kind: type) -> None:
    """Every method of a cluster, bucket or scope has a row with the name of its class."""
    assert set() == {f"{kind.__name__}.{name}" for name in names_of(kind)} - THERE


@rows("kind", [Collection, BinaryCollection])
def test_every_method_on_documents_has_a_row(kind: type) -> None:
    """Every method of a collection has a row, including those on several documents and on data structures."""
    assert set() == names_of(kind) - THERE


def test_every_specification_has_a_row() -> None:
    """Every function that creates a specification has a row."""
    made = {
        name
        for name, value in vars(subdocument).items()
        if inspect.isfunction(value) and value.__module__ == subdocument.__name__ and "_" not in name[:1]
    }
    helpers = {name for name in made if name.startswith(("parse_", "build_", "convert_"))}

    assert len(made) > len(helpers) > 0
    assert set() == made - helpers - THERE


def test_every_exception_has_a_row() -> None:
    """Every official exception has a row."""
    raised = {
        name
        for name, value in vars(exceptions).items()
        if inspect.isclass(value) and issubclass(value, exceptions.CouchbaseException)
    }

    assert len(raised) > 80
    assert set() == raised - THERE


def test_every_option_has_a_row() -> None:
    """Every option of the cluster and of operations has a row, except those of transactions."""
    found = set(options()) - {"self"}

    assert len(found) > 100
    assert set() == found - THERE


@rows("kind", MANAGERS)
def test_managers_have_the_same_methods(kind: type) -> None:
    """The managers have the same methods, except those that are listed here and on the page."""
    missing = names_of(kind) - names_of(PUBLIC[kind.__name__])

    assert set() == missing - NOT_MANAGED
    assert set() == (missing & NOT_MANAGED) - THERE
