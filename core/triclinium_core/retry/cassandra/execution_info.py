"""How a request went: what comes with its result, and with the error that it fails with.

Source: the Cassandra Java driver, ``ExecutionInfo``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import CassandraError


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """How a request went."""

    coordinator: Hashable
    """The node that answered, or whose error was raised; None where that was none."""
    errors: tuple[tuple[Hashable, CassandraError], ...]
    """What was met on the way and not raised: node and error, in order, of all executions. An ignored error is not
    among them, and neither is the one that carries this."""
    successful_execution_index: int
    """The execution that settled the request, also by its error: 0 for the first; -1 where none did."""
    speculative_executions: int
    """Speculative executions that were started."""
    consistency: ConsistencyLevel | None
    """The level that the statement had in the end, in the execution that settled the request or was the last to find
    the plan empty; where none was, the one that it was submitted with. None where no level was ever named."""
    retry_count: int
    """How often that execution was retried by a verdict; where none settled the request, all of them together."""
