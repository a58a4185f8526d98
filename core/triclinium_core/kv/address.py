"""Where a node listens."""

from __future__ import annotations

from dataclasses import dataclass

PORT_MAX = 0xFFFF
"""The highest TCP port. 0 is not a port that a node can listen on."""


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port; ``str`` is ``host:port``, with an IPv6 address in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
