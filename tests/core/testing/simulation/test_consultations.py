"""Calls of asynchronous strategies, which continue when a test permits, and then return, raise or are cancelled."""

from __future__ import annotations

import pytest

from triclinium_core.contract.neutral import StrategyDecided, Token
from triclinium_core.retry.couchbase import RetryAction
from triclinium_core.testing.oracle.loans import LoanBook
from triclinium_core.testing.simulation.consultations import Consultations, think

FIRST, SECOND = Token(1), Token(2)
ANSWER = RetryAction.after(0.5)


class Thinker:
    """A strategy that suspends twice."""

    def __init__(self, book: LoanBook, raised: Exception | None = None) -> None:
        self.asked_by: list[int | None] = []
        self._book = book
        self._raised = raised

    async def answer(self) -> RetryAction:
        """Return an action, or raise."""
        self.asked_by.append(self._book.asking)
        await think()
        await think()
        self.asked_by.append(self._book.asking)
        if self._raised is not None:
            raise self._raised
        return ANSWER


@pytest.mark.parametrize("raised", [None, ZeroDivisionError("a defect")])
def test_continued_call(raised: Exception | None) -> None:
    """A call continues step by step to its result or exception; the book has the operation for which it runs."""
    book = LoanBook()
    consultations, thinker = Consultations(book), Thinker(book, raised)

    assert consultations.begin(FIRST, thinker.answer()) is None
    assert consultations.begin(SECOND, Thinker(book).answer()) is None
    assert consultations.go_on(FIRST) is None
    assert [FIRST, SECOND] == consultations.open
    assert StrategyDecided(FIRST, None if raised else ANSWER, raised) == consultations.go_on(FIRST)
    assert [SECOND] == consultations.open
    assert [FIRST, FIRST] == thinker.asked_by
    assert book.asking is None


def test_immediate_call() -> None:
    """With ``answers_at_once``, a call never waits for the test."""
    consultations = Consultations(LoanBook())
    consultations.answers_at_once = True

    assert StrategyDecided(FIRST, ANSWER) == consultations.begin(FIRST, Thinker(LoanBook()).answer())


@pytest.mark.parametrize("finishes_late", [True, False])
def test_cancelled_call(finishes_late: bool) -> None:
    """A cancelled call stops, or finishes without an effect; cancelling an unknown call is allowed."""
    book = LoanBook()
    consultations, thinker = Consultations(book), Thinker(book)
    consultations.finishes_late = finishes_late
    consultations.begin(FIRST, thinker.answer())
    consultations.call_off(FIRST)
    consultations.call_off(SECOND)

    assert [] == consultations.open
    assert 1 + finishes_late == len(thinker.asked_by)


@pytest.mark.parametrize("thinks", [True, False])
def test_reported_success(thinks: bool) -> None:
    """A strategy's record of a success runs until it returns or suspends; what would follow is not run."""
    reported: list[str] = []

    async def record() -> None:
        reported.append("success")
        if thinks:
            await think()
            reported.append("thought about it")

    Consultations(LoanBook()).record(record())

    assert ["success"] == reported
