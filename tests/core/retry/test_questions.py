"""Questions as decoded JSON, alone and line by line."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from types import MappingProxyType
from typing import cast

import pytest
from hypothesis import given, strategies as st

from triclinium_core import errors
from triclinium_core.retry import backoff, error_map, kv_responses
from triclinium_core.retry.error_map import Attribute, parse_entry
from triclinium_core.retry.idempotency import IDEMPOTENCY, Idempotency, IdempotentOperation
from triclinium_core.retry.kv_responses import RETRYABLE_STATUSES, RetryableStatus
from triclinium_core.retry.kv_status import KV_STATUSES, Status, StatusRow
from triclinium_core.retry.question_fields import MalformedQuestion
from triclinium_core.retry.questions import STRATEGIES, answer, answer_lines, error_of_reason
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.service import Service
from triclinium_core.retry.service_responses import RETRYABLE_ERROR_CODES, RETRYABLE_HTTP_STATUSES, RetryableCode
from triclinium_core.retry.strategy import TERMINAL_ERRORS

RETRY_NOW = {"name": "X", "desc": "x", "attrs": ["retry-now"]}
IDEMPOTENT: dict[str, object] = {"family": "couchbase", "ask": "idempotent", "service": "kv", "op": "get"}
REASON_KV: dict[str, object] = {"family": "couchbase", "ask": "reason", "service": "kv", "op": "get", "status": "0x86"}
REASON_HTTP: dict[str, object] = {
    "family": "couchbase",
    "ask": "reason",
    "service": "views",
    "op": "query",
    "http_status": 302,
    "body": "",
}
DECIDE: dict[str, object] = {
    "family": "couchbase",
    "ask": "decide",
    "strategy": "best_effort",
    "reason": "KV_LOCKED",
    "idempotent": False,
    "attempt": 3,
    "elapsed_ms": 0,
    "timeout_ms": 2500,
}
CAP: dict[str, object] = {
    "family": "couchbase",
    "ask": "cap",
    "requested_delay_ms": 10,
    "elapsed_ms": 0,
    "timeout_ms": 2500,
}
TERMINAL: dict[str, object] = {
    "family": "couchbase",
    "ask": "terminal",
    "events": ["topology_conn:1 sasl status 0x20"],
    "op": "query",
}
QUESTIONS = (IDEMPOTENT, REASON_KV, REASON_HTTP, DECIDE, CAP, TERMINAL)


@pytest.mark.parametrize(
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
        (DECIDE | {"elapsed_ms": 2497.5}, {"action": "retry", "delay_ms": 2.5, "dispatches": False}),
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


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: str(question["ask"]))
def test_every_field_is_needed(question: dict[str, object]) -> None:
    """A question that lacks a field is refused, and the field is named."""
    for name in question:
        with pytest.raises(MalformedQuestion, match=f"^{name} is missing$"):
            answer({key: value for key, value in question.items() if key != name})


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (IDEMPOTENT | {"family": "cassandra"}, "family 'cassandra' is not known; expected one of couchbase"),
        (IDEMPOTENT | {"family": "smithy"}, "family 'smithy' is not known; expected one of couchbase"),
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


def test_refuses_what_is_no_object() -> None:
    """A question is an object."""
    with pytest.raises(MalformedQuestion, match="^a question is an object, not an array$"):
        answer(cast(dict[str, object], ["couchbase"]))


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (RetryReason.KV_LOCKED, errors.DocumentLockedException),
        (RetryReason.KV_TEMPORARY_FAILURE, errors.TemporaryFailureException),
        (RetryReason.KV_SYNC_WRITE_IN_PROGRESS, errors.DurableWriteInProgressException),
        (RetryReason.KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS, errors.DurableWriteReCommitInProgressException),
        (RetryReason.QUERY_PREPARED_STATEMENT_FAILURE, errors.PreparedStatementFailureException),
        (RetryReason.QUERY_INDEX_NOT_FOUND, errors.IndexNotFoundException),
        (RetryReason.ANALYTICS_TEMPORARY_FAILURE, errors.TemporaryFailureException),
        (RetryReason.SEARCH_TOO_MANY_REQUESTS, errors.RateLimitedException),
        (RetryReason.VIEWS_TEMPORARY_FAILURE, errors.CouchbaseException),
        (RetryReason.SOCKET_NOT_AVAILABLE, errors.RequestCanceledException),
        (RetryReason.CIRCUIT_BREAKER_OPEN, errors.RequestCanceledException),
        (RetryReason.UNKNOWN, errors.RequestCanceledException),
        (RetryReason.KV_ERROR_MAP_RETRY_INDICATED, errors.RequestCanceledException),
    ],
)
def test_error_of_a_refused_reason(reason: RetryReason, expected: type[errors.CouchbaseException]) -> None:
    """A reason born of an answer surfaces that answer's own error, every other the cancellation (decision C32)."""
    assert expected is error_of_reason(reason)


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("auth", errors.AuthenticationFailureException),
        ("invalid-input", errors.InvalidArgumentException),
        ("support", errors.FeatureNotAvailableException),
        ("temp", errors.TemporaryFailureException),
        ("subdoc", errors.CouchbaseException),
    ],
)
def test_error_of_a_refused_unknown_status(attribute: str, expected: type[errors.CouchbaseException]) -> None:
    """What the error map says of the status decides (decision C31)."""
    entry = parse_entry({"attrs": ["retry-now", attribute]})

    assert expected is error_of_reason(RetryReason.KV_ERROR_MAP_RETRY_INDICATED, entry)


