"""Search service of a fake node, which keeps indexes and returns scripted hits."""

from __future__ import annotations

import json

import pytest

from tests.core.testing.http_client import HttpClient
from tests.rows import rows
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeAnswer, FakeNode

SCOPED = "/api/bucket/travel/scope/inventory/index"


@pytest.fixture
def client() -> HttpClient:
    """Return a connection to the search service of a lone node."""
    return HttpClient(FakeNode(), Service.SEARCH)


@rows("path", ["/api/index", SCOPED])
def test_index_is_created_and_dropped(path: str) -> None:
    """An index is kept as it was given, with a uuid that each update must name."""
    client = HttpClient(FakeNode(), Service.SEARCH)
    put = client.ask("PUT", f"{path}/names", b'{"type": "fulltext-index"}')
    found = client.ask("GET", f"{path}/names").document["indexDef"]
    again = client.ask("PUT", f"{path}/names", b'{"type": "fulltext-index"}')
    updated = client.ask("PUT", f"{path}/names", json.dumps(found).encode())
    stale = client.ask("PUT", f"{path}/names", json.dumps(found).encode())
    listed = client.ask("GET", path).document["indexDefs"]
    other = client.ask("GET", "/api/bucket/travel/scope/other/index").document["indexDefs"]
    dropped = client.ask("DELETE", f"{path}/names")

    assert [200, 400, 200, 400, 200] == [each.status for each in (put, again, updated, stale, dropped)]
    assert b"index with the same name already exists" in again.body
    name = "names" if path == "/api/index" else "travel.inventory.names"
    assert (name, "fulltext-index") == (found["name"], found["type"])  # type: ignore[index]
    assert [name] == list(listed["indexDefs"])  # type: ignore[index]
    assert {} == other["indexDefs"]  # type: ignore[index]
    assert b"index not found" in client.ask("GET", f"{path}/names").body


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
        ("PUT", "/api/index/it", 400, "JSON"),
    ],
)
def test_other_requests(method: str, target: str, status: int, words: str) -> None:
    """Other requests get the status and the words of the real service."""
    client = HttpClient(FakeNode(), Service.SEARCH)
    client.ask("PUT", "/api/index/it", b"{}")
    answered = client.ask(method, target)

    assert status == answered.status
    assert words in answered.body.decode()


def test_missing_credentials() -> None:
    """A request without credentials gets 401."""
    client = HttpClient(FakeNode(), Service.SEARCH, authorization=None)

    assert 401 == client.ask("GET", "/api/index").status
