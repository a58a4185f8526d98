"""Questions about Couchbase: each has an answer, or an error that names the invalid field."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from tests.core.tools.vectors.sample_questions import (
    CAP,
    DECIDE,
    ENTRIES,
    IDEMPOTENT,
    REASON_HTTP,
    REASON_KV,
    TERMINAL,
    TIMEOUT,
)
from tests.rows import rows
from triclinium_core.tools.vectors.fields import MalformedQuestion
from triclinium_core.tools.vectors.questions import answer

UNSAID = {name: value for name, value in DECIDE.items() if name != "reason"}
ANSWERED = UNSAID | {"service": "kv", "op": "unlock", "status": "0x09"}
CLOSED = UNSAID | {"handed_over": "part"}
MAPPED = DECIDE | {"strategy": "error_map", "reason": "KV_ERROR_MAP_RETRY_INDICATED"}
NOW, NEVER = (
    {"attrs": ["retry-now"], "retry": {"strategy": "constant", "interval": interval, "after": 0}}
    for interval in (0, 10**400)
)


@rows(
    ("question", "expected"),
    [
        (REASON_KV | {"status": "0x7ff0", "error_map_entry": None}, {"reason": None}),
        (DECIDE, {"action": "retry", "delay_ms": 8, "dispatches": True}),
        (ANSWERED | {"status": "0x00"}, {"action": "complete"}),
        (ANSWERED | {"reason": "KV_LOCKED"}, {"action": "retry", "delay_ms": 8, "dispatches": True}),
        (CLOSED | {"elapsed_ms": 2500}, {"action": "fail", "error": "AmbiguousTimeoutException"}),
        (TIMEOUT | {"reason": None}, {"error": "AmbiguousTimeoutException"}),
        (MAPPED | {"error_map_entry": NOW}, {"action": "retry", "delay_ms": 0, "dispatches": True}),
        (MAPPED | {"error_map_entry": NEVER}, {"action": "retry", "delay_ms": 8, "dispatches": True}),
        (CAP | {"elapsed_ms": 9999}, {"delay_ms": 0, "dispatches": False}),
        (CAP | {"requested_delay_ms": 0.1, "timeout_ms": 0.3}, {"delay_ms": 0.1, "dispatches": True}),
    ],
)
def test_questions_outside_the_recorded_decisions(question: dict[str, object], expected: dict[str, object]) -> None:
    """Questions with null, contradictory or extreme fields have the expected answers."""
    assert expected == answer(MappingProxyType(question))


@rows(
    ("question", "message"),
    [
        (IDEMPOTENT | {"ask": "why"}, "ask 'why' is not known; expected one of idempotent, reason, decide"),
        (IDEMPOTENT | {"readonly": None}, "readonly is null, expected true or false"),
        (REASON_KV | {"status": "86"}, "status '86' is not 0x and"),
        (REASON_KV | {"error_map_entry": []}, "error_map_entry is an array, expected an object"),
        (REASON_KV | {"error_map_entry": {}}, "error_map_entry.attrs is null, expected an array"),
        (REASON_HTTP | {"http_status": "302"}, "http_status is a string, expected a number"),
        (REASON_HTTP | {"http_status": 0}, "http_status is 0, expected 100 to 599"),
        (DECIDE | {"strategy": "hope"}, "strategy 'hope' is not known; expected one of best_effort, fast_fail"),
        (DECIDE | {"reason": "KV_LOCK"}, "reason 'KV_LOCK' is not known; expected one of UNKNOWN, SOCKET"),
        (CLOSED | {"handed_over": "some"}, "handed_over 'some' is not known; expected one of nothing, part, all"),
        (
            MAPPED | {"error_map_entry": {"attrs": ["temp"]}},
            "error_map_entry.attrs permits no retry, so nothing gives the reason KV_ERROR_MAP_RETRY_INDICATED",
        ),
        (TIMEOUT | {"reason": "UNKNOWN"}, "reason UNKNOWN leads to no retry of a request that is not idempotent"),
        (TERMINAL | {"events": "none"}, "events is a string, expected an array of strings"),
        (TERMINAL | {"events": ["no manifest fetched yet", 1]}, "events[1] is a number, expected a string"),
        (TERMINAL | {"events": ["sasl ok"]}, "events[0] 'sasl ok' is not known"),
        (TERMINAL | {"op": "kv"}, "op 'kv' is not known"),
    ],
)
def test_refuses(question: dict[str, object], message: str) -> None:
    """The error names the invalid field, and its expected value or the contradiction; test_fields.py has each kind."""
    with pytest.raises(MalformedQuestion) as caught:
        answer(question)

    assert message == str(caught.value)[: len(message)]


@given(entry=ENTRIES, attempt=st.integers(0, 10**6), elapsed_ms=st.integers(0, 3000))
def test_no_schedule_passes_the_deadline(entry: dict[str, object], attempt: int, elapsed_ms: int) -> None:
    """No delay of an error map's schedule passes the deadline."""
    question = MAPPED | {"attempt": attempt, "elapsed_ms": elapsed_ms, "error_map_entry": entry}
    try:
        answered = answer(question)
    except MalformedQuestion:
        answered = {"action": "malformed"}

    assert answered["action"] in {"retry", "fail", "malformed"}
    if answered["action"] == "retry":
        delay_ms = answered["delay_ms"]
        assert isinstance(delay_ms, int | float)
        assert 0 <= delay_ms <= 2500 - elapsed_ms
