"""Host and port of a node."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address, ip_network

LOOPBACK_NETWORKS = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

PORT_MAX = 0xFFFF
"""Highest TCP port. The lowest is 1, because no node can listen on port 0."""


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port. ``str`` returns ``host:port``, with an IPv6 address in brackets."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether the host is an address in ``LOOPBACK_NETWORKS`` or ``localhost``. Names are not resolved."""
        try:
            address = ip_address(self.host)
        except ValueError:
            return self.host.lower().removesuffix(".") == "localhost"
        return any(address in network for network in LOOPBACK_NETWORKS)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
