"""What becomes of a request that met an error: the table of ways, and the policy where the table says so.

Source: the retry page of the Cassandra Java driver, "Behavior" and "Hard-coded rules".
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass
from enum import Enum, unique

from triclinium_core.retry.cassandra.errors import (
    CassandraError,
    CoordinatorError,
    PolicyFailed,
    ProtocolError,
    UnexpectedAnswer,
)
from triclinium_core.retry.cassandra.policy import verdict_on
from triclinium_core.retry.cassandra.requests.request import CassandraRequest
from triclinium_core.retry.cassandra.requests.routes import Route, routes_of
from triclinium_core.retry.cassandra.verdicts import RetryDecision, RetryVerdict
from triclinium_core.shown import shown


@unique
class Step(Enum):
    """What an execution does next."""

    RETRY_SAME = "retry same"
    RETRY_NEXT = "retry next"
    GO_ON = "go on"
    """Try the next node, uncounted."""
    REPREPARE = "reprepare"
    IGNORE = "ignore"
    RAISE = "raise"


_STEPS = {
    RetryDecision.RETRY_SAME: Step.RETRY_SAME,
    RetryDecision.RETRY_NEXT: Step.RETRY_NEXT,
    RetryDecision.RETHROW: Step.RAISE,
    RetryDecision.IGNORE: Step.IGNORE,
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of a request that met an error."""

    step: Step
    error: CassandraError
    """What the caller gets if it gets an error: the one that was met, or what stands for it."""
    verdict: RetryVerdict | None = None
    """The policy's; None where it was not asked, or gave none."""


def judge(
    request: CassandraRequest, error: CassandraError, *, node: Hashable, retry_count: int, preparing: bool
) -> Judgement:
    """Return what becomes of a request that met ``error``; a policy that fails makes it fail.

    Args:
        node: where that was, for the messages.
        retry_count: how often this execution was retried by a verdict.
        preparing: whether it was met by a PREPARE that came in between.
    """
    match route_of(request, error, preparing=preparing):
        case Route.ASK:
            return _asked(request, error, node, retry_count)
        case Route.ASK_IF_IDEMPOTENT:
            return _asked(request, error, node, retry_count) if request.may_repeat else _raised(error)
        case Route.NEXT:
            return Judgement(Step.GO_ON, error)
        case Route.REPREPARE:
            return Judgement(Step.REPREPARE, error)
        case Route.RAISE:
            return _raised(error)
        case Route.RAISE_AS_PROTOCOL_ERROR:
            return _raised(ProtocolError(f"{type(error).__name__}: {error}"), cause=error)
        case Route.RAISE_AS_UNEXPECTED:
            text = f"{node} answered a PREPARE with {type(error).__name__}: {error}"
            return _raised(UnexpectedAnswer(text), cause=error)


def route_of(request: CassandraRequest, error: CassandraError, *, preparing: bool) -> Route:
    """Return the way that the table has for an error of this request."""
    routes = routes_of(error)
    if preparing:
        return routes.of_repreparation
    return routes.of_prepare if request.is_prepare else routes.of_statement


def _asked(request: CassandraRequest, error: CassandraError, node: Hashable, retry_count: int) -> Judgement:
    try:
        verdict = verdict_on(request.policy, error, retry_count=retry_count)
    except Exception as raised:
        text = f"the retry policy failed on {type(error).__name__} of {node}: {shown(raised)}"
        return _raised(PolicyFailed(text), cause=raised)
    if verdict.decision is RetryDecision.IGNORE and request.is_prepare:
        text = (
            f"the retry policy ignores {type(error).__name__} of a PREPARE, which must have a result; retry or rethrow"
        )
        return _raised(PolicyFailed(text), verdict, cause=error)
    if verdict.decision is RetryDecision.RETHROW:
        return _raised(error, verdict)
    return Judgement(_STEPS[verdict.decision], error, verdict)


def _raised(
    error: CassandraError, verdict: RetryVerdict | None = None, *, cause: BaseException | None = None
) -> Judgement:
    if cause is not None:
        error.__cause__ = cause
    elif not isinstance(error, CoordinatorError):
        # A connection that is gone gives one error to all that were on it, and each request writes into its own.
        twin = copy(error)
        twin.__cause__, twin.__context__ = error.__cause__, error.__context__
        error = twin
    return Judgement(Step.RAISE, error, verdict)
