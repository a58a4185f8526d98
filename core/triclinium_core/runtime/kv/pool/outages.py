"""Outages of nodes: the client reports each outage once when it begins and once when it ends.

An outage of a node begins when a connection to the node is first lost, or cannot be opened, while no other outage of
the node is in progress. It ends when the first of the lost connections is ready again, because the node is then
reachable, and the other connections will be ready soon. It also ends when no connection of the outage is missing any
more.
"""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.contract.neutral import ReportLevel
from triclinium_core.runtime.kv.connection.connection import Connection


@dataclass(slots=True, eq=False)
class NodeOutage:
    """One outage of one node."""

    node: str
    """Name of the node at the beginning of the outage. A seeking connection may reach another node later."""
    missing: int = 0
    """Number of connections that were lost in this outage and are not ready again."""
    failures: int = 0
    """Number of losses and failed attempts of all connections in this outage."""


class Outages:
    """Outages of all nodes. ``lost`` and ``ready`` return the level at which to report an event of an outage."""

    def __init__(self) -> None:
        self._present: dict[str, NodeOutage] = {}
        """Outages in progress, by node."""
        self._of: dict[Connection, NodeOutage] = {}
        """Outage in which each missing connection was lost. The outage may be over."""

    def lost(self, connection: Connection) -> ReportLevel:
        """Record that a connection was lost, or could not be opened. Return the level at which to report the loss.

        Call this method before ``Connection.lost``.
        """
        outage = self._of.get(connection)
        if outage is not None:
            outage.failures += 1
            return ReportLevel.DEBUG
        outage = self._present.get(connection.node)
        is_first = outage is None and not connection.history.losses
        if outage is None:
            outage = self._present[connection.node] = NodeOutage(connection.node)
        self._of[connection] = outage
        outage.missing += 1
        outage.failures += 1
        return ReportLevel.WARNING if is_first else ReportLevel.DEBUG

    def ready(self, connection: Connection, losses: int) -> tuple[ReportLevel, int]:
        """Record that a connection is ready. Return the level of the report, and the number of failures to report.

        Args:
            losses: number of lost streams of this connection alone.
        """
        outage = self._of.get(connection)
        if outage is None:
            return ReportLevel.INFO, losses
        is_first = self._present.get(outage.node) is outage
        self.forget(connection)
        if not is_first:
            return ReportLevel.DEBUG, losses
        self._present.pop(outage.node, None)
        return ReportLevel.INFO, outage.failures

    def forget(self, connection: Connection) -> None:
        """Remove a connection from its outage. The outage is over once it has no missing connections."""
        outage = self._of.pop(connection, None)
        if outage is None:
            return
        outage.missing -= 1
        if not outage.missing and self._present.get(outage.node) is outage:
            del self._present[outage.node]
