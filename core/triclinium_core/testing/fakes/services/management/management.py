"""Cluster manager: configs, buckets, scopes and collections, users and groups.

Source: SDK-RFC 0054; Couchbase Server documentation, "REST API reference".
"""

from __future__ import annotations

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.services.answers import ServiceReply, as_json, unanswered, without_rows
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.management import buckets, pools, users
from triclinium_core.testing.fakes.store.config import bucket_uuid, encode_config
from triclinium_core.testing.fakes.store.state import NodeState


def script_key(node: NodeState, request: FakeRequest) -> str:
    """Return the key in the script: method and path."""
    return f"{request.method} {request.target.partition('?')[0]}"


def answer(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request to the cluster manager."""
    scripted = node.cluster.services.script.take(Service.MANAGEMENT, script_key(node, request))
    if scripted is not None:
        return without_rows(scripted)
    reply = _answer(node, request)
    if reply is not None:
        return reply
    return unanswered(Service.MANAGEMENT, request, b"Not found.\n")


def unauthorized(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request without valid credentials."""
    return ServiceReply(status=401, headers={"WWW-Authenticate": 'Basic realm="Couchbase Server Admin / REST"'})


def _answer(node: NodeState, request: FakeRequest) -> ServiceReply | None:
    mismatch = _mismatch(node, request)
    if mismatch is not None:
        text = f"{mismatch} uuid does not match the requested.\r\n".encode()
        return ServiceReply(status=404, body=text, content_type="text/plain", applied=False)
    match request.method, request.segments:
        case "GET", ("pools",):
            return as_json(pools.all_pools(node))
        # Source: ns_server, which serves the second path for the sake of old documentation.
        case "GET", ("pools", "default" | "nodes"):
            return as_json(pools.cluster(node, request))
        case "GET", ("pools", "default", "nodeServices"):
            return ServiceReply(body=config_of(node, None))
        case "GET", ("pools", "default", "nodeServicesStreaming"):
            return ServiceReply(follows="")
        case "GET", ("pools", "default", ("b" | "bs") as how, name):
            if name not in node.cluster.buckets:
                return buckets.not_found()
            return ServiceReply(follows=name) if how == "bs" else ServiceReply(body=config_of(node, name))
        case _, ("pools", "default", "buckets", *further):
            return buckets.answer(node, request, tuple(further))
        case _:
            return users.answer(node, request)


def _mismatch(node: NodeState, request: FakeRequest) -> str | None:
    """Return ``Cluster`` or ``Bucket``, the one whose UUID in the request is not current; None if neither is wrong."""
    # Source: ns_server, "check_uuid" and "check_bucket_uuid" of menelaus_web.
    given = request.parameters
    if given.get("uuid", pools.cluster_uuid(node)) != pools.cluster_uuid(node):
        return "Cluster"
    match request.segments:
        case ("pools", "default", "buckets" | "b" | "bs", name, *_) if name in node.cluster.buckets:
            uuid = bucket_uuid(node.cluster.buckets[name])
            return None if given.get("bucket_uuid", uuid) == uuid else "Bucket"
        case _:
            return None


def config_of(node: NodeState, bucket: str | None) -> bytes:
    """Return the config of a bucket, or the global config, as the node has it."""
    return encode_config(node.map, node.cluster.nodes, node.index, node.cluster.buckets.get(bucket))
