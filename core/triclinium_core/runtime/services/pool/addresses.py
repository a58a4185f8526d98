"""Where each service is reached: the nodes of the newest topology that have it.

Source: kv_engine ``docs/BinaryProtocol.md`` (0xb5), field ``nodesExt``; SDK-RFC 0059 "HTTP".
"""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.runtime.kv.known_configs import SERVICE_NAMES
from triclinium_core.shown import one_line

NODES_NAMED_MAX = 8
"""In the text of an error."""


def addresses_of(
    service: Service, topologies: Mapping[str | None, Topology], *, bucket: str | None, tls: bool
) -> tuple[Address, ...]:
    """Return where a service is reached, in the order of the config's nodes; nothing where no node has it.

    A node that is not in the network that the client keeps to is passed over, as for key-value.

    Args:
        topologies: the newest of each bucket, and of the cluster.
        bucket: whose nodes are meant, as far as they are known; None for the whole cluster, which any topology tells.
    """
    topology = _topology(topologies, bucket)
    port = _port(service, tls=tls)
    nodes = topology.nodes if topology is not None else ()
    return tuple(Address(node.host, node.ports[port]) for node in nodes if node.is_reached and port in node.ports)


def outside_of(
    service: Service, topologies: Mapping[str | None, Topology], *, bucket: str | None, tls: bool
) -> tuple[tuple[Address, str], ...]:
    """Return the nodes that have a service and are not in the client's network: where they say they are, and why not there.

    Nothing is sent to those addresses (decision D14).
    """
    topology = _topology(topologies, bucket)
    if topology is None:
        return ()
    port, why = _port(service, tls=tls), f"the node has no address in network {topology.network!r}"
    outside = (node for node in topology.nodes if not node.is_reached and port in node.ports)
    return tuple(
        (address, f"{address}: {why}") for address in (Address(node.host, node.ports[port]) for node in outside)
    )


def obstacle_of(
    service: Service, topologies: Mapping[str | None, Topology], *, bucket: str | None, tls: bool
) -> tuple[RetryReason, str]:
    """Return why a service is reached nowhere, where ``addresses_of`` finds nothing: as a reason, and in words."""
    topology = _topology(topologies, bucket)
    nodes = topology.nodes if topology is not None else ()
    outside = [str(address) for address, _ in outside_of(service, topologies, bucket=bucket, tls=tls)]
    if topology is not None and outside:
        # Decision D14: as for key-value.
        more = len(outside) - NODES_NAMED_MAX
        named = one_line(", ".join([*outside[:NODES_NAMED_MAX], *([f"{more} more"] if more > 0 else [])]))
        why = topology.obstacle or f"none of them has an address in network {topology.network!r}"
        return RetryReason.NODE_NOT_AVAILABLE, f"the {service} service is on {named}, and {why}"
    where = f"no node{f' of bucket {bucket}' if bucket is not None else ''}"
    if tls and any(_port(service, tls=False) in node.ports for node in nodes):
        text = f"{where} has the {service} service over TLS, and some have it without: check their configuration"
        return RetryReason.SERVICE_NOT_AVAILABLE, text
    return RetryReason.SERVICE_NOT_AVAILABLE, f"{where} has the {service} service"


def _port(service: Service, *, tls: bool) -> str:
    """Return what nodes call the port of a service."""
    return SERVICE_NAMES[service] + ("SSL" if tls else "")


def _topology(topologies: Mapping[str | None, Topology], bucket: str | None) -> Topology | None:
    # While nobody has opened a bucket, any node of the cluster may be asked: one that does not have it says so. A server
    # before 6.5 tells the nodes of the cluster with those of a bucket alone.
    return (
        topologies.get(bucket)
        or topologies.get(None)
        or max(topologies.values(), key=lambda topology: topology.revision, default=None)
    )
