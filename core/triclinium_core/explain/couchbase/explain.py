"""Explanation of the decision on one failure of a Couchbase request.

``explain`` contains no retry rules. It passes the failure to a ``RetryMachine``, as the client does, and describes the
machine's actions. It looks up the tables itself only for the idempotence of the request and to describe the decision.

Source: SDK-RFC 0049, SDK-RFC 0013.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never, cast, get_args

from triclinium_core.checks import check_integer, check_number, check_type
from triclinium_core.errors import CouchbaseException, InvalidArgumentException, TimeoutException
from triclinium_core.explain.couchbase.happenings import ErrorCode, Happening, HttpAnswer, KvAnswer, verdict_of
from triclinium_core.explain.couchbase.reaction import LONGEST_DELAYS, Reaction, put_to_machine
from triclinium_core.explain.couchbase.recorded_tokens import SHOWN_CLAUSE, RecordedTokens
from triclinium_core.explain.couchbase.recording_strategy import RecordingStrategy
from triclinium_core.explain.explanation import Explanation, Outcome, Sentence, milliseconds
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined import strategies
from triclinium_core.retry.combined.permits import AsyncPermit, permit_of
from triclinium_core.retry.combined.strategies import PermitIssuer, TokenScope, decider_of, require_strategy
from triclinium_core.retry.couchbase import (
    OF_A_LOOKUP,
    CloseConnection,
    DispatchFailed,
    FastFailOnTerminalErrorRetryStrategy,
    HandedOver,
    RefreshCollection,
    RefreshTopology,
    RequestAnnotation,
    RetryReason,
    RetryStrategy,
    Service,
    ServiceVerdict,
    SocketClosed,
    idempotent_row,
    is_idempotent,
    status_name,
    unsent_reasons,
)
from triclinium_core.retry.couchbase.deciders import (
    CAPPING_CLAUSE,
    DECISION_CLAUSES,
    ERROR_MAP_CLAUSE,
    SENT_CLAUSE,
    UNSENT_CLAUSE,
    DecidedBy,
    decided_by,
)
from triclinium_core.retry.couchbase.tables import kv_responses, service_responses

_SHARES: dict[HandedOver, str] = {HandedOver.NOTHING: "none", HandedOver.PART: "part", HandedOver.ALL: "all"}
"""Words for the share of a request that was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CouchbaseCase:
    """One request, and the response to it or its failure. Durations are seconds.

    Args:
        idempotent: whether the request is idempotent; None to look it up in the Idempotent Operation List of RFC 0049.
        readonly: whether a query or analytics request is readonly, for the list.
        method: HTTP method of a management request, for the list.
        attempt: number of previous retries.
        elapsed: time since the submission of the request.
        timeout: timeout of the request.
        since_first_failure: time since the first failure. None means 0 without previous retries, else ``elapsed``.
        rng: random source for jittered backoffs.

    Raises:
        InvalidArgumentException: a field has the wrong type, a number is out of range, or a request to this service
            cannot fail in this way or for this reason.
    """

    service: Service
    operation: str
    happened: Happening
    idempotent: bool | None = None
    readonly: bool = False
    method: str = ""
    strategy: strategies.AnyRetryStrategy = field(default_factory=FastFailOnTerminalErrorRetryStrategy)
    attempt: int = 0
    elapsed: float = 0.0
    timeout: float = math.inf
    since_first_failure: float | None = None
    rng: Random = LONGEST_DELAYS

    def __post_init__(self) -> None:
        check_type(self.service, "service", Service)
        check_type(self.operation, "operation", str)
        check_type(self.happened, "happened", *get_args(Happening))
        require_strategy(self.strategy, "strategy")
        check_integer(self.attempt, "attempt")
        check_number(self.elapsed, "elapsed", 0)
        check_number(self.timeout, "timeout", 0, math.inf)
        if self.since_first_failure is not None:
            check_number(self.since_first_failure, "since_first_failure", 0, self.elapsed)
        fits = True
        match self.happened:
            case KvAnswer(status):
                check_integer(status, "status", most=0xFFFF)
                fits = self.service is Service.KV
            case HttpAnswer(http_status):
                check_integer(http_status, "http_status")
                fits = self.service is not Service.KV
            case ErrorCode(code, _, http_status):
                check_integer(code, "code")
                if http_status is not None:
                    check_integer(http_status, "http_status")
                fits = self.service in {service for service, _ in service_responses.RETRYABLE_ERROR_CODES}
            case SocketClosed(handed_over=HandedOver.NOTHING, reason=reason) | DispatchFailed(reason):
                _require_unsent_reason(self.service, type(self.happened), reason)
        if not fits:
            raise InvalidArgumentException(
                f"happened={type(self.happened).__name__} does not apply to the service {self.service}: a KvAnswer is for "
                "kv, an ErrorCode for query and analytics, an HttpAnswer for every service but kv",
                parameter="happened",
            )


