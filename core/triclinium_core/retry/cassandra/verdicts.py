"""Verdicts of a policy: one of four decisions, and the changes to the request.

Source: the retry page of the Cassandra Java driver, "Behavior".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.checks import check_choice


@unique
class RetryDecision(StrEnum):
    """What happens to a request that failed on a node."""

    RETRY_SAME = "RETRY_SAME"
    """It is sent to the same node again."""
    RETRY_NEXT = "RETRY_NEXT"
    """It is sent to the next node of the query plan."""
    RETHROW = "RETHROW"
    """The caller gets the error."""
    IGNORE = "IGNORE"
    """The request counts as done; the caller gets no rows."""

    @property
    def retries(self) -> bool:
        """Whether the request is sent again."""
        return self in {RetryDecision.RETRY_SAME, RetryDecision.RETRY_NEXT}


@dataclass(frozen=True, slots=True)
class RetryVerdict:
    """A policy's answer.

    Args:
        decision: what happens to the request.
        consistency: the level that it is sent with from now on; None leaves it as it is. Only a retry may change it.

    Raises:
        ArgumentError: ``decision`` or ``consistency`` is something else, or a level goes with no retry.
    """

    decision: RetryDecision
    consistency: ConsistencyLevel | None = None

    def __post_init__(self) -> None:
        check_choice(self.decision, "decision", RetryDecision)
        if self.consistency is not None:
            check_choice(self.consistency, "consistency", ConsistencyLevel)
        if self.consistency is not None and not self.decision.retries:
            raise ArgumentError(
                f"consistency={self.consistency.name} goes with a retry, not with {self.decision}; leave it out",
                parameter="consistency",
            )


RETRY_SAME = RetryVerdict(RetryDecision.RETRY_SAME)
RETRY_NEXT = RetryVerdict(RetryDecision.RETRY_NEXT)
RETHROW = RetryVerdict(RetryDecision.RETHROW)
IGNORE = RetryVerdict(RetryDecision.IGNORE)
