"""Awaited strategies at work: they go on when they are let, answer, raise, or are called off."""

from __future__ import annotations

import pytest

from triclinium_core.contract.neutral import StrategyDecided, Token
from triclinium_core.retry.couchbase import RetryAction
from triclinium_core.testing.oracle.loans import LoanBook
from triclinium_core.testing.simulation.consultations import Consultations, think

FIRST, SECOND = Token(1), Token(2)
ANSWER = RetryAction.after(0.5)


class Thinker:
    """A strategy that thinks twice."""

    def __init__(self, book: LoanBook, raised: Exception | None = None) -> None:
        self.asked_by: list[int | None] = []
        self._book = book
        self._raised = raised

    async def answer(self) -> RetryAction:
        """Return an answer, or fail."""
        self.asked_by.append(self._book.asking)
        await think()
        await think()
        self.asked_by.append(self._book.asking)
        if self._raised is not None:
            raise self._raised
        return ANSWER


@pytest.mark.parametrize("raised", [None, ZeroDivisionError("a defect")])
def test_going_on(raised: Exception | None) -> None:
    """Step by step, to its answer or to what it raises; the book knows for whom."""
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


def test_answering_at_once() -> None:
    """Where nobody is to wait."""
    consultations = Consultations(LoanBook())
    consultations.answers_at_once = True

    assert StrategyDecided(FIRST, ANSWER) == consultations.begin(FIRST, Thinker(LoanBook()).answer())


@pytest.mark.parametrize("finishes_late", [True, False])
def test_calling_off(finishes_late: bool) -> None:
    """It stops where it is, or comes to an end that nobody hears of; to call off nobody is no mistake."""
    book = LoanBook()
    consultations, thinker = Consultations(book), Thinker(book)
    consultations.finishes_late = finishes_late
    consultations.begin(FIRST, thinker.answer())
    consultations.call_off(FIRST)
    consultations.call_off(SECOND)

    assert [] == consultations.open
    assert 1 + finishes_late == len(thinker.asked_by)


@pytest.mark.parametrize("thinks", [True, False])
def test_telling(thinks: bool) -> None:
    """What a strategy thinks of a success afterwards keeps nobody waiting."""
    told: list[str] = []

    async def record() -> None:
        told.append("success")
        if thinks:
            await think()
            told.append("thought about it")

    Consultations(LoanBook()).tell(record())

    assert ["success"] == told
