"""Requests about search indexes, according to RFC 0054."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from tests.core.services.answers import answered, anything
from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.answer.decoded_limits import OBJECTS_PARTS_MAX, UNCOUNTED_SIZE_BYTES_MAX
from triclinium_core.services.management import search_indexes
from triclinium_core.services.management.management_request import ManagementRequest
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer

SCOPE = search_indexes.SearchScope("travel", "inventory")
IN_SCOPE = "/api/bucket/travel/scope/inventory/index"
HOTELS = search_indexes.SearchIndex(name="hotels", source_name="travel")


@rows(
    ("make", "method", "path", "body"),
    [
        (search_indexes.GetAllSearchIndexes, "GET", "", b""),
        (partial(search_indexes.GetSearchIndex, "hotels"), "GET", "/hotels", b""),
        (
            partial(search_indexes.UpsertSearchIndex, HOTELS),
            "PUT",
            "/hotels",
            b'{"name":"hotels","type":"fulltext-index","sourceType":"couchbase","sourceName":"travel","params":{}}',
        ),
        (partial(search_indexes.DropSearchIndex, "hotels"), "DELETE", "/hotels", b""),
        (partial(search_indexes.GetIndexedDocumentsCount, "hotels"), "GET", "/hotels/count", b""),
        (partial(search_indexes.PauseIngest, "hotels"), "POST", "/hotels/ingestControl/pause", b""),
        (partial(search_indexes.ResumeIngest, "hotels"), "POST", "/hotels/ingestControl/resume", b""),
        (partial(search_indexes.AllowQuerying, "hotels"), "POST", "/hotels/queryControl/allow", b""),
        (partial(search_indexes.DisallowQuerying, "hotels"), "POST", "/hotels/queryControl/disallow", b""),
        (partial(search_indexes.FreezePlan, "hotels"), "POST", "/hotels/planFreezeControl/freeze", b""),
        (partial(search_indexes.UnfreezePlan, "hotels"), "POST", "/hotels/planFreezeControl/unfreeze", b""),
        (partial(search_indexes.AnalyzeDocument, "hotels", {"a": 1}), "POST", "/hotels/analyzeDoc", b'{"a":1}'),
    ],
)
def test_requests(make: Callable[..., ManagementRequest], method: str, path: str, body: bytes) -> None:
    """Each request has its method, path and body, for the cluster or for a scope, and uses the search service."""
    for scope, root in ((None, "/api/index"), (SCOPE, IN_SCOPE)):
        request = make(scope=scope)
        sent = request.encode(75.0)
        assert bool(sent.body) == request.has_body

        assert (method, root + path, body) == (sent.method, sent.target, sent.body)
        assert Service.SEARCH is request.service
        assert request.idempotent == (method == "GET")


def test_an_upsert_is_not_cached() -> None:
    """An upsert has a header that disables caching."""
    assert (("cache-control", "no-cache"),) == search_indexes.UpsertSearchIndex(HOTELS).encode(1.0).headers


def test_later_changes_of_parameters_are_not_sent() -> None:
    """If the caller changes the parameters after it has created the request, the request does not change."""
    params: dict[str, object] = {"a": 1}
    request = search_indexes.UpsertSearchIndex(replace(HOTELS, params=params))
    before = request.encode(1.0)
    params["a"] = object()

    assert before == request.encode(1.0)


@rows(
    ("field", "values"),
    [
        ("name", ("", "..", 7)),
        ("type", ("", None)),
        ("source_type", ("",)),
        ("source_name", ("",)),
        ("uuid", (7,)),
        ("source_uuid", ("",)),
        ("params", (None, [])),
        ("source_params", ("{}",)),
        ("plan_params", (7,)),
    ],
)
def test_invalid_definitions(field: str, values: tuple[object, ...]) -> None:
    """An invalid field raises an error with its name when the definition is created."""
    for value in values:
        refused(field, replace, HOTELS, **{field: value})


@rows("value", [object(), float("nan"), {"a": float("inf")}, b"bytes"])
def test_values_that_json_cannot_represent(value: object) -> None:
    """A value that JSON cannot represent raises an error when the request is created."""
    with pytest.raises(errors.EncodingFailureException):
        search_indexes.AnalyzeDocument("hotels", value)
    if not isinstance(value, bytes):
        with pytest.raises(errors.EncodingFailureException):
            search_indexes.UpsertSearchIndex(replace(HOTELS, params={"a": value}))


@rows(
    "make",
    [
        lambda: search_indexes.UpsertSearchIndex(anything("hotels")),
        lambda: search_indexes.GetSearchIndex("hotels", scope=anything("inventory")),
        lambda: search_indexes.GetAllSearchIndexes(scope=anything(("travel", "inventory"))),
        lambda: search_indexes.SearchScope("a/b", "inventory"),
        lambda: search_indexes.SearchScope("travel", "a b"),
        lambda: search_indexes.SearchScope("..", "inventory"),
    ],
)
def test_invalid_requests(make: Callable[[], object]) -> None:
    """A scope or a definition is refused if it has another type or an invalid name."""
    with pytest.raises(errors.InvalidArgumentException):
        make()


def test_the_context_has_the_index() -> None:
    """The error context has the index, and for an index of a scope also the bucket and the scope."""
    for request in (
        search_indexes.GetSearchIndex("hotels", scope=SCOPE),
        search_indexes.UpsertSearchIndex(HOTELS, scope=SCOPE),
    ):
        context = request.error_context()

        assert ("travel", "inventory", "hotels") == (context.bucket, context.scope, context.index)
    assert search_indexes.GetSearchIndex("hotels").error_context().bucket is None


def mapping(field: object) -> dict[str, object]:
    """Return parameters of an index whose type mapping has ``field`` among its fields."""
    return {"mapping": {"types": {"inventory.hotel": {"properties": {"v": {"fields": [{"type": "text"}, field]}}}}}}


@rows(
    ("params", "expected"),
    [
        (mapping({"type": "vector"}), True),
        (mapping({"type": "vector_base64"}), True),
        (mapping({"type": "number"}), False),
        (mapping("vector"), False),
        (mapping({"type": ["vector"]}), False),
        ({}, False),
        ({"mapping": []}, False),
        ({"mapping": {"types": {"a": None}}}, False),
        ({"mapping": {"types": {"a": {"properties": {"b": 7, "c": {"fields": {"type": "vector"}}}}}}}, False),
    ],
)
def test_vectors(params: dict[str, object], expected: bool) -> None:
    """Vector fields are found at the RFC's positions; an index of a scope with vector fields requires vector search."""
    index = replace(HOTELS, params=params)
    needed = {ClusterCapability.SCOPED_SEARCH_INDEX} | ({ClusterCapability.VECTOR_SEARCH} if expected else set())

    assert expected == index.has_vectors
    assert needed == search_indexes.UpsertSearchIndex(index, scope=SCOPE).required_capabilities
    assert frozenset() == search_indexes.UpsertSearchIndex(index).required_capabilities


