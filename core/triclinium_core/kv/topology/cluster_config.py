"""Parser of the cluster configs that nodes send.

The parser ignores unknown fields. For an invalid config, it raises an exception with the reason, so that the client can
keep the old config.

Source: kv_engine ``docs/BinaryProtocol.md`` (0xb5, server request 0x01).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set as AbstractSet
from typing import Annotated

import msgspec

from triclinium_core.json_depth import shallow
from triclinium_core.kv.address import PORT_MAX
from triclinium_core.kv.topology.capabilities import BucketCapability, ClusterCapability, known_capabilities
from triclinium_core.kv.wire.config_version import COUNTER_MAX
from triclinium_core.kv.wire.json_limits import JsonLimits
from triclinium_core.shown import one_line

NODES_MAX = 1024
"""Maximum number of nodes: ten times as many as in the largest known clusters. The client has one connection per node
and bucket."""
HOLDERS_MAX = 4
"""Maximum number of copies of a vbucket: the active copy, and the three replicas that servers allow."""
VBUCKETS_MAX = 4096
"""Maximum number of vbuckets: four times as many as servers have (1,024, or 128 with one of their storage engines). The
bound is low, because a node sends its map repeatedly, and decoding takes some microseconds per vbucket."""
CAPABILITIES_MAX = 256
"""Maximum number of capabilities. Servers list about thirty."""
HOST_SIZE_MAX = 255
"""Maximum number of characters of a host. Names have at most 253 (RFC 1035 §2.3.4), addresses fewer."""
NAME_SIZE_MAX = 128
"""Maximum number of characters of the name of a network or service. The longest name that servers send has 19."""
CONFIG_LIMITS = JsonLimits(size_bytes_max=2 * 1024 * 1024, objects_max=16_384, parts_max=131_072)
"""Limits of a config. A config with ``NODES_MAX`` nodes, each with all services in two networks, has 1.2 megabytes,
5,200 objects and 70,000 parts."""
HOST_PLACEHOLDER = b"$HOST"

Counter = Annotated[int, msgspec.Meta(ge=0, le=COUNTER_MAX)]
"""Epoch or revision, in the range that a request can encode."""


class MalformedClusterConfig(ValueError):
    """A cluster config is invalid. The message gives the reason."""


class UnsupportedBucketType(MalformedClusterConfig):
    """The config is that of a bucket whose type does not use vbuckets. A retry cannot succeed."""


class NoVBucketsYet(MalformedClusterConfig):
    """The config is that of a bucket whose vbuckets the server has not created yet."""


class AlternateAddress(msgspec.Struct, frozen=True, rename="camel"):
    """Address of a node in a network other than ``default``. Without ``ports``, the ports of ``default`` apply."""

    hostname: str
    ports: dict[str, int] | None = None


class NodeEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One element of ``nodesExt``."""

    services: dict[str, int] = {}
    hostname: str | None = None
    this_node: bool = False
    alternate_addresses: dict[str, AlternateAddress] = {}
    """Alternate addresses by name of the network."""


class VBucketServerMap(msgspec.Struct, frozen=True, rename="camel"):
    """Servers of each vbucket. The numbers in ``v_bucket_map`` are indexes of ``server_list``, or -1 for no server."""

    server_list: list[str]
    v_bucket_map: list[list[int]]
    num_replicas: Annotated[int, msgspec.Meta(ge=0, le=HOLDERS_MAX - 1)] = 0
    """Number of replicas that is configured for the bucket. There may be too few nodes for them."""
    v_bucket_map_forward: list[list[int]] = []
    """Map after the current rebalance; empty without a rebalance."""


class ClusterConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Config of a bucket if it has a ``name``, otherwise global config."""

    rev: Counter
    rev_epoch: Counter = 0
    name: str | None = None
    nodes_ext: list[NodeEntry] = []
    node_locator: str | None = None
    v_bucket_server_map: VBucketServerMap | None = None
    bucket_capabilities: list[str] = []
    cluster_capabilities: dict[str, list[str]] = {}
    cluster_uuid: str | None = msgspec.field(default=None, name="clusterUUID")
    """UUID of the cluster. Servers before 7.6.4 send neither this field nor ``cluster_name``: both stay None."""
    cluster_name: str | None = None

    @property
    def can(self) -> frozenset[BucketCapability]:
        """Capabilities of the bucket, without those that are not in ``BucketCapability``."""
        return known_capabilities(BucketCapability, self.bucket_capabilities)

    def service_can(self, service: str) -> frozenset[ClusterCapability]:
        """Return the capabilities of a service. ``service`` is its name in configs, such as ``n1ql``."""
        return known_capabilities(ClusterCapability, self.cluster_capabilities.get(service, ()))

    @property
    def revision(self) -> tuple[int, int]:
        """Epoch and revision. The greater pair is newer."""
        return self.rev_epoch, self.rev

    @property
    def vbucket_count(self) -> int:
        """Number of vbuckets; 0 without a map."""
        return len(self.v_bucket_server_map.v_bucket_map) if self.v_bucket_server_map is not None else 0


_DECODER = msgspec.json.Decoder(ClusterConfig)


def parse_cluster_config(document: bytes, *, host: str) -> ClusterConfig:
    """Return the config in ``document``. Leave out services and networks that the client cannot use.

    These are services whose port is not from 1 to 65535, and services and networks whose name is longer than
    ``NAME_SIZE_MAX`` or is not printable. Their nodes and all other services and networks remain.

    Args:
        host: host name with which the client has reached the node. It replaces ``$HOST``.

    Raises:
        MalformedClusterConfig: the document is not JSON, has wrong types or invalid values, or exceeds a limit.
        NoVBucketsYet: the config is that of a bucket without vbuckets.
        UnsupportedBucketType: the config is that of a memcached bucket.
    """
    # Enclose an IPv6 address in brackets, because a port may follow the placeholder.
    name = (f"[{host}]" if ":" in host else host).encode()
    # Check the size before replacing the placeholders: with many of them, the document could exceed the limit.
    grown = len(document) + document.count(HOST_PLACEHOLDER) * len(name)
    excess = CONFIG_LIMITS.excess(document)
    if excess is None and grown > CONFIG_LIMITS.size_bytes_max:
        excess = f"{grown} bytes after substituting $HOST; the maximum is {CONFIG_LIMITS.size_bytes_max}"
    if excess is not None:
        raise MalformedClusterConfig(excess)
    try:
        config = _DECODER.decode(shallow(document.replace(HOST_PLACEHOLDER, name)))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedClusterConfig(one_line(str(error))) from error
    _check_counts(config)
    _check_hosts(config)
    _drop_invalid_networks(config)
    _drop_invalid_ports(config)
    if config.name is not None:
        _check_bucket_config(config)
    return config


def _drop_invalid_networks(config: ClusterConfig) -> None:
    """Remove the alternate addresses in networks with an invalid name from a newly decoded config."""
    invalid = _invalid({network for node in config.nodes_ext for network in node.alternate_addresses})
    for node in config.nodes_ext:
        for network in node.alternate_addresses.keys() & invalid:
            del node.alternate_addresses[network]


def _drop_invalid_ports(config: ClusterConfig) -> None:
    """Remove the services with an invalid name or a port out of range from a newly decoded config."""
    every = [node.services for node in config.nodes_ext]
    every += [alternate.ports or {} for node in config.nodes_ext for alternate in node.alternate_addresses.values()]
    invalid = _invalid({service for ports in every for service in ports})
    for ports in every:
        for service in [name for name, port in ports.items() if not 1 <= port <= PORT_MAX or name in invalid]:
            del ports[service]


def _invalid(names: Collection[str]) -> AbstractSet[str]:
    """Return the names that logs, errors and statistics must not contain: they are too long or not printable."""
    return {name for name in names if len(name) > NAME_SIZE_MAX or not name.isprintable()}


def _check_counts(config: ClusterConfig) -> None:
    servers = config.v_bucket_server_map.server_list if config.v_bucket_server_map is not None else ()
    for count, most, what in (
        (max(len(config.nodes_ext), len(servers)), NODES_MAX, "nodes"),
        (len(config.bucket_capabilities), CAPABILITIES_MAX, "capabilities"),
        (max(map(len, config.cluster_capabilities.values()), default=0), CAPABILITIES_MAX, "capabilities"),
    ):
        if count > most:
            raise MalformedClusterConfig(f"{count} {what}; the maximum is {most}")


def _check_hosts(config: ClusterConfig) -> None:
    servers = config.v_bucket_server_map.server_list if config.v_bucket_server_map is not None else ()
    hosts = [server.rpartition(":")[0] for server in servers]
    for node in config.nodes_ext:
        hosts += (alternate.hostname for alternate in node.alternate_addresses.values())
        if node.hostname is not None:
            hosts.append(node.hostname)
    longest = max(hosts, key=len, default="")
    if len(longest) > HOST_SIZE_MAX:
        raise MalformedClusterConfig(
            f"host {one_line(longest)!r} has {len(longest)} characters; the maximum is {HOST_SIZE_MAX}"
        )
    # Refuse an unprintable host: logs contain the hosts of nodes, and a line break in a host would forge a log line.
    unprintable = next((host for host in hosts if not host.isprintable()), None)
    if unprintable is not None:
        raise MalformedClusterConfig(f"host {unprintable!r} has a character that cannot be printed")


def _check_bucket_config(config: ClusterConfig) -> None:
    bucket = f"bucket {one_line(config.name or '')!r}"
    if config.node_locator is not None and config.node_locator != "vbucket":
        raise UnsupportedBucketType(
            f"{bucket} is a memcached bucket (locator {one_line(config.node_locator)!r}), which this "
            "client does not support; use a couchbase or ephemeral bucket"
        )
    count = config.vbucket_count
    if not count:
        raise NoVBucketsYet(f"{bucket} has no vbuckets yet; the server creates them after the bucket")
    if count > VBUCKETS_MAX:
        raise MalformedClusterConfig(f"{bucket} has {count} vbuckets; expected 1 to {VBUCKETS_MAX}")
    assert config.v_bucket_server_map is not None
    servers = len(config.v_bucket_server_map.server_list)
    forward = config.v_bucket_server_map.v_bucket_map_forward
    if len(forward) not in {0, count}:
        raise MalformedClusterConfig(f"{bucket} has {count} vbuckets, but {len(forward)} in its forward map")
    for holders_of in (config.v_bucket_server_map.v_bucket_map, forward):
        if _are_possible(holders_of, servers):
            continue
        for vbucket, holders in enumerate(holders_of):
            if not 1 <= len(holders) <= HOLDERS_MAX:
                raise MalformedClusterConfig(
                    f"vbucket {vbucket} is on {len(holders)} servers; expected 1 to {HOLDERS_MAX}"
                )
            if min(holders) < -1 or max(holders) >= servers:
                raise MalformedClusterConfig(
                    f"vbucket {vbucket} is on servers {holders!r}, but the list has {servers}; indexes begin at "
                    "0, and -1 means no server"
                )


def _are_possible(holders_of: Sequence[Sequence[int]], servers: int) -> bool:
    """Return whether each vbucket has 1 to ``HOLDERS_MAX`` entries, each an index of a server or ``NO_NODE``."""
    counts = set(map(len, holders_of))
    return counts <= _COPIES and (
        not counts or (min(map(min, holders_of)) >= -1 and max(map(max, holders_of)) < servers)
    )


_COPIES = frozenset(range(1, HOLDERS_MAX + 1))
