"""Search service: stored indexes and scripted hits; nothing is indexed.

Source: SDK-RFC 0052, 0054 SearchIndexManager; Couchbase Server documentation, "Search REST API"; cbgt
``rest/rest_index.go``, ``rest/rest_manage.go``; cbft ``ns_server.go``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.services.answers import ServiceReply, as_json, unanswered, with_rows
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.search import statistics
from triclinium_core.testing.fakes.services.search.analysis import NotAnalyzed, analyze, check_mapping
from triclinium_core.testing.fakes.services.search.indexes import FakeSearchIndexes
from triclinium_core.testing.fakes.store.state import NodeState
from triclinium_core.testing.fakes.unsupported import PAGE, reason

HINT = (
    "this fake search service finds only scripted hits: nodes.script.answer(index, FakeAnswer(rows=[...]), "
    f"service=Service.SEARCH), or triclinium serve --script FILE (search-hits in {PAGE})"
)

SEARCH_SECONDS = 0.000_1
"""Time that the service reports for every search; the delays of a scripted response are added."""

IMPLEMENTATION = "5.7.0"
"""Version of the format of index definitions."""

_CONTROLS: Mapping[str, tuple[str, ...]] = {
    "ingestControl": ("pause", "resume"),
    "queryControl": ("allow", "disallow"),
    "planFreezeControl": ("freeze", "unfreeze"),
}


def script_key(node: NodeState, request: FakeRequest) -> str | None:
    """Return the key in the script: the name of the index, ``BUCKET.SCOPE.NAME`` in a scope. None if none is named."""
    place = _place(request.segments)
    return None if place is None or not place[1] else place[0] + place[1][0]


def answer(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request to the search service."""
    match request.method, request.segments:
        case "GET", ("api", "ping"):
            return as_json({})
        case "GET", ("api", "nsstats"):
            return as_json(statistics.of_all(node))
        case "GET", ("api", ("stats" | "nsstats") as kind, "index", name):
            if name not in node.cluster.services.search_indexes.definitions:
                return _unknown_index(name)
            find = statistics.of_partitions if kind == "stats" else statistics.of_index
            return as_json(find(node, name))
        case _:
            place = _place(request.segments)
    reply = None if place is None else _answer(node, request, *place)
    if reply is None:
        return unanswered(Service.SEARCH, request, b"404 page not found\n")
    return reply


def unauthorized(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request without valid credentials."""
    return _failed("rest_auth: user is not authenticated", status=401)


def _place(segments: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """Return the prefix of the index names, and the path segments after ``index``; None for any other path."""
    match segments:
        case ("api", "index", *further):
            return "", tuple(further)
        case ("api", "bucket", bucket, "scope", scope, "index", *further):
            return f"{bucket}.{scope}.", tuple(further)
        case _:
            return None


def _answer(node: NodeState, request: FakeRequest, prefix: str, further: tuple[str, ...]) -> ServiceReply | None:
    indexes = node.cluster.services.search_indexes
    if not further:
        if request.method != "GET":
            return None
        found = {
            name: _seen_from(prefix, each) for name, each in indexes.definitions.items() if name.startswith(prefix)
        }
        return as_json(
            {"status": "ok", "indexDefs": {"uuid": indexes.uuid, "indexDefs": found, "implVersion": IMPLEMENTATION}}
        )
    name = prefix + further[0]
    known = indexes.definitions.get(name)
    match request.method, further[1:]:
        case "POST", ("query",):
            return _query(node, request, name, is_known=known is not None)
        case "PUT", ():
            return _put(indexes, request, name)
        case _ if known is None:
            return _unknown_index(name)
        case "GET", ():
            return as_json(
                {"status": "ok", "indexDef": _seen_from(prefix, known), "planPIndexes": None, "warnings": None}
            )
        case "DELETE", ():
            indexes.remove(name)
            return as_json({"status": "ok", "uuid": known["uuid"]})
        case "GET", ("count",):
            return as_json({"status": "ok", "count": statistics.document_count(node, known)})
        case "POST", ("analyzeDoc",):
            return _analyze(request, name, known)
        case "POST", (control, how) if how in _CONTROLS.get(control, ()):
            return as_json({"status": "ok"})
        case _:
            return None


def _seen_from(prefix: str, definition: Mapping[str, object]) -> Mapping[str, object]:
    """Return a definition with the name that the index has at an endpoint: within a scope, its short name."""
    return {**definition, "name": str(definition["name"]).removeprefix(prefix)}


def _analyze(request: FakeRequest, name: str, definition: Mapping[str, object]) -> ServiceReply:
    document = request.document()
    if document is None:
        return _failed(f"bleve: AnalyzeDoc, indexName: {name}, err: the document is not a JSON object", status=500)
    try:
        check_mapping(definition)
        return as_json({"status": "ok", "analyzed": analyze(document)})
    except NotAnalyzed as problem:
        return _failed(f"{name} has {problem}: {reason('search-mappings')}", status=501)


def _put(indexes: FakeSearchIndexes, request: FakeRequest, name: str) -> ServiceReply:
    definition = request.document()
    if definition is None:
        return _failed(f"rest_create_index: error creating index: {name}, err: the definition is not a JSON object")
    known = indexes.definitions.get(name)
    uuid = definition.get("uuid") or None
    if known is not None and uuid is None:
        text = "cannot create index because an index with the same name already exists"
        return _failed(f"rest_create_index: error creating index: {name}, err: manager_api: {text}: {name}")
    if uuid is not None and (known is None or uuid != known["uuid"]):
        return _failed(
            f"rest_create_index: error creating index: {name}, err: manager_api: the uuid {uuid} is not current"
        )
    return as_json({"status": "ok", "uuid": indexes.put(name, definition), "name": name})


def _query(node: NodeState, request: FakeRequest, name: str, *, is_known: bool) -> ServiceReply:
    searches = node.cluster.services.search_indexes.searches
    if is_known:
        searches[name] += 1
    scripted = node.cluster.services.script.take(Service.SEARCH, name)
    if scripted is None:
        text = f"{name}: {HINT}" if is_known else f"index not found: {name}; {HINT}"
        return _failed(f"rest_index: Query, indexName: {name}, err: {text}")
    if scripted.errors and not scripted.rows and scripted.body is None:
        failure = _failure(str(scripted.errors[0].get("msg", "")))
        scripted = msgspec.structs.replace(scripted, body=msgspec.json.encode(failure).decode())
    failures = {f"partition{number}": error.get("msg", "") for number, error in enumerate(scripted.errors)}
    status: dict[str, object] = {"total": 1 + len(failures), "failed": len(failures), "successful": 1}
    if failures:
        status["errors"] = failures

    def after(count: int, size: int) -> Mapping[str, object]:
        scores = [row["score"] for row in scripted.rows if isinstance(row, Mapping) and "score" in row]
        highest = max((score for score in scores if isinstance(score, int | float)), default=0.0)
        delays = scripted.seconds + max(count - 1, 0) * scripted.seconds_between_rows
        took = int((SEARCH_SECONDS + delays) * 1e9)
        return {"total_hits": count, "max_score": highest, "took": took, "facets": None}

    return with_rows(scripted, before={"status": status, "request": request.document()}, rows_key="hits", after=after)


def _unknown_index(name: str) -> ServiceReply:
    return _failed(f"rest_auth: preparePerms, err: index not found: {name}")


def _failure(text: str) -> Mapping[str, object]:
    return {"error": text, "status": "fail"}


def _failed(text: str, *, status: int = 400) -> ServiceReply:
    return as_json(_failure(text), status)
