"""Search service of a fake node, which keeps indexes and returns scripted hits."""

from __future__ import annotations

import json
from typing import SupportsIndex

import pytest

from tests.core.testing.http_client import HttpClient
from tests.rows import rows
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeAnswer, FakeNode
from triclinium_core.testing.fakes.services.search.analysis import analyze
from triclinium_core.testing.fakes.unsupported import PAGE

SCOPED = "/api/bucket/travel/scope/inventory/index"


def definition(**fields: object) -> bytes:
    """Return the definition of an index of the default bucket, as JSON, with these fields."""
    return json.dumps({"type": "fulltext-index", "sourceType": "gocbcore", "sourceName": "default", **fields}).encode()


@pytest.fixture
def client() -> HttpClient:
    """Return a connection to the search service of a lone node."""
    return HttpClient(FakeNode(), Service.SEARCH)


@rows("path", ["/api/index", SCOPED])
def test_index_is_created_and_dropped(path: str) -> None:
    """An index is kept and listed until it is dropped; an update must name its current uuid."""
    client = HttpClient(FakeNode(), Service.SEARCH)
    put = client.ask("PUT", f"{path}/names", definition())
    found = client.ask("GET", f"{path}/names").document["indexDef"]
    again = client.ask("PUT", f"{path}/names", definition())
    updated = client.ask("PUT", f"{path}/names", json.dumps(found).encode())
    stale = client.ask("PUT", f"{path}/names", json.dumps(found).encode())
    listed = client.ask("GET", path).document["indexDefs"]
    other = client.ask("GET", "/api/bucket/travel/scope/other/index").document["indexDefs"]
    dropped = client.ask("DELETE", f"{path}/names")

    assert [200, 400, 200, 400, 200] == [each.status for each in (put, again, updated, stale, dropped)]
    assert b"index with the same name already exists" in again.body
    name = "names" if path == "/api/index" else "travel.inventory.names"
    assert ("names", "fulltext-index") == (found["name"], found["type"])  # type: ignore[index]
    assert {name: "names"} == {key: each["name"] for key, each in listed["indexDefs"].items()}  # type: ignore[index]
    assert client.ask("GET", "/api/index").document["indexDefs"]["indexDefs"] == {}  # type: ignore[index]
    assert {} == other["indexDefs"]  # type: ignore[index]
    assert b"index not found" in client.ask("GET", f"{path}/names").body


@rows(
    ("target", "body", "status", "words"),
    [
        ("names", {"type": 7}, 400, "could not unmarshal json"),
        ("names", {"type": None}, 400, "index type is required"),
        ("a-b_7", {}, 200, "ok"),
        ("nulls", {"sourceUUID": None, "uuid": None}, 200, "ok"),
        ("names", {"type": ""}, 400, "index type is required"),
        ("names", {"sourceType": ""}, 400, "sourceType is required"),
        ("names", {"type": "vector"}, 400, "unknown indexType: vector"),
        ("7", {}, 400, "indexName is invalid"),
        ("7", {"uuid": "1"}, 400, "index missing for update"),
        ("names", {"sourceName": "gone"}, 500, "sourceName: gone"),
        ("names", {"sourceName": ""}, 500, "sourceName: names"),
        ("names", {"sourceUUID": "7"}, 400, "sourceUUID mismatched for sourceName: default"),
        ("names", {"uuid": "1"}, 400, "index missing for update"),
        ("names?prevIndexUUID=1", {}, 400, "index missing for update"),
        ("it?indexUUID=1", {}, 400, "did not match input UUID: 1"),
        ("it", {"uuid": "*"}, 200, "ok"),
        ("names", {"uuid": "*"}, 200, "ok"),
        ("both", {"sourceName": "gone", "sourceType": "nil", "type": "fulltext-alias"}, 200, "ok"),
    ],
)
def test_definitions_are_checked(
    client: HttpClient, target: str, body: dict[str, object], status: int, words: str
) -> None:
    """A definition is refused if a type, the name, the bucket or a UUID is wrong."""
    client.ask("PUT", "/api/index/it", definition())
    answered = client.ask("PUT", f"/api/index/{target}", definition(**body))

    assert status == answered.status
    assert words in answered.body.decode()


def test_definition_gets_the_uuid_of_the_bucket(client: HttpClient) -> None:
    """A definition without a bucket gets the bucket with the index's name and its UUID, and can be sent again."""
    client.ask("PUT", "/api/index/default", definition(sourceName=""))
    found = client.ask("GET", "/api/index/default").document["indexDef"]
    bucket = HttpClient(client.node, Service.MANAGEMENT, 2).ask("GET", "/pools/default/b/default").document

    assert ("default", bucket["uuid"]) == (found["sourceName"], found["sourceUUID"])  # type: ignore[index]
    assert 200 == client.ask("PUT", "/api/index/default", json.dumps(found).encode()).status


