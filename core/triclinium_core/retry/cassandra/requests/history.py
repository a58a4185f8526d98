"""History of a request: its executions, their attempts and errors."""

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
"""Instead of a number: nothing is under way."""


@dataclass(slots=True)
class Execution:
    """Where one execution stands."""

    index: int
    """0 for the first."""
    consistency: ConsistencyLevel | None
    state: ExecutionState = ExecutionState.SENDING
    node: Hashable = None
    attempt: int = NO_ATTEMPT
    """The attempt that it has under way; reports on earlier ones come too late."""
    retry_count: int = 0
    is_first_attempt: bool = True
    """Whether nothing of it was written so far, and no verdict retried it; the write of such an attempt starts the clock
    of the next execution."""
    returns: bool = False
    """Whether it goes to its node once more; then a missing connection there is nobody's error."""
    statement_id: bytes = b""
    """What is being prepared again."""
    repreparations: int = 0
    """How often that was done on this node."""

    def follow(self, kind: type) -> None:
        """Come into the state that follows an event or an order of this kind."""
        self.state = EXECUTION_TRANSITIONS[self.state][kind]


class History:
    """What has been done for a request so far."""

    def __init__(self, consistency: ConsistencyLevel | None) -> None:
        self._consistency = consistency
        self._executions: list[Execution] = []
        self._owners: list[Execution] = []
        """Whose each attempt is, by its number."""
        self.errors: list[tuple[Hashable, CassandraError]] = []
        """Node and error, in order, of all executions."""

    @property
    def executions(self) -> int:
        """How many were started."""
        return len(self._executions)

    @property
    def is_over(self) -> bool:
        """Whether no execution goes on."""
        return all(execution.state is ExecutionState.ENDED for execution in self._executions)

    def start(self) -> Execution:
        """Return a further execution. It has the request's own level, for no verdict changed what it repeats."""
        execution = Execution(len(self._executions), self._consistency)
        self._executions.append(execution)
        return execution

    def next_attempt(self, execution: Execution) -> int:
        """Return the number of a new attempt, which is the one that ``execution`` has under way from now on."""
        execution.attempt = len(self._owners)
        self._owners.append(execution)
        return execution.attempt

    def execution_of(self, attempt: int) -> Execution:
        """Return whose attempt this is.

        Raises:
            InvalidEvent: nobody's.
        """
        if not isinstance(attempt, int) or not 0 <= attempt < len(self._owners):
            raise InvalidEvent(f"attempt {shown(attempt)} was never ordered; use the number that came with the order")
        return self._owners[attempt]

    def record(self, execution: Execution, error: CassandraError) -> None:
        """Note an error that the request goes on after."""
        self.errors.append((execution.node, error))

    def end(self) -> list[Cancel]:
        """End all executions, and return the orders that call off what they have under way."""
        cancels = [Cancel(execution.attempt) for execution in self._executions if execution.attempt != NO_ATTEMPT]
        for execution in self._executions:
            execution.follow(RequestSettled)
            execution.attempt = NO_ATTEMPT
        return cancels

    def info(self, settled_by: Execution | None, *, ran_out: Execution | None = None) -> ExecutionInfo:
        """Return how the request went, told with its end.

        Args:
            settled_by: the execution that ended it; None where time or the plan did.
            ran_out: the last one to find the plan empty, where that ended it.
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
