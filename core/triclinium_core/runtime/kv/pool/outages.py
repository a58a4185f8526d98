"""Unreachable nodes: one report for the loss of a node and one for its return.

An outage of a node begins when a connection to it is lost, or cannot be opened, and no other is missing. It ends when
the first of its connections is ready again, because the node is then reachable and the other connections follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.contract.neutral import ReportLevel
from triclinium_core.runtime.kv.connection.connection import Connection


@dataclass(slots=True, eq=False)
class NodeOutage:
    """One outage of one node."""

    node: str
    """Name of the node when it was lost; a seeking connection may reach another node later."""
    missing: int = 0
    """Connections lost in this outage that are not ready again."""
    failures: int = 0
    """Losses and failed attempts of all these connections."""


class Outages:
    """Outages of all nodes, and the log level for each event of an outage."""

    def __init__(self) -> None:
        self._present: dict[str, NodeOutage] = {}
        """Outages that are not over, by node."""
        self._of: dict[Connection, NodeOutage] = {}
        """Outage in which each missing connection was lost, whether or not it is over."""

    def lost(self, connection: Connection) -> ReportLevel:
        """Record that a connection was lost, or could not be opened. Return the level at which to report it.

        Call this before ``lost`` of the connection itself.
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
        """Record that a connection is ready. Return the level at which to report it, and the number of failures before.

        Args:
            losses: number of losses of this connection alone.
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
        """Remove a connection from its outage, because its node has left the map or refuses it permanently."""
        outage = self._of.pop(connection, None)
        if outage is None:
            return
        outage.missing -= 1
        if not outage.missing and self._present.get(outage.node) is outage:
            del self._present[outage.node]
