"""Attributes of the outer span of a call, which are known before the call sends a request."""

from __future__ import annotations

import pytest

from triclinium_core.client.call_attributes import Asked, attributes_of, name_of
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Remove
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.services.management.buckets import GetBucket
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.statement.parameters import Parameters
from triclinium_core.services.statement.statement_request import QueryContext

HOTELS = Keyspace("travel", "inventory", "hotel")
OF_HOTELS = {
    "couchbase.service": "kv",
    "db.namespace": "travel",
    "couchbase.scope.name": "inventory",
    "couchbase.collection.name": "hotel",
}


@pytest.mark.parametrize(
    ("asked", "name", "attributes"),
    [
        (Get(HOTELS, "k"), "get", OF_HOTELS),
        (
            Remove(HOTELS, "k", durability=DurabilityLevel.PERSIST_TO_MAJORITY),
            "remove",
            {**OF_HOTELS, "couchbase.durability": "persist_majority"},
        ),
        (Remove(HOTELS, "k"), "remove", OF_HOTELS),
        (Ping("travel", "report", None), "ping", {"db.namespace": "travel"}),
        (
            GetBucket("travel"),
            "manager_buckets_get_bucket",
            {"couchbase.service": "management", "db.namespace": "travel"},
        ),
        (QueryRequest(statement="SELECT 'secret'"), "query", {"couchbase.service": "query"}),
        (
            QueryRequest(
                statement="SELECT $1",
                parameters=Parameters(("secret",), None, {}),
                query_context=QueryContext("travel", "inventory"),
            ),
            "query",
            {
                "couchbase.service": "query",
                "db.namespace": "travel",
                "couchbase.scope.name": "inventory",
                "db.query.text": "SELECT $1",
            },
        ),
    ],
)
def test_attributes(asked: Asked, name: str, attributes: dict[str, str]) -> None:
    """The attributes are those of RFC 0067's table; the text of a query without parameters is omitted."""
    assert (name, attributes) == (name_of(asked), attributes_of(asked))
