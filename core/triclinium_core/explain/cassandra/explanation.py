"""The result of ``explain``: what happens to one Cassandra request, as data, as JSON and in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import assert_never

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.requests.routes import Route
from triclinium_core.retry.cassandra.verdicts import RetryVerdict

FAILURE_CLAUSE = "decision A12"
"""Where it stands what becomes of a policy that fails."""


@unique
class Outcome(StrEnum):
    """What becomes of the request."""

    SAME_NODE = "same_node"
    """It is sent to the same node again."""
    NEXT_NODE = "next_node"
    """It is sent to the next node of its plan."""
    PREPARE = "prepare"
    """Its statement is prepared on the same node, and executed there again."""
    EMPTY = "empty"
    """It succeeds with no rows."""
    FAIL = "fail"
    """The caller gets an error."""

    @property
    def is_sent_again(self) -> bool:
        """Whether the request goes on."""
        return self in {Outcome.SAME_NODE, Outcome.NEXT_NODE, Outcome.PREPARE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why one request is retried, or not."""

    happened: str
    """What befell the request, in words."""
    failed_at: ConsistencyLevel | None
    """The level that the error names; None where it names none."""
    idempotent: bool
    retry_count: int
    """How often the execution was retried by a verdict until then."""
    policy: str
    """Class name of the policy, asked or not."""
    route: Route
    """Who decides about such errors."""
    route_clause: str
    is_policy_asked: bool
    verdict: RetryVerdict | None
    """What the policy says; None where it is not asked, or fails."""
    verdict_if_idempotent: RetryVerdict | None
    """What it would say; None where that is no other case."""
    verdict_clause: str
    outcome: Outcome
    error: str | None
    """Class name of the error that the caller gets."""

    @property
    def consistency(self) -> ConsistencyLevel | None:
        """The level that it is sent with from now on; None where it stays as it was."""
        return None if self.verdict is None else self.verdict.consistency

    @property
    def counts_as_retry(self) -> bool:
        """Whether the retry count grows."""
        return self.is_policy_asked and self.outcome.is_sent_again

    @property
    def clauses(self) -> tuple[str, ...]:
        """Every clause that was consulted, in the order of the sentences."""
        if not self.is_policy_asked:
            return (self.route_clause,)
        return (self.route_clause, FAILURE_CLAUSE if self.verdict is None else self.verdict_clause)

    def to_json(self) -> dict[str, object]:
        """Return the explanation as JSON values, always with the same keys."""
        verdict, otherwise = self.verdict, self.verdict_if_idempotent
        return {
            "happened": self.happened,
            "failed_at": None if self.failed_at is None else self.failed_at.name,
            "idempotent": self.idempotent,
            "retry_count": self.retry_count,
            "policy": self.policy,
            "route": self.route.value,
            "is_policy_asked": self.is_policy_asked,
            "decision": None if verdict is None else str(verdict.decision),
            "consistency": None if self.consistency is None else self.consistency.name,
            "decision_if_idempotent": None if otherwise is None else str(otherwise.decision),
            "action": str(self.outcome),
            "counts_as_retry": self.counts_as_retry,
            "error": self.error,
            "clauses": list(self.clauses),
        }

    def sentences(self) -> list[str]:
        """Return the explanation in plain words, each step with its clause."""
        return [
            f"{self.happened[:1].upper()}{self.happened[1:]}.",
            f"{self._sentence_on_route()} ({self.route_clause}).{self._aside()}",
            *self._sentences_on_verdict(),
            self._sentence_on_outcome(),
        ]

    def _sentence_on_route(self) -> str:
        match self.route:
            case Route.ASK:
                return "Such an error is brought before the policy, whether the statement is idempotent or not"
            case Route.ASK_IF_IDEMPOTENT if self.is_policy_asked:
                return "The statement is idempotent, so such an error is brought before the policy"
            case Route.ASK_IF_IDEMPOTENT:
                return "The statement is not idempotent and may have been executed, so no policy is asked"
            case Route.NEXT:
                return "The node has certainly not executed it, so no policy is asked"
            case Route.REPREPARE:
                return "The node does not know the statement any more, so no policy is asked"
            case Route.RAISE | Route.RAISE_AS_PROTOCOL_ERROR | Route.RAISE_AS_UNEXPECTED:
                return "No retry can mend this, so no policy is asked"
            case unexpected:
                assert_never(unexpected)

    def _aside(self) -> str:
        verdict = self.verdict_if_idempotent
        return (
            ""
            if verdict is None
            else f" If the statement were idempotent, {self.policy} would say {_words_of(verdict)}."
        )

    def _sentences_on_verdict(self) -> list[str]:
        if not self.is_policy_asked:
            return []
        if self.verdict is None:
            return [f"{self.policy} fails to answer ({FAILURE_CLAUSE})."]
        return [f"{self.policy} says {_words_of(self.verdict)} ({self.verdict_clause})."]

    def _sentence_on_outcome(self) -> str:
        counted = (
            f"This counts as retry {self.retry_count + 1}."
            if self.counts_as_retry
            else "This does not count as a retry."
        )
        level = "" if self.consistency is None else f", at {self.consistency.name} from now on"
        match self.outcome:
            case Outcome.SAME_NODE:
                return f"So the request is sent to the same node again{level}. {counted}"
            case Outcome.NEXT_NODE:
                return (
                    f"So the request is sent to the next node of its plan{level}; where there is none left, it fails "
                    f"with AllNodesFailed. {counted}"
                )
            case Outcome.PREPARE:
                return f"So the statement is prepared on that node again, and the request sent there anew. {counted}"
            case Outcome.EMPTY:
                return "So the request counts as done, and the caller gets no rows."
            case Outcome.FAIL:
                return f"So the caller gets {self.error}."
            case unexpected:
                assert_never(unexpected)


def _words_of(verdict: RetryVerdict) -> str:
    if verdict.consistency is None:
        return str(verdict.decision)
    return f"{verdict.decision} at {verdict.consistency.name}"
