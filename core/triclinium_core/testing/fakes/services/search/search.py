"""Search service: stored indexes and scripted hits; nothing is indexed.

Source: SDK-RFC 0052, 0054 SearchIndexManager; Couchbase Server documentation, "Search REST API"; cbgt
``rest/rest_create_index.go``, ``manager_api.go``, ``rest/rest_index.go``, ``rest/rest_manage.go``; cbft
``ns_server.go``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.services.answers import ServiceReply, as_json, unanswered, with_rows
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.search import statistics
from triclinium_core.testing.fakes.services.search.analysis import NotAnalyzed, analyze, check_mapping
from triclinium_core.testing.fakes.services.search.indexes import BUCKET_SOURCES
from triclinium_core.testing.fakes.store.config import bucket_uuid
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

ANY_UUID = "*"
"""UUID in a request that creates an index or replaces any definition."""

_NAME = re.compile(r"[A-Za-z][0-9A-Za-z_\-]*")
"""Valid names of new indexes, without the scope."""
_TYPES = frozenset({"fulltext-index", "fulltext-alias"})


class _Wanted(msgspec.Struct, rename="camel"):
    """Definition in a request, as far as the service checks it."""

    type: str = ""
    source_type: str = ""
    source_name: str = ""
    source_uuid: str = msgspec.field(default="", name="sourceUUID")
    uuid: str = ""


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
            return _put(node, request, prefix, further[0])
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


def _put(node: NodeState, request: FakeRequest, prefix: str, short_name: str) -> ServiceReply:
    """Create an index, or replace the definition that has the UUID in the request."""
    name, parameters = prefix + short_name, request.parameters
    definition = request.document() if request.body else {}
    if definition is None:
        return _failed(f"rest_create_index: could not unmarshal json, indexName: {short_name}, err: no JSON object")
    try:
        # In Go, null leaves a field as it is.
        wanted = msgspec.convert({key: value for key, value in definition.items() if value is not None}, _Wanted)
    except msgspec.ValidationError as error:
        return _failed(f"rest_create_index: could not unmarshal json, indexName: {short_name}, err: {error}")
    if not wanted.type:
        return _failed(f"rest_create_index: index type is required, indexName: {short_name}")
    if not wanted.source_type:
        return _failed(f"rest_create_index: sourceType is required, indexName: {short_name}")
    uuid = parameters.get("prevIndexUUID") or parameters.get("indexUUID") or wanted.uuid
    if not uuid and _NAME.fullmatch(short_name) is None:
        return _not_created(name, f'CreateIndex, indexName is invalid, indexName: "{short_name}"')
    if wanted.type not in _TYPES:
        return _not_created(name, f"CreateIndex, unknown indexType: {wanted.type}")
    source = wanted.source_name or short_name
    if wanted.source_type in BUCKET_SOURCES:
        bucket = node.cluster.buckets.get(source)
        if bucket is None:
            text = "failed to connect to or retrieve information from source"
            found = f"sourceType: {wanted.source_type}, sourceName: {source}, sourceUUID: {wanted.source_uuid}"
            return _not_created(name, f"{text}, {found}, err: bucket not found", status=500)
        if wanted.source_uuid not in ("", bucket_uuid(bucket)):
            return _not_created(name, f"CreateIndex failed, sourceUUID mismatched for sourceName: {source}")
        definition |= {"sourceName": source, "sourceUUID": bucket_uuid(bucket)}
    indexes = node.cluster.services.search_indexes
    known = indexes.definitions.get(name)
    if known is not None and not uuid:
        return _not_created(name, f"cannot create index because an index with the same name already exists: {name}")
    if known is None and uuid not in ("", ANY_UUID):
        return _not_created(name, f"index missing for update, indexName: {name}")
    if known is not None and uuid not in (known["uuid"], ANY_UUID):
        text = "perhaps there was concurrent index definition update"
        return _not_created(name, f"{text}, current index UUID: {known['uuid']}, did not match input UUID: {uuid}")
    return as_json({"status": "ok", "uuid": indexes.put(name, definition), "name": name})


def _not_created(name: str, text: str, *, status: int = 400) -> ServiceReply:
    return _failed(f"rest_create_index: error creating index: {name}, err: manager_api: {text}", status=status)


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
