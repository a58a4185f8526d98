"""Cluster config that a fake node sends.

Source: kv_engine docs/BinaryProtocol.md, 0xb5 and server request 0x01.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from triclinium_core.kv.address import Address
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE, FakeMap

HOST_PLACEHOLDER = "$HOST"
"""Placeholder in a config for the host to which the client connected."""

SERVICE_NAMES: Mapping[Service, str] = {
    Service.KV: "kv",
    Service.MANAGEMENT: "mgmt",
    Service.VIEWS: "capi",
    Service.QUERY: "n1ql",
    Service.SEARCH: "fts",
    Service.ANALYTICS: "cbas",
}
"""Names of the services in a config; ``SSL`` is appended for TLS."""

_CLUSTER_CAPABILITIES: Mapping[Service, Sequence[str]] = {
    Service.QUERY: ("enhancedPreparedStatements",),
    Service.SEARCH: ("scopedSearchIndex", "vectorSearch"),
}
"""Capabilities of the services that a config announces, without the ones that every version has."""

_BUCKET_CAPABILITIES: Mapping[str, HelloFeature | None] = {
    "cbhello": None,
    "cccp": None,
    "nodesExt": None,
    "rangeScan": HelloFeature.JSON,
    "collections": HelloFeature.COLLECTIONS,
    "preserveExpiry": HelloFeature.PRESERVE_TTL,
    "subdoc.ReplicaRead": HelloFeature.SUBDOC_REPLICA_READ,
    "durableWrite": HelloFeature.SYNC_REPLICATION,
}
"""Capabilities of a bucket, with the feature that each requires; None if every bucket has it."""


def encode_config(known: FakeMap, nodes: Sequence[FakeNodeOptions], this_node: int, bucket: str | None) -> bytes:
    """Return the config of a bucket, or the global config, as JSON, from the map that the node knows."""
    config: dict[str, object] = {
        "rev": known.version.revision,
        "revEpoch": known.version.epoch,
        "nodesExt": [_node_part(nodes[member], is_this=member == this_node) for member in known.members],
        "clusterCapabilitiesVer": [1, 0],
        "clusterCapabilities": _cluster_capabilities(nodes[member] for member in known.members),
    }
    labels = (("clusterUUID", nodes[this_node].cluster_uuid), ("clusterName", nodes[this_node].cluster_name))
    config |= {name: label for name, label in labels if label is not None}
    if bucket is not None:
        config |= _bucket_part(known, nodes, nodes[this_node].features, bucket)
    return msgspec.json.encode(config)


_KV_NAMES = (SERVICE_NAMES[Service.KV], SERVICE_NAMES[Service.KV] + "SSL")


def _cluster_capabilities(members: Iterable[FakeNodeOptions]) -> dict[str, object]:
    nodes = tuple(members)
    offered = {service for options in nodes for service in options.services}
    if not all(options.enhanced_prepared_statements for options in nodes):
        # The cluster has a capability only if all its nodes have it.
        offered.discard(Service.QUERY)
    # Configs use a different name for search here than in the list of ports.
    names = {**SERVICE_NAMES, Service.SEARCH: "search"}
    return {names[service]: what for service, what in _CLUSTER_CAPABILITIES.items() if service in offered}


def bucket_uuid(bucket: str) -> str:
    """Return the UUID of a bucket, which depends only on its name."""
    return f"{zlib.crc32(bucket.encode()):032x}"


def _node_part(options: FakeNodeOptions, *, is_this: bool) -> dict[str, object]:
    services = {
        SERVICE_NAMES[service] + "SSL" * tls: port
        for tls in (False, True)
        for service, port in options.ports(tls=tls).items()
    }
    node: dict[str, object] = {"services": services}
    if is_this:
        node["thisNode"] = True
    if options.host != HOST_PLACEHOLDER:
        node["hostname"] = options.host
    if options.alternate_addresses:
        node["alternateAddresses"] = {
            network: {
                "hostname": host,
                "ports": {name: port if name in _KV_NAMES else at for name, at in services.items()},
            }
            for network, (host, port) in options.alternate_addresses.items()
        }
    return node


def _bucket_part(
    known: FakeMap, nodes: Sequence[FakeNodeOptions], features: frozenset[HelloFeature], bucket: str
) -> dict[str, object]:
    members = [nodes[member] for member in known.members]
    addresses = [str(Address(options.host, options.port)) for options in members]
    positions = {member: position for position, member in enumerate(known.members)} | {NO_NODE: NO_NODE}
    capabilities = [name for name, feature in _BUCKET_CAPABILITIES.items() if feature is None or feature in features]
    forward = [[positions[owner]] for owner in known.forward]
    return {
        "name": bucket,
        "uuid": bucket_uuid(bucket),
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
