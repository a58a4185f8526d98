"""Questions about Couchbase: each has its answer, or says which field is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from tests.core.retry.sample_questions import (
    CAP,
    COUCHBASE,
    DECIDE,
    ENTRIES,
    IDEMPOTENT,
    REASON_HTTP,
    REASON_KV,
    RETRY_NOW,
    TERMINAL,
    TIMEOUT,
)
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry import backoff, error_map, kv_responses
from triclinium_core.retry.couchbase_questions import STRATEGIES
from triclinium_core.retry.error_map import Attribute
from triclinium_core.retry.idempotency import IDEMPOTENCY, Idempotency, IdempotentOperation
from triclinium_core.retry.kv_responses import RETRYABLE_STATUSES, RetryableStatus
from triclinium_core.retry.kv_status import KV_STATUSES, Status, StatusRow
from triclinium_core.retry.question_fields import MalformedQuestion
from triclinium_core.retry.questions import answer
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.service import Service
from triclinium_core.retry.service_responses import RETRYABLE_ERROR_CODES, RETRYABLE_HTTP_STATUSES, RetryableCode
from triclinium_core.retry.strategy import TERMINAL_ERRORS

UNSAID = {name: value for name, value in DECIDE.items() if name != "reason"}
ANSWERED = UNSAID | {"service": "kv", "op": "unlock", "status": "0x09"}
CLOSED = UNSAID | {"handed_over": "part"}
MAPPED = DECIDE | {
    "strategy": "error_map",
    "reason": "KV_ERROR_MAP_RETRY_INDICATED",
    "error_map_entry": {"attrs": ["retry-now"], "retry": {"strategy": "constant", "interval": 0, "after": 0}},
}


@rows(
    ("question", "expected"),
    [
        (IDEMPOTENT, {"idempotent": True}),
        (IDEMPOTENT | {"op": "no such operation"}, {"idempotent": False}),
        (IDEMPOTENT | {"service": "query", "op": "query"}, {"idempotent": False}),
        (IDEMPOTENT | {"service": "query", "op": "query", "readonly": True}, {"idempotent": True}),
        (IDEMPOTENT | {"service": "management", "op": "http", "method": "GET"}, {"idempotent": True}),
        (IDEMPOTENT | {"service": "management", "op": "http", "method": "POST"}, {"idempotent": False}),
        (REASON_KV, {"reason": "KV_TEMPORARY_FAILURE"}),
        (REASON_KV | {"status": "0x01"}, {"reason": None}),
        (REASON_KV | {"status": "0x7ff0"}, {"reason": None}),
        (REASON_KV | {"status": "0x7ff0", "error_map_entry": None}, {"reason": None}),
        (
            REASON_KV | {"status": "0x7ff0", "error_map_entry": RETRY_NOW},
            {"reason": "KV_ERROR_MAP_RETRY_INDICATED"},
        ),
        (REASON_HTTP, {"reason": "VIEWS_NO_ACTIVE_PARTITION"}),
        (REASON_HTTP | {"http_status": 400}, {"reason": None}),
        (DECIDE, {"action": "retry", "delay_ms": 8, "dispatches": True}),
        (
            DECIDE | {"elapsed_ms": 2497.5},
            {"action": "retry", "delay_ms": 2.5, "dispatches": False, "error": "UnambiguousTimeoutException"},
        ),
        (ANSWERED, {"action": "fail", "error": "CasMismatchException"}),
        (ANSWERED | {"status": "0x00"}, {"action": "complete"}),
        (ANSWERED | {"reason": "KV_LOCKED"}, {"action": "retry", "delay_ms": 8, "dispatches": True}),
        (CLOSED, {"action": "fail", "error": "RequestCanceledException"}),
        (CLOSED | {"handed_over": "nothing"}, {"action": "retry", "delay_ms": 8, "dispatches": True}),
        (CLOSED | {"elapsed_ms": 2500}, {"action": "fail", "error": "AmbiguousTimeoutException"}),
        (TIMEOUT, {"error": "AmbiguousTimeoutException"}),
        (TIMEOUT | {"reason": None}, {"error": "AmbiguousTimeoutException"}),
        (TIMEOUT | {"on_the_wire": False}, {"error": "UnambiguousTimeoutException"}),
        (TIMEOUT | {"idempotent": True}, {"error": "UnambiguousTimeoutException"}),
        (DECIDE | {"strategy": "fail_fast"}, {"action": "fail", "error": "DocumentLockedException"}),
        (DECIDE | {"elapsed_ms": 2500}, {"action": "fail", "error": "UnambiguousTimeoutException"}),
        (
            DECIDE | {"elapsed_ms": 2500, "reason": "SOCKET_CLOSED_WHILE_IN_FLIGHT"},
            {"action": "fail", "error": "AmbiguousTimeoutException"},
        ),
        (
            DECIDE | {"elapsed_ms": 2500, "reason": "SOCKET_CLOSED_WHILE_IN_FLIGHT", "idempotent": True},
            {"action": "fail", "error": "UnambiguousTimeoutException"},
        ),
        (
            DECIDE | {"strategy": "fast_fail_on_terminal_error", "reason": "TLS_ERROR"},
            {"action": "fail", "error": "CouchbaseException"},
        ),
        (
            DECIDE | {"reason": "SOCKET_CLOSED_WHILE_IN_FLIGHT"},
            {"action": "fail", "error": "RequestCanceledException"},
        ),
        (
            DECIDE
            | {
                "strategy": "error_map",
                "reason": "KV_ERROR_MAP_RETRY_INDICATED",
                "error_map_entry": {
                    "attrs": ["retry-now"],
                    "retry": {"strategy": "constant", "interval": 10**400, "after": 0},
                },
            },
            {"action": "retry", "delay_ms": 8, "dispatches": True},
        ),
        (MAPPED, {"action": "retry", "delay_ms": 0, "dispatches": True}),
        (CAP, {"delay_ms": 10, "dispatches": True}),
        (CAP | {"elapsed_ms": 2495}, {"delay_ms": 5, "dispatches": False}),
        (CAP | {"elapsed_ms": 9999}, {"delay_ms": 0, "dispatches": False}),
        (CAP | {"requested_delay_ms": 0.1, "timeout_ms": 0.3}, {"delay_ms": 0.1, "dispatches": True}),
        (TERMINAL, {"reason": "AUTHENTICATION_ERROR"}),
        (TERMINAL | {"events": []}, {"reason": None}),
    ],
)
def test_answers(question: dict[str, object], expected: dict[str, object]) -> None:
    """Each kind of question has its form of answer."""
    assert expected == answer(MappingProxyType(question))


@pytest.mark.parametrize("question", COUCHBASE, ids=lambda question: str(question["ask"]))
def test_every_field_is_needed(question: dict[str, object]) -> None:
    """A question that lacks a field is refused, and the field is named."""
    for name in question:
        with pytest.raises(MalformedQuestion, match=f"^{name} is missing$"):
            answer({key: value for key, value in question.items() if key != name})


@rows(
    ("question", "message"),
    [
        (IDEMPOTENT | {"ask": "why"}, "ask 'why' is not known; expected one of idempotent, reason, decide"),
        (IDEMPOTENT | {"service": "fts"}, "service 'fts' is not known; expected one of kv, query"),
        (IDEMPOTENT | {"readonly": None}, "readonly is null, expected true or false"),
        (IDEMPOTENT | {"method": 1}, "method is a number, expected a string"),
        (REASON_KV | {"status": 134}, "status is a number, expected a string"),
        (REASON_KV | {"status": "86"}, "status '86' is not 0x and"),
        (REASON_KV | {"status": "0x10000"}, "status '0x10000' has more than 16 bits"),
        (REASON_KV | {"error_map_entry": []}, "error_map_entry is list, expected dict"),
        (REASON_KV | {"error_map_entry": {}}, "error_map_entry.attrs is NoneType, expected list"),
        (REASON_HTTP | {"http_status": "302"}, "http_status is a string, expected a number"),
        (REASON_HTTP | {"http_status": 0}, "http_status is 0, expected 100 to 599"),
        (REASON_HTTP | {"body": {}}, "body is an object, expected a string"),
        (DECIDE | {"strategy": "hope"}, "strategy 'hope' is not known; expected one of best_effort, fast_fail"),
        (DECIDE | {"reason": "KV_LOCK"}, "reason 'KV_LOCK' is not known; expected one of UNKNOWN, SOCKET"),
        (DECIDE | {"idempotent": 0}, "idempotent is a number, expected true or false"),
        (DECIDE | {"attempt": 1.5}, "attempt is 1.5, expected a whole number"),
        (DECIDE | {"attempt": 10**400}, "attempt is too large"),
        (DECIDE | {"elapsed_ms": -1}, "elapsed_ms is -1.0, expected a finite number of at least 0"),
        (DECIDE | {"timeout_ms": math.nan}, "timeout_ms is nan, expected a finite number of at least 0"),
        (CAP | {"requested_delay_ms": math.inf}, "requested_delay_ms is inf, expected a finite number"),
        (CLOSED | {"handed_over": "some"}, "handed_over 'some' is not known; expected one of nothing, part, all"),
        (ANSWERED | {"status": "86"}, "status '86' is not 0x and"),
        (
            MAPPED | {"error_map_entry": {"attrs": ["temp"]}},
            "error_map_entry.attrs permits no retry, so nothing gives the reason KV_ERROR_MAP_RETRY_INDICATED",
        ),
        (TIMEOUT | {"reason": "UNKNOWN"}, "reason UNKNOWN leads to no retry of a request that is not idempotent"),
        (TIMEOUT | {"on_the_wire": "yes"}, "on_the_wire is a string, expected true or false"),
        (TERMINAL | {"events": "none"}, "events is a string, expected an array of strings"),
        (TERMINAL | {"events": ["no manifest fetched yet", 1]}, "events[1] is a number, expected a string"),
        (TERMINAL | {"events": ["sasl ok"]}, "events[0] 'sasl ok' is not known"),
        (TERMINAL | {"op": "kv"}, "op 'kv' is not known"),
    ],
)
def test_refuses(question: dict[str, object], message: str) -> None:
    """The text says which field is wrong, and what it should be."""
    with pytest.raises(MalformedQuestion) as caught:
        answer(question)

    assert message == str(caught.value)[: len(message)]


Change = Callable[[pytest.MonkeyPatch], None]


def change_flag(patch: pytest.MonkeyPatch) -> None:
    """Let KV_LOCKED always be retried."""
    patch.setattr(RetryReason.KV_LOCKED, "always_retry", True)


def change_idempotency(patch: pytest.MonkeyPatch) -> None:
    """Let touch be idempotent."""
    row = IdempotentOperation(Service.KV, "touch", Idempotency.ALWAYS, "a test")
    patch.setitem(IDEMPOTENCY, (Service.KV, "touch"), row)


def change_retryable_statuses(patch: pytest.MonkeyPatch) -> None:
    """Let a missing document be retried."""
    line = RetryableStatus(Status.KEY_NOT_FOUND, RetryReason.KV_LOCKED, frozenset(), "a test")
    patch.setitem(RETRYABLE_STATUSES, Status.KEY_NOT_FOUND, line)


def change_kv_statuses(patch: pytest.MonkeyPatch) -> None:
    """Let a locked document have another error."""
    patch.setitem(KV_STATUSES, Status.LOCKED, StatusRow(Status.LOCKED, errors.PathNotFoundException))


def change_error_codes(patch: pytest.MonkeyPatch) -> None:
    """Let a syntax error be retried."""
    line = RetryableCode(
        Service.QUERY, 3000, RetryReason.QUERY_INDEX_NOT_FOUND, errors.ParsingFailureException, "a test"
    )
    patch.setitem(RETRYABLE_ERROR_CODES, (Service.QUERY, 3000), line)


def change_http_statuses(patch: pytest.MonkeyPatch) -> None:
    """Let no view move."""
    patch.delitem(RETRYABLE_HTTP_STATUSES, (Service.VIEWS, 302))


def change_terminal_errors(patch: pytest.MonkeyPatch) -> None:
    """Let a locked document be terminal."""
    patch.setitem(TERMINAL_ERRORS, RetryReason.KV_LOCKED, errors.ScopeNotFoundException)


def change_controlled_delays(patch: pytest.MonkeyPatch) -> None:
    """Let the fixed delays have one step."""
    patch.setattr(backoff, "CONTROLLED_DELAYS", (0.007,))
    patch.setattr(backoff, "CONTROLLED_DELAY_MAX", 0.9)


def change_errors_by_attribute(patch: pytest.MonkeyPatch) -> None:
    """Let retry-now have an error."""
    patch.setattr(kv_responses, "ERRORS_BY_ATTRIBUTE", ((Attribute.RETRY_NOW, errors.PathTooDeepException),))


def change_retry_attributes(patch: pytest.MonkeyPatch) -> None:
    """Let nothing but auto-retry permit a retry."""
    patch.setattr(error_map, "RETRY_ATTRIBUTES", frozenset({Attribute.AUTO_RETRY}))


SYNTAX_ERROR = REASON_HTTP | {"service": "query", "body": '{"errors": [{"code": 3000, "msg": "syntax"}]}'}
UNKNOWN_STATUS = REASON_KV | {"status": "0x7ff0", "error_map_entry": RETRY_NOW}
MAP_REFUSED = DECIDE | {
    "strategy": "fail_fast",
    "reason": "KV_ERROR_MAP_RETRY_INDICATED",
    "error_map_entry": RETRY_NOW,
}
MOVED = DECIDE | {"reason": "KV_NOT_MY_VBUCKET"}


@pytest.mark.parametrize(
    ("change", "question", "key", "expected"),
    [
        (change_flag, DECIDE, "delay_ms", (8, 100)),
        (change_idempotency, IDEMPOTENT | {"op": "touch"}, "idempotent", (False, True)),
        (change_retryable_statuses, REASON_KV | {"status": "0x01"}, "reason", (None, "KV_LOCKED")),
        (
            change_kv_statuses,
            DECIDE | {"strategy": "fail_fast"},
            "error",
            ("DocumentLockedException", "PathNotFoundException"),
        ),
        (change_error_codes, SYNTAX_ERROR, "reason", (None, "QUERY_INDEX_NOT_FOUND")),
        (change_http_statuses, REASON_HTTP, "reason", ("VIEWS_NO_ACTIVE_PARTITION", None)),
        (change_terminal_errors, DECIDE | {"strategy": "fast_fail_on_terminal_error"}, "action", ("retry", "fail")),
        (change_controlled_delays, MOVED | {"attempt": 0}, "delay_ms", (1, 7)),
        (change_controlled_delays, MOVED, "delay_ms", (100, 900)),
        (change_errors_by_attribute, MAP_REFUSED, "error", ("CouchbaseException", "PathTooDeepException")),
        (change_retry_attributes, UNKNOWN_STATUS, "reason", ("KV_ERROR_MAP_RETRY_INDICATED", None)),
    ],
)
def test_answers_follow_the_tables(
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    question: dict[str, object],
    key: str,
    expected: tuple[object, object],
) -> None:
    """A row that is changed changes the answer: nothing is written down twice."""
    before = answer(question)
    change(monkeypatch)
    after = answer(question)

    assert expected == (before[key], after[key])


def test_strategies_are_the_shipped_ones() -> None:
    """Questions name the four strategies of the RFCs."""
    assert {"best_effort", "fast_fail_on_terminal_error", "fail_fast", "error_map"} == STRATEGIES.keys()


@given(entry=ENTRIES, attempt=st.integers(0, 10**6), elapsed_ms=st.integers(0, 3000))
def test_no_schedule_escapes_the_deadline(entry: dict[str, object], attempt: int, elapsed_ms: int) -> None:
    """Whatever an error map asks for, no delay passes the deadline."""
    question = DECIDE | {
        "strategy": "error_map",
        "reason": "KV_ERROR_MAP_RETRY_INDICATED",
        "attempt": attempt,
        "elapsed_ms": elapsed_ms,
        "error_map_entry": entry,
    }

    try:
        answered = answer(question)
    except MalformedQuestion:
        answered = {"action": "malformed"}

    assert answered["action"] in {"retry", "fail", "malformed"}
    if answered["action"] == "retry":
        delay_ms = answered["delay_ms"]
        assert isinstance(delay_ms, int | float)
        assert 0 <= delay_ms <= 2500 - elapsed_ms
