"""``explain`` has no rule of its own: a row that is changed changes the client and the explanation together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry import backoff, error_map, failures, kv_responses
from triclinium_core.retry.actions import (
    CloseConnection,
    Complete,
    Fail,
    RefreshCollection,
    RefreshTopology,
    ReportRefusal,
    ReportRetry,
    RetryAfter,
)
from triclinium_core.retry.annotation import RequestAnnotation
from triclinium_core.retry.error_map import Attribute, ErrorMap, ErrorMapStore, parse_entry
from triclinium_core.retry.events import (
    DispatchFailed,
    HandedOver,
    KvResponse,
    RequestEvent,
    ResponseReceived,
    ServiceResponse,
    SocketClosed,
)
from triclinium_core.retry.explain import Case, ErrorCode, HttpAnswer, KvAnswer, explain
from triclinium_core.retry.explanation import milliseconds, words_of
from triclinium_core.retry.idempotency import IDEMPOTENCY, Idempotency, IdempotentOperation, is_idempotent
from triclinium_core.retry.kv_responses import RETRYABLE_STATUSES, RetryableStatus
from triclinium_core.retry.kv_status import ERRORS_WITHOUT_A_MAP, KV_STATUSES, Status, StatusRow
from triclinium_core.retry.machine import RetryMachine
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.service import Service
from triclinium_core.retry.service_responses import RETRYABLE_ERROR_CODES, RETRYABLE_HTTP_STATUSES, RetryableCode
from triclinium_core.retry.states import RequestState
from triclinium_core.retry.strategy import (
    TERMINAL_ERRORS,
    AnyRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
)
from triclinium_core.retry.trial import LongestDelays

NODE = "10.0.0.1:11210"
R, S = RetryReason, Status
KV, QUERY, SEARCH = Service.KV, Service.QUERY, Service.SEARCH


def event_of(case: Case) -> tuple[RequestEvent, RequestState]:
    """Return what a driver feeds in this case, and where the request stands then."""
    match case.happened:
        case KvAnswer(status):
            return ResponseReceived(KvResponse(status, NODE)), RequestState.IN_FLIGHT
        case HttpAnswer(http_status, body):
            return ResponseReceived(ServiceResponse(case.service, http_status, body)), RequestState.IN_FLIGHT
        case ErrorCode(code, message, http_status):
            body = f'{{"errors": [{{"code": {code}, "msg": "{message}"}}]}}'
            return ResponseReceived(ServiceResponse(case.service, http_status or 400, body)), RequestState.IN_FLIGHT
        case SocketClosed() as closed:
            return closed, RequestState.IN_FLIGHT
        case DispatchFailed() as failed:
            return failed, RequestState.PENDING


def client_does(case: Case) -> dict[str, object]:
    """Return what the client's machine orders in this case, in the words of ``Explanation.to_json``."""
    event, state = event_of(case)
    error_maps = ErrorMapStore()
    if isinstance(case.happened, KvAnswer) and case.happened.error_map_entry is not None:
        error_maps.load(NODE, ErrorMap(2, 9, {case.happened.status: case.happened.error_map_entry}))
    # What a message calls the answer of a service whose error stands in the body, and not in the HTTP status.
    name = f"error {case.happened.code}" if isinstance(case.happened, ErrorCode) else None
    annotation = RequestAnnotation(
        operation=case.operation,
        idempotent=is_idempotent(case.service, case.operation),
        strategy=case.strategy,
        submitted_at=1000.0,
        deadline=1000.0 + case.timeout,
        service=case.service,
        error_context=ErrorContext(status_name=name),
    )
    machine = RetryMachine(
        annotation, rng=LongestDelays(), error_maps=error_maps, state=state, retry_attempts=case.attempt
    )
    done: dict[str, object] = {"idempotent": annotation.idempotent, "reason": None, "delay_ms": None, "error": None}
    orders: list[str] = []
    for action in machine.handle(event, 1000.0 + case.elapsed):
        match action:
            case ReportRetry(reason=reason) | ReportRefusal(reason=reason):
                done |= {"reason": str(reason), "allows_non_idempotent_retry": reason.allows_non_idempotent_retry}
                done |= {"always_retry": reason.always_retry, "meaning": reason.meaning}
            case RetryAfter(delay, dispatches):
                done |= {"action": "retry", "delay_ms": milliseconds(delay), "dispatches": dispatches}
            case Fail(error):
                done |= {"action": "fail", "error": error.rfc_class.__name__, "message": str(error)}
            case Complete():
                done["action"] = "complete"
            case RefreshTopology() | RefreshCollection() | CloseConnection():
                orders.append(words_of(action))
            case _:
                raise AssertionError(action)
    return done | {"orders": orders}


