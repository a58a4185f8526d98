"""Actions of the request machine, to be carried out in the order given."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import CassandraError, ExecutionInfo
from triclinium_core.retry.cassandra.verdicts import RetryVerdict


@dataclass(frozen=True, slots=True)
class Send:
    """Send the request to a node, as a new frame.

    Whether a statement without a timestamp gets a new one for each frame is the driver's choice: the Java driver
    takes a new one, so that a retried write, or a slow one that is overtaken by its own retry, is newer than what was
    written in between; one timestamp for all makes a retried write the same write.
    """

    attempt: int
    execution: int
    """0 for the first, and one more for each speculative one."""
    node: Hashable
    consistency: ConsistencyLevel | None
    """The level to send it with; None for the request's own, and always for a PREPARE."""


@dataclass(frozen=True, slots=True)
class Reprepare:
    """Send a PREPARE of this statement to the node, which does not know it any more.

    Answer with ``StatementPrepared``, or with what else became of it; with ``StatementForgotten`` where its text is
    not known.
    """

    attempt: int
    execution: int
    node: Hashable
    statement_id: bytes


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nobody waits for this attempt any more.

    The node is not told. What was written keeps its stream id until the answer has come, or the answer would go to
    the next request that uses it; what is still unwritten may be dropped.
    """

    attempt: int


@dataclass(frozen=True, slots=True)
class Complete:
    """The request succeeded with this result."""

    result: object
    info: ExecutionInfo


@dataclass(frozen=True, slots=True)
class CompleteEmpty:
    """The policy ignored an error: the request counts as done, and the caller gets no rows."""

    info: ExecutionInfo


@dataclass(frozen=True, slots=True)
class Fail:
    """The request failed; raise ``error`` in the caller. Its ``execution_info`` is ``info``."""

    error: CassandraError
    info: ExecutionInfo


@dataclass(frozen=True, slots=True)
class Ignore:
    """The event came too late to matter, as a late answer does."""


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """For logs and metrics: an attempt failed, and this is what became of it."""

    execution: int
    node: Hashable
    error: CassandraError
    retry_count: int
    """What the policy was told, or would have been."""
    verdict: RetryVerdict | None
    """The policy's; None where it was not asked."""
    is_unsent: bool = False
    """Whether nothing had left the client."""


@dataclass(frozen=True, slots=True)
class ReportSpeculation:
    """For logs and metrics: a speculative execution starts, because this node is slow."""

    execution: int
    slow_node: Hashable


CassandraAction = (
    Send | Reprepare | Cancel | Complete | CompleteEmpty | Fail | Ignore | ReportFailure | ReportSpeculation
)
