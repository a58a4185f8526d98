"""The official client with the services of ``triclinium serve``: queries, management, searches, views, and pings."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from tests.live.line_process import SERVE, LineProcess
from tests.live.official import connected

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("couchbase_package")]

SCRIPT = [
    {"statement": "SELECT t.* FROM travel AS t", "rows": [{"a": 1}, {"a": 2}], "seconds_between_rows": 0.01},
    {"service": "search", "statement": "names", "rows": [{"id": "ada", "score": 1.5, "index": "names"}]},
    {"service": "views", "statement": "people/by_name", "rows": [{"id": "ada", "key": "a", "value": 1}]},
]

HOTEL = {"bucket": "beer", "scope": "inventory", "collection": "hotel"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProcess]:
    """Yield the official client of a served cluster with scripted responses."""
    script = tmp_path_factory.mktemp("script") / "answers.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    with (
        LineProcess([*SERVE, "--nodes", "2", "--script", str(script)], end_with=signal.SIGINT) as server,
        connected("official_services_worker", server.hear()) as found,
    ):
        yield found


def test_queries(client: LineProcess) -> None:
    """Queries return rows with positional and named parameters, and as prepared statements; a syntax error raises."""
    scripted = client.ask(do="query", statement="SELECT t.* FROM travel AS t")
    positional = client.ask(do="query", statement='SELECT $1 AS one, "x" AS two', positional=[{"a": None}])
    named = [client.ask(do="query", statement="SELECT RAW $name", named={"name": 7}, adhoc=False) for _ in range(3)]
    wrong = client.ask(do="query", statement="SELEC 1")

    assert {"result": [{"a": 1}, {"a": 2}]} == scripted
    assert {"result": [{"one": {"a": None}, "two": "x"}]} == positional
    assert [{"result": [7]}] * 3 == named
    assert {"error": "ParsingFailedException"} == wrong


def test_create_use_and_drop_a_bucket(client: LineProcess) -> None:
    """Documents can be written immediately in a new collection; creating it twice or dropping it twice raises."""
    created, again = (
        [client.ask(do=what, **HOTEL) for what in ("create_bucket", "create_scope", "create_collection")]
        for _ in range(2)
    )
    listed = client.ask(do="list", **HOTEL)
    written = client.ask(do="upsert", value=1815, **HOTEL), client.ask(do="get", **HOTEL)
    dropped = [client.ask(do="drop_collection", **HOTEL) for _ in range(2)]
    left = client.ask(do="list", **HOTEL)
    dropped += [client.ask(do="drop_bucket", **HOTEL) for _ in range(2)]

    assert [{"result": None}] * 3 == created
    names = ("BucketAlreadyExistsException", "ScopeAlreadyExistsException", "CollectionAlreadyExistsException")
    assert [{"error": name} for name in names] == again
    assert {"result": {"_default": ["_default"], "inventory": ["hotel"]}} == listed
    assert ({"result": True}, {"result": 1815}) == written
    assert {"result": {"_default": ["_default"], "inventory": []}} == left
    assert [
        {"result": None},
        {"error": "CollectionNotFoundException"},
        {"result": None},
        {"error": "BucketDoesNotExistException"},
    ] == dropped


def test_create_list_and_drop_indexes(client: LineProcess) -> None:
    """Indexes are created, listed and dropped by the client's statements."""
    place = {"bucket": "default", "scope": "_default", "collection": "_default"}
    answers = [client.ask(do=what, **place) for what in ("create_index", "indexes", "create_index", "drop_index")]

    assert [
        {"result": None},
        {"result": [["it", "online"]]},
        {"error": "QueryIndexAlreadyExistsException"},
        {"result": None},
    ] == answers
    assert {"error": "QueryIndexNotFoundException"} == client.ask(do="drop_index", **place)


def test_the_other_services(client: LineProcess) -> None:
    """Analytics, search, views and user management respond in the client's format."""
    assert {"result": [{"one": 1}]} == client.ask(do="analytics", statement="SELECT 1 AS one")
    assert {"result": ["ada"]} == client.ask(do="search", index="names")
    assert {"result": ["a"]} == client.ask(do="view", bucket="default")
    assert {"result": ["ada"]} == client.ask(do="user")


def test_all_services_are_pinged(client: LineProcess) -> None:
    """All HTTP services respond to a ping; the result for KV is not checked, because it depends on open buckets."""
    pinged = client.ask(do="ping")["result"]
    pinged.pop("key_value")

    assert dict.fromkeys(("query", "analytics", "search", "view", "management"), True) == pinged
