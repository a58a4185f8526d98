"""The result of ``explain``: one decision as data, as JSON and in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import assert_never

from triclinium_core.retry.couchbase.actions import CloseConnection, RefreshCollection, RefreshTopology
from triclinium_core.retry.couchbase.strategy import TERMINAL_ERRORS, RetryAction
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service

Order = RefreshTopology | RefreshCollection | CloseConnection
"""What the retry machine orders besides the fate of the request."""


@unique
class Outcome(StrEnum):
    """What becomes of the request."""

    RETRY = "retry"
    FAIL = "fail"
    COMPLETE = "complete"
    CONSULT = "consult"
    """An asynchronous strategy has to be awaited first."""


@unique
class DecidedBy(StrEnum):
    """Who had the last word."""

    RESPONSE = "response"
    DEADLINE = "deadline"
    CONTROLLED_BACKOFF = "controlled backoff"
    STRATEGY = "strategy"
    ORCHESTRATOR = "orchestrator"


DECISION_CLAUSES: dict[DecidedBy, str] = {
    DecidedBy.RESPONSE: "RFC 0049 Response Received: an answer that gives no retry reason is final",
    DecidedBy.DEADLINE: "RFC 0049 Best Effort Retry vs. Fail Fast: retried until the timeout (decision C23)",
    DecidedBy.CONTROLLED_BACKOFF: "RFC 0049 Controlled Backoff for Always Retry",
    DecidedBy.STRATEGY: "RFC 0049 Retry Orchestration: the strategy of the request decides",
    DecidedBy.ORCHESTRATOR: "RFC 0049 Network Time: all non-idempotent operations must be failed to avoid data loss",
}
ERROR_MAP_CLAUSE = "RFC 0049 KV Error Map Handling"
CAPPING_CLAUSE = "RFC 0049 Capping the Retry Duration; RFC 0013 Retry Intervals, max-duration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why one request is retried, or not. Durations are seconds."""

    service: Service
    operation: str
    happened: str
    """What befell the request, in words."""
    idempotent: bool
    idempotent_clause: str
    """Who says so: the row of the idempotent list, its silence, or the caller."""
    reason: RetryReason | None
    """None: there is nothing to ask a strategy about."""
    reason_clause: str
    """The line that gives the reason, or that gives none."""
    error_map_has_a_say: bool | None = None
    """Whether the entry of the node's error map was looked at; None where there is none."""
    strategy: str
    """Class name of the request's strategy, asked or not."""
    strategy_answer: str | None = None
    """What the strategy answered, as half a sentence; None where it was not asked, or has to be awaited."""
    decided_by: DecidedBy
    outcome: Outcome
    delay: float | None = None
    dispatches: bool | None = None
    """False: the delay was cut to a limit, and then the request fails without being sent again."""
    counts_as_retry: bool = False
    """Whether the client counts a retry, as it does also for a delay that was cut."""
    error: str | None = None
    """The RFC's class of the exception that the caller gets, by name, now or after a delay that was cut."""
    message: str | None = None
    orders: tuple[Order, ...] = ()

    @property
    def clauses(self) -> tuple[str, ...]:
        """Every clause that was consulted, in the order of the sentences."""
        mapping = (ERROR_MAP_CLAUSE,) if self.error_map_has_a_say is False else ()
        capping = (CAPPING_CLAUSE,) if self.dispatches is False else ()
        return (self.idempotent_clause, self.reason_clause, *mapping, DECISION_CLAUSES[self.decided_by], *capping)

    def to_json(self) -> dict[str, object]:
        """Return the explanation as JSON values, always with the same keys."""
        reason = self.reason
        return {
            "service": str(self.service),
            "operation": self.operation,
            "happened": self.happened,
            "idempotent": self.idempotent,
            "reason": None if reason is None else str(reason),
            "meaning": None if reason is None else reason.meaning,
            "allows_non_idempotent_retry": None if reason is None else reason.allows_non_idempotent_retry,
            "always_retry": None if reason is None else reason.always_retry,
            "error_map_has_a_say": self.error_map_has_a_say,
            "strategy": self.strategy,
            "strategy_answer": self.strategy_answer,
            "decided_by": str(self.decided_by),
            "action": str(self.outcome),
            "delay_ms": None if self.delay is None else milliseconds(self.delay),
            "dispatches": self.dispatches,
            "counts_as_retry": self.counts_as_retry,
            "error": self.error,
            "message": self.message,
            "orders": [words_of(order) for order in self.orders],
            "clauses": list(self.clauses),
        }

    def sentences(self) -> list[str]:
        """Return the explanation in plain words, each step with its clause."""
        return [
            f"{self.service} {self.operation}: {self.happened}.",
            self._sentence_on_idempotency(),
            self._sentence_on_reason(),
            self._sentence_on_decision(),
            self._sentence_on_outcome(),
            *(f"Besides, the client will {words_of(order)}." for order in self.orders),
        ]

    def _sentence_on_idempotency(self) -> str:
        if self.idempotent:
            return f"Sending it twice does no harm: it is idempotent ({self.idempotent_clause})."
        return f"Sending it twice may do harm: it is not idempotent ({self.idempotent_clause})."

    def _sentence_on_reason(self) -> str:
        mapped = ""
        if self.error_map_has_a_say is False:
            mapped = f" The node's error map has no say in this, for the client knows the status ({ERROR_MAP_CLAUSE})."
        if self.reason is None:
            return f"There is no reason to retry it ({self.reason_clause}).{mapped}"
        whom = "any request" if self.reason.allows_non_idempotent_retry else "an idempotent request only"
        return (
            f"The retry reason is {self.reason}: {self.reason.meaning} ({self.reason_clause}).{mapped} "
            f"This reason permits a retry of {whom}."
        )

    def _sentence_on_decision(self) -> str:
        clause = DECISION_CLAUSES[self.decided_by]
        match self.decided_by:
            case DecidedBy.RESPONSE:
                return f"The answer is final, and no strategy is asked ({clause})."
            case DecidedBy.DEADLINE:
                return f"The request's time is up, so no strategy is asked ({clause})."
            case DecidedBy.CONTROLLED_BACKOFF:
                return f"This reason is always retried, so no strategy is asked; the delay is the fixed one ({clause})."
            case DecidedBy.STRATEGY:
                return f"{self.strategy} is asked, and {self.strategy_answer or 'decides'} ({clause})."
            case DecidedBy.ORCHESTRATOR:
                asked = (
                    f"{self.strategy} is asked, and {self.strategy_answer}. But no" if self.strategy_answer else "No"
                )
                return f"{asked} strategy may send it again, since an attempt may have been applied ({clause})."
            case unexpected:
                assert_never(unexpected)

    def _sentence_on_outcome(self) -> str:
        match self.outcome:
            case Outcome.COMPLETE:
                return "So the request succeeds."
            case Outcome.CONSULT:
                return "So the strategy is awaited, and what it answers decides."
            case Outcome.FAIL:
                return f"So the request fails with {self.error}: {self.message}."
            case Outcome.RETRY if self.dispatches:
                return f"So the request is sent again in {self._delay_in_words()}."
            case Outcome.RETRY:
                counted = " This counts as a retry." if self.counts_as_retry else ""
                return (
                    f"So the request waits {self._delay_in_words()}, all the time that is left, and is not sent again "
                    f"({CAPPING_CLAUSE}).{counted} Then it fails with {self.error}: {self.message}."
                )
            case unexpected:
                assert_never(unexpected)

    def _delay_in_words(self) -> str:
        return "" if self.delay is None else f"{milliseconds(self.delay)} ms"