def case_of(
    happened: KvAnswer | HttpAnswer | ErrorCode | SocketClosed | DispatchFailed,
    operation: str = "upsert",
    *,
    service: Service = KV,
    strategy: AnyRetryStrategy | None = None,
    attempt: int = 3,
) -> Case:
    """Return a case with a minute of time and the default strategy, unless told otherwise."""
    strategy = strategy if strategy is not None else FastFailOnTerminalErrorRetryStrategy()
    return Case(
        service=service, operation=operation, happened=happened, strategy=strategy, attempt=attempt, timeout=60.0
    )


Change = Callable[[pytest.MonkeyPatch], None]
FAIL_FAST = FailFastRetryStrategy()
RETRY_NOW = parse_entry({"name": "X", "attrs": ["retry-now"]})
TEMP = parse_entry({"name": "X", "attrs": ["temp"]})


def always_retry(patch: pytest.MonkeyPatch) -> None:
    """RetryReason: KV_LOCKED is always retried."""
    patch.setattr(R.KV_LOCKED, "always_retry", True)


def not_for_writes(patch: pytest.MonkeyPatch) -> None:
    """RetryReason: KV_LOCKED is for idempotent requests only."""
    patch.setattr(R.KV_LOCKED, "allows_non_idempotent_retry", False)


def other_meaning(patch: pytest.MonkeyPatch) -> None:
    """RetryReason: KV_LOCKED says something else."""
    patch.setattr(R.KV_LOCKED, "meaning", "the key is lost")


def idempotent_upsert(patch: pytest.MonkeyPatch) -> None:
    """IDEMPOTENCY: a row more."""
    row = IdempotentOperation(KV, "upsert", Idempotency.ALWAYS, "a test")
    patch.setitem(IDEMPOTENCY, (KV, "upsert"), row)


def conditional_get(patch: pytest.MonkeyPatch) -> None:
    """IDEMPOTENCY: a row with another condition."""
    row = IdempotentOperation(KV, "get", Idempotency.IF_READONLY, "a test")
    patch.setitem(IDEMPOTENCY, (KV, "get"), row)


def retryable_status(patch: pytest.MonkeyPatch) -> None:
    """RETRYABLE_STATUSES: a line more."""
    line = RetryableStatus(S.KEY_NOT_FOUND, R.KV_NOT_MY_VBUCKET, frozenset(), "a test")
    patch.setitem(RETRYABLE_STATUSES, S.KEY_NOT_FOUND, line)


def excluded_operation(patch: pytest.MonkeyPatch) -> None:
    """RETRYABLE_STATUSES: a line with another exclusion."""
    line = RetryableStatus(S.LOCKED, R.KV_LOCKED, frozenset({"upsert"}), "a test")
    patch.setitem(RETRYABLE_STATUSES, S.LOCKED, line)


def no_retryable_status(patch: pytest.MonkeyPatch) -> None:
    """RETRYABLE_STATUSES: a line less."""
    patch.delitem(RETRYABLE_STATUSES, S.LOCKED)


def other_error(patch: pytest.MonkeyPatch) -> None:
    """KV_STATUSES: a row with another error."""
    patch.setitem(KV_STATUSES, S.LOCKED, StatusRow(S.LOCKED, errors.PathNotFoundException))


def error_of_operation(patch: pytest.MonkeyPatch) -> None:
    """KV_STATUSES: a row with another error for one operation."""
    row = StatusRow(S.KEY_EXISTS, errors.DocumentExistsException, {"upsert": errors.DmlFailureException})
    patch.setitem(KV_STATUSES, S.KEY_EXISTS, row)


def no_failure(patch: pytest.MonkeyPatch) -> None:
    """KV_STATUSES: a row that is no failure any more."""
    patch.setitem(KV_STATUSES, S.KEY_EXISTS, StatusRow(S.KEY_EXISTS, None))


def unknown_again(patch: pytest.MonkeyPatch) -> None:
    """KV_STATUSES: a row less, so that the error map decides."""
    patch.delitem(KV_STATUSES, S.KEY_EXISTS)


def without_a_map(patch: pytest.MonkeyPatch) -> None:
    """ERRORS_WITHOUT_A_MAP: a row with another error."""
    patch.setitem(ERRORS_WITHOUT_A_MAP, S.BUSY, errors.QuotaLimitedException)