def test_scopes_require_a_capability() -> None:
    """A request for indexes of a scope requires a cluster that supports scoped indexes."""
    for request in (
        search_indexes.GetAllSearchIndexes(scope=SCOPE),
        search_indexes.PauseIngest("i", scope=SCOPE),
        search_indexes.AnalyzeDocument("i", 1, scope=SCOPE),
    ):
        assert frozenset({ClusterCapability.SCOPED_SEARCH_INDEX}) == request.required_capabilities


DEFINITION = {
    "type": "fulltext-alias",
    "name": "hotels",
    "uuid": "u1",
    "sourceType": "gocbcore",
    "sourceName": "travel",
    "sourceUUID": "u2",
    "params": {"mapping": {"default_mapping": {"enabled": True}}},
    "sourceParams": {"x": [1]},
    "planParams": {"numReplicas": 1},
}


def test_an_index_is_read() -> None:
    """A caller can write a received index back unchanged; all fields are sent with the service's names."""
    found = (
        search_indexes.GetSearchIndex("hotels")
        .decode(answered({"status": "ok", "indexDef": DEFINITION, "planPIndexes": []}))
        .index
    )
    written = json.loads(search_indexes.UpsertSearchIndex(found).encode(1.0).body)

    assert DEFINITION == written


def test_an_index_of_a_scope_is_read() -> None:
    """The client removes the bucket and scope from a received name, and writes the short name back."""
    body = {"indexDef": DEFINITION | {"name": "travel.inventory.hotels"}}
    found = search_indexes.GetSearchIndex("hotels", scope=SCOPE).decode(answered(body)).index
    every = search_indexes.GetAllSearchIndexes(scope=SCOPE).decode(
        answered({"indexDefs": {"indexDefs": {"x": body["indexDef"]}}})
    )

    assert "hotels" == found.name
    assert (found,) == every.indexes
    assert f"{IN_SCOPE}/hotels" == search_indexes.UpsertSearchIndex(found, scope=SCOPE).target
    assert "travel.inventory.hotels" == search_indexes.GetSearchIndex("hotels").decode(answered(body)).index.name


def test_all_indexes_are_read() -> None:
    """All indexes are read; null is read as an empty list."""
    body = {
        "status": "ok",
        "indexDefs": {"uuid": "x", "indexDefs": {"hotels": DEFINITION, "b": DEFINITION | {"name": "b"}}},
    }

    assert ["hotels", "b"] == [
        index.name for index in search_indexes.GetAllSearchIndexes().decode(answered(body)).indexes
    ]
    for none in ({"indexDefs": None}, {"indexDefs": {"indexDefs": None}}, {"status": "ok"}):
        assert () == search_indexes.GetAllSearchIndexes().decode(answered(none)).indexes


