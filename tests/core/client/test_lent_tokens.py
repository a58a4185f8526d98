"""How the tokens of a request are acquired and ended, by either kind of strategy."""

from __future__ import annotations

import math

from tests.core.retry.combined.token_book import AwaitedBook, BookedToken, TokenBook
from triclinium_core.client.actions import AcquireToken, Action, ReportStrategyError
from triclinium_core.client.events import StrategyDecided, Token
from triclinium_core.client.lent_tokens import Begins, LentTokens, NotBegun
from triclinium_core.retry.combined.request_tokens import AsyncRequestTokens, RequestTokens
from triclinium_core.retry.couchbase.strategy import RetryAction

TOKEN = Token(7)


class Forgetful(TokenBook):
    """Fails when it is asked for the first token."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> BookedToken:
        """Raise."""
        raise KeyError("lost")


async def nothing() -> None:
    """Think about nothing."""


def test_a_strategy_that_answers_at_once() -> None:
    """The first attempt is made when it says; one that would be past the deadline is left to that."""
    lent = LentTokens(emit=list[Action]().append)

    found = [lent.acquire(TOKEN, RequestTokens(TokenBook(first_delay=delay), None), 1.0) for delay in (0.0, 0.5, 2.0)]

    assert [Begins(0.0), Begins(0.5), None] == found


def test_a_strategy_that_fails_lets_nothing_begin() -> None:
    """What it raised is told."""
    first = LentTokens(emit=list[Action]().append).acquire(TOKEN, RequestTokens(Forgetful(), None), math.inf)

    assert isinstance(first, NotBegun)
    assert isinstance(first.cause, KeyError)


def test_a_strategy_that_is_awaited() -> None:
    """The driver is to ask it, and brings what it said."""
    actions = list[Action]()
    lent, tokens = LentTokens(emit=actions.append), AsyncRequestTokens(AwaitedBook(TokenBook(), nothing), None)
    error = ValueError("no")

    asked = lent.acquire(TOKEN, tokens, 1.0)
    decided = lent.decided(tokens, StrategyDecided(TOKEN, RetryAction.after(0.5)), 1.0)
    refused = lent.decided(tokens, StrategyDecided(TOKEN, None, error), 1.0)

    assert (None, Begins(0.5), NotBegun(error)) == (asked, decided, refused)
    assert [AcquireToken(TOKEN, tokens)] == actions
    assert not tokens.is_acquiring


def test_a_success_is_recorded_and_anything_else_given_back() -> None:
    """Once; what the strategy raises then is for the log."""
    actions, error = list[Action](), ValueError("full")
    lent = LentTokens(emit=actions.append)
    book, broken = TokenBook(), TokenBook(raises=error)
    for succeeded in (True, False):
        tokens = RequestTokens(book, None)
        lent.acquire(TOKEN, tokens, 1.0)
        lent.end(TOKEN, tokens, succeeded=succeeded)
        lent.end(TOKEN, tokens, succeeded=True)
    tokens = RequestTokens(broken, None)
    lent.acquire(TOKEN, tokens, 1.0)
    lent.end(TOKEN, tokens, succeeded=True)

    assert ["recorded", "abandoned"] == book.ends
    assert [ReportStrategyError(TOKEN, error)] == actions