def test_a_reason_born_of_a_success_is_canceled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retryable status whose row names no error leaves the cancellation."""
    monkeypatch.setitem(KV_STATUSES, Status.LOCKED, StatusRow(Status.LOCKED, None))

    assert errors.RequestCanceledException is error_of_reason(RetryReason.KV_LOCKED)


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


def test_lines_are_answered_in_order() -> None:
    """Each line gets its own answer or error, with its id and number; blank lines get nothing, but count."""
    lines: list[str | bytes] = [
        json.dumps({"id": "first"} | CAP),
        "",
        json.dumps({"id": 2} | IDEMPOTENT).encode() + b"\n",
        json.dumps(TERMINAL),
        b" \t\r\n",
        json.dumps({"id": "bad", "expect": None} | CAP | {"elapsed_ms": "1"}),
    ]

    answers = [(json.loads(text), understood) for text, understood in answer_lines(lines)]

    assert [
        ({"id": "first", "delay_ms": 10, "dispatches": True}, True),
        ({"id": 2, "idempotent": True}, True),
        ({"id": None, "reason": "AUTHENTICATION_ERROR"}, True),
        ({"id": "bad", "error": "line 6: elapsed_ms is a string, expected a number"}, False),
    ] == answers


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not JSON: "),
        (b"\xff", "line 1: not JSON: "),
        ('{"id": ' * 100_000, "line 1: not JSON: "),
        ('{"id": ' + "9" * 5_000 + "}", "line 1: not JSON: "),
        ('{"id": NaN}', "line 1: not JSON: JSON has no NaN"),
        ("[1]", "line 1: a question is an object, not an array"),
        (json.dumps({"id": [1]} | CAP), "line 1: id is an array, expected a string or a whole number"),
        (json.dumps({"id": True} | CAP), "line 1: id is a boolean, expected a string or a whole number"),
        (json.dumps({"id": 0.5} | CAP), "line 1: id is a number, expected a string or a whole number"),
    ],
    ids=range(9),
)
def test_lines_without_a_usable_id(line: str | bytes, message: str) -> None:
    """The error has the number of the line, and null for its id."""
    ((text, understood),) = answer_lines([line])
    found = json.loads(text)

    assert not understood
    assert {"id": None, "error": message} == found | {"error": found["error"][: len(message)]}


def test_lines_are_read_one_at_a_time() -> None:
    """An endless stream is answered as it comes."""
    lines = itertools.repeat(json.dumps({"id": 7} | CAP))

    answers = list(itertools.islice(answer_lines(lines), 3))

    assert [('{"id": 7, "delay_ms": 10, "dispatches": true}', True)] * 3 == answers


def test_strategies_are_the_shipped_ones() -> None:
    """Questions name the four strategies of the RFCs."""
    assert {"best_effort", "fast_fail_on_terminal_error", "fail_fast", "error_map"} == STRATEGIES.keys()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
HUGE = st.sampled_from([10**400, 10**308, -1, 1e308, 5e-324, 2**64])
ENTRIES = st.fixed_dictionaries(
    {"attrs": st.lists(st.sampled_from([*Attribute, "other"])) | JSON_VALUES},
    optional={
        "retry": st.fixed_dictionaries(
            {
                "strategy": st.sampled_from(["constant", "linear", "exponential", "other"]),
                "interval": st.integers() | HUGE,
                "after": st.integers() | HUGE,
            },
            optional={"max-duration": st.integers() | HUGE, "ceil": st.integers() | HUGE},
        )
    },
)
EVENTS = st.lists(
    st.from_regex(
        r"(topology_conn|bucket):.( sasl| select_bucket)? (ok|status 0x[0-9a-f]{1,5}|removed)", fullmatch=True
    )
)


@st.composite
def nearly_questions(draw: st.DrawFn) -> dict[str, object]:
    """Return a question of which some fields are replaced, dropped or added."""
    question = dict(draw(st.sampled_from(QUESTIONS)))
    for name in draw(st.lists(st.sampled_from([*question, "id", "error_map_entry", "readonly", "events"]), max_size=3)):
        value = draw(JSON_VALUES | HUGE | ENTRIES | EVENTS)
        question[name] = value
    for name in draw(st.lists(st.sampled_from(list(question)), max_size=1)):
        del question[name]
    return question


LINES = st.text() | st.binary() | JSON_VALUES.map(json.dumps) | nearly_questions().map(json.dumps)


def refuse_constant(name: str) -> object:
    """Refuse what Python takes for JSON and nobody else does."""
    raise AssertionError(name)


@given(lines=st.lists(LINES, max_size=5))
def test_no_line_can_harm(lines: list[str | bytes]) -> None:
    """Whatever a line holds, it gets one line of true JSON, with an error exactly when it was not understood."""
    answers = list(answer_lines(lines))

    assert len([line for line in lines if line.strip()]) == len(answers)
    for text, understood in answers:
        found = json.loads(text, parse_constant=refuse_constant)
        assert "\n" not in text
        assert "id" in found
        assert understood == (found.get("error", "").partition(" ")[0] != "line")


@given(question=nearly_questions())
def test_answer_raises_nothing_else(question: dict[str, object]) -> None:
    """A question is answered or malformed, whatever its fields hold."""
    try:
        answered = answer(question)
    except MalformedQuestion as error:
        assert str(error)
    else:
        assert len(answered) >= 1


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