def test_indexes_end_with_their_bucket(client: HttpClient) -> None:
    """Dropping a bucket drops its indexes, and keeps those of other sources, even if these have its name."""
    manager = HttpClient(client.node, Service.MANAGEMENT, 2)
    manager.ask("POST", "/pools/default/buckets", b"name=beer&ramQuotaMB=100")
    client.ask("PUT", "/api/index/ours", definition(sourceName="beer"))
    client.ask("PUT", "/api/index/theirs", definition())
    client.ask("PUT", "/api/index/alias", definition(type="fulltext-alias", sourceType="nil", sourceName="beer"))
    manager.ask("DELETE", "/pools/default/buckets/beer")

    left = client.ask("GET", "/api/index").document["indexDefs"]
    assert ["theirs", "alias"] == list(left["indexDefs"])  # type: ignore[index]


def test_hits_are_scripted(client: HttpClient) -> None:
    """A search returns the scripted hits for the index name, with status and metadata."""
    hits = [{"id": "ada", "score": 1.5}, {"id": "bob", "score": 0.5}]
    client.node.script.answer(
        "names", FakeAnswer(rows=hits, metadata={"facets": {"a": {"total": 2}}}), service=Service.SEARCH
    )
    document = client.ask("POST", "/api/index/names/query", b'{"query": {"match": "x"}}').document

    assert hits == document["hits"]
    assert (2, 1.5, {"a": {"total": 2}}) == (document["total_hits"], document["max_score"], document["facets"])
    assert {"total": 1, "failed": 0, "successful": 1} == document["status"]
    assert {"query": {"match": "x"}} == document["request"]
    assert "names" == client.node.request_log[0].statement


def test_partial_search_failure(client: HttpClient) -> None:
    """A scripted answer with hits and errors lists the failed partitions; if it has no hits, the search fails."""
    error = {"msg": "pindex not available"}
    client.node.script.answer(
        "travel.inventory.half", FakeAnswer(rows=[{"id": "ada"}], errors=[error]), service=Service.SEARCH
    )
    client.node.script.answer("none", FakeAnswer(errors=[error], http_status=429), service=Service.SEARCH)
    half, none = client.ask("POST", f"{SCOPED}/half/query"), client.ask("POST", "/api/index/none/query")

    assert {"partition0": "pindex not available"} == half.document["status"]["errors"]  # type: ignore[index]
    assert (429, {"error": "pindex not available", "status": "fail"}) == (none.status, none.document)


@rows(
    ("method", "target", "status", "words"),
    [
        ("GET", "/api/ping", 200, ""),
        ("POST", "/api/index/gone/query", 400, "index not found"),
        ("POST", "/api/index/it/query", 400, "nodes.script.answer"),
        ("GET", "/api/index/it/count", 200, "count"),
        ("POST", "/api/index/it/ingestControl/pause", 200, "ok"),
        ("POST", "/api/index/it/queryControl/disallow", 200, "ok"),
        ("POST", "/api/index/it/planFreezeControl/unfreeze", 200, "ok"),
        ("POST", "/api/index/it/planFreezeControl/pause", 404, "page not found"),
        ("DELETE", "/api/index/gone", 400, "index not found"),
        ("DELETE", "/api/index", 404, "page not found"),
        ("GET", "/api/elsewhere", 404, "page not found"),
        ("GET", "/api/elsewhere", 404, PAGE),
        ("GET", "/api/cfg", 501, "search-administration"),
        ("GET", "/api/stats/index/gone", 400, "index not found"),
        ("GET", "/api/nsstats/index/gone", 400, "index not found"),
        ("POST", "/api/index/gone/analyzeDoc", 400, "index not found"),
        ("POST", "/api/index/it/analyzeDoc", 500, "not a JSON object"),
        ("PUT", "/api/index/it", 400, "index type is required"),
    ],
)
def test_other_requests(method: str, target: str, status: int, words: str) -> None:
    """Requests without a scripted answer get the expected status, and a body with the expected words."""
    client = HttpClient(FakeNode(), Service.SEARCH)
    client.ask("PUT", "/api/index/it", definition())
    answered = client.ask(method, target)

    assert status == answered.status
    assert words in answered.body.decode()


