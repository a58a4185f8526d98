"""Table that decides what follows an error: consult the policy, try the next node, reprepare, or fail the request.

Source: the retry page of the Cassandra Java driver, "Behavior" and "Hard-coded rules", and its request handlers;
decisions A2 and A7.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass
from enum import Enum, unique
from typing import NamedTuple

from triclinium_core.retry.cassandra import errors
from triclinium_core.retry.cassandra.policy import verdict_on
from triclinium_core.retry.cassandra.requests.cassandra_request import CassandraRequest
from triclinium_core.retry.cassandra.verdicts import RetryDecision, RetryVerdict
from triclinium_core.retry.tables import table_of
from triclinium_core.shown import shown


@unique
class Route(Enum):
    """Rule for what follows an error."""

    ASK = "ask"
    """The policy decides, even if the request is not idempotent."""
    ASK_IF_IDEMPOTENT = "ask if idempotent"
    """The policy decides if the request is idempotent. Otherwise the machine raises the error in the caller."""
    NEXT = "next"
    """The machine sends the request to the next node, even if it is not idempotent, because the node has certainly not
    executed it. This does not count as a retry."""
    REPREPARE = "reprepare"
    """The machine sends the node a PREPARE of the statement, and then the request again. Neither counts as a retry."""
    RAISE = "raise"
    """The machine raises the error in the caller."""
    RAISE_AS_PROTOCOL_ERROR = "raise as protocol error"
    """The machine raises a ProtocolError in the caller. Its ``__cause__`` is the error."""
    RAISE_AS_UNEXPECTED = "raise as unexpected"
    """The machine raises an UnexpectedAnswer in the caller, because a PREPARE cannot cause the error. Its ``__cause__``
    is the error."""


class ErrorRoutes(NamedTuple):
    """Rules for one class of errors, by kind of request."""

    of_statement: Route
    of_prepare: Route
    """Rule for a PREPARE that the caller requested."""
    of_repreparation: Route
    """Rule for a PREPARE that the machine sends to a node that has forgotten a statement."""


_ASK, _IF, _NEXT = Route.ASK, Route.ASK_IF_IDEMPOTENT, Route.NEXT
_PREPARE, _RAISE = Route.REPREPARE, Route.RAISE
_PROTOCOL, _WRONG = Route.RAISE_AS_PROTOCOL_ERROR, Route.RAISE_AS_UNEXPECTED

ROUTES: Mapping[type[errors.CassandraError], ErrorRoutes] = table_of(
    (
        (errors.ReadTimeout, ErrorRoutes(_ASK, _WRONG, _NEXT)),
        (errors.Unavailable, ErrorRoutes(_ASK, _WRONG, _NEXT)),
        (errors.WriteTimeout, ErrorRoutes(_IF, _WRONG, _NEXT)),
        (errors.ReadFailure, ErrorRoutes(_IF, _WRONG, _NEXT)),
        (errors.WriteFailure, ErrorRoutes(_IF, _WRONG, _NEXT)),
        (errors.TruncateError, ErrorRoutes(_IF, _WRONG, _NEXT)),
        (errors.ServerError, ErrorRoutes(_IF, _ASK, _NEXT)),
        (errors.Overloaded, ErrorRoutes(_IF, _ASK, _NEXT)),
        (errors.CdcWriteFailure, ErrorRoutes(_IF, _ASK, _NEXT)),
        (errors.CasWriteUnknown, ErrorRoutes(_IF, _ASK, _NEXT)),
        (errors.RequestAborted, ErrorRoutes(_IF, _ASK, _NEXT)),
        (errors.Bootstrapping, ErrorRoutes(_NEXT, _NEXT, _NEXT)),
        (errors.Unprepared, ErrorRoutes(_PREPARE, _WRONG, _NEXT)),
        (errors.AlreadyExists, ErrorRoutes(_RAISE, _WRONG, _RAISE)),
        (errors.QueryValidationError, ErrorRoutes(_RAISE, _RAISE, _RAISE)),
        (errors.FunctionFailure, ErrorRoutes(_RAISE, _RAISE, _RAISE)),
        (errors.ProtocolError, ErrorRoutes(_RAISE, _RAISE, _RAISE)),
        (errors.AuthenticationError, ErrorRoutes(_PROTOCOL, _PROTOCOL, _PROTOCOL)),
        (errors.FrameTooLong, ErrorRoutes(_RAISE, _RAISE, _NEXT)),
        (errors.RequestThrottled, ErrorRoutes(_RAISE, _RAISE, _RAISE)),
        # A plain CoordinatorError has a code or a field value that the protocol does not define.
        (errors.CoordinatorError, ErrorRoutes(_PROTOCOL, _PROTOCOL, _PROTOCOL)),
    )
)
"""Rules for each class of errors. For a class without a row, the rules of its nearest base class with a row apply."""


def routes_of(error: errors.CassandraError) -> ErrorRoutes:
    """Return the rules for an error with which an attempt failed.

    Raises:
        KeyError: no attempt can fail with ``error``.
    """
    return ROUTES[_row_of(error)]


def _row_of(error: errors.CassandraError) -> type[errors.CassandraError]:
    for kind in type(error).__mro__:
        if kind in ROUTES:
            return kind
    raise KeyError(type(error))


_UNDECIDED = (errors.FrameTooLong, errors.CoordinatorError)
"""Errors after which the statement may have been executed, although their rows of ``ROUTES`` do not consult the policy.
FrameTooLong may be about the response, and a code that the protocol does not define may mean anything."""


def may_be_applied(error: errors.CassandraError) -> bool:
    """Return whether an attempt that failed with ``error`` may have executed its statement."""
    # ASK_IF_IDEMPOTENT marks errors after which a statement may have been executed. After an error with ASK, the
    # policy may retry any statement, because nothing was changed (decision A2).
    row = _row_of(error)
    return ROUTES[row].of_statement is Route.ASK_IF_IDEMPOTENT or row in _UNDECIDED


def aftermath(request: CassandraRequest, *, ambiguous: bool) -> str:
    """Return the end of an error message, which states whether the request may have been applied.

    Return an empty string for a request that is harmless to send again. The wording is that of Couchbase errors.
    """
    if request.may_repeat:
        return ""
    if ambiguous:
        return "; the statement may have been applied: check the data before sending it again"
    return "; the statement was certainly not applied"


@unique
class Step(Enum):
    """Next step of an execution after an error."""

    RETRY_SAME = "retry same"
    RETRY_NEXT = "retry next"
    GO_ON = "go on"
    """Send the request to the next node, without counting a retry."""
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
    """Decision on a request after an error."""

    step: Step
    error: errors.CassandraError
    """Error that the caller receives if the request fails: the original error, or one that replaces it."""
    verdict: RetryVerdict | None = None
    """Verdict that the policy returned; None if the policy was not consulted, or raised an exception."""


def judge(
    request: CassandraRequest, error: errors.CassandraError, *, node: Hashable, retry_count: int, preparing: bool
) -> Judgement:
    """Return the decision on a request after ``error``. If the policy raises an exception, the request fails.

    Args:
        node: node of the failed attempt, for messages.
        retry_count: number of retries that verdicts have caused in this execution so far.
        preparing: whether the failed attempt was a PREPARE for a statement that the node has forgotten.
    """
    match route_of(request, error, preparing=preparing):
        case Route.ASK:
            return _decided_by_policy(request, error, node, retry_count)
        case Route.ASK_IF_IDEMPOTENT:
            return _decided_by_policy(request, error, node, retry_count) if request.may_repeat else _raised(error)
        case Route.NEXT:
            return Judgement(Step.GO_ON, error)
        case Route.REPREPARE:
            return Judgement(Step.REPREPARE, error)
        case Route.RAISE:
            return _raised(error)
        case Route.RAISE_AS_PROTOCOL_ERROR:
            return _raised(errors.ProtocolError(f"{type(error).__name__}: {error}"), cause=error)
        case Route.RAISE_AS_UNEXPECTED:
            text = f"{node} responded to a PREPARE with {type(error).__name__}: {error}"
            return _raised(errors.UnexpectedAnswer(text), cause=error)


def route_of(request: CassandraRequest, error: errors.CassandraError, *, preparing: bool) -> Route:
    """Return the rule that applies to ``error`` of this request."""
    routes = routes_of(error)
    if preparing:
        return routes.of_repreparation
    return routes.of_prepare if request.is_prepare else routes.of_statement


def _decided_by_policy(
    request: CassandraRequest, error: errors.CassandraError, node: Hashable, retry_count: int
) -> Judgement:
    try:
        verdict = verdict_on(request.policy, error, retry_count=retry_count)
    except Exception as raised:
        left = aftermath(request, ambiguous=may_be_applied(error))
        text = f"the retry policy failed on {type(error).__name__} of {node}: {shown(raised)}{left}"
        return _raised(errors.PolicyFailed(text), cause=raised)
    if verdict.decision is RetryDecision.IGNORE and request.is_prepare:
        text = (
            f"the retry policy ignores {type(error).__name__} of a PREPARE, which must have a result; retry or rethrow"
        )
        return _raised(errors.PolicyFailed(text), verdict, cause=error)
    if verdict.decision is RetryDecision.RETHROW:
        return _raised(error, verdict)
    return Judgement(_STEPS[verdict.decision], error, verdict)


def _raised(
    error: errors.CassandraError, verdict: RetryVerdict | None = None, *, cause: BaseException | None = None
) -> Judgement:
    if cause is not None:
        error.__cause__ = cause
    elif not isinstance(error, errors.CoordinatorError):
        # The driver may pass one error object to all requests of a lost connection. Copy it, because each request
        # modifies its error.
        twin = copy(error)
        twin.__cause__, twin.__context__ = error.__cause__, error.__context__
        error = twin
    return Judgement(Step.RAISE, error, verdict)
