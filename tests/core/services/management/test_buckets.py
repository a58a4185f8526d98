"""Requests about buckets, according to RFC 0054."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.core.services.answers import answered
from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.services.management import buckets
from triclinium_core.services.service_request import Acknowledged, HttpRequest, HttpResponse, MalformedAnswer

FORM = "application/x-www-form-urlencoded"
LEAST = buckets.BucketSettings(name="travel", ram_quota_mb=128)
MOST = buckets.CreateBucketSettings(
    name="travel",
    ram_quota_mb=256,
    flush_enabled=True,
    num_replicas=2,
    replica_indexes=True,
    bucket_type=buckets.BucketType.COUCHBASE,
    eviction_policy=buckets.EvictionPolicy.FULL,
    max_expiry=timedelta(hours=1),
    compression_mode=buckets.CompressionMode.ACTIVE,
    minimum_durability_level=DurabilityLevel.MAJORITY,
    storage_backend=buckets.StorageBackend.MAGMA,
    num_vbuckets=128,
    history_retention_collection_default=True,
    history_retention_bytes=2**64 - 1,
    history_retention_duration=90.5,
    conflict_resolution_type=buckets.ConflictResolutionType.TIMESTAMP,
)


@rows(
    ("request", "expected"),
    [
        (buckets.GetBucket("travel"), HttpRequest("GET", "/pools/default/buckets/travel")),
        (buckets.GetAllBuckets(), HttpRequest("GET", "/pools/default/buckets")),
        (buckets.DropBucket("travel"), HttpRequest("DELETE", "/pools/default/buckets/travel")),
        (buckets.FlushBucket("travel"), HttpRequest("POST", "/pools/default/buckets/travel/controller/doFlush")),
        (
            buckets.CreateBucket(LEAST),
            HttpRequest(
                "POST",
                "/pools/default/buckets",
                b"name=travel&bucketType=membase&ramQuotaMB=128&flushEnabled=0",
                content_type=FORM,
            ),
        ),
        (
            buckets.UpdateBucket(LEAST),
            HttpRequest("POST", "/pools/default/buckets/travel", b"ramQuotaMB=128&flushEnabled=0", content_type=FORM),
        ),
    ],
)
def test_requests(request: buckets.GetBucket, expected: HttpRequest) -> None:
    """Each request has its method, path and form; the form omits settings that are not set."""
    assert expected == request.encode(75.0)
    assert bool(expected.body) == request.has_body


ALL_FIELDS = {
    "name": "travel",
    "bucketType": "membase",
    "ramQuotaMB": "256",
    "flushEnabled": "1",
    "replicaNumber": "2",
    "replicaIndex": "1",
    "evictionPolicy": "fullEviction",
    "maxTTL": "3600",
    "compressionMode": "active",
    "durabilityMinLevel": "majority",
    "storageBackend": "magma",
    "conflictResolutionType": "lww",
    "numVBuckets": "128",
    "historyRetentionCollectionDefault": "true",
    "historyRetentionBytes": "18446744073709551615",
    "historyRetentionSeconds": "91",
}
SETTLED = {"name", "bucketType", "replicaIndex", "conflictResolutionType", "numVBuckets"}
"""Members of the form that an update omits."""


def test_all_settings_are_sent() -> None:
    """Each setting is sent with the service's name and word; an update omits settings that are fixed at creation."""
    created = dict(parse_qsl(buckets.CreateBucket(MOST).encode(1.0).body.decode()))
    updated = dict(parse_qsl(buckets.UpdateBucket(MOST).encode(1.0).body.decode()))

    assert ALL_FIELDS == created
    assert {key: value for key, value in ALL_FIELDS.items() if key not in SETTLED} == updated


