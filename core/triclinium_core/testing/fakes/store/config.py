"""The cluster config as a fake node answers it.

Source: kv_engine docs/BinaryProtocol.md, 0xb5 and server request 0x01.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import msgspec

from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE, FakeMap

HOST_PLACEHOLDER = "$HOST"
"""Stands in a config where the client has to put in the host that it connected to."""

_BUCKET_CAPABILITIES: Mapping[HelloFeature | None, tuple[str, ...]] = {
    None: ("cbhello", "cccp", "nodesExt"),
    HelloFeature.JSON: ("rangeScan",),
    HelloFeature.COLLECTIONS: ("collections",),
    HelloFeature.PRESERVE_TTL: ("preserveExpiry",),
    HelloFeature.SUBDOC_REPLICA_READ: ("subdoc.ReplicaRead",),
    HelloFeature.SYNC_REPLICATION: ("durableWrite",),
}
"""What a bucket can do, by the feature that it takes; None for what every bucket here can do."""


def encode_config(known: FakeMap, nodes: Sequence[FakeNodeOptions], this_node: int, bucket: str | None) -> bytes:
    """Return a config as JSON.

    Args:
        known: the map as the answering node knows it.
        nodes: all nodes of the cluster, in it or not.
        this_node: the place of the answering one.
        bucket: whose config it is; None for the global one.
    """
    config: dict[str, object] = {
        "rev": known.version.revision,
        "revEpoch": known.version.epoch,
        "nodesExt": [_node_part(nodes[member], is_this=member == this_node) for member in known.members],
        "clusterCapabilitiesVer": [1, 0],
        "clusterCapabilities": {},
    }
    if bucket is not None:
        config |= _bucket_part(known, nodes, nodes[this_node].features, bucket)
    return msgspec.json.encode(config)


def address_of(host: str, port: int) -> str:
    """Return ``host:port``; an IPv6 address stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _node_part(options: FakeNodeOptions, *, is_this: bool) -> dict[str, object]:
    services = {"kv": options.port} | ({"kvSSL": options.tls_port} if options.tls_port is not None else {})
    node: dict[str, object] = {"services": services}
    if is_this:
        node["thisNode"] = True
    if options.host != HOST_PLACEHOLDER:
        node["hostname"] = options.host
    if options.alternate_addresses:
        node["alternateAddresses"] = {
            network: {"hostname": host, "ports": dict.fromkeys(services, port)}
            for network, (host, port) in options.alternate_addresses.items()
        }
    return node


def _bucket_part(
    known: FakeMap, nodes: Sequence[FakeNodeOptions], features: frozenset[HelloFeature], bucket: str
) -> dict[str, object]:
    members = [nodes[member] for member in known.members]
    addresses = [address_of(options.host, options.port) for options in members]
    positions = {member: position for position, member in enumerate(known.members)} | {NO_NODE: NO_NODE}
    capabilities = [
        name
        for feature, names in _BUCKET_CAPABILITIES.items()
        if feature is None or feature in features
        for name in names
    ]
    forward = [[positions[owner]] for owner in known.forward]
    return {
        "name": bucket,
        "uuid": f"{zlib.crc32(bucket.encode()):032x}",
        "nodeLocator": "vbucket",
        "bucketCapabilitiesVer": "",
        "bucketCapabilities": capabilities,
        "nodes": [
            {"hostname": address, "ports": {"direct": options.port}}
            for address, options in zip(addresses, members, strict=True)
        ],
        "vBucketServerMap": {
            "hashAlgorithm": "CRC",
            "numReplicas": len(known.replicas),
            "serverList": addresses,
            "vBucketMap": [
                [positions[node] for node in chain] for chain in zip(known.owners, *known.replicas, strict=True)
            ],
        }
        | ({"vBucketMapForward": forward} if forward else {}),
    }
