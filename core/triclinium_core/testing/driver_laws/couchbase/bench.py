"""Adapter that runs the neutral laws on a driver of the client machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from triclinium_core.contract.couchbase import Action, CompleteOperation, Event, OperationAbandoned, OperationSubmitted
from triclinium_core.contract.neutral import Token
from triclinium_core.kv.operation.results import Cas, MutationResult
from triclinium_core.testing.driver_laws.couchbase.cluster_driver_under_test import ClusterDriverUnderTest, OpenDriver
from triclinium_core.testing.driver_laws.couchbase.scripted_cluster_machine import ScriptedClusterMachine


class CouchbaseBench:
    """Adapter of the neutral laws to the protocol of the client machine. A law's submissions are operations.

    Args:
        open_driver: takes a machine, and returns a context manager that yields a driver of that machine.
    """

    def __init__(self, open_driver: OpenDriver) -> None:
        self._open_driver = open_driver

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[ScriptedClusterMachine, ClusterDriverUnderTest]]:
        """Yield a scripted machine and a driver that runs it."""
        machine = ScriptedClusterMachine()
        async with self._open_driver(machine) as driver:
            yield machine, driver

    def submitted(self, event: Event) -> Token | None:
        """Return the token of a submitted operation; None for any other event."""
        return event.token if isinstance(event, OperationSubmitted) else None

    def abandoned(self, event: Event) -> Token | None:
        """Return the token of an abandoned operation or request; None for any other event."""
        return event.token if isinstance(event, OperationAbandoned) else None

    def completion(self, token: Token) -> Action:
        """Return the completion of an operation."""
        return CompleteOperation(token, self.result(token))

    def result(self, token: Token) -> MutationResult:
        """Return a result that has the token as its CAS."""
        return MutationResult(Cas(token))
