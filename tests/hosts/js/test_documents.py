"""Documents, parts of documents and queries from Node, with each kind of server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.docs.serving import serving
from tests.hosts.js.conftest import RunNode
from tests.live.couchbase_mock import CouchbaseMock
from tests.live.memcached import Memcached

CAS = {"cas": "bigint"}
STORED = {"born": 1815, "naïve": ["é", None, 1.5], "long": "x" * 100}
OUTCOMES: list[Any] = [
    ["get", {"error": "DocumentNotFoundException"}],
    ["insert", CAS],
    ["insert", {"error": "DocumentExistsException"}],
    ["get", {"content": STORED, **CAS}],
    ["replace", {"error": "CasMismatchException"}],
    ["replace", CAS],
    ["touch", CAS],
    ["touch", CAS],
    ["getAndTouch", {"content": {"born": 1816}, **CAS}],
    ["upsert", CAS],
    ["get", {"content": None, **CAS}],
    ["upsert", CAS],
    ["append", CAS],
    ["prepend", CAS],
    ["get", {"content": [195, 169, 0, 255, 1, 2], **CAS}],
    ["increment", {"content": f"{2**64 - 2}n", **CAS}],
    ["increment", {"content": f"{2**64 - 1}n", **CAS}],
    ["decrement", {"content": f"{2**63 - 1}n", **CAS}],
    ["remove", {"error": "CasMismatchException"}],
    ["remove", CAS],
    ["remove", {"error": "DocumentNotFoundException"}],
]
"""Outcomes of ``documents.mjs``."""


@pytest.fixture(params=["memcached", "fake nodes", "CouchbaseMock"])
def server(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Any]]:
    """Yield the address of each kind of server in turn, with credentials if it needs them."""
    if request.param == "memcached":
        yield {"connection_string": request.getfixturevalue("memcached").connection_string}
    elif request.param == "fake nodes":
        with serving("--nodes", "3") as served:
            yield served
    else:
        mock: CouchbaseMock = request.getfixturevalue("couchbase_mock")
        user = mock.authenticator
        address = {"connection_string": mock.connection_string, "bucket": mock.bucket}
        yield {**address, "username": user.username, "password": user.password}


@pytest.mark.hosts
def test_documents_match(server: Mapping[str, Any], key: str, run_node: RunNode) -> None:
    """With each kind of server, every call on a document has its documented outcome, and 64-bit numbers are exact."""
    assert OUTCOMES == run_node("documents.mjs", server, key)


@pytest.mark.hosts
def test_parts_and_queries_match(run_node: RunNode) -> None:
    """Locks, sub-documents, collections and queries have their documented outcomes."""
    with serving("--nodes", "1") as served:
        found = run_node("couchbase.mjs", served)

    assert [
        {"bucket": "default", "vbucket": 368, "types": ["bigint", "bigint", "bigint"]},
        True,
        "CasMismatchException",
        "unlocked",
        [{}, {}, {"value": f"{2**62 + 1}n"}, {}],
        [
            {"value": {"city": "Paris"}},
            {"value": ["a", "b", {"c": None}]},
            {"value": 3},
            {"value": False},
            {"error": "PathNotFoundException"},
        ],
        "DocumentNotFoundException",
        [{}],
        "ScopeNotFoundException",
        "bigint",
        {"rows": [{"one": 1}], "status": "success", "warnings": []},
        "ClosedError",
    ] == found


@pytest.mark.hosts
def test_codec_is_loaded_when_needed(memcached: Memcached, run_node: RunNode) -> None:
    """The codec of compressed documents is loaded at the first compressed response, and not before."""
    with serving() as served:
        found = run_node("codec.mjs", served, memcached.connection_string)

    assert [
        ["memcached", True, False],
        ["without compression", True, False],
        ["with compression", True, True],
    ] == found
