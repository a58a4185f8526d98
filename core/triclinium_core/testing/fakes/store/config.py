"""Cluster config that a fake node sends.

Source: kv_engine docs/BinaryProtocol.md, 0xb5 and server request 0x01.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from triclinium_core.kv.address import Address
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.buckets import STORAGE_BACKENDS, FakeBucket
from triclinium_core.testing.fakes.store.capabilities import bucket_capabilities, cluster_capabilities
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


def encode_config(known: FakeMap, nodes: Sequence[FakeNodeOptions], this_node: int, bucket: FakeBucket | None) -> bytes:
    """Return the config of a bucket, or the global config, as JSON, from the map of the node."""
    config: dict[str, object] = {
        "rev": known.version.revision,
        "revEpoch": known.version.epoch,
        "nodesExt": [_node_part(nodes[member], is_this=member == this_node) for member in known.members],
        "clusterCapabilitiesVer": [1, 0],
        "clusterCapabilities": cluster_capabilities([nodes[member] for member in known.members]),
    }
    labels = (("clusterUUID", nodes[this_node].cluster_uuid), ("clusterName", nodes[this_node].cluster_name))
    config |= {name: label for name, label in labels if label is not None}
    if bucket is not None:
        config |= bucket_identity(bucket, len(known.owners))
        config |= {
            "bucketCapabilitiesVer": "",
            "bucketCapabilities": bucket_capabilities(bucket.mode, nodes[this_node]),
        }
        config["nodes"] = [
            {"hostname": str(Address(options.host, options.port)), "ports": {"direct": options.port}}
            for options in (nodes[member] for member in known.members)
        ]
        if not bucket.is_memcached:
            config["vBucketServerMap"] = vbucket_server_map(known, nodes, bucket)
    return msgspec.json.encode(config)


_KV_NAMES = (SERVICE_NAMES[Service.KV], SERVICE_NAMES[Service.KV] + "SSL")


def bucket_uuid(bucket: FakeBucket) -> str:
    """Return the UUID of a bucket; a bucket that is created again has another one."""
    return f"{zlib.crc32(bucket.name.encode(), bucket.number):032x}"


def bucket_identity(bucket: FakeBucket, vbuckets: int) -> dict[str, object]:
    """Return the fields of a bucket that both configs and the cluster manager report, such as its name and UUID."""
    path, mode = quote(bucket.name, safe=""), bucket.mode
    of_documents: dict[str, object] = {"nodeLocator": "vbucket", "numVBuckets": vbuckets}
    storage = {"storageBackend": mode} if mode in STORAGE_BACKENDS else {}
    return {
        "name": bucket.name,
        "bucketType": bucket.settings["bucketType"],
        "uuid": bucket_uuid(bucket),
        "uri": f"/pools/default/buckets/{path}",
        "streamingUri": f"/pools/default/bs/{path}",
        **({"nodeLocator": "ketama"} if bucket.is_memcached else of_documents),
        **storage,
    }


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


def vbucket_server_map(known: FakeMap, nodes: Sequence[FakeNodeOptions], bucket: FakeBucket) -> dict[str, object]:
    """Return the nodes of each vbucket of a bucket, by index in ``serverList``."""
    addresses = [str(Address(nodes[member].host, nodes[member].port)) for member in known.members]
    positions = {member: position for position, member in enumerate(known.members)} | {NO_NODE: NO_NODE}
    forward = [[positions[owner]] for owner in known.forward]
    # A bucket may have fewer replicas than the cluster's map, or more than the cluster has nodes for.
    replicas = int(bucket.settings["replicaNumber"])
    holders, missing = known.replicas[:replicas], [NO_NODE] * (replicas - len(known.replicas))
    return {
        "hashAlgorithm": "CRC",
        "numReplicas": replicas,
        "serverList": addresses,
        "vBucketMap": [
            [*(positions[node] for node in chain), *missing] for chain in zip(known.owners, *holders, strict=True)
        ],
    } | ({"vBucketMapForward": forward} if forward else {})