def milliseconds(seconds: float) -> int | float:
    """Return ``seconds`` as milliseconds without the noise of binary fractions: an int where they are whole."""
    rounded = round(float(seconds) * 1000, 6)
    return int(rounded) if rounded.is_integer() else rounded


REFUSES = "refuses"

_NUMBERS = {4: "four", 5: "five", 6: "six"}


def words_of_answer(answer: object, reason: RetryReason) -> str:
    """Return what a strategy that was asked about ``reason`` answered, or raised, as half a sentence."""
    match answer:
        case RetryAction(delay=None, error=error) if error is not None and error is TERMINAL_ERRORS.get(reason):
            number = len(TERMINAL_ERRORS)
            return f"{REFUSES}: {reason} is one of the {_NUMBERS.get(number, number)} terminal reasons"
        case RetryAction(delay=None):
            return REFUSES
        case RetryAction(delay=float() | int() as delay, within=within):
            limit = "" if within is None else f", but only within {milliseconds(within)} ms"
            return f"wants a retry in {milliseconds(delay)} ms{limit}"
        case Exception():
            return f"raises {type(answer).__name__}"
        case _:
            return "answers what is no RetryAction"


def words_of(order: Order) -> str:
    """Return what an order means, as half a sentence."""
    match order:
        case RefreshTopology():
            return "bring its cluster map up to date"
        case RefreshCollection():
            return "forget the collection id and ask for it again"
        case CloseConnection(why):
            return f"close the connection: {why}"
        case unexpected:
            assert_never(unexpected)