def test_an_alias_is_read() -> None:
    """An alias has no source."""
    body = {"indexDef": {"type": "fulltext-alias", "name": "a", "sourceType": "", "params": None}}

    assert (
        search_indexes.SearchIndex(name="a", type="fulltext-alias", source_type="nil")
        == search_indexes.GetSearchIndex("a").decode(answered(body)).index
    )


def test_counts_and_analyzed_documents() -> None:
    """The client reads the number of documents, and the parts of an analyzed document."""
    assert search_indexes.DocumentCount(7) == search_indexes.GetIndexedDocumentsCount("i").decode(
        answered({"status": "ok", "count": 7})
    )
    assert search_indexes.AnalyzedDocument(({"term": "a"}, {})) == search_indexes.AnalyzeDocument("i", {}).decode(
        answered({"status": "ok", "analyzed": [{"term": "a"}, None]})
    )
    assert search_indexes.AnalyzedDocument(()) == search_indexes.AnalyzeDocument("i", {}).decode(
        answered({"status": "ok", "analyzed": None})
    )


@rows("body", [{}, {"indexDef": None}, {"indexDef": DEFINITION | {"name": ""}}, {"indexDef": DEFINITION | {"name": 7}}])
def test_an_index_without_a_usable_name(body: dict[str, object]) -> None:
    """Without a usable name, an index requested alone raises MalformedAnswer, and a list omits the index."""
    with pytest.raises(MalformedAnswer):
        search_indexes.GetSearchIndex("hotels").decode(answered(body))

    listed = {"a": body.get("indexDef"), "b": DEFINITION}
    found = search_indexes.GetAllSearchIndexes().decode(answered({"indexDefs": {"indexDefs": listed}}))

    assert (["hotels"], 1) == ([index.name for index in found.indexes], found.unread)


@rows(
    ("member", "value", "field", "expected", "is_lost"),
    [
        ("params", None, "params", {}, False),
        ("sourceParams", None, "source_params", {}, False),
        ("planParams", None, "plan_params", {}, False),
        ("sourceUUID", None, "source_uuid", None, False),
        ("sourceName", 7, "source_name", None, False),
        ("type", "vector-index", "type", "vector-index", False),
        ("sourceType", "moon", "source_type", "moon", False),
        ("sourceType", None, "source_type", "nil", False),
        ("planParams", [], "plan_params", {}, True),
        ("params", "x", "params", {}, True),
        ("type", None, "type", None, True),
        ("type", 7, "type", None, True),
        ("sourceType", 7, "source_type", None, True),
    ],
)
def test_an_unknown_value(member: str, value: object, field: str, expected: object, is_lost: bool) -> None:
    """An unknown value is kept or replaced by a default; a definition with an unreadable part is not written back."""
    listed = {"a": DEFINITION | {member: value}, "b": DEFINITION}
    found = search_indexes.GetAllSearchIndexes().decode(answered({"indexDefs": {"indexDefs": listed}}))
    index = found.indexes[0]

    assert (2, 0, expected) == (len(found.indexes), found.unread, getattr(index, field))
    assert is_lost == bool(index.unknown)
    if is_lost:
        with pytest.raises(errors.InvalidArgumentException, match="unknown"):
            search_indexes.UpsertSearchIndex(index=index)
        index = replace(index, unknown=(), type="fulltext-index", source_type="couchbase")
    assert search_indexes.UpsertSearchIndex(index=index).has_body


def object_of(values: int) -> bytes:
    """Return an object with a list of ``values`` long values, so that the decoder counts its parts."""
    value = b'"%b"' % (b"x" * (UNCOUNTED_SIZE_BYTES_MAX // values + 1))
    return b'{"list":[%b]}' % b",".join([value] * values)


WITHIN, BEYOND = object_of(1_000), object_of(OBJECTS_PARTS_MAX)


@rows(("sent", "field"), [("params", "params"), ("sourceParams", "source_params"), ("planParams", "plan_params")])
def test_parameters_with_many_parts(sent: str, field: str) -> None:
    """Parameters above the limits of decoded JSON count as unreadable, so the definition is not written back."""

    def read(parameters: bytes) -> search_indexes.SearchIndex:
        body = b'{"indexDef":{"name":"i","type":"fulltext-index","%b":%b}}' % (sent.encode(), parameters)
        return search_indexes.GetSearchIndex("i").decode(HttpResponse(200, body)).index

    assert 1_000 == len(getattr(read(WITHIN), field)["list"])
    assert ({}, 1) == (getattr(read(BEYOND), field), len(read(BEYOND).unknown))


def test_an_analyzed_document_with_many_parts() -> None:
    """A part of an analyzed document above the limits of decoded JSON is left empty, and the other parts are read."""
    body = b'{"status":"ok","analyzed":[%b,{"term":"a"}]}' % BEYOND

    assert ({}, {"term": "a"}) == search_indexes.AnalyzeDocument("i", {}).decode(HttpResponse(200, body)).analyzed
