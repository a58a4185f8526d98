"""Unreachable nodes: one report for the loss of a node and one for its return.

An outage of a node begins when a connection to it is lost, or cannot be opened, and none was missing. It is over when
the first of its connections is ready again: then the node is there, and the others follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.contract.neutral import ReportLevel
from triclinium_core.runtime.kv.connection.connection import Connection


@dataclass(slots=True, eq=False)
class NodeOutage:
    """One outage of one node."""

    node: str
    """As it was called when it was lost: a connection that seeks may find another one."""
    missing: int = 0
    """Connections that were lost in it and are not back."""
    failures: int = 0
    """Losses and failed attempts of all of them."""


class Outages:
    """The outages of all nodes, and how loudly each thing that happens in one is told."""

    def __init__(self) -> None:
        self._present: dict[str, NodeOutage] = {}
        """By node, those that are not over."""
        self._of: dict[Connection, NodeOutage] = {}
        """For each connection that is missing, the outage in which it was lost, be that over or not."""

    def lost(self, connection: Connection) -> ReportLevel:
        """Note that a connection was lost, or could not be opened, and return how loudly to tell of it.

        Before the connection itself is told.
        """
        outage = self._of.get(connection)
        if outage is not None:
            outage.failures += 1
            return ReportLevel.DEBUG
        outage = self._present.get(connection.node)
        is_news = outage is None and not connection.history.losses
        if outage is None:
            outage = self._present[connection.node] = NodeOutage(connection.node)
        self._of[connection] = outage
        outage.missing += 1
        outage.failures += 1
        return ReportLevel.WARNING if is_news else ReportLevel.DEBUG

    def ready(self, connection: Connection, losses: int) -> tuple[ReportLevel, int]:
        """Note that a connection is ready, and return how loudly to tell of it, and how many failures there were before.

        Args:
            losses: those of the connection alone.
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
        """Expect a connection no more: its node has left, or turned it away for good."""
        outage = self._of.pop(connection, None)
        if outage is None:
            return
        outage.missing -= 1
        if not outage.missing and self._present.get(outage.node) is outage:
            del self._present[outage.node]
