"""Facts about a cluster that its nodes have sent. The parts of a client share them."""

from __future__ import annotations

from dataclasses import dataclass, field

from triclinium_core.kv.topology.bucket_map import BucketMap
from triclinium_core.kv.topology.own_addresses import OwnAddresses
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.retry.couchbase import ErrorMapStore, TerminalStates
from triclinium_core.runtime.kv.destinations import Destinations
from triclinium_core.runtime.kv.known_configs import KnownConfigs


@dataclass(frozen=True, slots=True, eq=False)
class KnownCluster:
    """Newest facts about one cluster."""

    configs: KnownConfigs = field(default_factory=KnownConfigs)
    maps: dict[str | None, BucketMap] = field(default_factory=dict)
    """Newest map of each bucket."""
    topologies: dict[str | None, Topology] = field(default_factory=dict)
    """Newest topology of each bucket and of the cluster, in the order in which their first configs arrived."""
    own_addresses: OwnAddresses = field(default_factory=OwnAddresses)
    """Address of each node in the default network, for the reports to a tracer."""
    error_maps: ErrorMapStore = field(default_factory=ErrorMapStore)
    terminal_states: TerminalStates = field(default_factory=TerminalStates)
    destinations: Destinations = field(default_factory=Destinations)
    """Cache of the routes that the dispatcher found with these facts."""