def _require_unsent_reason(service: Service, event: type[SocketClosed | DispatchFailed], reason: RetryReason) -> None:
    check_type(reason, "reason", RetryReason)
    reasons = unsent_reasons(service, event)
    if reason not in reasons:
        what = f"a dispatch to {service} fails for"
        if event is SocketClosed:
            what = f"a socket to {service} that closes before anything is written gives"
        raise InvalidArgumentException(
            f"reason={reason} is not a reason for this failure; {what} one of {', '.join(reasons)}", parameter="reason"
        )


def explain(case: CouchbaseCase) -> Explanation:
    """Return the outcome of the request of ``case`` and its reasons, by running the client's own retry machine.

    The strategy decides as in the client. If a stateless strategy of this package refuses, ``explain`` may call it
    again to find the reason. Raise InvalidArgumentException if a token strategy does not permit the previous retries.
    """
    idempotent, idempotent_clause = _idempotency(case)
    recorder = _recorder(case)
    asked = cast(RetryStrategy, case.strategy) if recorder is None else _tokens(case, recorder, idempotent=idempotent)
    recorded = RecordingStrategy(asked)
    reaction = _reaction_to(case, recorded, idempotent=idempotent)
    reason, retry, error = reaction.machine.last_reason, reaction.retry, reaction.error
    reason_clause = _reason_clause(case, reason)
    error_map_has_a_say = _error_map_has_a_say(case)
    decider = _decider(reason, reaction.outcome, error, recorded, recorder)
    is_asked = recorder is None or recorder.shown is not None
    dispatches = None if retry is None else retry.dispatches
    facts: dict[str, object] = {
        "service": str(case.service),
        "operation": case.operation,
        "happened": _describe(case.happened),
        "idempotent": idempotent,
        "reason": None if reason is None else str(reason),
        "meaning": None if reason is None else reason.meaning,
        "allows_non_idempotent_retry": None if reason is None else reason.allows_non_idempotent_retry,
        "always_retry": None if reason is None else reason.always_retry,
        "error_map_has_a_say": error_map_has_a_say,
        "strategy": type(case.strategy.strategy if isinstance(case.strategy, TokenScope) else case.strategy).__name__,
        "strategy_answer": recorded.words() if is_asked else None,
        "token": None if recorder is None else recorder.facts(),
        "decided_by": str(decider),
        "action": str(reaction.outcome),
        "delay_ms": None if retry is None else milliseconds(retry.delay),
        "dispatches": dispatches,
        "counts_as_retry": dispatches is True,
        "error": None if error is None else error.rfc_class.__name__,
        "message": None if error is None else str(error),
        "orders": [
            _words_of(action)
            for action in reaction.actions
            if isinstance(action, RefreshTopology | RefreshCollection | CloseConnection)
        ],
    }
    failed = _failed_answer(case)
    error_clause = () if failed is None else (failed.error_clause,)
    mapping = (ERROR_MAP_CLAUSE,) if error_map_has_a_say is False else ()
    capping = (CAPPING_CLAUSE,) if dispatches is False else ()
    return Explanation(
        facts=facts,
        steps=(
            Sentence(f"{case.service} {case.operation}: {facts['happened']}."),
            Sentence(_sentence_on_idempotency(idempotent, idempotent_clause)),
            Sentence(_sentence_on_reason(reason, reason_clause, error_map_has_a_say)),
            *(() if failed is None else (Sentence(_sentence_on_error(failed)),)),
            *(() if recorder is None or recorder.shown is None else (Sentence(recorder.words()),)),
            Sentence(_sentence_on_decision(facts, decider)),
            Sentence(_sentence_on_outcome(facts, reaction.outcome), reaction.outcome),
            *(Sentence(f"The client will also {order}.") for order in cast(list[str], facts["orders"])),
        ),
        clauses=(
            idempotent_clause,
            reason_clause,
            *error_clause,
            *_shown(recorder),
            *mapping,
            DECISION_CLAUSES[decider],
            *capping,
        ),
    )


