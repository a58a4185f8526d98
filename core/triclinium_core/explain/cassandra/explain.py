"""Explanation of the decision on one error of a Cassandra request.

``explain`` contains no retry rules. It calls the function that decides for the request machine, and describes the
decision. It looks up the route again only to describe it.

Source: the retry page of the Cassandra Java driver; decisions A1 to A12.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triclinium_core.argument_error import ArgumentError
from triclinium_core.explain.explanation import Explanation, Outcome, Sentence
from triclinium_core.retry import cassandra
from triclinium_core.retry.checks import check_flag, check_integer
from triclinium_core.shown import shown

PAGE = "driver's page"

VERDICT_CLAUSES: Mapping[type[cassandra.CassandraError], str] = {
    cassandra.ReadTimeout: f"{PAGE}, onReadTimeoutVerdict; decisions A3, A5 and A6",
    cassandra.WriteTimeout: f"{PAGE}, onWriteTimeoutVerdict; decisions A3 and A6",
    cassandra.Unavailable: f"{PAGE}, onUnavailableVerdict; decisions A3, A4 and A6",
    cassandra.RequestAborted: f"{PAGE}, onRequestAbortedVerdict; decision A1",
    cassandra.CoordinatorError: f"{PAGE}, onErrorResponseVerdict; decisions A1 and A7",
}
"""Clause on the policies' verdict, for each kind of error. The first class that fits an error applies."""

_NOT_FIXABLE = "No retry can fix this, so no policy is consulted"
_ROUTES: Mapping[cassandra.Route, tuple[str, str]] = {
    cassandra.Route.ASK: (
        "The policy decides on such an error, whether or not the statement is idempotent",
        "decision A2",
    ),
    cassandra.Route.ASK_IF_IDEMPOTENT: (
        "The statement is not idempotent and may have been executed, so no policy is consulted",
        "decision A2",
    ),
    cassandra.Route.NEXT: (
        "The node has certainly not executed it, so no policy is consulted",
        f"{PAGE}, Hard-coded rules; decision A8",
    ),
    cassandra.Route.REPREPARE: (
        "The node no longer has the prepared statement, so no policy is consulted",
        f"{PAGE}, Hard-coded rules; decisions A8 and A10",
    ),
    cassandra.Route.RAISE: (_NOT_FIXABLE, f"{PAGE}, Hard-coded rules; decision A9"),
    cassandra.Route.RAISE_AS_PROTOCOL_ERROR: (_NOT_FIXABLE, f"{PAGE}, Hard-coded rules"),
    cassandra.Route.RAISE_AS_UNEXPECTED: (_NOT_FIXABLE, f"{PAGE}, Hard-coded rules"),
}
"""Sentence that states whether the policy decides, and its clause, for each route."""

_IDEMPOTENT = "The statement is idempotent, so the policy decides on such an error"
"""Sentence for a route that depends on the statement, if a policy was called."""

FAILURE_CLAUSE = "decision A12"
"""Clause on a policy that raises or returns an invalid verdict."""

_OUTCOMES: Mapping[cassandra.Step, Outcome] = {
    cassandra.Step.RETRY_SAME: Outcome.SAME_NODE,
    cassandra.Step.RETRY_NEXT: Outcome.NEXT_NODE,
    cassandra.Step.GO_ON: Outcome.NEXT_NODE,
    cassandra.Step.REPREPARE: Outcome.PREPARE,
    cassandra.Step.IGNORE: Outcome.EMPTY,
    cassandra.Step.RAISE: Outcome.FAIL,
}

_SENT_AGAIN = frozenset({Outcome.SAME_NODE, Outcome.NEXT_NODE, Outcome.PREPARE})


