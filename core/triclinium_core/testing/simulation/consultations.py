"""Pending calls of asynchronous strategies. Each call waits until a test continues or cancels it."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any

from triclinium_core.contract.neutral import StrategyDecided, Token
from triclinium_core.retry.couchbase import RetryAction
from triclinium_core.testing.oracle.loans import LoanBook

Question = Coroutine[Any, Any, RetryAction | None]
"""Running call of a strategy, which returns the decision about an attempt."""


class Consultations:
    """Calls of asynchronous strategies that have not returned.

    Args:
        book: records the issued tokens. It is notified of the request for which a strategy is called.
    """

    def __init__(self, book: LoanBook) -> None:
        self._book = book
        self._thinking: dict[Token, Question] = {}
        self.answers_at_once: bool = False
        """Whether strategies answer without waiting."""
        self.finishes_late: bool = False
        """Whether a strategy finishes before its cancellation takes effect, so that it issues a token anyway."""

    @property
    def open(self) -> list[Token]:
        """Tokens of operations whose strategies are running, oldest first."""
        return list(self._thinking)

    def begin(self, token: Token, question: Question) -> StrategyDecided | None:
        """Start a call of a strategy. Return its decision, or None if the call waits."""
        self._thinking[token] = question
        decided = self.go_on(token)
        while decided is None and self.answers_at_once:
            decided = self.go_on(token)
        return decided

    def go_on(self, token: Token) -> StrategyDecided | None:
        """Continue a call of a strategy. Return its decision, or None if the call still waits."""
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
        """Cancel the strategy's call for an operation that has ended, and drop its answer."""
        question = self._thinking.get(token)
        if question is None:
            return
        if self.finishes_late:
            while token in self._thinking:
                self.go_on(token)
        else:
            del self._thinking[token]
            question.close()

    def record(self, recording: Coroutine[Any, Any, None]) -> None:
        """Notify a strategy of a success, without waiting until the call returns."""
        try:
            recording.send(None)
        except StopIteration:
            return
        recording.close()


@types.coroutine
def think() -> Generator[None, None, None]:
    """Suspend the strategy until the test continues it."""
    yield