def error_by_attribute(patch: pytest.MonkeyPatch) -> None:
    """ERRORS_BY_ATTRIBUTE: a row with another error."""
    patch.setattr(kv_responses, "ERRORS_BY_ATTRIBUTE", ((Attribute.TEMP, errors.PathTooBigException),))


def retry_attributes(patch: pytest.MonkeyPatch) -> None:
    """RETRY_ATTRIBUTES: temp permits a retry."""
    patch.setattr(error_map, "RETRY_ATTRIBUTES", frozenset({Attribute.TEMP}))


def connection_invalidating(patch: pytest.MonkeyPatch) -> None:
    """CONNECTION_INVALIDATING: another status."""
    patch.setattr(kv_responses, "CONNECTION_INVALIDATING", frozenset({S.KEY_EXISTS}))


def retryable_error_code(patch: pytest.MonkeyPatch) -> None:
    """RETRYABLE_ERROR_CODES: a line more."""
    line = RetryableCode(QUERY, 3000, R.QUERY_INDEX_NOT_FOUND, errors.ParsingFailureException, "a test")
    patch.setitem(RETRYABLE_ERROR_CODES, (QUERY, 3000), line)


def error_of_a_code(patch: pytest.MonkeyPatch) -> None:
    """RETRYABLE_ERROR_CODES: a line with another error."""
    line = RetryableCode(QUERY, 4040, R.QUERY_INDEX_NOT_FOUND, errors.DmlFailureException, "a test")
    patch.setitem(RETRYABLE_ERROR_CODES, (QUERY, 4040), line)


def retryable_http_status(patch: pytest.MonkeyPatch) -> None:
    """RETRYABLE_HTTP_STATUSES: a line more."""
    line = RetryableCode(SEARCH, 503, R.SEARCH_TOO_MANY_REQUESTS, errors.RateLimitedException, "a test")
    patch.setitem(RETRYABLE_HTTP_STATUSES, (SEARCH, 503), line)


def no_retryable_http_status(patch: pytest.MonkeyPatch) -> None:
    """RETRYABLE_HTTP_STATUSES: a line less."""
    patch.delitem(RETRYABLE_HTTP_STATUSES, (SEARCH, 429))


def terminal_error(patch: pytest.MonkeyPatch) -> None:
    """TERMINAL_ERRORS: a row more."""
    patch.setitem(TERMINAL_ERRORS, R.NODE_NOT_AVAILABLE, errors.ScopeNotFoundException)


def no_terminal_error(patch: pytest.MonkeyPatch) -> None:
    """TERMINAL_ERRORS: a row less."""
    patch.delitem(TERMINAL_ERRORS, R.TLS_ERROR)


def controlled_delays(patch: pytest.MonkeyPatch) -> None:
    """CONTROLLED_DELAYS: other delays."""
    patch.setattr(backoff, "CONTROLLED_DELAYS", (0.001, 0.002, 0.003, 0.007))


def controlled_delay_max(patch: pytest.MonkeyPatch) -> None:
    """CONTROLLED_DELAY_MAX: another ceiling."""
    patch.setattr(backoff, "CONTROLLED_DELAY_MAX", 3.0)


def hint(patch: pytest.MonkeyPatch) -> None:
    """HINTS: another next step."""
    patch.setitem(failures.HINTS, R.KV_LOCKED, "look for the key")


LOCKED = case_of(KvAnswer(0x09))
LOCKED_FAIL_FAST = case_of(KvAnswer(0x09), strategy=FAIL_FAST)
EXISTS = case_of(KvAnswer(0x02))
EXISTS_MAPPED = case_of(KvAnswer(0x02, RETRY_NOW))
LOST = case_of(SocketClosed(HandedOver.ALL))
LOST_GET = case_of(SocketClosed(HandedOver.ALL), "get")
MOVED = case_of(KvAnswer(0x07))
SYNTAX = case_of(ErrorCode(3000), service=QUERY)
STALE = case_of(ErrorCode(4040), service=QUERY, strategy=FAIL_FAST)
BUSY = case_of(HttpAnswer(429), service=SEARCH)
DOWN = case_of(HttpAnswer(503), service=SEARCH)
UNREACHED = case_of(DispatchFailed(R.NODE_NOT_AVAILABLE))
REFUSED = case_of(DispatchFailed(R.TLS_ERROR))
CAS_MISMATCH, TEMPORARY = "CasMismatchException", "TemporaryFailureException"


