"""Requests about scopes and collections, according to RFC 0054."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.core.kv.operation.manifest.test_manifest_codec import DECODED, MANIFEST
from tests.core.services.answers import answered, anything
from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.management import collections
from triclinium_core.services.management.management_request import ManagementRequest
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer

HOTEL = ("travel", "i", "hotel")


def creation(**settings: Any) -> collections.CreateCollection:
    """Return a request that creates a collection with these settings."""
    return collections.CreateCollection(*HOTEL, collections.CreateCollectionSettings(**settings))


def update(**settings: Any) -> collections.UpdateCollection:
    """Return a request that changes these settings of a collection."""
    return collections.UpdateCollection(*HOTEL, collections.UpdateCollectionSettings(**settings))


@rows(
    ("request", "method", "path", "body"),
    [
        (collections.GetAllScopes("travel"), "GET", "", b""),
        (collections.CreateScope("travel", "i"), "POST", "", b"name=i"),
        (collections.DropScope("travel", "i"), "DELETE", "/i", b""),
        (collections.CreateCollection(*HOTEL), "POST", "/i/collections", b"name=hotel"),
        (creation(max_expiry=60, history=True), "POST", "/i/collections", b"name=hotel&maxTTL=60&history=true"),
        (creation(max_expiry=timedelta(seconds=-1)), "POST", "/i/collections", b"name=hotel&maxTTL=-1"),
        (update(max_expiry=0.2), "PATCH", "/i/collections/hotel", b"maxTTL=1"),
        (update(max_expiry=collections.NEVER_EXPIRES), "PATCH", "/i/collections/hotel", b"maxTTL=-1"),
        (
            update(max_expiry=timedelta(days=1), history=False),
            "PATCH",
            "/i/collections/hotel",
            b"maxTTL=86400&history=false",
        ),
        (collections.DropCollection(*HOTEL), "DELETE", "/i/collections/hotel", b""),
    ],
)
def test_requests(request: ManagementRequest, method: str, path: str, body: bytes) -> None:
    """Each request has its method, path and form; the form omits settings that are not set."""
    sent = request.encode(75.0)

    assert (method, f"/pools/default/buckets/travel/scopes{path}", body) == (sent.method, sent.target, sent.body)
    assert bool(body) == request.has_body
    assert not body or sent.content_type == "application/x-www-form-urlencoded"


@rows("name", ["", "a/b", "a b", "ü", "x" * 252, "a\n", "a&b=c"])
def test_invalid_names(name: str) -> None:
    """A name with characters that scopes and collections do not permit is refused."""
    for make in (
        lambda: collections.CreateScope("b", name),
        lambda: collections.DropScope("b", name),
        lambda: collections.CreateCollection("b", name, "c"),
        lambda: collections.CreateCollection("b", "s", name),
        lambda: collections.DropCollection("b", "s", name),
        lambda: collections.UpdateCollection("b", "s", name, collections.UpdateCollectionSettings(history=True)),
    ):
        with pytest.raises(errors.InvalidArgumentException):
            make()


@rows(
    "options",
    [
        {"max_expiry": -2},
        {"max_expiry": "60"},
        {"max_expiry": float("nan")},
        {"max_expiry": 2**31},
        {"max_expiry": timedelta(seconds=-30)},
        {"max_expiry": timedelta(microseconds=-1)},
        {"history": 1},
        {"history": "true"},
    ],
)
def test_invalid_settings(options: dict[str, Any]) -> None:
    """An invalid setting raises an error with its name when the settings are created."""
    for kind in (collections.CreateCollectionSettings, collections.UpdateCollectionSettings):
        refused(next(iter(options)), kind, **options)


def test_an_empty_update_is_refused() -> None:
    """An update without settings, or with settings of another type, is refused."""
    with pytest.raises(errors.InvalidArgumentException):
        collections.UpdateCollectionSettings()
    with pytest.raises(errors.InvalidArgumentException):
        collections.UpdateCollection("b", "s", "c", anything(collections.CreateCollectionSettings()))
    with pytest.raises(errors.InvalidArgumentException):
        collections.CreateCollection("b", "s", "c", anything({"max_expiry": 1}))


def test_the_context_has_the_collection() -> None:
    """The error context of a request has its bucket, scope and collection."""
    context = collections.DropCollection("travel", "inventory", "hotel").error_context()

    assert ("travel", "inventory", "hotel") == (context.bucket, context.scope, context.collection)


def test_a_change_has_a_manifest() -> None:
    """The response to a change gives the id of the changed manifest, which the service sends in hexadecimal."""
    for request in (
        collections.CreateScope("b", "s"),
        collections.DropScope("b", "s"),
        collections.DropCollection("b", "s", "c"),
    ):
        assert collections.ManifestChanged(0x1F) == request.decode(answered({"uid": "1f"}))


@rows("uid", [None, 3, "", "xyz", "12345678901234567", "-1", "ffffffffffffffff"])
def test_invalid_manifests(uid: object) -> None:
    """A missing or invalid manifest id raises MalformedAnswer."""
    with pytest.raises(MalformedAnswer):
        collections.CreateScope("b", "s").decode(answered({"uid": uid} if uid is not None else {}))


def test_scopes_are_read() -> None:
    """The manifest has all scopes and collections with their settings."""
    assert collections.ScopesResult(DECODED) == collections.GetAllScopes("b").decode(HttpResponse(200, MANIFEST))