def _reaction_to(case: CouchbaseCase, recorded: RecordingStrategy, *, idempotent: bool) -> Reaction:
    annotation = _annotation(case, _awaited(case.strategy) or recorded, case.timeout, idempotent=idempotent)
    since_first_failure = case.since_first_failure
    if since_first_failure is None:
        since_first_failure = case.elapsed if case.attempt else 0.0
    return put_to_machine(
        case.happened,
        annotation,
        case.elapsed,
        rng=case.rng,
        retry_attempts=case.attempt,
        first_failure_at=case.elapsed - since_first_failure,
    )


def _shown(recorder: RecordedTokens | None) -> tuple[str, ...]:
    """Return the clause on errors for token strategies; an empty tuple if the strategy received no error."""
    return (SHOWN_CLAUSE,) if recorder is not None and recorder.shown is not None else ()


def _annotation(
    case: CouchbaseCase, strategy: couchbase.AnyRetryStrategy, deadline: float, *, idempotent: bool
) -> RequestAnnotation:
    return RequestAnnotation(
        operation=case.operation,
        idempotent=idempotent,
        strategy=strategy,
        submitted_at=0.0,
        deadline=deadline,
        service=case.service,
    )


def _tokens(case: CouchbaseCase, recorder: RecordedTokens, *, idempotent: bool) -> RetryStrategy:
    """Let the strategy permit the previous retries, each after the same failure, and return the request's permit.

    Raises:
        InvalidArgumentException: the strategy does not permit the previous retries.
    """
    tokens = recorder.tokens()
    annotation = _annotation(case, tokens, math.inf, idempotent=idempotent)
    for attempt in range(case.attempt):
        reaction = put_to_machine(case.happened, annotation, 0.0, rng=case.rng, retry_attempts=attempt)
        if recorder.shown is not None and reaction.outcome is Outcome.FAIL:
            raise InvalidArgumentException(
                f"attempt={case.attempt} is too high: the strategy permits at most {attempt}", parameter="attempt"
            )
    recorder.shown = None
    return tokens


def _recorder(case: CouchbaseCase) -> RecordedTokens | None:
    """Return a recorder of the case's synchronous token strategy; None for any other strategy."""
    decider = decider_of(case.strategy)
    if not isinstance(decider, PermitIssuer) or _awaited(case.strategy) is not None:
        return None
    return RecordedTokens(decider)


def _awaited(strategy: strategies.AnyRetryStrategy) -> couchbase.AsyncRetryStrategy | None:
    """Return the object that the machine consults for an asynchronous strategy; None for any other strategy."""
    decider = decider_of(strategy)
    if not isinstance(decider, PermitIssuer):
        return decider if couchbase.is_async(decider) else None
    permit = permit_of(decider)
    return permit if isinstance(permit, AsyncPermit) else None


def _idempotency(case: CouchbaseCase) -> tuple[bool, str]:
    """Return whether the request is idempotent, and the clause or source that states it."""
    if case.idempotent is not None:
        return case.idempotent, "as given by the caller"
    idempotent = is_idempotent(case.service, case.operation, readonly=case.readonly, method=case.method)
    row = idempotent_row(case.service, case.operation)
    if row is None:
        return idempotent, "RFC 0049 Idempotent Operation List: not listed"
    restriction = "" if idempotent else ", which does not apply here"
    return idempotent, f"RFC 0049 Idempotent Operation List: {row.clause}{restriction}"


def _error_map_has_a_say(case: CouchbaseCase) -> bool | None:
    """Return whether the error map's entry changes the classification of a response; None without an entry."""
    match case.happened:
        case KvAnswer(status, entry) if entry is not None:
            with_entry, without = (kv_responses.classify(case.operation, status, known) for known in (entry, None))
            return with_entry != without
        case _:
            return None


def _decider(
    reason: RetryReason | None,
    outcome: Outcome,
    error: CouchbaseException | None,
    recorded: RecordingStrategy,
    recorder: RecordedTokens | None,
) -> DecidedBy:
    """Return the rule or object that determined the outcome, from the recorded calls and the machine's actions."""
    if reason is not None and recorded.was_asked and recorder is not None and recorder.shown is None:
        return DecidedBy.TERMINAL_REASON if reason in couchbase.TERMINAL_ERRORS else DecidedBy.ORCHESTRATOR
    return decided_by(
        reason,
        retries=outcome is Outcome.RETRY,
        was_consulted=recorded.was_asked or outcome is Outcome.CONSULT,
        would_retry=recorded.would_retry,
        times_out=isinstance(error, TimeoutException),
    )


def _reason_clause(case: CouchbaseCase, reason: RetryReason | None) -> str:
    verdict = verdict_of(case.service, case.operation, case.happened)
    if verdict is not None:
        return verdict.clause
    match case.happened:
        case SocketClosed(reason=unsent) if reason is not unsent:
            return SENT_CLAUSE
        case _:
            return UNSENT_CLAUSE