@rows(
    ("kind", "setting", "key", "words"),
    [
        (
            buckets.BucketType,
            "bucket_type",
            "bucketType",
            {"COUCHBASE": "membase", "MEMCACHED": "memcached", "EPHEMERAL": "ephemeral"},
        ),
        (
            buckets.EvictionPolicy,
            "eviction_policy",
            "evictionPolicy",
            {
                "FULL": "fullEviction",
                "VALUE_ONLY": "valueOnly",
                "NOT_RECENTLY_USED": "nruEviction",
                "NO_EVICTION": "noEviction",
            },
        ),
        (
            buckets.CompressionMode,
            "compression_mode",
            "compressionMode",
            {"OFF": "off", "PASSIVE": "passive", "ACTIVE": "active"},
        ),
        (
            DurabilityLevel,
            "minimum_durability_level",
            "durabilityMinLevel",
            {
                "NONE": "none",
                "MAJORITY": "majority",
                "MAJORITY_AND_PERSIST_TO_ACTIVE": "majorityAndPersistActive",
                "PERSIST_TO_MAJORITY": "persistToMajority",
            },
        ),
        (
            buckets.StorageBackend,
            "storage_backend",
            "storageBackend",
            {"COUCHSTORE": "couchstore", "MAGMA": "magma"},
        ),
        (
            buckets.ConflictResolutionType,
            "conflict_resolution_type",
            "conflictResolutionType",
            {"TIMESTAMP": "lww", "SEQUENCE_NUMBER": "seqno", "CUSTOM": "custom"},
        ),
    ],
)
def test_words_of_settings(kind: Any, setting: str, key: str, words: Mapping[str, str]) -> None:
    """Every member of every enum is sent as the RFC's word."""
    assert words == {
        each.name: dict(parse_qsl(buckets.CreateBucket(replace(MOST, **{setting: each})).encode(1.0).body.decode()))[
            key
        ]
        for each in kind
    }


@rows(
    ("setting", "values"),
    [
        ("name", ("", None, "..")),
        ("ram_quota_mb", (0, -1, 10**5000, "100", 1.5, True)),
        ("flush_enabled", (1, None)),
        ("num_replicas", (-1, 4)),
        ("replica_indexes", (0,)),
        ("bucket_type", ("membase", None)),
        ("eviction_policy", ("fullEviction",)),
        ("max_expiry", (-1, float("nan"), float("inf"), 2**31)),
        ("compression_mode", ("off",)),
        ("minimum_durability_level", (1,)),
        ("storage_backend", ("magma",)),
        ("num_vbuckets", (-1,)),
        ("history_retention_collection_default", ("true",)),
        ("history_retention_bytes", (2**64,)),
        ("history_retention_duration", (timedelta(seconds=-1),)),
        ("conflict_resolution_type", ("lww",)),
    ],
)
def test_invalid_settings(setting: str, values: tuple[object, ...]) -> None:
    """An invalid setting raises an error with its name when the settings are created."""
    for value in values:
        refused(setting, replace, MOST, **{setting: value})
    refused("name", replace, MOST, name="a/b")


@rows("make", [buckets.CreateBucket, buckets.UpdateBucket])
def test_other_types_are_refused(make: Callable[[object], object]) -> None:
    """A name or a mapping is refused as settings."""
    for wrong in ("travel", {"name": "travel"}, None, buckets.BucketSettings):
        with pytest.raises(errors.InvalidArgumentException):
            make(wrong)


def bucket(**changes: object) -> dict[str, object]:
    """Return a bucket in the service's format with changed members; None omits a member."""
    whole: dict[str, object] = {
        "name": "travel",
        "bucketType": "membase",
        "quota": {"ram": 536870912, "rawRAM": 268435456},
        "controllers": {"flush": "/pools/default/buckets/travel/controller/doFlush"},
        "replicaNumber": 2,
        "replicaIndex": True,
        "evictionPolicy": "fullEviction",
        "maxTTL": 3600,
        "compressionMode": "active",
        "durabilityMinLevel": "majority",
        "storageBackend": "magma",
        "numVBuckets": 128,
        "historyRetentionCollectionDefault": True,
        "historyRetentionBytes": 2**64 - 1,
        "historyRetentionSeconds": 91,
        "nodes": [{"status": "healthy", "hostname": "a:8091"}, {"status": "healthy"}],
        "bucketCapabilities": ["collections", "nonDedupedHistory"],
        "conflictResolutionType": "lww",
        "uuid": "bb",
    }
    return {key: value for key, value in (whole | changes).items() if value is not None}


