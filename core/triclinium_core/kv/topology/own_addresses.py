"""The addresses that nodes have in their own network, by those at which a client reaches them in another one.

Source: SDK-RFC 0067 "Remote Hostname/IP", which wants the canonical address; the field ``alternateAddresses`` of cluster
configs.
"""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.cluster_config import ClusterConfig
from triclinium_core.kv.topology.networks import DEFAULT, address_in


class OwnAddresses:
    """What the newest config of each bucket, and of the cluster, tells of the addresses of nodes."""

    def __init__(self) -> None:
        self._of: dict[str | None, Mapping[Address, Address]] = {}

    def learn(self, bucket: str | None, config: ClusterConfig, *, network: str, source: Address) -> None:
        """Take a config.

        Args:
            network: the one that the client keeps to.
            source: where the config came from; its host stands for nodes that do not name theirs.
        """
        known: dict[Address, Address] = {}
        if network != DEFAULT:
            for entry in config.nodes_ext:
                for service in entry.services:
                    reached = address_in(network, entry, service, source)
                    own = address_in(DEFAULT, entry, service, source)
                    if reached is not None and own is not None:
                        known[reached] = own
        self._of[bucket] = known

    def forget(self, bucket: str) -> None:
        """Drop the addresses from the config of a bucket."""
        self._of.pop(bucket, None)

    def of(self, reached: Address) -> Address:
        """Return the address of a node in its own network; the same where no config tells of another."""
        return next((known[reached] for known in self._of.values() if reached in known), reached)
