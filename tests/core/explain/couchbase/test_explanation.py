"""One decision, told as JSON and in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rows import rows
from triclinium_core.errors import DocumentLockedException
from triclinium_core.explain.couchbase.explanation import (
    CAPPING_CLAUSE,
    DECISION_CLAUSES,
    ERROR_MAP_CLAUSE,
    DecidedBy,
    Explanation,
    Outcome,
    milliseconds,
    words_of,
    words_of_answer,
)
from triclinium_core.retry.couchbase.actions import CloseConnection, RefreshCollection, RefreshTopology
from triclinium_core.retry.couchbase.strategy import TERMINAL_ERRORS, RetryAction
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service

RETRIED = Explanation(
    service=Service.KV,
    operation="get",
    happened="the node answered LOCKED [0x09]",
    idempotent=True,
    idempotent_clause="list: get",
    reason=RetryReason.KV_LOCKED,
    reason_clause="list: locked",
    error_map_has_a_say=False,
    strategy="Patience",
    strategy_answer="wants a retry in 250 ms",
    decided_by=DecidedBy.STRATEGY,
    outcome=Outcome.RETRY,
    delay=0.25,
    dispatches=True,
    counts_as_retry=True,
)
CUT = Explanation(
    service=Service.KV,
    operation="upsert",
    happened="the node answered NOT_MY_VBUCKET [0x07]",
    idempotent=False,
    idempotent_clause="list: silent",
    reason=RetryReason.KV_NOT_MY_VBUCKET,
    reason_clause="list: not my vbucket",
    strategy="Patience",
    decided_by=DecidedBy.CONTROLLED_BACKOFF,
    outcome=Outcome.RETRY,
    delay=0.5,
    dispatches=False,
    counts_as_retry=True,
    error="UnambiguousTimeoutException",
    message="too late",
    orders=(RefreshTopology(), RefreshCollection(), CloseConnection("it is of no use")),
)
FAILED = Explanation(
    service=Service.KV,
    operation="upsert",
    happened="the socket closed",
    idempotent=False,
    idempotent_clause="list: silent",
    reason=RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT,
    reason_clause="on the wire",
    strategy="Patience",
    decided_by=DecidedBy.ORCHESTRATOR,
    outcome=Outcome.FAIL,
    error="RequestCanceledException",
    message="not retried",
)
COMPLETED = Explanation(
    service=Service.KV,
    operation="get",
    happened="the node answered SUCCESS [0x00]",
    idempotent=True,
    idempotent_clause="list: get",
    reason=None,
    reason_clause="list: known",
    strategy="Patience",
    decided_by=DecidedBy.RESPONSE,
    outcome=Outcome.COMPLETE,
)


def test_json_of_a_retry() -> None:
    """Whole milliseconds are ints, and what does not apply is null."""
    assert {
        "service": "kv",
        "operation": "get",
        "happened": "the node answered LOCKED [0x09]",
        "idempotent": True,
        "reason": "KV_LOCKED",
        "meaning": "the document is locked",
        "allows_non_idempotent_retry": True,
        "always_retry": False,
        "error_map_has_a_say": False,
        "strategy": "Patience",
        "strategy_answer": "wants a retry in 250 ms",
        "decided_by": "strategy",
        "action": "retry",
        "delay_ms": 250,
        "dispatches": True,
        "counts_as_retry": True,
        "error": None,
        "message": None,
        "orders": [],
        "clauses": ["list: get", "list: locked", ERROR_MAP_CLAUSE, DECISION_CLAUSES[DecidedBy.STRATEGY]],
    } == RETRIED.to_json()


def test_json_of_a_completion() -> None:
    """Without a reason nothing is said of flags, and without a retry nothing of delays; the keys are the same."""
    told = COMPLETED.to_json()

    assert RETRIED.to_json().keys() == told.keys()
    assert {
        *("reason", "meaning", "allows_non_idempotent_retry", "always_retry", "error_map_has_a_say"),
        *("strategy_answer", "delay_ms", "dispatches", "error", "message"),
    } == {key for key, value in told.items() if value is None}


def test_a_cut_delay_adds_its_clause() -> None:
    """A delay that was cut to a limit names the clause that cuts it."""
    assert (
        "list: silent",
        "list: not my vbucket",
        DECISION_CLAUSES[DecidedBy.CONTROLLED_BACKOFF],
        CAPPING_CLAUSE,
    ) == CUT.clauses


# Of an overruled strategy it is told what it wanted; of a map without a say it is told in every kind of answer.
@rows(
    "told",
    [
        RETRIED,
        CUT,
        FAILED,
        COMPLETED,
        replace(FAILED, strategy_answer="wants a retry in 250 ms"),
        replace(COMPLETED, error_map_has_a_say=False),
    ],
)
def test_all_that_is_known_stands_in_the_sentences(told: Explanation) -> None:
    """A newcomer reads the same facts as a program, in the order of the steps, each with its clause."""
    facts = [str(told.service), told.operation, told.happened, *told.clauses, *map(words_of, told.orders)]
    if told.reason is not None:
        facts += [str(told.reason), told.reason.meaning]
    if told.strategy_answer is not None:
        facts += [told.strategy, told.strategy_answer]
    if told.delay is not None:
        facts.append(f"{milliseconds(told.delay)} ms")
    facts += [word for word in (told.error, told.message) if word is not None]
    sentences = told.sentences()

    assert [] == [fact for fact in facts if fact not in " ".join(sentences)]
    assert told.idempotent is ("not idempotent" not in sentences[1])
    assert (told.outcome is Outcome.RETRY and bool(told.dispatches)) is ("sent again in" in sentences[4])
    assert told.counts_as_retry is ("counts as a retry" in sentences[4] or bool(told.dispatches))


@rows(
    ("answer", "facts"),
    [
        (RetryAction.after(0.25), ["250 ms"]),
        (RetryAction.after(0), ["0 ms"]),
        (RetryAction.after(0.25, within=0.1), ["250 ms", "100 ms"]),
        (RetryAction.no_retry(), ["refuses"]),
        (RetryAction.no_retry(DocumentLockedException), ["refuses"]),
        (RetryAction.no_retry(TERMINAL_ERRORS[RetryReason.TLS_ERROR]), ["refuses", "TLS_ERROR", "five terminal"]),
        (ZeroDivisionError("mine"), ["raises ZeroDivisionError"]),
        (None, ["no RetryAction"]),
    ],
)
def test_words_of_answers(answer: object, facts: list[str]) -> None:
    """Whatever a strategy answers has its words, and what it raises; a terminal reason is named where it decides."""
    words = words_of_answer(answer, RetryReason.TLS_ERROR)

    assert [] == [fact for fact in facts if fact not in words]
    assert ("TLS_ERROR" in words) is ("TLS_ERROR" in facts)


def test_a_reason_is_terminal_by_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is counted, too."""
    refusal = RetryAction.no_retry(DocumentLockedException)
    monkeypatch.setitem(TERMINAL_ERRORS, RetryReason.KV_LOCKED, DocumentLockedException)

    assert "KV_LOCKED is one of the six" in words_of_answer(refusal, RetryReason.KV_LOCKED)


