"""Bucket requests of the cluster manager; key-value nodes see the result immediately, unless ``learn_late`` is set.

Source: SDK-RFC 0054, BucketManager; Couchbase Server documentation, "Buckets API"; ns_server of version 7.6,
"menelaus_web_buckets".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.services.answers import ServiceReply, as_json
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.management import collections
from triclinium_core.testing.fakes.services.management.bucket_settings import checked_for_new, checked_for_update
from triclinium_core.testing.fakes.services.management.pools import MIB, nodes_of
from triclinium_core.testing.fakes.store.buckets import STORAGE_BACKENDS, FakeBucket, StorageMode
from triclinium_core.testing.fakes.store.capabilities import bucket_capabilities
from triclinium_core.testing.fakes.store.config import bucket_identity, vbucket_server_map
from triclinium_core.testing.fakes.store.state import NodeState

NAME_SIZE_MAX = 100

_NAME = re.compile(r"[A-Za-z0-9_.%-]+")

_TEXTS: Sequence[str] = ("evictionPolicy", "durabilityMinLevel", "conflictResolutionType", "compressionMode")
_NUMBERS: Sequence[str] = (
    "replicaNumber",
    "threadsNumber",
    "maxTTL",
    "rank",
    "storageQuotaPercentage",
    "historyRetentionSeconds",
    "historyRetentionBytes",
    "magmaKeyTreeDataBlockSize",
    "magmaSeqTreeDataBlockSize",
)
"""Settings in the description of a bucket, each under its name in forms, if the bucket has them."""

_IN_CONFIGS = frozenset({"replicaNumber", "storageBackend"})
"""Settings that change the config of the bucket."""


def answer(node: NodeState, request: FakeRequest, segments: tuple[str, ...]) -> ServiceReply | None:
    """Answer a request about buckets; return None for any other request.

    Args:
        segments: segments of the path after ``/pools/default/buckets``.
    """
    buckets = node.cluster.buckets
    if not segments:
        match request.method:
            case "GET":
                return as_json([_described(node, bucket, request) for bucket in buckets])
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
            return as_json(_described(node, bucket, request))
        case (("POST" | "PUT"), ()):
            return _update(node, bucket, request.form)
        case "DELETE", ():
            buckets.drop(name)
            node.cluster.services.design_documents.forget_bucket(name)
            node.cluster.services.search_indexes.forget_bucket(name)
            node.cluster.ring()
            return ServiceReply()
        case "POST", ("controller", "doFlush"):
            if bucket.settings["flushEnabled"] != "1":
                return as_json({"_": "Flush is disabled for the bucket"}, 400)
            buckets.flush(name)
            return ServiceReply()
        case "POST", ("controller", "compactBucket"):
            return ServiceReply()
        case "POST", ("ddocs", _, "controller", "compactView"):
            return ServiceReply()
        case "GET", ("ddocs",):
            if bucket.mode is not StorageMode.COUCHSTORE:
                return as_json({"error": "no_ddocs_service"}, 400)
            return as_json({"rows": node.cluster.services.design_documents.rows_of(name)})
        case _, ("scopes", *of_scopes):
            return collections.answer(bucket, request, tuple(of_scopes))
        case _:
            return None


def not_found() -> ServiceReply:
    """Answer a request for an unknown resource."""
    return ServiceReply(status=404, body=b"Requested resource not found.\r\n", content_type="text/plain", applied=False)


def _described(node: NodeState, bucket: FakeBucket, request: FakeRequest) -> Mapping[str, object]:
    """Return the description of a bucket. The parameter ``skipMap`` omits its vbuckets."""
    settings, mode = bucket.settings, bucket.mode
    identity = bucket_identity(bucket, len(node.map.owners))
    path, quota = identity["uri"], int(settings["ramQuotaMB"]) * MIB
    controllers = {"compactAll": f"{path}/controller/compactBucket"}
    if settings["flushEnabled"] == "1":
        controllers["flush"] = f"{path}/controller/doFlush"
    described = {
        **identity,
        "bucketCapabilitiesVer": "",
        "bucketCapabilities": bucket_capabilities(mode, node.options),
        "controllers": controllers,
        "nodes": nodes_of(node, request),
        "basicStats": _statistics(node, bucket),
        "authType": "sasl",
        "quota": {"ram": quota * len(node.map.members), "rawRAM": quota},
    }
    if mode is StorageMode.COUCHSTORE:
        described |= {"ddocs": {"uri": f"{path}/ddocs"}, "replicaIndex": settings["replicaIndex"] == "1"}
    if mode in STORAGE_BACKENDS:
        described["autoCompactionSettings"] = False
    if mode is not StorageMode.MEMCACHED:
        described["collectionsManifestUid"] = f"{bucket.collections.uid:x}"
        if request.parameters.get("skipMap") != "true":
            described["vBucketServerMap"] = vbucket_server_map(node.map, node.cluster.nodes, bucket)
    if mode is StorageMode.MAGMA:
        described["historyRetentionCollectionDefault"] = bucket.keeps_history
    reported = bucket.reported()
    described |= {name: reported[name] for name in _TEXTS}
    return described | {name: int(reported[name]) for name in _NUMBERS if name in reported}


def _statistics(node: NodeState, bucket: FakeBucket) -> Mapping[str, object]:
    """Return the number of documents of a bucket; the statistics of use are zero."""
    ids = [uid for collections in bucket.collections.scopes.values() for uid in collections.values()]
    unused = ("quotaPercentUsed", "opsPerSec", "diskUsed", "dataUsed", "memUsed")
    return dict.fromkeys((*unused, "hitRatio" if bucket.is_memcached else "diskFetches"), 0) | {
        "itemCount": node.documents.count(bucket.name, set(ids))
    }


def _create(node: NodeState, form: Mapping[str, str]) -> ServiceReply:
    name = form.get("name", "")
    settings, errors = checked_for_new(form, _data_nodes(node))
    wrong_name = _wrong_name(name, [bucket.name for bucket in node.cluster.buckets])
    if wrong_name is not None:
        errors = {"name": wrong_name, **errors}
    if errors:
        return as_json({"errors": errors, "summaries": {}}, 400)
    node.cluster.buckets.create(name, settings)
    return ServiceReply(status=202, headers={"Location": f"/pools/default/buckets/{name}"})


def _update(node: NodeState, bucket: FakeBucket, form: Mapping[str, str]) -> ServiceReply:
    settings, errors = checked_for_update(bucket, form, data_nodes=_data_nodes(node), vbuckets=len(node.map.owners))
    if errors:
        return as_json({"errors": errors, "summaries": {}}, 400)
    if bucket.mode is StorageMode.MAGMA and settings.get("storageBackend") == StorageMode.COUCHSTORE:
        keeping = {"bucket": bucket.forbids_couchstore, "collections": bucket.collections.any_history}
        place = next((place for place, keeps in keeping.items() if keeps), None)
        if place is not None:
            text = f"Cannot migrate storage mode. history_retention enabled on {place}."
            return ServiceReply(status=400, body=text.encode(), content_type="text/plain", applied=False)
    node.cluster.buckets.update(bucket.name, settings)
    if any(bucket.settings.get(name) != settings[name] for name in _IN_CONFIGS & settings.keys()):
        current = node.cluster.map
        node.cluster.take_map(current.followed_by(current.members, current.owners, current.replicas))
    return ServiceReply()


def _wrong_name(name: str, taken: Sequence[str]) -> str | None:
    """Return the reason why a bucket cannot have a name, or None if it can. Letter case does not distinguish names."""
    if not name:
        return "Bucket name needs to be specified"
    if len(name) > NAME_SIZE_MAX:
        return f"Bucket name cannot exceed {NAME_SIZE_MAX} characters"
    if name.startswith("."):
        return "Bucket name cannot start with dot."
    if _NAME.fullmatch(name) is None:
        return "Bucket name can only contain characters A-Z, a-z, 0-9 and _ - . %"
    if name.lower() in map(str.lower, taken):
        return "Bucket with given name already exists"
    return None


def _data_nodes(node: NodeState) -> int:
    return sum(Service.KV in node.cluster.nodes[member].services for member in node.map.members)
