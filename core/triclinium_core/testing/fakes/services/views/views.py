"""Views service: stored design documents and scripted rows; no function is run.

Source: SDK-RFC 0051, 0054 ViewIndexManager; Couchbase Server documentation, "Views REST API".
"""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.services.answers import ServiceReply, as_json, with_rows
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.store.buckets import StorageMode
from triclinium_core.testing.fakes.store.state import NodeState
from triclinium_core.testing.fakes.unsupported import PAGE

HINT = (
    "this fake cluster does not run views; script the rows: nodes.script.answer('DESIGN_DOCUMENT/VIEW', "
    f"FakeAnswer(rows=[...]), service=Service.VIEWS) (view-functions in {PAGE})"
)


def script_key(node: NodeState, request: FakeRequest) -> str | None:
    """Return the key in the script: design document and view, joined by a slash; None if the path names no view."""
    match request.segments:
        case (_, "_design", design_document, "_view", view):
            return f"{design_document}/{view}"
        case _:
            return None


def answer(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request to the views service."""
    documents = node.cluster.services.design_documents.documents
    match request.method, request.segments:
        case "GET", ():
            return as_json({"couchdb": "Welcome", "version": "fake"})
        case _, (bucket, "_design", *_) if (reason := _lacks_views(node, bucket)) is not None:
            return _failed(404, "not_found", reason)
        case (("GET" | "POST"), (bucket, "_design", name, "_view", view)):
            return _query(node, request, documents.get((bucket, name)), view)
        case "PUT", (bucket, "_design", name):
            document = request.document()
            if document is None:
                return _failed(400, "bad_request", "invalid UTF-8 JSON")
            node.cluster.services.design_documents.put(bucket, name, document)
            return as_json({"ok": True, "id": f"_design/{name}"}, 201)
        case ("GET" | "DELETE") as method, (bucket, "_design", name):
            if (bucket, name) not in documents:
                return _failed(404, "not_found", "missing")
            if method == "GET":
                return as_json(documents[bucket, name])
            del documents[bucket, name]
            return as_json({"ok": True, "id": f"_design/{name}"})
        case _:
            return _failed(404, "not_found", f"no such path; {PAGE} lists what this fake cluster does not support")


def unauthorized(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request without valid credentials."""
    return _failed(401, "unauthorized", "The user name or the password is wrong.")


def _query(node: NodeState, request: FakeRequest, document: Mapping[str, object] | None, view: str) -> ServiceReply:
    scripted = node.cluster.services.script.take(Service.VIEWS, script_key(node, request) or "")
    if scripted is None:
        views = None if document is None else document.get("views")
        if document is None:
            return _failed(404, "not_found", "missing")
        is_there = isinstance(views, Mapping) and view in views
        return _failed(404, "not_found", HINT if is_there else "missing_named_view")
    total = len(scripted.rows) * scripted.repeat

    def after(count: int, size: int) -> Mapping[str, object]:
        return {"errors": scripted.errors} if scripted.errors else {}

    return with_rows(scripted, before={"total_rows": total}, rows_key="rows", after=after)


def _lacks_views(node: NodeState, bucket: str) -> str | None:
    """Return the reason why a bucket has no views, or None if it can have views."""
    # Source: ns_server of version 7.6, "capi_frontend", verify_bucket_auth.
    known = node.cluster.buckets.get(bucket)
    if known is None:
        return "missing"
    is_right = known.mode is StorageMode.COUCHSTORE
    return None if is_right else "views are supported only on couchbase buckets with couchstore storage backend"


def _failed(status: int, error: str, reason: str) -> ServiceReply:
    return as_json({"error": error, "reason": reason}, status)