def test_a_bucket_is_read() -> None:
    """Settings, health and capabilities are read; the quota is in mebibytes, and a flush controller enables flush."""
    found = buckets.GetBucket("travel").decode(answered(bucket()))
    expected = {field: getattr(MOST, field) for field in buckets.BucketSettings.__dataclass_fields__}

    assert buckets.BucketSettings(**expected | {"max_expiry": 3600, "history_retention_duration": 91}) == found.settings
    assert found.is_healthy
    assert frozenset({"collections", "nonDedupedHistory"}) == found.capabilities


def test_received_settings_can_be_updated() -> None:
    """A caller can change one setting of a received bucket and send the result."""
    found = buckets.GetBucket("travel").decode(answered(bucket())).settings
    sent = dict(parse_qsl(buckets.UpdateBucket(replace(found, ram_quota_mb=512)).encode(1.0).body.decode()))

    assert {key: value for key, value in ALL_FIELDS.items() if key not in SETTLED} | {"ramQuotaMB": "512"} == sent


def test_a_bucket_of_an_old_server() -> None:
    """A missing member is read as None, and a bucket without a flush controller has flush disabled."""
    found = buckets.GetBucket("old").decode(
        answered({"name": "old", "quota": {"rawRAM": 104857600}, "controllers": {}})
    )

    assert buckets.BucketSettings(name="old", ram_quota_mb=100) == found.settings
    assert not found.is_healthy


def test_an_ephemeral_bucket() -> None:
    """An ephemeral bucket has no storage backend."""
    body = bucket(bucketType="ephemeral", storageBackend="undefined", evictionPolicy="noEviction", replicaIndex=None)
    found = buckets.GetBucket("travel").decode(answered(body)).settings

    assert (buckets.BucketType.EPHEMERAL, None, buckets.EvictionPolicy.NO_EVICTION) == (
        found.bucket_type,
        found.storage_backend,
        found.eviction_policy,
    )


@rows("states", [[], ["warmup"], ["healthy", "warmup"], ["unhealthy", "healthy"], [""]])
def test_a_bucket_that_is_not_ready(states: list[str]) -> None:
    """A bucket is not healthy without nodes, or while any node is not healthy."""
    body = bucket(nodes=[{"status": state} for state in states])

    assert not buckets.GetBucket("travel").decode(answered(body)).is_healthy


def test_all_buckets_are_read() -> None:
    """Buckets are returned in the service's order; the list may be empty."""
    found = buckets.GetAllBuckets().decode(answered([bucket(), bucket(name="other")]))

    assert ["travel", "other"] == [each.settings.name for each in found.buckets]
    assert () == buckets.GetAllBuckets().decode(answered([])).buckets


@rows("changes", [{"name": None}, {"name": ""}, {"name": "a/b"}, {"name": 7}, {"name": ".."}])
def test_a_bucket_without_a_usable_name(changes: dict[str, object]) -> None:
    """Without a usable name, a bucket requested alone raises MalformedAnswer, and a list omits the bucket."""
    with pytest.raises(MalformedAnswer):
        buckets.GetBucket("travel").decode(answered(bucket(**changes)))

    found = buckets.GetAllBuckets().decode(answered([bucket(**changes), bucket(name="other"), 5]))

    assert (["other"], 2) == ([each.settings.name for each in found.buckets], found.unread)


