"""Canonical addresses of nodes, for a client that uses their addresses in a network other than ``default``.

Source: SDK-RFC 0067 "Attribute: Remote Hostname/IP", which requires the canonical address; the field
``alternateAddresses`` of cluster configs.
"""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.cluster_config import ClusterConfig
from triclinium_core.kv.topology.networks import DEFAULT, address_in


class OwnAddresses:
    """Canonical addresses from the newest config of each bucket and of the cluster."""

    def __init__(self) -> None:
        self._of: dict[str | None, Mapping[Address, Address]] = {}

    def learn(self, bucket: str | None, config: ClusterConfig, *, network: str, source: Address) -> None:
        """Replace the addresses from the last config of ``bucket`` with those in ``config``.

        Args:
            network: network that the client uses.
            source: address of the node that sent the config; its host replaces missing host names.
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
        """Return the canonical address of the node at ``reached``; ``reached`` if no config has a different one."""
        return next((known[reached] for known in self._of.values() if reached in known), reached)