@rows("decided_by", DecidedBy)
@rows("outcome", Outcome)
def test_whoever_decides_has_a_sentence_and_a_clause(decided_by: DecidedBy, outcome: Outcome) -> None:
    """No decision and no outcome is left without words."""
    told = Explanation(
        service=Service.KV,
        operation="get",
        happened="something",
        idempotent=True,
        idempotent_clause="list: get",
        reason=RetryReason.UNKNOWN,
        reason_clause="list: unknown",
        strategy="Patience",
        decided_by=decided_by,
        outcome=outcome,
        delay=0.001,
        dispatches=True,
    )

    assert 5 == len(told.sentences())
    assert DECISION_CLAUSES[decided_by] in told.sentences()[3]
    assert all(sentence.endswith(".") for sentence in told.sentences())


@rows(
    ("seconds", "expected"),
    [
        (0.0, 0),
        (2, 2000),
        (0.001, 1),
        (0.5, 500),
        (2.4 - 2.3, 100),
        (0.0005, 0.5),
        (1e-9, 1e-6),
        (4e-10, 0),
        (86400.0, 86400000),
    ],
)
def test_milliseconds(seconds: float, expected: float) -> None:
    """Whole milliseconds are ints, free of the noise of binary fractions."""
    actual = milliseconds(seconds)

    assert (expected, type(expected)) == (actual, type(actual))
