"""Handling of the cluster configs that nodes send.

The client stores the newest config of each bucket, opens connections to the nodes of its map, and closes the bucket's
connections to other nodes.

Source: decisions C7 and C10; SDK-RFC 0024; SDK-RFC 0059.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triclinium_core import decoder_faults
from triclinium_core.contract.couchbase import PublishTopology
from triclinium_core.contract.neutral import ReportConnection, StreamId
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology import cluster_config
from triclinium_core.kv.topology.bucket_map import addresses_of, map_of
from triclinium_core.kv.topology.cluster_config import parse_cluster_config
from triclinium_core.kv.topology.connection_string import ConnectionString
from triclinium_core.kv.topology.networks import Network
from triclinium_core.kv.topology.topology import TopologyChange, topology_of
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure, FailureKind
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.kv.pool.keepalive import KeepAlive
from triclinium_core.runtime.toolkit import Toolkit
from triclinium_core.shown import one_line
from triclinium_core.work import CONFIG_BYTES_PER_UNIT

_CONFIG_PROBLEMS: Mapping[FailureKind, str] = {
    FailureKind.PROTOCOL: "sent an invalid cluster config",
    FailureKind.BUCKET_TYPE: "sent a cluster config for an unsupported bucket type",
    FailureKind.NO_VBUCKETS: "sent a cluster config without vbuckets",
}
"""Beginning of the report on a config that the client refuses, by the kind of the failure."""


class ConfigFollower:
    """Handler of the cluster configs that nodes send."""

    def __init__(
        self,
        connections: Connections,
        keep_alive: KeepAlive,
        connection_string: ConnectionString,
        cluster: KnownCluster,
        tools: Toolkit,
    ) -> None:
        self._connections = connections
        self._keep_alive = keep_alive
        self._tls = connection_string.tls
        self._network = Network(tools.options.network, connection_string.addresses)
        self._cluster = cluster
        self._configs = cluster.configs
        self._emit = tools.emit
        self._recorder = tools.recorder
        self._reaches_all_nodes = False
        """Whether the client keeps a connection to every node of the cluster, not only to the nodes of its buckets."""
        self._global_source: tuple[Connection, Address] | None = None
        """Connection on which the newest global config arrived, and its address then; None before the first config."""

    def take(self, connection: Connection, document: bytes | None, now: float) -> BootstrapFailure | None:
        """Store a config from ``connection`` if it is newer than the known one. Return the failure if it is unusable.

        Args:
            document: value of the response; None or an empty value if the node has sent no config.
        """
        if not document or connection.state is ConnectionState.LOST:
            return None
        connection.received.add_work(len(document) // CONFIG_BYTES_PER_UNIT)
        try:
            config = parse_cluster_config(document, host=connection.address.host)
        except cluster_config.UnsupportedBucketType as error:
            return self._refuse_config(connection, str(error), FailureKind.BUCKET_TYPE)
        except cluster_config.NoVBucketsYet as error:
            return self._refuse_config(connection, str(error), FailureKind.NO_VBUCKETS)
        except cluster_config.MalformedClusterConfig as error:
            return self._refuse_config(connection, str(error))
        except Exception as error:
            fault = decoder_faults.unexpected(decoder_faults.Decoder.CLUSTER_CONFIG, error)
            self._connections.close_after_fault(connection, fault, now)
            return BootstrapFailure.of_fault(fault)
        if connection.bucket is not None and config.name != connection.bucket:
            # The vbuckets in the config of another bucket do not locate the documents of this bucket.
            found = "the cluster" if config.name is None else f"bucket {one_line(config.name)!r}"
            return self._refuse_config(connection, f"it is for {found}, not for bucket {connection.bucket!r}")
        if self._connections.seeds.names(connection.address):
            self._configs.compare(connection.bucket, config, now, spacing=self._keep_alive.config_spacing)
        if self._configs.is_lost(connection.bucket):
            self._network.choose_again()
        known = self._configs.get(connection.bucket)
        if self._configs.take(connection.bucket, config):
            if self._recorder is not None:
                self._recorder.cluster_map(connection.bucket, known, config)
            self._cluster.destinations.forget(connection.bucket)
            self._publish(connection, config)
            if connection.bucket is not None:
                self._follow(connection, connection.bucket, config, now)
            else:
                self._connections.seeds.know(self._nodes_of(connection, config))
                self._global_source = connection, connection.address
                self._follow_cluster(now)
        return None

    def forget_bucket(self, bucket: str) -> None:
        """Drop the config, the map, the topology and the node addresses of a bucket (decision C7)."""
        self._configs.forget(bucket)
        self._cluster.maps.pop(bucket, None)
        self._cluster.topologies.pop(bucket, None)
        self._cluster.own_addresses.forget(bucket)

    def search_if_lost(self, bucket: str | None, now: float) -> None:
        """Search for a bucket at the seeds if none of its nodes can be reached.

        Other nodes may have replaced all of them at the same time, with a new config.
        """
        if bucket in self._configs and self._connections.routes.is_cut_off(bucket):
            self._configs.lose(bucket)
            self._connections.search(bucket, now)

    def reach_all_nodes(self, now: float) -> None:
        """Open a connection to every node of the cluster, and keep it, in addition to the connections of buckets."""
        self._reaches_all_nodes = True
        self._follow_cluster(now)

    def _nodes_of(self, connection: Connection, config: cluster_config.ClusterConfig) -> Sequence[Address]:
        network = self._network.name(config.nodes_ext, connection.address)
        addresses, _ = addresses_of(config, source=connection.address, tls=self._tls, network=network)
        return addresses

    def _publish(self, connection: Connection, config: cluster_config.ClusterConfig) -> None:
        topologies, source = self._cluster.topologies, connection.address
        old = topologies.get(connection.bucket)
        network = self._network.name(config.nodes_ext, source)
        new = topology_of(config, bucket=connection.bucket, source=source, network=network)
        topologies[connection.bucket] = new
        self._cluster.own_addresses.learn(connection.bucket, config, network=network, source=source)
        self._emit(PublishTopology(TopologyChange(old, new)))

    def _follow_cluster(self, now: float) -> None:
        if not self._reaches_all_nodes or self._global_source is None:
            return
        connection, address = self._global_source
        config = self._configs.get(None)
        assert config is not None, "the source of the cluster map has sent a config"
        network = self._network.name(config.nodes_ext, address)
        addresses, here = addresses_of(config, source=address, tls=self._tls, network=network)
        # ``here`` is the node that sent the config. The connection may have changed its address since then.
        here = here if connection.address == address else None
        if addresses:
            self._connections.follow(connection, addresses, here, now)

    def _follow(self, connection: Connection, bucket: str, config: cluster_config.ClusterConfig, now: float) -> None:
        network = self._network.name(config.nodes_ext, connection.address)
        bucket_map = map_of(config, source=connection.address, tls=self._tls, network=network)
        self._cluster.maps[bucket] = bucket_map
        # If the config lists no reachable node, keep the connections: a later config may list one.
        if bucket_map.addresses:
            self._connections.follow(connection, bucket_map.addresses, bucket_map.here, now)

    def _refuse_config(
        self, connection: Connection, why: str, kind: FailureKind = FailureKind.PROTOCOL
    ) -> BootstrapFailure:
        problem = f"{_CONFIG_PROBLEMS[kind]}: {why}"
        self._emit(ReportConnection(StreamId(connection.stream_number), connection.node, problem))
        return BootstrapFailure(kind, problem)
