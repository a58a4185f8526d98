"""Actions of the request machine, to be carried out in the given order."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import CassandraError, ExecutionInfo
from triclinium_core.retry.cassandra.verdicts import RetryVerdict


@dataclass(frozen=True, slots=True)
class Send:
    """Send the request to a node, in a new frame.

    The driver decides whether a statement without a timestamp gets a new one for each frame. The Java driver uses new
    timestamps: a retried write, or a slow one that its own retry overtakes, is then newer than writes in between. With
    one timestamp for all frames, a retried write is the same write.
    """

    attempt: int
    execution: int
    """Index of the execution: 0 for the first, then one for each speculative execution."""
    node: Hashable
    consistency: ConsistencyLevel | None
    """Consistency level of the frame; None for the level of the request, and always for a PREPARE."""


@dataclass(frozen=True, slots=True)
class Reprepare:
    """Send a PREPARE of this statement to the node, which has forgotten it.

    Report ``StatementPrepared`` or another event of the attempt; report ``StatementForgotten`` if the statement's text
    is unknown.
    """

    attempt: int
    execution: int
    node: Hashable
    statement_id: bytes


@dataclass(frozen=True, slots=True)
class Cancel:
    """Abandon this attempt: its response is not needed.

    The node is not informed. A written request keeps its stream id until its response has arrived; otherwise the next
    request with that id would receive the response. A request that is not written yet may be dropped.
    """

    attempt: int


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete the request with this result."""

    result: object
    info: ExecutionInfo


@dataclass(frozen=True, slots=True)
class CompleteEmpty:
    """Complete the request without rows, because the policy ignored an error."""

    info: ExecutionInfo


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail the request: raise ``error`` in the caller. Its ``execution_info`` is ``info``."""

    error: CassandraError
    info: ExecutionInfo


@dataclass(frozen=True, slots=True)
class Ignore:
    """Do nothing: the event came too late to matter, for example a late response."""


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """Report to logs and metrics that an attempt failed, and the verdict on it."""

    execution: int
    node: Hashable
    error: CassandraError
    retry_count: int
    """Retry count that the policy received, or would have received."""
    verdict: RetryVerdict | None
    """Verdict of the policy; None if the policy was not consulted."""
    is_unsent: bool = False
    """Whether no byte had left the client."""


@dataclass(frozen=True, slots=True)
class ReportSpeculation:
    """Report to logs and metrics that a speculative execution starts because this node is slow."""

    execution: int
    slow_node: Hashable


CassandraAction = (
    Send | Reprepare | Cancel | Complete | CompleteEmpty | Fail | Ignore | ReportFailure | ReportSpeculation
)
