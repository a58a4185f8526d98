"""Snapshots of a client, for people and for tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triclinium_core.retry.circuit_breaker import BreakerStatistics
from triclinium_core.retry.reasons import RetryReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStatistics:
    """One connection, and what was negotiated on it."""

    node: str
    """``host:port``."""
    bucket: str | None
    state: str
    """Name of the connection's ``NodeState``."""
    tls: bool = False
    features: tuple[str, ...] = ()
    """Names of the HELLO features that were granted, sorted."""
    sasl_mechanisms: tuple[str, ...] = ()
    """What the server offers."""
    sasl_mechanism: str | None = None
    """What was used."""
    error_map_version: int | None = None
    error_map_revision: int | None = None
    config_revision: tuple[int, int] | None = None
    """Epoch and revision of the newest cluster config."""
    in_flight: int = 0
    last_error: str | None = None
    """Why the newest attempt to connect failed, or the connection was lost."""
    circuit_breaker: BreakerStatistics | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatistics:
    """One client."""

    connections: tuple[ConnectionStatistics, ...] = ()
    open_operations: int = 0
    in_flight: int = 0
    orphans: int = 0
    """Replies that came when nobody waited for them any more."""
    retries_by_reason: Mapping[RetryReason, int] = field(default_factory=dict)
