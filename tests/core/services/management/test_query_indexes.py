"""Statements about query indexes, according to RFC 0054."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from tests.core.services.answers import anything
from tests.core.services.statement.grammars import NAMES, query_tokens
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.management import query_indexes
from triclinium_core.services.service_request import Acknowledged, HttpResponse, MalformedAnswer

BUCKET = query_indexes.IndexKeyspace("travel")
HOTELS = query_indexes.IndexKeyspace("travel", "inventory", "hotel")
DEFAULT = query_indexes.IndexKeyspace("travel", "_default", "_default")

NO_COLLECTIONS = "(bucket_id IS MISSING AND keyspace_id = $bucketName)"
COLLECTION = "(bucket_id = $bucketName AND scope_id = $scopeName AND keyspace_id = $collectionName)"
ALL = 'SELECT idx.* FROM system:indexes AS idx WHERE {} AND `using` = "gsi" ORDER BY is_primary DESC, name ASC'
DEFERRED = 'SELECT RAW name FROM system:indexes WHERE {} AND state = "deferred" AND `using` = "gsi"'
IN_HOTELS = {"$bucketName": "travel", "$scopeName": "inventory", "$collectionName": "hotel"}
IN_DEFAULT = {"$bucketName": "travel", "$scopeName": "_default", "$collectionName": "_default"}


@rows(
    ("request", "statement", "parameters"),
    [
        (
            query_indexes.all_indexes(BUCKET),
            ALL.format(f"({NO_COLLECTIONS} OR bucket_id = $bucketName)"),
            {"$bucketName": "travel"},
        ),
        (query_indexes.all_indexes(HOTELS), ALL.format(COLLECTION), IN_HOTELS),
        (query_indexes.all_indexes(DEFAULT), ALL.format(f"({COLLECTION} OR {NO_COLLECTIONS})"), IN_DEFAULT),
        (query_indexes.create_index(BUCKET, "i", ["a"]), "CREATE INDEX `i` ON `travel` (`a`)", {}),
        (
            query_indexes.create_index(HOTELS, "i", ("a", "b.c"), num_replicas=2, deferred=True),
            'CREATE INDEX `i` ON `travel`.`inventory`.`hotel` (`a`, `b.c`) WITH {"num_replica":2,"defer_build":true}',
            {},
        ),
        (
            query_indexes.create_index(BUCKET, "i", ["a"], deferred=False),
            'CREATE INDEX `i` ON `travel` (`a`) WITH {"defer_build":false}',
            {},
        ),
        (
            query_indexes.create_index(BUCKET, "i", ["a"], num_replicas=0),
            'CREATE INDEX `i` ON `travel` (`a`) WITH {"num_replica":0}',
            {},
        ),
        (query_indexes.create_primary_index(BUCKET), "CREATE PRIMARY INDEX ON `travel`", {}),
        (query_indexes.create_primary_index(HOTELS), "CREATE PRIMARY INDEX ON `travel`.`inventory`.`hotel`", {}),
        (
            query_indexes.create_primary_index(HOTELS, index_name="p", num_replicas=1),
            'CREATE PRIMARY INDEX `p` ON `travel`.`inventory`.`hotel` WITH {"num_replica":1}',
            {},
        ),
        (query_indexes.drop_index(BUCKET, "i"), "DROP INDEX `travel`.`i`", {}),
        (query_indexes.drop_index(HOTELS, "i"), "DROP INDEX `i` ON `travel`.`inventory`.`hotel`", {}),
        (query_indexes.drop_primary_index(BUCKET), "DROP PRIMARY INDEX ON `travel`", {}),
        (query_indexes.drop_primary_index(HOTELS), "DROP PRIMARY INDEX ON `travel`.`inventory`.`hotel`", {}),
        (query_indexes.drop_primary_index(BUCKET, index_name="p"), "DROP INDEX `travel`.`p`", {}),
        (
            query_indexes.drop_primary_index(HOTELS, index_name="p"),
            "DROP INDEX `p` ON `travel`.`inventory`.`hotel`",
            {},
        ),
        (query_indexes.deferred_indexes(BUCKET), DEFERRED.format(f"({COLLECTION} OR {NO_COLLECTIONS})"), IN_DEFAULT),
        (query_indexes.deferred_indexes(HOTELS), DEFERRED.format(COLLECTION), IN_HOTELS),
        (query_indexes.build_indexes(BUCKET, ["a", "b"]), "BUILD INDEX ON `travel` (`a`, `b`)", {}),
        (query_indexes.build_indexes(HOTELS, ["a"]), "BUILD INDEX ON `travel`.`inventory`.`hotel` (`a`)", {}),
    ],
)
def test_statements(request: query_indexes.IndexStatement, statement: str, parameters: dict[str, str]) -> None:
    """Each request has its statement and parameters; a collection needs a query context, and a read is readonly."""
    sent = request.encode(1.0)
    members = json.loads(sent.body)

    assert (Service.QUERY, "POST", "/query/service") == (request.service, sent.method, sent.target)
    assert statement == members["statement"]
    assert parameters == {name: value for name, value in members.items() if name.startswith("$")}
    assert ("hotel`" in statement or parameters == IN_HOTELS) == (
        members.get("query_context") == "default:`travel`.`inventory`"
    )
    assert statement.startswith("SELECT") == request.idempotent == members.get("readonly", False)
    assert request.rows_of is None


def about(names: list[str]) -> list[query_indexes.IndexStatement]:
    """Return a statement of each kind that names indexes, with these names of indexes and fields."""
    return [
        query_indexes.create_index(HOTELS, names[0], names),
        query_indexes.create_primary_index(BUCKET, index_name=names[0]),
        query_indexes.drop_index(HOTELS, names[0]),
        query_indexes.drop_primary_index(BUCKET, index_name=names[0]),
        query_indexes.build_indexes(BUCKET, names),
    ]


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_a_name_ends_no_identifier(names: list[str]) -> None:
    """A hostile name is one identifier of the statement, and changes no other token."""
    plain = [f"n{number}" for number in range(len(names))]
    meant = dict(zip(plain, names, strict=True))
    for hostile, honest in zip(about(names), about(plain), strict=True):
        expected = [
            (kind, meant.get(text, text) if kind == "identifier" else text)
            for kind, text in query_tokens(honest.statement)
        ]

        assert expected == query_tokens(hostile.statement)


@rows(
    "make",
    [
        lambda: query_indexes.IndexKeyspace(""),
        lambda: query_indexes.IndexKeyspace("a`b"),
        lambda: query_indexes.IndexKeyspace("travel", "inventory"),
        lambda: query_indexes.IndexKeyspace("travel", None, "hotel"),
        lambda: query_indexes.IndexKeyspace("travel", "a b", "hotel"),
        lambda: query_indexes.IndexKeyspace("travel", "inventory", ""),
        lambda: query_indexes.create_index(BUCKET, "", ["a"]),
        lambda: query_indexes.create_index(BUCKET, anything(None), ["a"]),
        lambda: query_indexes.create_index(BUCKET, "i", []),
        lambda: query_indexes.create_index(BUCKET, "i", "abc"),
        lambda: query_indexes.create_index(BUCKET, "i", [""]),
        lambda: query_indexes.create_index(BUCKET, "i", [anything(7)]),
        lambda: query_indexes.create_index(BUCKET, "i", anything({"a": 1})),
        lambda: query_indexes.create_index(BUCKET, "i", ["\ud800"]),
        lambda: query_indexes.create_index(BUCKET, "i", ["a"], num_replicas=-1),
        lambda: query_indexes.create_index(BUCKET, "i", ["a"], deferred=anything("yes")),
        lambda: query_indexes.create_primary_index(BUCKET, index_name=""),
        lambda: query_indexes.drop_index(BUCKET, ""),
        lambda: query_indexes.drop_index(BUCKET, "\ud800"),
        lambda: query_indexes.create_index(BUCKET, "\ud800", ["a"]),
        lambda: query_indexes.drop_primary_index(BUCKET, index_name=""),
        lambda: query_indexes.build_indexes(BUCKET, [""]),
    ],
)
def test_invalid_arguments(make: Callable[[], object]) -> None:
    """An invalid argument raises an error before a statement is built."""
    with pytest.raises(errors.InvalidArgumentException):
        make()


def answered(*results: object) -> HttpResponse:
    """Return a response of the query service with these rows."""
    body = {"requestID": "r", "signature": {"*": "*"}, "results": results, "status": "success"}
    return HttpResponse(200, json.dumps(body).encode())


OLD = {
    "datastore_id": "http://127.0.0.1:8091",
    "id": "1",
    "index_key": ["`a`", "(`b`.`c`)"],
    "condition": "(`a` > 1)",
    "keyspace_id": "travel",
    "name": "by_a",
    "namespace_id": "default",
    "state": "online",
    "using": "gsi",
}
NEW = {
    "bucket_id": "travel",
    "scope_id": "inventory",
    "keyspace_id": "hotel",
    "index_key": [],
    "is_primary": True,
    "name": "#primary",
    "partition": "HASH(`a`)",
    "state": "deferred",
    "using": "gsi",
}


def test_indexes_are_read() -> None:
    """The bucket name is read from both formats of the server; an index without collections has no scope."""
    assert (
        query_indexes.QueryIndex(
            name="by_a",
            is_primary=False,
            type=query_indexes.QueryIndexType.GSI,
            state="online",
            keyspace="travel",
            index_key=("`a`", "(`b`.`c`)"),
            condition="(`a` > 1)",
            partition=None,
            bucket_name="travel",
            scope_name=None,
            collection_name=None,
        ),
        query_indexes.QueryIndex(
            name="#primary",
            is_primary=True,
            type=query_indexes.QueryIndexType.GSI,
            state="deferred",
            keyspace="hotel",
            index_key=(),
            condition=None,
            partition="HASH(`a`)",
            bucket_name="travel",
            scope_name="inventory",
            collection_name="hotel",
        ),
    ) == query_indexes.all_indexes(BUCKET).decode(answered(OLD, NEW)).indexes


def test_names_and_acknowledgements() -> None:
    """The names of deferred indexes are read, and a change returns Acknowledged if its response is a success."""
    assert ("a", "b") == query_indexes.deferred_indexes(BUCKET).decode(answered("a", "b")).names
    assert Acknowledged() == query_indexes.drop_index(BUCKET, "i").decode(answered())


@rows("row", [None, 7, "x", {}, OLD | {"name": None}, OLD | {"name": ""}, OLD | {"keyspace_id": 7}])
def test_an_index_without_a_name(row: object) -> None:
    """A list omits an index without a name, and raises MalformedAnswer if no index has a name."""
    with pytest.raises(MalformedAnswer):
        query_indexes.all_indexes(BUCKET).decode(answered(row))

    found = query_indexes.all_indexes(BUCKET).decode(answered(row, OLD))

    assert (["by_a"], 1) == ([index.name for index in found.indexes], found.unread)


def test_invalid_names_are_left_out() -> None:
    """A list of names leaves out rows that are not names, and raises MalformedAnswer if no row is a name."""
    found = query_indexes.deferred_indexes(BUCKET).decode(answered("a", None, "", {}))

    assert (("a",), 3) == (found.names, found.unread)
    with pytest.raises(MalformedAnswer):
        query_indexes.deferred_indexes(BUCKET).decode(answered(7))


@rows(
    ("member", "value", "field", "expected"),
    [
        ("using", "paper", "type", "paper"),
        ("using", None, "type", None),
        ("using", 7, "type", None),
        ("is_primary", None, "is_primary", False),
        ("is_primary", "yes", "is_primary", False),
        ("state", "pondering", "state", "pondering"),
        ("state", None, "state", None),
        ("state", "a\nb", "state", None),
        ("index_key", None, "index_key", ()),
        ("index_key", "a", "index_key", ()),
        ("index_key", ["a", {"expr": "b"}], "index_key", ("a", '{"expr": "b"}')),
        ("condition", 7, "condition", None),
        ("partition", [], "partition", None),
        ("bucket_id", None, "bucket_name", "travel"),
        ("scope_id", None, "scope_name", None),
    ],
)
def test_an_unknown_value(member: str, value: object, field: str, expected: object) -> None:
    """An unknown value is kept as text or replaced by a default, and all indexes are read."""
    found = query_indexes.all_indexes(BUCKET).decode(answered(OLD | {member: value}, NEW)).indexes

    assert ("by_a", "#primary") == tuple(index.name for index in found)
    assert expected == getattr(found[0], field)