def _failed_answer(case: CouchbaseCase) -> ServiceVerdict | None:
    """Return how the tables classify an error response of an HTTP service; None without such a response."""
    verdict = verdict_of(case.service, case.operation, case.happened)
    return verdict if isinstance(verdict, ServiceVerdict) and verdict.error is not None else None


def _sentence_on_error(verdict: ServiceVerdict) -> str:
    error = verdict.error or CouchbaseException
    return f"The response means {error.rfc_class.__name__} ({verdict.error_clause})."


def _describe(happened: Happening) -> str:
    match happened:
        case KvAnswer(status, entry):
            known = status_name(status) or (entry.name if entry is not None else "")
            return f"the node responded with {known or 'an unknown status'} [0x{status:02x}]"
        case HttpAnswer(http_status):
            return f"the service responded with HTTP status {http_status}"
        case ErrorCode(code, message, http_status):
            with_status = "" if http_status is None else f" with HTTP status {http_status}"
            return f"the service responded with error {code}{with_status}" + (f", {message}" if message else "")
        case SocketClosed(handed_over):
            return f"the socket closed after {_SHARES[handed_over]} of the request had been written"
        case DispatchFailed(reason):
            what = "the id of its collection could not be determined: " if reason in OF_A_LOOKUP else ""
            return f"it could not be dispatched, because {what}{reason.meaning}"
        case unexpected:
            assert_never(unexpected)


def _words_of(order: RefreshTopology | RefreshCollection | CloseConnection) -> str:
    """Return the description of an action as the predicate of a sentence."""
    match order:
        case RefreshTopology():
            return "refresh its cluster map"
        case RefreshCollection():
            return "discard the collection id and request it again"
        case CloseConnection(why):
            return f"close the connection: {why}"
        case unexpected:
            assert_never(unexpected)


def _sentence_on_idempotency(idempotent: bool, clause: str) -> str:
    if idempotent:
        return f"It is idempotent, so sending it twice is harmless ({clause})."
    return f"It is not idempotent, so sending it twice may change data twice ({clause})."


def _sentence_on_reason(reason: RetryReason | None, clause: str, error_map_has_a_say: bool | None) -> str:
    mapped = ""
    if error_map_has_a_say is False:
        mapped = f" The node's error map does not apply, because the client knows the status ({ERROR_MAP_CLAUSE})."
    if reason is None:
        return f"There is no reason to retry it ({clause}).{mapped}"
    whom = "any request" if reason.allows_non_idempotent_retry else "an idempotent request only"
    return f"The retry reason is {reason}: {reason.meaning} ({clause}).{mapped} This reason permits a retry of {whom}."


def _sentence_on_decision(facts: Mapping[str, object], decider: DecidedBy) -> str:
    strategy, answer = facts["strategy"], facts["strategy_answer"]
    match decider:
        case DecidedBy.RESPONSE:
            decision = "The response is final, so no strategy is consulted"
        case DecidedBy.DEADLINE:
            decision = "The deadline of the request has passed, so no strategy is consulted"
        case DecidedBy.TERMINAL_REASON:
            decision = "This reason is one of the five terminal reasons, so no token strategy is consulted"
        case DecidedBy.CONTROLLED_BACKOFF:
            decision = "This reason is always retried after a fixed delay, so no strategy is consulted"
        case DecidedBy.STRATEGY:
            decision = f"{strategy} is consulted, and {answer or 'decides'}"
        case DecidedBy.ORCHESTRATOR:
            asked = f"{strategy} is consulted, and {answer}. But no" if answer else "No"
            decision = f"{asked} strategy may send it again, because an attempt may have been applied"
        case unexpected:
            assert_never(unexpected)
    return f"{decision} ({DECISION_CLAUSES[decider]})."


def _sentence_on_outcome(facts: Mapping[str, object], outcome: Outcome) -> str:
    if outcome is Outcome.COMPLETE:
        return "So the request succeeds."
    if outcome is Outcome.CONSULT:
        return "So the client awaits the strategy, and its answer decides."
    if outcome is Outcome.RETRY and facts["dispatches"]:
        return f"So the request is sent again in {facts['delay_ms']} ms."
    failure = f"fails with {facts['error']}: {facts['message']}."
    if outcome is Outcome.FAIL:
        return f"So the request {failure}"
    return (
        f"So the request waits {facts['delay_ms']} ms, which is all the time left, and is not sent again "
        f"({CAPPING_CLAUSE}). Then it {failure}"
    )
