"""Why would this Cassandra request be retried, or not?

``explain`` has no rule of its own: it tells what ``judgement`` says, which judges for the request machine too. The table
of routes is asked a second time for its clause only.

Source: the retry page of the Cassandra Java driver; decisions A1 to A12.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from triclinium_core.checks import check_flag, check_integer
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.explain.cassandra.explanation import Explanation, Outcome
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import (
    CassandraError,
    CoordinatorError,
    FrameTooLong,
    PolicyFailed,
    ReadTimeout,
    RequestAborted,
    Unavailable,
    WriteTimeout,
)
from triclinium_core.retry.cassandra.policy import RetryPolicy, require_policy
from triclinium_core.retry.cassandra.requests.judgement import Judgement, Step, judge
from triclinium_core.retry.cassandra.requests.request import CassandraRequest
from triclinium_core.retry.cassandra.requests.routes import Route, routes_of
from triclinium_core.shown import shown

PAGE = "driver's page"

VERDICT_CLAUSES: Mapping[type[CassandraError], str] = MappingProxyType(
    {
        ReadTimeout: f"{PAGE}, onReadTimeoutVerdict; decisions A3, A5 and A6",
        WriteTimeout: f"{PAGE}, onWriteTimeoutVerdict; decisions A3 and A6",
        Unavailable: f"{PAGE}, onUnavailableVerdict; decisions A3, A4 and A6",
        RequestAborted: f"{PAGE}, onRequestAbortedVerdict; decision A1",
        CoordinatorError: f"{PAGE}, onErrorResponseVerdict; decisions A1 and A7",
    }
)
"""Where it stands what policies answer; the first class that an error is of."""

ROUTE_CLAUSES: Mapping[Route, str] = MappingProxyType(
    {
        Route.ASK: "decision A2",
        Route.ASK_IF_IDEMPOTENT: "decision A2",
        Route.NEXT: f"{PAGE}, Hard-coded rules; decision A8",
        Route.REPREPARE: f"{PAGE}, Hard-coded rules; decisions A8 and A10",
        Route.RAISE: f"{PAGE}, Hard-coded rules; decision A9",
        Route.RAISE_AS_PROTOCOL_ERROR: f"{PAGE}, Hard-coded rules",
        Route.RAISE_AS_UNEXPECTED: f"{PAGE}, Hard-coded rules",
    }
)
"""Where it stands who decides."""

_OUTCOMES: Mapping[Step, Outcome] = MappingProxyType(
    {
        Step.RETRY_SAME: Outcome.SAME_NODE,
        Step.RETRY_NEXT: Outcome.NEXT_NODE,
        Step.GO_ON: Outcome.NEXT_NODE,
        Step.REPREPARE: Outcome.PREPARE,
        Step.IGNORE: Outcome.EMPTY,
        Step.RAISE: Outcome.FAIL,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One attempt of a statement, and the error that it met.

    Args:
        error: what the coordinator answered, or why its answer is missing.
        policy: who decides where a policy does.
        idempotent: whether the statement may be executed twice without harm.
        retry_count: how often this execution was retried by a verdict.

    Raises:
        InvalidArgumentException: an argument is of the wrong type or out of range.
    """

    error: RequestAborted | FrameTooLong | CoordinatorError
    policy: RetryPolicy
    idempotent: bool = False
    retry_count: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.error, RequestAborted | FrameTooLong | CoordinatorError):
            raise InvalidArgumentException(
                f"error={shown(self.error)} must be a RequestAborted, a FrameTooLong or a CoordinatorError",
                parameter="error",
            )
        require_policy(self.policy)
        check_flag(self.idempotent, "idempotent")
        check_integer(self.retry_count, "retry_count")


def explain(case: Case) -> Explanation:
    """Return what happens to the request, and why. A policy that fails makes the request fail."""
    error, route = case.error, routes_of(case.error).of_statement
    judged = _judge(case, idempotent=case.idempotent)
    is_asked = judged.verdict is not None or isinstance(judged.error, PolicyFailed)
    return Explanation(
        happened=_describe(error),
        failed_at=_level_of(error),
        idempotent=case.idempotent,
        retry_count=case.retry_count,
        policy=type(case.policy).__name__,
        route=route,
        route_clause=ROUTE_CLAUSES[route],
        is_policy_asked=is_asked,
        verdict=judged.verdict,
        verdict_if_idempotent=None if is_asked else _judge(case, idempotent=True).verdict,
        verdict_clause=next((clause for kind, clause in VERDICT_CLAUSES.items() if isinstance(error, kind)), ""),
        outcome=_OUTCOMES[judged.step],
        error=type(judged.error).__name__ if judged.step is Step.RAISE else None,
    )


def _judge(case: Case, *, idempotent: bool) -> Judgement:
    request = CassandraRequest(policy=case.policy, idempotent=idempotent)
    return judge(request, case.error, node="the node", retry_count=case.retry_count, preparing=False)


def _level_of(error: CassandraError) -> ConsistencyLevel | None:
    return error.consistency if isinstance(error, ReadTimeout | WriteTimeout | Unavailable) else None


def _describe(error: CassandraError) -> str:
    kind = type(error).__name__
    match error:
        case ReadTimeout() | WriteTimeout() | Unavailable():
            return f"the coordinator answered {kind}: {error}"
        case CoordinatorError():
            return f"the coordinator answered {kind}{_in_words(error)}"
        case FrameTooLong():
            return "the request or its answer does not fit a frame"
        case _:
            return f"no answer came, or none that can be read: {kind}{_in_words(error)}"


def _in_words(error: CassandraError) -> str:
    return f" ({error})" if str(error) else ""
