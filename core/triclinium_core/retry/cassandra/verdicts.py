"""Verdicts that a policy returns: one of four decisions, and for a retry possibly another consistency level.

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
    """Decision on a request that failed on a node."""

    RETRY_SAME = "RETRY_SAME"
    """Send the request to the same node again."""
    RETRY_NEXT = "RETRY_NEXT"
    """Send the request to the next node of the query plan."""
    RETHROW = "RETHROW"
    """Raise the error in the caller."""
    IGNORE = "IGNORE"
    """Complete the request successfully, with an empty result."""

    @property
    def retries(self) -> bool:
        """Whether the request is sent again."""
        return self in {RetryDecision.RETRY_SAME, RetryDecision.RETRY_NEXT}


@dataclass(frozen=True, slots=True)
class RetryVerdict:
    """Verdict of a policy on a request that failed on a node.

    Args:
        decision: decision on the request.
        consistency: consistency level of this retry and all later ones. None keeps the level. Only a retry may have
            another level.

    Raises:
        ArgumentError: ``decision`` or ``consistency`` has the wrong type, or the verdict has a level but no retry.
    """

    decision: RetryDecision
    consistency: ConsistencyLevel | None = None

    def __post_init__(self) -> None:
        check_choice(self.decision, "decision", RetryDecision)
        if self.consistency is not None:
            check_choice(self.consistency, "consistency", ConsistencyLevel)
        if self.consistency is not None and not self.decision.retries:
            raise ArgumentError(
                f"consistency={self.consistency.name} applies only to a retry, not to {self.decision}; omit it",
                parameter="consistency",
            )


RETRY_SAME = RetryVerdict(RetryDecision.RETRY_SAME)
RETRY_NEXT = RetryVerdict(RetryDecision.RETRY_NEXT)
RETHROW = RetryVerdict(RetryDecision.RETHROW)
IGNORE = RetryVerdict(RetryDecision.IGNORE)
