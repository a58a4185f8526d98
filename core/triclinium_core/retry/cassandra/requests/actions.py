"""Actions of the request machine. The driver executes them in order."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import CassandraError, ExecutionInfo
from triclinium_core.retry.cassandra.verdicts import RetryVerdict


@dataclass(frozen=True, slots=True)
class Send:
    """Send the request to a node, in a new frame.

    If the statement has no timestamp, the driver decides whether each frame has a new one. The Java driver uses a new
    timestamp for each frame. A retried write is then newer than the writes of other clients between its attempts. With
    one timestamp for all frames, a retry repeats the same write.
    """

    attempt: int
    execution: int
    """Index of the execution: 0 for the first, 1 and more for speculative executions."""
    node: Hashable
    consistency: ConsistencyLevel | None
    """Consistency level of the frame. None for the driver's choice, and always for a PREPARE."""


@dataclass(frozen=True, slots=True)
class Reprepare:
    """Send a PREPARE of this statement to the node, which has forgotten the statement.

    Then report ``StatementPrepared`` or another event of the attempt. If the driver does not have the text of the
    statement, report ``StatementForgotten``.
    """

    attempt: int
    execution: int
    node: Hashable
    statement_id: bytes


@dataclass(frozen=True, slots=True)
class Cancel:
    """Abandon this attempt, whose response is not needed.

    The node cannot be informed. If the request was written, keep its stream id reserved until its response arrives;
    otherwise another request with the same id could receive that response. If the request was not written yet, the
    driver may drop it.
    """

    attempt: int


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete the request: return ``result`` to the caller."""

    result: object
    info: ExecutionInfo


@dataclass(frozen=True, slots=True)
class CompleteEmpty:
    """Complete the request with an empty result, because the policy ignored an error."""

    info: ExecutionInfo


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail the request: raise ``error`` in the caller. ``error.execution_info`` is ``info``."""

    error: CassandraError
    info: ExecutionInfo


@dataclass(frozen=True, slots=True)
class Ignore:
    """Do nothing, because the event is too late, for example the response to an attempt that has ended."""


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """Report to logs and metrics that an attempt failed, and which verdict the policy returned."""

    execution: int
    node: Hashable
    error: CassandraError
    retry_count: int
    """Retry count that the policy received, or would have received if it had been consulted."""
    verdict: RetryVerdict | None
    """Verdict of the policy; None if the policy was not consulted, or raised an exception."""
    is_unsent: bool = False
    """Whether the attempt failed before any byte of it left the client."""


@dataclass(frozen=True, slots=True)
class ReportSpeculation:
    """Report to logs and metrics that a speculative execution starts because this node is slow."""

    execution: int
    slow_node: Hashable


CassandraAction = (
    Send | Reprepare | Cancel | Complete | CompleteEmpty | Fail | Ignore | ReportFailure | ReportSpeculation
)
