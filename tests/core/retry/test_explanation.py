"""One decision, told as JSON and in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rows import rows
from triclinium_core.errors import DocumentLockedException
from triclinium_core.retry.actions import CloseConnection, RefreshCollection, RefreshTopology
from triclinium_core.retry.explanation import (
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
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.service import Service
from triclinium_core.retry.strategy import TERMINAL_ERRORS, RetryAction

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
    orders=(RefreshTopology(), CloseConnection("it is of no use")),
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
    """Without a reason nothing is said of flags, and without a retry nothing of delays."""
    told = COMPLETED.to_json()

    assert RETRIED.to_json().keys() == told.keys()
    assert [None] * 10 == [
        told[key]
        for key in (
            "reason",
            "meaning",
            "allows_non_idempotent_retry",
            "always_retry",
            "error_map_has_a_say",
            "strategy_answer",
            "delay_ms",
            "dispatches",
            "error",
            "message",
        )
    ]


def test_a_cut_delay_adds_its_clause() -> None:
    """A delay that was cut to a limit names the clause that cuts it."""
    assert (
        "list: silent",
        "list: not my vbucket",
        DECISION_CLAUSES[DecidedBy.CONTROLLED_BACKOFF],
        CAPPING_CLAUSE,
    ) == CUT.clauses


def test_words_of_a_retry() -> None:
    """A newcomer reads what happened, whether a repetition is safe, the reason, who decides, and what comes."""
    assert [
        "kv get: the node answered LOCKED [0x09].",
        "Sending it twice does no harm: it is idempotent (list: get).",
        (
            "The retry reason is KV_LOCKED: the document is locked (list: locked). The node's error map has no say in "
            f"this, for the client knows the status ({ERROR_MAP_CLAUSE}). This reason permits a retry of any request."
        ),
        f"Patience is asked, and wants a retry in 250 ms ({DECISION_CLAUSES[DecidedBy.STRATEGY]}).",
        "So the request is sent again in 250 ms.",
    ] == RETRIED.sentences()


def test_words_of_a_cut_delay() -> None:
    """A request that will not be sent again says so, with the error that it ends with, and what else is done."""
    assert [
        (
            "This reason is always retried, so no strategy is asked; the delay is the fixed one "
            f"({DECISION_CLAUSES[DecidedBy.CONTROLLED_BACKOFF]})."
        ),
        (
            f"So the request waits 500 ms, all the time that is left, and is not sent again ({CAPPING_CLAUSE}). "
            "This counts as a retry. Then it fails with UnambiguousTimeoutException: too late."
        ),
        "Besides, the client will bring its cluster map up to date.",
        "Besides, the client will close the connection: it is of no use.",
    ] == CUT.sentences()[3:]


def test_words_of_a_refusal() -> None:
    """What may have been applied is not sent again, whatever the strategy says."""
    assert [
        "kv upsert: the socket closed.",
        "Sending it twice may do harm: it is not idempotent (list: silent).",
        (
            "The retry reason is SOCKET_CLOSED_WHILE_IN_FLIGHT: the socket was closed before the answer came (on the wire). "
            "This reason permits a retry of an idempotent request only."
        ),
        (
            "No strategy may send it again, since an attempt may have been applied "
            f"({DECISION_CLAUSES[DecidedBy.ORCHESTRATOR]})."
        ),
        "So the request fails with RequestCanceledException: not retried.",
    ] == FAILED.sentences()


def test_words_of_a_strategy_that_is_overruled() -> None:
    """What it wanted is told, and that it does not matter."""
    overruled = replace(FAILED, strategy_answer="wants a retry in 250 ms")

    assert (
        "Patience is asked, and wants a retry in 250 ms. But no strategy may send it again, since an attempt may have "
        f"been applied ({DECISION_CLAUSES[DecidedBy.ORCHESTRATOR]})."
    ) == overruled.sentences()[3]


def test_words_of_an_error_map_without_a_say_in_an_answer_that_is_final() -> None:
    """They stand behind the clause."""
    told = replace(COMPLETED, error_map_has_a_say=False)

    assert (
        "There is no reason to retry it (list: known). The node's error map has no say in this, for the client knows "
        f"the status ({ERROR_MAP_CLAUSE})."
    ) == told.sentences()[2]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (RetryAction.after(0.25), "wants a retry in 250 ms"),
        (RetryAction.after(0), "wants a retry in 0 ms"),
        (RetryAction.after(0.25, within=0.1), "wants a retry in 250 ms, but only within 100 ms"),
        (RetryAction.no_retry(), "refuses"),
        (RetryAction.no_retry(DocumentLockedException), "refuses"),
        (
            RetryAction.no_retry(TERMINAL_ERRORS[RetryReason.TLS_ERROR]),
            "refuses: TLS_ERROR is one of the five terminal reasons",
        ),
        (ZeroDivisionError("mine"), "raises ZeroDivisionError"),
        (None, "answers what is no RetryAction"),
    ],
)
def test_words_of_answers(answer: object, expected: str) -> None:
    """Whatever a strategy answers has its words, and what it raises."""
    assert expected == words_of_answer(answer, RetryReason.TLS_ERROR)


def test_a_reason_is_terminal_by_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is counted, too."""
    refusal = RetryAction.no_retry(DocumentLockedException)
    monkeypatch.setitem(TERMINAL_ERRORS, RetryReason.KV_LOCKED, DocumentLockedException)

    assert "refuses: KV_LOCKED is one of the six terminal reasons" == words_of_answer(refusal, RetryReason.KV_LOCKED)


def test_words_of_a_completion() -> None:
    """A success needs no strategy."""
    assert [
        "There is no reason to retry it (list: known).",
        f"The answer is final, and no strategy is asked ({DECISION_CLAUSES[DecidedBy.RESPONSE]}).",
        "So the request succeeds.",
    ] == COMPLETED.sentences()[2:]


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


@pytest.mark.parametrize(
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


def test_words_of_orders() -> None:
    """Each order has half a sentence of its own."""
    assert [
        "bring its cluster map up to date",
        "forget the collection id and ask for it again",
        "close the connection: no reason",
    ] == [words_of(order) for order in (RefreshTopology(), RefreshCollection(), CloseConnection("no reason"))]
