"""History of a request: its executions, with their attempts and errors."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import CassandraError, ExecutionInfo
from triclinium_core.retry.cassandra.requests.actions import Cancel
from triclinium_core.retry.cassandra.requests.states import EXECUTION_TRANSITIONS, ExecutionState, RequestSettled
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.shown import shown

NO_ATTEMPT = -1
"""Value of ``Execution.attempt`` without a current attempt."""


@dataclass(slots=True)
class Execution:
    """One execution of a request."""

    index: int
    """Index of the execution, 0 for the first."""
    consistency: ConsistencyLevel | None
    state: ExecutionState = ExecutionState.SENDING
    node: Hashable = None
    attempt: int = NO_ATTEMPT
    """Number of the current attempt. The machine ignores events of earlier attempts."""
    retry_count: int = 0
    is_first_attempt: bool = True
    """Whether no attempt of the execution has been written or retried by a verdict so far. If True, the next write
    starts the delay before the next speculative execution."""
    returns: bool = False
    """Whether the current attempt is for the node of the previous attempt. If that node then has no connection, the
    history does not record this as an error."""
    statement_id: bytes = b""
    """Id of the statement that the node prepares again."""
    repreparations: int = 0
    """Number of PREPAREs that were ordered for the current node."""

    def follow(self, kind: type) -> None:
        """Enter the state that the transition table gives for an event or action of this kind."""
        self.state = EXECUTION_TRANSITIONS[self.state][kind]


class History:
    """Executions, attempts and errors that a request has had so far."""

    def __init__(self, consistency: ConsistencyLevel | None) -> None:
        self._consistency = consistency
        self._executions: list[Execution] = []
        self._owners: list[Execution] = []
        """Execution to which each attempt belongs, by number of the attempt."""
        self.errors: list[tuple[Hashable, CassandraError]] = []
        """Errors of all executions after which the request continued, as pairs of node and error, in order."""

    @property
    def executions(self) -> int:
        """Number of executions that were started."""
        return len(self._executions)

    @property
    def is_over(self) -> bool:
        """Whether all executions have ended."""
        return all(execution.state is ExecutionState.ENDED for execution in self._executions)

    def start(self) -> Execution:
        """Start and return another execution at the request's consistency level.

        If a verdict has changed the level of another execution, that change does not apply.
        """
        execution = Execution(len(self._executions), self._consistency)
        self._executions.append(execution)
        return execution

    def next_attempt(self, execution: Execution) -> int:
        """Return the number of a new attempt, which becomes the current one of ``execution``."""
        execution.attempt = len(self._owners)
        self._owners.append(execution)
        return execution.attempt

    def execution_of(self, attempt: int) -> Execution:
        """Return the execution to which an attempt belongs.

        Raises:
            InvalidEvent: the machine ordered no attempt with this number.
        """
        if not isinstance(attempt, int) or not 0 <= attempt < len(self._owners):
            raise InvalidEvent(f"attempt {shown(attempt)} was never ordered; use the attempt number of an action")
        return self._owners[attempt]

    def record(self, execution: Execution, error: CassandraError) -> None:
        """Record an error after which the request continues."""
        self.errors.append((execution.node, error))

    def end(self) -> list[Cancel]:
        """End all executions, and return the actions that cancel their current attempts."""
        cancels = [Cancel(execution.attempt) for execution in self._executions if execution.attempt != NO_ATTEMPT]
        for execution in self._executions:
            execution.follow(RequestSettled)
            execution.attempt = NO_ATTEMPT
        return cancels

    def info(self, settled_by: Execution | None, *, ran_out: Execution | None = None) -> ExecutionInfo:
        """Return the summary of the executions at the end of the request.

        Args:
            settled_by: execution whose result or error ended the request; None if the timeout, an exception of the
                query plan or the end of the plan did.
            ran_out: execution that was the last to find the plan empty, if that ended the request; otherwise None.
        """
        last = settled_by or ran_out
        return ExecutionInfo(
            coordinator=settled_by.node if settled_by else None,
            errors=tuple(self.errors),
            successful_execution_index=settled_by.index if settled_by else -1,
            speculative_executions=max(len(self._executions) - 1, 0),
            consistency=last.consistency if last else self._consistency,
            retry_count=sum(each.retry_count for each in ([settled_by] if settled_by else self._executions)),
        )
