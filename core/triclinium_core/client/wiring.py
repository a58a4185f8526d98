"""Construction of the parts of one client, which refer to each other."""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.client.health.inquiries import Inquiries
from triclinium_core.client.health.node_waits import NodeWaits
from triclinium_core.client.health.pings import Pings
from triclinium_core.client.health.readiness import Readiness
from triclinium_core.kv.topology.connection_string import ConnectionString
from triclinium_core.runtime.kv.carrier import KeyValueCarrier
from triclinium_core.runtime.kv.collection_lookups import CollectionLookups
from triclinium_core.runtime.kv.config_follower import ConfigFollower
from triclinium_core.runtime.kv.dispatcher import KeyValueDispatcher
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.kv.pool.connection_timers import ConnectionTimers
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.kv.pool.keepalive import KeepAlive
from triclinium_core.runtime.lifecycle.lifecycle import Lifecycle
from triclinium_core.runtime.services.carrier import HttpCarrier
from triclinium_core.runtime.services.pings import ServicePings
from triclinium_core.runtime.services.pool import Pool
from triclinium_core.runtime.toolkit import Toolkit


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Parts of one client that handle its events and timers."""

    connections: Connections
    keep_alive: KeepAlive
    collections: CollectionLookups
    follower: ConfigFollower
    lifecycle: Lifecycle
    operations: KeyValueCarrier
    pool: Pool
    requests: HttpCarrier
    service_pings: ServicePings
    inquiries: Inquiries


def wired(connection_string: ConnectionString, cluster: KnownCluster, tools: Toolkit) -> Parts:
    """Return the parts of a new client, which refer to each other."""
    timers = ConnectionTimers(tools.timers)
    connections = Connections(connection_string, timers, cluster, tools)
    keep_alive = KeepAlive(connections, cluster.configs, timers, tools.options.timeouts)
    collections = CollectionLookups(connections, keep_alive, cluster, tools)
    follower = ConfigFollower(connections, keep_alive, connection_string, cluster, tools)
    dispatcher = KeyValueDispatcher(connections, keep_alive, collections, cluster, emit=tools.emit)
    lifecycle = Lifecycle(cluster.error_maps, tools)
    operations = KeyValueCarrier(
        lifecycle, dispatcher, connections, keep_alive=keep_alive, follower=follower, tools=tools
    )
    pool = Pool(cluster.topologies, tools, tls=connection_string.tls)
    requests = HttpCarrier(lifecycle, pool, cluster, tools)
    service_pings = ServicePings(pool, requests)
    inquiries = Inquiries(
        connections,
        follower,
        Pings(connections, pool, service_pings, cluster, tools),
        Readiness(connections, pool, service_pings, cluster, tools),
        NodeWaits(connections, collections, cluster, tools),
    )
    return Parts(
        connections,
        keep_alive,
        collections,
        follower,
        lifecycle,
        operations,
        pool,
        requests,
        service_pings,
        inquiries,
    )
