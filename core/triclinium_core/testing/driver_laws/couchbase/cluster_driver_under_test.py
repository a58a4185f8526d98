"""Additions to the interface of a driver under test: a reader of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing.driver_laws.couchbase.scripted_cluster_machine import ScriptedClusterMachine
from triclinium_core.testing.driver_laws.neutral.driver_under_test import Caller, DriverUnderTest

OPERATION = Get(Keyspace("travel"), "ada")
"""Operation that ``submit`` has to perform; the machine never sends it."""

REQUEST = QueryRequest(statement="SELECT airline.* FROM airline")
"""Request that ``ask`` has to send; the machine never sends it."""


class Reader(Caller, Protocol):
    """A task that asks a service and reads the rows, as the driver's users do; its outcome is the result after the rows."""

    @property
    def rows(self) -> Sequence[bytes]:
        """All rows that it has got so far, oldest first."""
        ...

    def read_on(self) -> None:
        """Have it ask for more, once: it takes the first rows by itself, and then waits for this."""
        ...


class ClusterDriverUnderTest(DriverUnderTest, Protocol):
    """A driver of the client machine. Its ``submit`` performs ``OPERATION``."""

    def ask(self) -> Reader:
        """Start a task that sends ``REQUEST`` and reads its rows piece by piece, and return at once."""
        ...


OpenDriver = Callable[[ScriptedClusterMachine], AbstractAsyncContextManager[ClusterDriverUnderTest]]
"""Function that gives a block a driver at work on a machine, and closes it. Its resolver finds no service, and sends no
query."""
