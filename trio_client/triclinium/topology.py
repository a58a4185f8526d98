"""Nodes and services of the cluster, and their changes; ``Cluster.subscribe_topology`` yields them."""

from __future__ import annotations

from triclinium._cluster_driver.subscriptions import TopologyChanges
from triclinium_core.kv.topology.topology import Topology, TopologyChange, TopologyNode

__all__ = [
    "Topology",
    "TopologyChange",
    "TopologyChanges",
    "TopologyNode",
]