@dataclass(frozen=True, slots=True, kw_only=True)
class CassandraCase:
    """One attempt of a statement, and its error.

    Args:
        error: error from the coordinator, the reason for its missing response, or ``FrameTooLong``.
        policy: policy to call, if the error's route requires it.
        idempotent: whether executing the statement twice is harmless.
        retry_count: number of earlier retries in this execution that a policy's verdict requested.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    error: cassandra.RequestAborted | cassandra.FrameTooLong | cassandra.CoordinatorError
    policy: cassandra.RetryPolicy
    idempotent: bool = False
    retry_count: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.error, cassandra.RequestAborted | cassandra.FrameTooLong | cassandra.CoordinatorError):
            raise ArgumentError(
                f"error={shown(self.error)} must be a RequestAborted, a FrameTooLong or a CoordinatorError",
                parameter="error",
            )
        cassandra.require_policy(self.policy)
        check_flag(self.idempotent, "idempotent")
        check_integer(self.retry_count, "retry_count")


def explain(case: CassandraCase) -> Explanation:
    """Return the outcome of the request and its reasons. If the policy fails, the request fails."""
    route, judged = cassandra.routes_of(case.error).of_statement, _judge(case, idempotent=case.idempotent)
    outcome, verdict, policy = _OUTCOMES[judged.step], judged.verdict, type(case.policy).__name__
    is_asked = verdict is not None or isinstance(judged.error, cassandra.PolicyFailed)
    otherwise = None if is_asked else _judge(case, idempotent=True).verdict
    error = type(judged.error).__name__ if judged.step is cassandra.Step.RAISE else None
    level = _level_of(case.error)
    consistency = None if verdict is None else verdict.consistency
    counts_as_retry = is_asked and outcome in _SENT_AGAIN
    counted = f"This counts as retry {case.retry_count + 1}." if counts_as_retry else "This does not count as a retry."
    happened, (who_decides, route_clause) = _describe(case.error), _ROUTES[route]
    if is_asked and route is cassandra.Route.ASK_IF_IDEMPOTENT:
        who_decides = _IDEMPOTENT
    clauses, sentences = (
        [route_clause],
        [
            Sentence(f"{happened[:1].upper()}{happened[1:]}."),
            Sentence(f"{who_decides} ({route_clause}).{_aside(policy, otherwise)}"),
        ],
    )
    if is_asked:
        clauses.append(FAILURE_CLAUSE if verdict is None else verdict_clause(case.error))
        answer = "fails" if verdict is None else f"returns {_words_of(verdict)}"
        sentences.append(Sentence(f"{policy} {answer} ({clauses[-1]})."))
    sentences.append(Sentence(_sentence_on_outcome(outcome, consistency, counted, error), outcome))
    return Explanation(
        facts={
            "happened": happened,
            "failed_at": None if level is None else level.name,
            "idempotent": case.idempotent,
            "retry_count": case.retry_count,
            "policy": policy,
            "route": route.value,
            "is_policy_asked": is_asked,
            "decision": None if verdict is None else str(verdict.decision),
            "consistency": None if consistency is None else consistency.name,
            "decision_if_idempotent": None if otherwise is None else str(otherwise.decision),
            "action": str(outcome),
            "counts_as_retry": counts_as_retry,
            "error": error,
        },
        steps=tuple(sentences),
        clauses=tuple(clauses),
    )


def _judge(case: CassandraCase, *, idempotent: bool) -> cassandra.Judgement:
    request = cassandra.CassandraRequest(policy=case.policy, idempotent=idempotent)
    return cassandra.judge(request, case.error, node="the node", retry_count=case.retry_count, preparing=False)


def _level_of(error: cassandra.CassandraError) -> cassandra.ConsistencyLevel | None:
    return (
        error.consistency
        if isinstance(error, cassandra.ReadTimeout | cassandra.WriteTimeout | cassandra.Unavailable)
        else None
    )


def _describe(error: cassandra.CassandraError) -> str:
    kind = type(error).__name__
    match error:
        case cassandra.ReadTimeout() | cassandra.WriteTimeout() | cassandra.Unavailable():
            return f"the coordinator responded with {kind}: {error}"
        case cassandra.CoordinatorError():
            return f"the coordinator responded with {kind}{_in_words(error)}"
        case cassandra.FrameTooLong():
            return "the request or its response does not fit a frame"
        case _:
            return f"no readable response arrived: {kind}{_in_words(error)}"


def _in_words(error: cassandra.CassandraError) -> str:
    return f" ({error})" if str(error) else ""


def verdict_clause(error: cassandra.CassandraError) -> str:
    """Return the clause on the policies' verdict on an error of this class; an empty string without a clause."""
    return next((clause for kind, clause in VERDICT_CLAUSES.items() if isinstance(error, kind)), "")


def _words_of(verdict: cassandra.RetryVerdict) -> str:
    level = "" if verdict.consistency is None else f" at {verdict.consistency.name}"
    return f"{verdict.decision}{level}"


def _aside(policy: str, verdict: cassandra.RetryVerdict | None) -> str:
    return "" if verdict is None else f" If the statement were idempotent, {policy} would return {_words_of(verdict)}."


def _sentence_on_outcome(
    outcome: Outcome, consistency: cassandra.ConsistencyLevel | None, counted: str, error: str | None
) -> str:
    level = "" if consistency is None else f", at {consistency.name} from then on"
    if outcome is Outcome.SAME_NODE:
        return f"So the request is sent to the same node again{level}. {counted}"
    if outcome is Outcome.NEXT_NODE:
        return (
            f"So the request is sent to the next node of its plan{level}; after the last node, it fails with "
            f"AllNodesFailed. {counted}"
        )
    if outcome is Outcome.PREPARE:
        return f"So the statement is prepared on that node again, and the request is sent there again. {counted}"
    if outcome is Outcome.EMPTY:
        return "So the request succeeds, and the caller gets no rows."
    return f"So the caller gets {error}."
