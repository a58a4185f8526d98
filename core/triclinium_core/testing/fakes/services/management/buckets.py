"""Bucket requests of the cluster manager; key-value nodes see the result immediately, unless ``learn_late`` is set.

Source: SDK-RFC 0054, BucketManager; Couchbase Server documentation, "Buckets API".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from triclinium_core.kv.operation.validation import REPLICAS_MAX
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.services.answers import ServiceReply, as_json
from triclinium_core.testing.fakes.services.fake_request import FakeRequest, integer_of
from triclinium_core.testing.fakes.services.management import collections
from triclinium_core.testing.fakes.store.buckets import COUCHBASE, EPHEMERAL, MEMCACHED, FakeBucket
from triclinium_core.testing.fakes.store.config import SERVICE_NAMES, bucket_uuid
from triclinium_core.testing.fakes.store.state import NodeState

RAM_QUOTA_MIN = 100
"""Minimum quota in MiB of a bucket with its documents on disk."""

VERSION = "7.6.0-0000-enterprise"
"""Version that the nodes report, and whose responses they send."""

MIB = 1024 * 1024

_NAME = re.compile(r"[A-Za-z0-9_%-][A-Za-z0-9_.%-]{0,99}")

_TYPES: Mapping[str, str] = {"couchbase": COUCHBASE, COUCHBASE: COUCHBASE, EPHEMERAL: EPHEMERAL, MEMCACHED: MEMCACHED}
"""Types of buckets as clients name them, with their names in configs."""

_CHOICES: Mapping[str, Sequence[str]] = {
    "bucketType": tuple(_TYPES),
    "flushEnabled": ("0", "1"),
    "replicaIndex": ("0", "1"),
    "compressionMode": ("off", "passive", "active"),
    "conflictResolutionType": ("seqno", "lww", "custom"),
    "evictionPolicy": ("valueOnly", "fullEviction", "noEviction", "nruEviction"),
    "durabilityMinLevel": ("none", "majority", "majorityAndPersistActive", "persistToMajority"),
    "storageBackend": ("couchstore", "magma"),
}
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "ramQuotaMB": (RAM_QUOTA_MIN, 1 << 30),
    "replicaNumber": (0, REPLICAS_MAX),
    "maxTTL": (0, 2_147_483_647),
}
"""Minimum and maximum of each number."""


def answer(node: NodeState, request: FakeRequest, segments: tuple[str, ...]) -> ServiceReply | None:
    """Answer a request about buckets; return None for any other request.

    Args:
        segments: segments of the path after ``/pools/default/buckets``.
    """
    buckets = node.cluster.buckets
    if not segments:
        match request.method:
            case "GET":
                return as_json([described(node, bucket) for bucket in buckets])
            case "POST":
                return _create(node, request.form)
            case _:
                return None
    name, *further = segments
    bucket = buckets.get(name)
    if bucket is None:
        return not_found()
    match request.method, tuple(further):
        case "GET", ():
            return as_json(described(node, bucket))
        case (("POST" | "PUT"), ()):
            return _update(node, bucket, request.form)
        case "DELETE", ():
            buckets.drop(name)
            node.cluster.ring()
            return ServiceReply()
        case "POST", ("controller", "doFlush"):
            if bucket.settings["flushEnabled"] != "1":
                return _refused({"_": "Flush is disabled for the bucket"})
            buckets.flush(name)
            return ServiceReply()
        case "GET", ("ddocs",):
            return as_json({"rows": node.cluster.services.design_documents.rows_of(name)})
        case _, ("scopes", *of_scopes):
            return collections.answer(bucket.collections, request, tuple(of_scopes))
        case _:
            return None


def not_found() -> ServiceReply:
    """Answer a request for an unknown resource."""
    return ServiceReply(status=404, body=b"Requested resource not found.\r\n", content_type="text/plain", applied=False)


def described(node: NodeState, bucket: FakeBucket) -> Mapping[str, object]:
    """Return the description of a bucket."""
    settings, path = bucket.settings, f"/pools/default/buckets/{quote(bucket.name, safe='')}"
    quota = int(settings["ramQuotaMB"]) * MIB
    controllers = {"compactAll": f"{path}/controller/compactBucket"}
    if settings["flushEnabled"] == "1":
        controllers["flush"] = f"{path}/controller/doFlush"
    return {
        "name": bucket.name,
        "uuid": bucket_uuid(bucket.name),
        "bucketType": settings["bucketType"],
        "uri": path,
        "streamingUri": f"/pools/default/bs/{quote(bucket.name, safe='')}",
        "controllers": controllers,
        "nodes": nodes_of(node),
        "nodeLocator": "vbucket",
        "numVBuckets": len(node.map.owners),
        "quota": {"ram": quota * len(node.map.members), "rawRAM": quota},
        "replicaNumber": int(settings["replicaNumber"]),
        "replicaIndex": settings["replicaIndex"] == "1",
        "maxTTL": int(settings["maxTTL"]),
        "compressionMode": settings["compressionMode"],
        "conflictResolutionType": settings["conflictResolutionType"],
        "evictionPolicy": settings["evictionPolicy"],
        "durabilityMinLevel": settings["durabilityMinLevel"],
        "storageBackend": settings["storageBackend"],
    }


def nodes_of(node: NodeState) -> Sequence[Mapping[str, object]]:
    """Return the descriptions of the nodes of the cluster."""
    cluster = node.cluster
    return [
        {
            "hostname": f"{cluster.nodes[member].host}:{port}",
            "status": "unhealthy" if member in cluster.dead else "healthy",
            "clusterMembership": "active",
            "version": VERSION,
            "services": [SERVICE_NAMES[service] for service in Service if service in cluster.nodes[member].services],
            "ports": {"direct": cluster.nodes[member].port},
        }
        for member in node.map.members
        for port in (cluster.nodes[member].service_ports.get(Service.MANAGEMENT, 0),)
    ]


def _create(node: NodeState, form: Mapping[str, str]) -> ServiceReply:
    name = form.get("name", "")
    errors = _wrong_settings(form)
    if _NAME.fullmatch(name) is None:
        errors["name"] = "Bucket name can only contain characters A-Z, a-z, 0-9 and _ - . %, and begin with no dot"
    if name in node.cluster.buckets:
        errors["name"] = "Bucket with given name already exists"
    if "ramQuotaMB" not in form:
        errors["ramQuotaMB"] = "RAM quota must be specified"
    if errors:
        return _refused({"errors": errors, "summaries": {}})
    node.cluster.buckets.create(name, _settings_of(form))
    return ServiceReply(status=202)


def _update(node: NodeState, bucket: FakeBucket, form: Mapping[str, str]) -> ServiceReply:
    errors = _wrong_settings(form)
    kind = form.get("bucketType")
    if kind is not None and _TYPES.get(kind) != bucket.settings["bucketType"]:
        errors["bucketType"] = "Cannot change bucket type."
    if errors:
        return _refused({"errors": errors, "summaries": {}})
    node.cluster.buckets.update(bucket.name, _settings_of(form))
    return ServiceReply()


def _settings_of(form: Mapping[str, str]) -> dict[str, str]:
    settings = {name: value for name, value in form.items() if name in _CHOICES or name in _NUMBERS}
    if "bucketType" in settings:
        settings["bucketType"] = _TYPES[settings["bucketType"]]
    return settings


def _wrong_settings(form: Mapping[str, str]) -> dict[str, str]:
    errors = {}
    for name, choices in _CHOICES.items():
        if name in form and form[name] not in choices:
            errors[name] = f"must be one of {', '.join(choices)}"
    for name, (least, most) in _NUMBERS.items():
        value = form.get(name)
        if value is not None and integer_of(value, least, most) is None:
            errors[name] = f"must be an integer from {least} to {most}"
    return errors


def _refused(document: Mapping[str, object]) -> ServiceReply:
    return ServiceReply(status=400, body=msgspec.json.encode(document), applied=False)
