"""Interface of a driver under test that runs the client machine; it adds a reader of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing.driver_laws.couchbase.scripted_cluster_machine import ScriptedClusterMachine
from triclinium_core.testing.driver_laws.neutral.driver_under_test import Caller, DriverUnderTest

OPERATION = Get(Keyspace("travel"), "ada")
"""Operation that ``submit`` performs; the machine never sends it."""

REQUEST = QueryRequest(statement="SELECT airline.* FROM airline")
"""Request that ``ask`` sends; the machine never sends it."""


class Reader(Caller, Protocol):
    """A task that sends a service request and reads its rows, as users do; its outcome is the result after the rows."""

    @property
    def rows(self) -> Sequence[bytes]:
        """All rows received so far, oldest first."""
        ...

    def read_on(self) -> None:
        """Request more rows, once. The task takes the first rows by itself and then waits for this call."""
        ...


class ClusterDriverUnderTest(DriverUnderTest, Protocol):
    """A driver of the client machine. Its ``submit`` performs ``OPERATION``."""

    def ask(self) -> Reader:
        """Start a task that sends ``REQUEST`` and reads the rows of the response piece by piece. Return immediately."""
        ...


OpenDriver = Callable[[ScriptedClusterMachine], AbstractAsyncContextManager[ClusterDriverUnderTest]]
"""Function that takes a machine, and returns a context manager that yields a driver of that machine and closes it.

The driver's resolver finds no service and sends no query.
"""
