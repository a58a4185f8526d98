"""Pending calls of asynchronous strategies: each waits until a test continues or cancels it."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any

from triclinium_core.contract.neutral import StrategyDecided, Token
from triclinium_core.retry.couchbase import RetryAction
from triclinium_core.testing.oracle.loans import LoanBook

Question = Coroutine[Any, Any, RetryAction | None]
"""A strategy at work: what it returns is its answer, None where it was told something."""


class Consultations:
    """The strategies that were asked and have not answered.

    Args:
        book: of what is lent; it has to know for whom a first token is.
    """

    def __init__(self, book: LoanBook) -> None:
        self._book = book
        self._thinking: dict[Token, Question] = {}
        self.answers_at_once: bool = False
        """Whether nobody thinks any longer than it must."""
        self.finishes_late: bool = False
        """Whether a strategy that is called off is at its end already, so that its answer comes all the same."""

    @property
    def open(self) -> list[Token]:
        """Whose strategies are thinking, oldest first."""
        return list(self._thinking)

    def begin(self, token: Token, question: Question) -> StrategyDecided | None:
        """Have a strategy begin to think; return its answer where it has one at once."""
        self._thinking[token] = question
        decided = self.go_on(token)
        while decided is None and self.answers_at_once:
            decided = self.go_on(token)
        return decided

    def go_on(self, token: Token) -> StrategyDecided | None:
        """Let a strategy go on; return its answer where it has come to one."""
        question = self._thinking[token]
        self._book.asking = token
        try:
            question.send(None)
        except StopIteration as answered:
            del self._thinking[token]
            return StrategyDecided(token, answered.value)
        except Exception as raised:
            del self._thinking[token]
            return StrategyDecided(token, None, raised)
        finally:
            self._book.asking = None
        return None

    def call_off(self, token: Token) -> None:
        """Stop a strategy, whose request is over; its answer is for nobody."""
        question = self._thinking.get(token)
        if question is None:
            return
        if self.finishes_late:
            while token in self._thinking:
                self.go_on(token)
        else:
            del self._thinking[token]
            question.close()

    def tell(self, told: Coroutine[Any, Any, None]) -> None:
        """Have a strategy told of a success; what it thinks of it afterwards nobody waits for."""
        try:
            told.send(None)
        except StopIteration:
            return
        told.close()


@types.coroutine
def think() -> Generator[None, None, None]:
    """Wait until whoever asked lets the strategy go on."""
    yield