def test_count_and_statistics_follow_the_documents(client: HttpClient) -> None:
    """An index counts the documents of the collections that it maps; its statistics count its searches too."""
    hotels = client.node.collections.create("inventory", "hotel")
    for key, collection_id in (("ada", 0), ("bob", hotels), ("cid", hotels), ("dan", hotels)):
        client.node.documents.put("default", key, b"{}", collection_id=collection_id)
    client.node.documents.remove("default", "dan", collection_id=hotels)
    scoped = {"doc_config": {"mode": "scope.collection.type_field"}, "mapping": {"types": {"inventory.hotel.x": {}}}}
    for name, body in (
        ("all", definition()),
        ("hotels", definition(params=scoped)),
        ("gone", definition(sourceType="nil", sourceName="travel")),
    ):
        client.ask("PUT", f"/api/index/{name}", body)
    client.ask("POST", "/api/index/hotels/query", b"{}")
    counts = [client.ask("GET", f"/api/index/{name}/count").document["count"] for name in ("all", "hotels", "gone")]
    every = client.ask("GET", "/api/nsstats").document
    one = client.ask("GET", "/api/nsstats/index/hotels").document
    (partition,) = client.ask("GET", "/api/stats/index/hotels").document["pindexes"].values()  # type: ignore[attr-defined]

    assert [1, 2, 0] == counts
    assert (2, 1) == (one["doc_count"], one["total_queries"])
    assert one == {
        name.rpartition(":")[2]: value for name, value in every.items() if name.startswith("default:hotels:")
    }
    assert {"basic": {"DocCount": 2}} == partition


def test_dropped_index_forgets_its_searches(client: HttpClient) -> None:
    """An index with the name of a dropped index has no searches."""
    counts = []
    for _ in range(2):
        client.ask("PUT", "/api/index/it", definition())
        client.ask("POST", "/api/index/it/query", b"{}")
        counts.append(client.ask("GET", "/api/nsstats/index/it").document["total_queries"])
        client.ask("DELETE", "/api/index/it")

    assert [1, 1] == counts


class CountedText(str):
    """Text that counts the characters of its slices."""

    __slots__ = ("sliced",)

    def __init__(self, _: str) -> None:
        self.sliced = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        """Return a part of the text, and count its characters."""
        part = super().__getitem__(key)
        self.sliced += len(part)
        return part


def test_analysis_reads_a_text_once() -> None:
    """The offsets of many words, in bytes, come from a single pass over the text."""
    text = CountedText("\u00e9t\u00e9 " * 1000)
    (tokens,) = analyze({"a": text})
    (token,) = tokens.values()

    assert (5994, 5999) == (token["Locations"][-1]["Start"], token["Locations"][-1]["End"])  # type: ignore[index]
    assert text.sliced <= len(text)


def test_documents_are_analyzed(client: HttpClient) -> None:
    """An index with a dynamic mapping returns the terms of each field, with the place of each."""
    client.ask("PUT", f"{SCOPED}/it", definition(params={"mapping": {"default_analyzer": "standard"}}))
    document = {"a": "The Inn, an inn", "b": {"c": [True, "\u00e9t\u00e9"]}, "d": None, "e": "2026-02-30"}
    answered = client.ask("POST", f"{SCOPED}/it/analyzeDoc", json.dumps(document).encode()).document
    *fields, no_date = list(answered["analyzed"])  # type: ignore[call-overload]
    inn = {"Field": "a", "ArrayPositions": []}

    assert "ok" == answered["status"]
    assert [
        {
            "inn": {
                "Term": "aW5u",
                "Locations": [
                    inn | {"Start": 4, "End": 7, "Position": 2},
                    inn | {"Start": 12, "End": 15, "Position": 4},
                ],
            }
        },
        {
            "T": {
                "Term": "VA==",
                "Locations": [{"Field": "b.c", "ArrayPositions": [0], "Start": 0, "End": 1, "Position": 1}],
            }
        },
        {
            "\u00e9t\u00e9": {
                "Term": "w6l0w6k=",
                "Locations": [{"Field": "b.c", "ArrayPositions": [1], "Start": 0, "End": 5, "Position": 1}],
            }
        },
    ] == fields
    assert ["2026", "02", "30"] == list(no_date)


@rows(
    ("mapping", "document"),
    [
        ({"default_analyzer": "keyword"}, {}),
        ({"types": {"hotel": {}}}, {}),
        ({"analysis": {"analyzers": {"a": {}}}}, {}),
        ({"default_mapping": {"properties": {"a": {}}}}, {}),
        ({"default_mapping": {"dynamic": False}}, {}),
        ({"default_mapping": {"enabled": False}}, {}),
        ({}, {"a": [1]}),
        *(({}, {"a": date}) for date in ("2026-02-28", "2026-02-28T10:00:00.5Z", "2026-02-28 10:00:00 +0100")),
    ],
)
def test_other_mappings_are_not_analyzed(client: HttpClient, mapping: object, document: object) -> None:
    """A mapping or a value whose analysis is not supported gets 501 with a body that names the page."""
    client.ask("PUT", "/api/index/it", definition(params={"mapping": mapping}))
    answered = client.ask("POST", "/api/index/it/analyzeDoc", json.dumps(document).encode())

    assert 501 == answered.status
    assert f"search-mappings in {PAGE}" in answered.body.decode()
