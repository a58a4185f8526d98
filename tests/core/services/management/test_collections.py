"""Requests about scopes and collections, according to RFC 0054."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings as hypothesis_settings

from tests.core.services.management.answers import JSON, anything, refuses_nonsense, survives
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.manifest.collections_manifest import CollectionsManifest, CollectionSpec, ScopeSpec
from triclinium_core.services.management import collections
from triclinium_core.services.management.management_request import ManagementRequest
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer

SCOPES = "/pools/default/buckets/travel/scopes"


@rows(
    ("request", "method", "target", "body"),
    [
        (collections.GetAllScopes("travel"), "GET", SCOPES, b""),
        (collections.CreateScope("travel", "inventory"), "POST", SCOPES, b"name=inventory"),
        (collections.DropScope("travel", "inventory"), "DELETE", f"{SCOPES}/inventory", b""),
        (
            collections.CreateCollection("travel", "inventory", "hotel"),
            "POST",
            f"{SCOPES}/inventory/collections",
            b"name=hotel",
        ),
        (
            collections.CreateCollection(
                "travel", "i", "hotel", collections.CreateCollectionSettings(max_expiry=60, history=True)
            ),
            "POST",
            f"{SCOPES}/i/collections",
            b"name=hotel&maxTTL=60&history=true",
        ),
        (
            collections.UpdateCollection("travel", "i", "hotel", collections.UpdateCollectionSettings(max_expiry=0.2)),
            "PATCH",
            f"{SCOPES}/i/collections/hotel",
            b"maxTTL=1",
        ),
        (
            collections.UpdateCollection(
                "travel",
                "i",
                "hotel",
                collections.UpdateCollectionSettings(max_expiry=timedelta(days=1), history=False),
            ),
            "PATCH",
            f"{SCOPES}/i/collections/hotel",
            b"maxTTL=86400&history=false",
        ),
        (
            collections.UpdateCollection(
                "travel", "i", "hotel", collections.UpdateCollectionSettings(max_expiry=collections.NEVER_EXPIRES)
            ),
            "PATCH",
            f"{SCOPES}/i/collections/hotel",
            b"maxTTL=-1",
        ),
        (
            collections.CreateCollection(
                "travel", "i", "hotel", collections.CreateCollectionSettings(max_expiry=timedelta(seconds=-1))
            ),
            "POST",
            f"{SCOPES}/i/collections",
            b"name=hotel&maxTTL=-1",
        ),
        (
            collections.DropCollection("travel", "inventory", "hotel"),
            "DELETE",
            f"{SCOPES}/inventory/collections/hotel",
            b"",
        ),
    ],
)
def test_requests(request: ManagementRequest, method: str, target: str, body: bytes) -> None:
    """Each request has its method, path and form; the form omits settings that are not set."""
    sent = request.encode(75.0)

    assert (method, target, body) == (sent.method, sent.target, sent.body)
    assert bool(body) == request.has_body
    assert not body or sent.content_type == "application/x-www-form-urlencoded"


def test_percent_signs_in_names() -> None:
    """Percent signs are valid in names, and the path encodes them, so each name stays one path segment."""
    target = collections.DropCollection("a%2Fb", "c%2Fd", "e%2Ff").target

    assert "/pools/default/buckets/a%252Fb/scopes/c%252Fd/collections/e%252Ff" == target


@rows("name", ["", ".", "a/b", "a b", "ü", "x" * 252, None, 7, "a\n", "a&b=c"])
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
        with pytest.raises(errors.InvalidArgumentException) as caught:
            kind(**options)

        assert next(iter(options)) == caught.value.parameter


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
        assert collections.ManifestChanged(0x1F) == request.decode(HttpResponse(200, b'{"uid":"1f"}'))


@rows(
    "body",
    [
        b"{}",
        b'{"uid":3}',
        b'{"uid":""}',
        b'{"uid":"xyz"}',
        b'{"uid":"12345678901234567"}',
        b'{"uid":"-1"}',
        b'{"uid":"ffffffffffffffff"}',
    ],
)
def test_invalid_manifests(body: bytes) -> None:
    """A missing or invalid manifest id raises MalformedAnswer."""
    with pytest.raises(MalformedAnswer):
        collections.CreateScope("b", "s").decode(HttpResponse(200, body))


def test_scopes_are_read() -> None:
    """The manifest has all scopes and collections with their settings."""
    body = {
        "uid": "2a",
        "scopes": [
            {
                "name": "inventory",
                "uid": "8",
                "collections": [
                    {"name": "hotel", "uid": "9", "maxTTL": 60, "history": True},
                    {"name": "airline", "uid": "a"},
                ],
            },
            {"name": "_default", "uid": "0", "collections": []},
        ],
    }
    hotel = CollectionSpec(name="hotel", scope_name="inventory", id=9, max_expiry=60, history=True)
    airline = CollectionSpec(name="airline", scope_name="inventory", id=10)
    inventory = ScopeSpec(name="inventory", id=8, collections=(hotel, airline))
    expected = CollectionsManifest(uid=42, scopes=(inventory, ScopeSpec(name="_default", id=0, collections=())))

    assert collections.ScopesResult(expected) == collections.GetAllScopes("b").decode(
        HttpResponse(200, json.dumps(body).encode())
    )


def test_invalid_responses() -> None:
    """An invalid response raises MalformedAnswer."""
    change: collections.ManifestChange = collections.CreateScope("b", "s")
    refuses_nonsense(change)
    refuses_nonsense(collections.GetAllScopes("b"))


@hypothesis_settings(max_examples=50)
@given(JSON)
def test_any_json(whole: object) -> None:
    """Any JSON is decoded or raises MalformedAnswer."""
    for body in (whole, {"uid": whole}, {"uid": "1", "scopes": whole}, {"uid": "1", "scopes": [whole]}):
        survives(collections.GetAllScopes("b"), json.dumps(body).encode())
        survives(collections.CreateScope("b", "s"), json.dumps(body).encode())