@pytest.mark.parametrize(
    ("change", "case", "key", "expected"),
    [
        (always_retry, LOCKED, "delay_ms", (8, 100)),
        (not_for_writes, LOCKED, "action", ("retry", "fail")),
        (other_meaning, LOCKED, "meaning", ("the document is locked", "the key is lost")),
        (idempotent_upsert, LOST, "action", ("fail", "retry")),
        (conditional_get, LOST_GET, "action", ("retry", "fail")),
        (retryable_status, case_of(KvAnswer(0x01)), "reason", (None, "KV_NOT_MY_VBUCKET")),
        (excluded_operation, LOCKED, "reason", ("KV_LOCKED", None)),
        (no_retryable_status, LOCKED, "reason", ("KV_LOCKED", None)),
        (other_error, LOCKED_FAIL_FAST, "error", ("DocumentLockedException", "PathNotFoundException")),
        (error_of_operation, EXISTS, "error", (CAS_MISMATCH, "DmlFailureException")),
        (no_failure, case_of(KvAnswer(0x02), "insert"), "action", ("fail", "complete")),
        (unknown_again, EXISTS_MAPPED, "reason", (None, "KV_ERROR_MAP_RETRY_INDICATED")),
        (without_a_map, case_of(KvAnswer(0x85)), "error", (TEMPORARY, "QuotaLimitedException")),
        (error_by_attribute, case_of(KvAnswer(0x7FF0, TEMP)), "error", (TEMPORARY, "PathTooBigException")),
        (retry_attributes, case_of(KvAnswer(0x7FF0, TEMP)), "action", ("fail", "retry")),
        (
            connection_invalidating,
            EXISTS,
            "orders",
            ([], ["close the connection: the status invalidates the connection"]),
        ),
        (retryable_error_code, SYNTAX, "action", ("fail", "retry")),
        (error_of_a_code, STALE, "error", ("PreparedStatementFailureException", "DmlFailureException")),
        (retryable_http_status, DOWN, "action", ("fail", "retry")),
        (no_retryable_http_status, BUSY, "action", ("retry", "fail")),
        (terminal_error, UNREACHED, "action", ("retry", "fail")),
        (no_terminal_error, REFUSED, "action", ("fail", "retry")),
        (controlled_delays, MOVED, "delay_ms", (100, 7)),
        (controlled_delay_max, case_of(KvAnswer(0x07), attempt=9), "delay_ms", (1000, 3000)),
        (
            hint,
            LOCKED_FAIL_FAST,
            "message",
            tuple(
                f"upsert: the document is locked (KV_LOCKED) and is not retried: {step} [retried 3 times]"
                for step in ("retry when the lock has been released, or has expired", "look for the key")
            ),
        ),
    ],
)
def test_client_and_explanation_change_together(
    monkeypatch: pytest.MonkeyPatch, change: Change, case: Case, key: str, expected: tuple[object, object]
) -> None:
    """Before and after the change, what is told is what the client does."""
    done_before, told_before = client_does(case), explain(case).to_json()
    change(monkeypatch)
    done_after, told_after = client_does(case), explain(case).to_json()

    assert expected == (done_before[key], done_after[key])
    assert done_before == {name: told_before[name] for name in done_before}
    assert done_after == {name: told_after[name] for name in done_after}


@pytest.mark.parametrize(
    ("change", "case", "expected"),
    [
        (
            terminal_error,
            UNREACHED,
            ("wants a retry in 8 ms", "refuses: NODE_NOT_AVAILABLE is one of the six terminal reasons"),
        ),
        (
            no_terminal_error,
            REFUSED,
            ("refuses: TLS_ERROR is one of the five terminal reasons", "wants a retry in 8 ms"),
        ),
        (
            not_for_writes,
            LOCKED,
            ("wants a retry in 8 ms", "refuses, since the request is not idempotent"),
        ),
        (
            idempotent_upsert,
            LOST,
            ("refuses, since the request is not idempotent", "wants a retry in 8 ms"),
        ),
    ],
)
def test_what_the_strategy_answers_changes_with_its_tables(
    monkeypatch: pytest.MonkeyPatch, change: Change, case: Case, expected: tuple[str, str]
) -> None:
    """It is the strategy's own answer, and not what a rule says of the reason."""
    before = explain(case).strategy_answer
    change(monkeypatch)
    after = explain(case).strategy_answer

    assert expected == (before, after)


def test_whether_the_error_map_has_a_say_changes_with_the_statuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A status whose row is gone is unknown, and then the map decides."""
    before = explain(EXISTS_MAPPED).error_map_has_a_say
    unknown_again(monkeypatch)
    after = explain(EXISTS_MAPPED).error_map_has_a_say

    assert (False, True) == (before, after)
