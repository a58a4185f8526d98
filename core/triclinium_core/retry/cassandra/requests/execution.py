"""One execution of a request: the first, or a speculative one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.requests.states import ExecutionState

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
    """The attempt that it has under way; what is told of its earlier ones came too late."""
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