@rows(
    ("member", "value", "setting", "expected", "sent"),
    [
        ("evictionPolicy", "brandNew", "eviction_policy", "brandNew", "brandNew"),
        ("compressionMode", "zstd", "compression_mode", "zstd", "zstd"),
        ("storageBackend", "plasma", "storage_backend", "plasma", "plasma"),
        ("durabilityMinLevel", "future", "minimum_durability_level", "future", "future"),
        ("bucketType", "columnar", "bucket_type", "columnar", None),
        ("replicaNumber", 7, "num_replicas", 7, "7"),
        ("maxTTL", -5, "max_expiry", -5, "-5"),
        ("historyRetentionSeconds", 2**40, "history_retention_duration", 2**40, str(2**40)),
        ("quota", {"rawRAM": -1}, "ram_quota_mb", -1, "-1"),
        ("quota", ..., "ram_quota_mb", None, None),
        ("quota", 7, "ram_quota_mb", None, None),
        ("evictionPolicy", 7, "eviction_policy", None, None),
        ("evictionPolicy", "x" * 101, "eviction_policy", None, None),
        ("evictionPolicy", "a\x1b[2J", "eviction_policy", None, None),
        ("bucketType", None, "bucket_type", None, None),
        ("bucketType", {}, "bucket_type", None, None),
        ("replicaNumber", 10**4000, "num_replicas", None, None),
        ("replicaNumber", 1.5, "num_replicas", None, None),
        ("replicaIndex", "yes", "replica_indexes", None, None),
        ("historyRetentionBytes", [], "history_retention_bytes", None, None),
        ("controllers", [], "flush_enabled", False, "0"),
    ],
)
def test_an_unknown_value(member: str, value: object, setting: str, expected: object, sent: str | None) -> None:
    """An unknown value is kept, or read as None or False; other settings are read, and an update sends or omits it."""
    body = {name: each for name, each in (bucket() | {member: value}).items() if each is not ...}
    found = buckets.GetAllBuckets().decode(answered([body, bucket(name="other")]))
    settings = found.buckets[0].settings
    form = dict(parse_qsl(buckets.UpdateBucket(replace(settings, history_retention_bytes=5)).encode(1.0).body.decode()))
    key = {row.setting: row.key for row in buckets._FORM}[setting]

    assert (["travel", "other"], 0) == ([each.settings.name for each in found.buckets], found.unread)
    assert (expected, sent if setting != "history_retention_bytes" else "5") == (
        getattr(settings, setting),
        form.get(key),
    )
    assert "5" == form["historyRetentionBytes"]


def test_an_unknown_value_is_only_accepted_as_received() -> None:
    """A caller can change received settings to known values, but not to another unknown value."""
    body = bucket(evictionPolicy="brandNew", replicaNumber=7)
    found = buckets.GetBucket("travel").decode(answered(body)).settings

    assert buckets.EvictionPolicy.FULL is replace(found, eviction_policy=buckets.EvictionPolicy.FULL).eviction_policy
    for change in ({"eviction_policy": "newer"}, {"num_replicas": 8}, {"num_replicas": 7.0}, {"ram_quota_mb": None}):
        with pytest.raises(errors.InvalidArgumentException):
            replace(found, **change)


def test_nodes_of_an_unknown_form() -> None:
    """A bucket is not healthy if a node of it has no readable status."""
    found = buckets.GetBucket("travel").decode(
        answered(bucket(nodes=[{"status": "healthy"}, 7], bucketCapabilities=["a", 7]))
    )

    assert (("a node", "healthy"), ("a node", "")) == found.nodes
    assert not found.is_healthy
    assert frozenset({"a"}) == found.capabilities


def test_acknowledgements() -> None:
    """A successful response acknowledges a change, with any body."""
    for request in (
        buckets.CreateBucket(LEAST),
        buckets.UpdateBucket(LEAST),
        buckets.DropBucket("b"),
        buckets.FlushBucket("b"),
    ):
        assert Acknowledged() == request.decode(HttpResponse(202, b"whatever"))
        assert request.error_context().bucket in ("travel", "b")
