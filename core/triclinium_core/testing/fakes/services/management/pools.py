"""Descriptions of the cluster and of its nodes, as the cluster manager sends them.

Source: ns_server of version 7.6, "menelaus_web_pools" and "menelaus_web_node"; Couchbase Server documentation,
"Retrieving Cluster Information".
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence

from triclinium_core.kv.address import Address
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.store.config import HOST_PLACEHOLDER, SERVICE_NAMES, bucket_uuid
from triclinium_core.testing.fakes.store.state import NodeState

VERSION = "7.6.0-0000-enterprise"
"""Version that the nodes report, and whose responses they send."""

COMPATIBILITY = 7 * 0x10000 + 6
"""Minimum version of the nodes, as one number."""

OPERATING_SYSTEM = "x86_64-pc-linux-gnu"
"""Operating system that the nodes report."""

MEMORY_SIZE = 16 * 1024**3
"""Memory in bytes that each node reports."""

MIB = 1024 * 1024
"""Bytes in a mebibyte."""


def all_pools(node: NodeState) -> Mapping[str, object]:
    """Return the description of the node's software, with the address of the cluster's description."""
    return {
        "isAdminCreds": True,
        "isROAdminCreds": False,
        "isEnterprise": True,
        "configProfile": "default",
        "isDeveloperPreview": False,
        "uuid": cluster_uuid(node),
        "implementationVersion": VERSION,
        "componentsVersion": {"ns_server": VERSION},
        "pools": [{"name": "default", "uri": "/pools/default"}],
    }


def cluster(node: NodeState, request: FakeRequest) -> Mapping[str, object]:
    """Return the description of the cluster."""
    return {
        "name": "default",
        "nodes": nodes_of(node, request),
        "buckets": {
            "uri": "/pools/default/buckets",
            "terseBucketsBase": "/pools/default/b/",
            "terseStreamingBucketsBase": "/pools/default/bs/",
        },
        "bucketNames": [{"bucketName": bucket.name, "uuid": bucket_uuid(bucket)} for bucket in node.cluster.buckets],
        "clusterName": node.options.cluster_name or "",
        "rebalanceStatus": "none",
        "nodeServicesUri": "/pools/default/nodeServices",
    }


def nodes_of(node: NodeState, request: FakeRequest) -> Sequence[Mapping[str, object]]:
    """Return the descriptions of the nodes of the cluster, at hosts that the sender of the request can reach."""
    return [_described(node, member, request) for member in node.map.members]


def cluster_uuid(node: NodeState) -> str:
    """Return the UUID of the cluster; without an option for it, it is always the same."""
    return node.options.cluster_uuid or f"{zlib.crc32(b'cluster'):032x}"


def _described(node: NodeState, member: int, request: FakeRequest) -> Mapping[str, object]:
    options, now = node.cluster.nodes[member], node.documents.now
    host, ports = _host_of(options, request), options.ports(tls=False)
    hostname = str(Address(host, options.service_ports.get(Service.MANAGEMENT, 0)))
    described: dict[str, object] = {
        "clusterMembership": "active",
        "recoveryType": "none",
        "status": "unhealthy" if member in node.cluster.dead else "healthy",
        "otpNode": f"n_{member}@{host}",
        "hostname": hostname,
        "configuredHostname": hostname,
        "nodeUUID": f"{zlib.crc32(b'node %d' % member):032x}",
        "clusterCompatibility": COMPATIBILITY,
        "version": VERSION,
        "os": OPERATING_SYSTEM,
        "ports": _ports(options),
        "services": [SERVICE_NAMES[service] for service in Service if service in options.services],
        "nodeEncryption": False,
        "addressFamily": "inet6" if ":" in host else "inet",
        "interestingStats": {},
        "uptime": str(int(now)) if math.isfinite(now) else "0",
        "memoryTotal": MEMORY_SIZE,
        "memoryFree": MEMORY_SIZE,
        "mcdMemoryReserved": MEMORY_SIZE // MIB,
        "mcdMemoryAllocated": MEMORY_SIZE // MIB,
    }
    if Service.VIEWS in ports:
        described["couchApiBase"] = f"http://{Address(host, ports[Service.VIEWS])}/"
    if member == node.index:
        described["thisNode"] = True
    return described


def _ports(options: FakeNodeOptions) -> Mapping[str, int]:
    tls = options.ports(tls=True)
    names = {"httpsMgmt": Service.MANAGEMENT, "httpsCAPI": Service.VIEWS}
    return {"direct": options.port} | {name: tls[service] for name, service in names.items() if service in tls}


def _host_of(options: FakeNodeOptions, request: FakeRequest) -> str:
    """Return the host of a node; in place of the placeholder, the host that the sender of the request has used."""
    if options.host != HOST_PLACEHOLDER:
        return options.host
    used = request.headers.get("host", "")
    host = used.rpartition(":")[0] if used.rpartition(":")[2].isdecimal() else used
    return host.strip("[]") or "127.0.0.1"
