"""Clauses that decide the answers to questions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.core.tools.vectors import sample_questions
from tests.core.tools.vectors.test_questions import nearly_questions
from tests.core.tools.vectors.test_vectors import LINES
from tests.rows import rows
from triclinium_core.explain.couchbase.explain import CouchbaseCase, explain
from triclinium_core.explain.couchbase.happenings import KvAnswer
from triclinium_core.retry.couchbase import Service
from triclinium_core.tools.vectors.couchbase import STRATEGIES, STRATEGY_CLAUSES
from triclinium_core.tools.vectors.fields import MalformedQuestion
from triclinium_core.tools.vectors.questions import CLAUSES, FAMILIES, answer, clauses

CAPPING = "RFC 0049 Capping the Retry Duration; RFC 0013 Retry Intervals, max-duration"
BY_STRATEGY = "RFC 0049 Retry Orchestration: the strategy of the request decides"
BACKOFF = "design page, Backoff Strategy; decisions S3 and S7"
KV_DECIDE = {key: value for key, value in sample_questions.DECIDE.items() if key != "reason"} | {
    "service": "kv",
    "op": "get",
    "status": "0x86",
}


@rows(
    ("question", "expected"),
    [
        (sample_questions.IDEMPOTENT, ("RFC 0049 Idempotent Operation List: KV: Get Request",)),
        (sample_questions.IDEMPOTENT | {"op": "upsert"}, ("RFC 0049 Idempotent Operation List: not listed",)),
        (sample_questions.REASON_KV, ("RFC 0049 Response Code Retry List: KV: Temporary Failure 0x86",)),
        (sample_questions.REASON_HTTP, ("RFC 0049 Response Code Retry List: View: Http Status code 302",)),
        (sample_questions.DECIDE, (BY_STRATEGY, "RFC 0049 Best Effort")),
        (sample_questions.DECIDE | {"timeout_ms": 8}, (BY_STRATEGY, "RFC 0049 Best Effort", CAPPING)),
        (
            sample_questions.DECIDE | {"timeout_ms": 0},
            ("RFC 0049 Best Effort Retry vs. Fail Fast: retried until the timeout (decision C23)",),
        ),
        (
            sample_questions.DECIDE | {"reason": "KV_NOT_MY_VBUCKET"},
            ("RFC 0049 Controlled Backoff for Always Retry",),
        ),
        (
            KV_DECIDE,
            ("RFC 0049 Response Code Retry List: KV: Temporary Failure 0x86", BY_STRATEGY, "RFC 0049 Best Effort"),
        ),
        (sample_questions.TIMEOUT, ("decision C25",)),
        (sample_questions.CAP, (CAPPING,)),
        (sample_questions.TERMINAL, ("RFC 0049 Fail Fast (Terminal Errors)",)),
        (sample_questions.UNAVAILABLE, ("driver's page, onUnavailableVerdict; decisions A3, A4 and A6",)),
        (sample_questions.REQUEST_ABORTED, ("driver's page, onRequestAbortedVerdict; decision A1",)),
        (sample_questions.REQUEST, ("driver's page, Hard-coded rules; decisions A2 and A8 to A10",)),
        (sample_questions.BACKOFF, (BACKOFF,)),
        (sample_questions.SEQUENCE, ("decision S4", BACKOFF)),
        (sample_questions.SEQUENCE | {"strategy": "adaptive"}, ("decision S4", "decision S9", BACKOFF)),
        (sample_questions.SEQUENCE | {"strategy": "simple"}, (BACKOFF,)),
    ],
)
def test_clauses_of_a_question(question: dict[str, object], expected: tuple[str, ...]) -> None:
    """Each kind of question has the clauses of the rules that its answer depends on."""
    assert expected == clauses(question)


def test_clauses_are_those_of_explain() -> None:
    """The decision on a response has the clauses that ``explain`` gives, besides that of idempotency."""
    case = CouchbaseCase(
        service=Service.KV,
        operation="get",
        happened=KvAnswer(0x86),
        strategy=STRATEGIES["best_effort"],
        timeout=2.5,
        attempt=3,
    )

    assert explain(case).clauses[1:] == tuple(name for name in clauses(KV_DECIDE) if name != "RFC 0049 Best Effort")


def test_every_kind_of_question_has_clauses() -> None:
    """Each kind of question, and each strategy, has clauses."""
    assert {family: list(asks) for family, asks in FAMILIES.items()} == {
        family: list(asks) for family, asks in CLAUSES.items()
    }
    assert STRATEGIES.keys() == STRATEGY_CLAUSES.keys()


@rows("line", LINES)
def test_recorded_questions_have_clauses(line: str) -> None:
    """Every recorded question has at least one clause, and none is empty."""
    found = clauses(json.loads(line))

    assert found
    assert all(found)


@pytest.mark.parametrize("question", [[], {}, {"family": "couchbase"}, sample_questions.IDEMPOTENT | {"op": 1}])
def test_invalid_questions_have_no_clauses(question: dict[str, object]) -> None:
    """A question whose family, kind or decisive field is invalid raises MalformedQuestion."""
    with pytest.raises(MalformedQuestion):
        clauses(question)


@given(question=nearly_questions())
def test_answered_questions_have_clauses(question: dict[str, object]) -> None:
    """Any question has an answer and clauses, or raises MalformedQuestion."""
    try:
        answered = answer(question)
    except MalformedQuestion as error:
        assert str(error)
        return

    assert answered
    assert clauses(question)
