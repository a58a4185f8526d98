"""Scope and collection requests of the cluster manager.

Key-value nodes see the result immediately, unless ``learn_late`` is set.

Source: SDK-RFC 0054, CollectionsManager; Couchbase Server documentation, "Scopes and Collections API".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from triclinium_core.kv.operation.validation import DEFAULT_NAME
from triclinium_core.testing.fakes.services.answers import ServiceReply, as_json
from triclinium_core.testing.fakes.services.fake_request import FakeRequest, integer_of
from triclinium_core.testing.fakes.services.management.bucket_settings import EXPIRY_MAX
from triclinium_core.testing.fakes.store.buckets import FakeBucket, StorageMode
from triclinium_core.testing.fakes.store.collections import FakeCollections

_NAME = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_%-]{0,250}")
"""Valid names of scopes and collections; other first characters are reserved for the server."""

_UID = re.compile(r"[0-9A-Fa-f]{1,16}")
"""UID of a manifest: 64 bits in hexadecimal."""


def answer(bucket: FakeBucket, request: FakeRequest, segments: tuple[str, ...]) -> ServiceReply | None:
    """Answer a request about the scopes of a bucket; return None for any other request.

    Args:
        segments: segments of the path after ``/pools/default/buckets/NAME/scopes``.
    """
    if bucket.is_memcached:
        return _not_allowed()
    collections = bucket.collections
    match request.method, segments:
        case "GET", ():
            return ServiceReply(body=collections.encode_for_manager())
        case "POST", ():
            return _unsupported(request.form, "name") or _create_scope(collections, request.form.get("name", ""))
        case "POST", ("@ensureManifest", uid):
            return as_json({}) if _is_uid(uid, collections.uid) else _wrong("manifestUid", "Invalid manifest uid")
        case "DELETE", (scope,):
            return _drop_scope(collections, scope)
        case "POST", (scope, "collections"):
            if _lacks_history(bucket, request):
                return _not_allowed()
            unsupported = _unsupported(request.form, "name", "maxTTL", "history")
            return unsupported or _create(collections, scope, request.form)
        case "PATCH", (scope, "collections", collection):
            if _lacks_history(bucket, request):
                return _not_allowed()
            unsupported = _unsupported(request.form, "maxTTL", "history")
            return unsupported or _update(collections, scope, collection, request.form)
        case "DELETE", (scope, "collections", collection):
            return _drop(collections, scope, collection)
        case _:
            return None


def _lacks_history(bucket: FakeBucket, request: FakeRequest) -> bool:
    """Return whether a request wants history and the bucket cannot keep it, for lack of the Magma storage."""
    return request.form.get("history") == "true" and bucket.mode is not StorageMode.MAGMA


def _unsupported(form: Mapping[str, str], *known: str) -> ServiceReply | None:
    """Return the refusal of a form with fields other than ``known``; None for any other form."""
    unknown = next((field for field in form if field not in known), None)
    return None if unknown is None else _wrong(unknown, "Unsupported key")


def _not_allowed() -> ServiceReply:
    text = b"Not allowed on this type of bucket"
    return ServiceReply(status=400, body=text, content_type="text/plain", applied=False)


def _create_scope(collections: FakeCollections, scope: str) -> ServiceReply:
    if scope in collections.scopes:
        return _wrong("_", f'Scope with name "{scope}" already exists')
    if _NAME.fullmatch(scope) is None:
        return _wrong_name()
    collections.create_scope(scope)
    return _changed(collections)


def _drop_scope(collections: FakeCollections, scope: str) -> ServiceReply:
    if scope not in collections.scopes:
        return _no_scope(scope)
    if scope == DEFAULT_NAME:
        return _wrong("_", "Deleting _default scope is not allowed")
    collections.drop_scope(scope)
    return _changed(collections)


def _create(collections: FakeCollections, scope: str, form: Mapping[str, str]) -> ServiceReply:
    if scope not in collections.scopes:
        return _no_scope(scope)
    name = form.get("name", "")
    if name in collections.scopes[scope]:
        return _wrong("_", f'Collection with name "{name}" in scope "{scope}" already exists')
    settings = _read_settings(form)
    if isinstance(settings, ServiceReply):
        return settings
    if _NAME.fullmatch(name) is None:
        return _wrong_name()
    collections.create(scope, name, settings)
    return _changed(collections)


def _update(collections: FakeCollections, scope: str, name: str, form: Mapping[str, str]) -> ServiceReply:
    settings = _read_settings(form)
    missing = _missing(collections, scope, name)
    if missing is not None:
        return missing
    if isinstance(settings, ServiceReply):
        return settings
    collections.update(scope, name, settings)
    return _changed(collections)


def _drop(collections: FakeCollections, scope: str, name: str) -> ServiceReply:
    missing = _missing(collections, scope, name)
    if missing is not None:
        return missing
    collections.drop(scope, name)
    return _changed(collections)


def _missing(collections: FakeCollections, scope: str, name: str) -> ServiceReply | None:
    if scope not in collections.scopes:
        return _no_scope(scope)
    if name not in collections.scopes[scope]:
        return _refused(404, "_", f'Collection with name "{name}" in scope "{scope}" is not found')
    return None


def _read_settings(form: Mapping[str, str]) -> dict[str, int | bool] | ServiceReply:
    settings: dict[str, int | bool] = {}
    if "maxTTL" in form:
        seconds = integer_of(form["maxTTL"], -1, EXPIRY_MAX)
        if seconds is None:
            return _wrong("maxTTL", f"The value must be in range from -1 to {EXPIRY_MAX}")
        settings["maxTTL"] = seconds
    if "history" in form:
        if form["history"] not in ("true", "false"):
            return _wrong("history", "The value must be one of the following: [true, false]")
        settings["history"] = form["history"] == "true"
    return settings


def _is_uid(text: str, newest: int) -> bool:
    return _UID.fullmatch(text) is not None and int(text, 16) <= newest


def _changed(collections: FakeCollections) -> ServiceReply:
    return as_json({"uid": f"{collections.uid:x}"})


def _no_scope(scope: str) -> ServiceReply:
    return _refused(404, "_", f'Scope with name "{scope}" is not found')


def _wrong_name() -> ServiceReply:
    return _wrong(
        "name", "Can only contain characters A-Z, a-z, 0-9 and the following symbols _ - %, and begin with none of _ %"
    )


def _wrong(field: str, text: str) -> ServiceReply:
    return _refused(400, field, text)


def _refused(status: int, field: str, text: str) -> ServiceReply:
    return as_json({"errors": {field: text}}, status)
