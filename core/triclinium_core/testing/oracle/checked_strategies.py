"""Wrappers of token strategies under test, which forward and record each call, and check the budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable

from triclinium_core.retry import smithy
from triclinium_core.retry.calls import is_refusal
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.shown import total_repr
from triclinium_core.testing.oracle.loans import Loan, LoanBook, TokenEnd


class CheckedStrategy:
    """Wrapper of a synchronous strategy under test.

    Args:
        book: records the issued tokens.
        strategy: strategy under test; it must issue ``SingleUseToken``s.
    """

    def __init__(self, book: LoanBook, strategy: smithy.MinimalRetryStrategy) -> None:
        self.book: LoanBook = book
        self._strategy = strategy
        self._left = _budget_of(strategy)
        self._capacity = self._left(None)
        self._taken: defaultdict[str | None, int] = defaultdict(int)
        """Units that a quota must lack, by scope."""

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._strategy!r})"

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> smithy.RetryToken:
        """Return the token for a first attempt. Exceptions that the strategy raises propagate."""
        return self.acquire_for(self.book.begin(token_scope))

    def acquire_for(self, loan: Loan) -> smithy.RetryToken:
        """Return the first token of a loan. Exceptions that the strategy raises propagate."""
        try:
            token = self._strategy.acquire_initial_retry_token(token_scope=loan.token_scope)
        except Exception as error:
            if is_refusal(error):
                loan.is_first_refused = True
            else:
                loan.raised = error
            raise
        self._issue(loan, token)
        return token

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: smithy.RetryToken, error: Exception
    ) -> smithy.RetryToken:
        """Return the token for the next attempt. Exceptions that the strategy raises propagate."""
        loan = self.book.end(token_to_renew, TokenEnd.RENEWED)
        try:
            token = self._strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)
        except Exception as raised:
            if loan is not None:
                self._refuse(loan, error, raised)
            raise
        if loan is not None:
            self.book.shown(loan, error)
            self._issue(loan, token, error)
        return token

    def record_success(self, *, token: smithy.RetryToken) -> None:
        """Record a success. A quota must then have the cost of the attempt back, or 1 more if it had no cost."""
        loan = self.book.end(token, TokenEnd.RECORDED)
        self._strategy.record_success(token=token)
        if loan is not None:
            self._refill(loan, _cost_of(token) or 1)

    def abandon(self, *, token: smithy.RetryToken) -> None:
        """Take back the token of an attempt that is not made. A quota must then have the cost of the token back."""
        loan = self.book.end(token, TokenEnd.RETURNED)
        take_back: Callable[..., None] | None = getattr(self._strategy, "abandon", None)
        if take_back is not None:
            take_back(token=token)
        if loan is not None:
            self._refill(loan, _cost_of(token))

    def _issue(self, loan: Loan, token: smithy.RetryToken, error: Exception | None = None) -> None:
        self._taken[loan.token_scope] += _cost_of(token)
        self.book.issue(loan, token, error.reason if isinstance(error, FailedAttemptError) else None)
        self._check_budget(loan.token_scope)

    def _refuse(self, loan: Loan, error: Exception, raised: Exception) -> None:
        loan.issued[-1].end = TokenEnd.REFUSED
        self.book.shown(loan, error)
        if not is_refusal(raised):
            loan.raised = raised
        elif isinstance(error, FailedAttemptError) and not loan.is_over:
            # A refusal of a finished request has no effect, so it is not recorded.
            loan.refusals.add(error.reason)
        self._check_budget(loan.token_scope)

    def _refill(self, loan: Loan, amount: int) -> None:
        self._taken[loan.token_scope] = max(0, self._taken[loan.token_scope] - amount)
        self._check_budget(loan.token_scope)

    def _check_budget(self, scope: str | None) -> None:
        left = self._left(scope)
        if not 0 <= left <= self._capacity:
            self.book.breaks(f"{self} has {left:g} tokens in scope {scope!r}; its capacity is {self._capacity:g}")
        if isinstance(self._strategy, smithy.StandardRetryStrategy) and left != self._capacity - self._taken[scope]:
            self.book.breaks(f"{self} has {left:g} tokens in scope {scope!r}, with {self._taken[scope]} issued")


class AwaitedStrategy:
    """Wrapper of an awaited strategy under test, which waits before each answer and may never answer.

    Args:
        strategy: wrapper that returns the answers.
        think: returns the awaitable that the wrapper awaits before each answer, and after each recorded success.
    """

    def __init__(self, strategy: CheckedStrategy, think: Callable[[], Awaitable[None]]) -> None:
        self._strategy = strategy
        self._think = think

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._strategy!r})"

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> smithy.RetryToken:
        """Return the token for a first attempt. Exceptions that the strategy raises propagate."""
        loan = self._strategy.book.begin(token_scope)
        loan.was_held_back = True
        await self._think()
        return self._strategy.acquire_for(loan)

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: smithy.RetryToken, error: Exception
    ) -> smithy.RetryToken:
        """Return the token for the next attempt. Exceptions that the strategy raises propagate."""
        # End the token before the wait: a cancelled call consumes the token too.
        loan = self._strategy.book.end(token_to_renew, TokenEnd.ASKED)
        if loan is not None:
            loan.was_held_back = True
        await self._think()
        return self._strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    async def record_success(self, *, token: smithy.RetryToken) -> None:
        """Record a success, then wait."""
        self._strategy.record_success(token=token)
        await self._think()

    def abandon(self, *, token: smithy.RetryToken) -> None:
        """Take back the token of an attempt that is not made."""
        self._strategy.abandon(token=token)


def _budget_of(strategy: smithy.MinimalRetryStrategy) -> Callable[[str | None], float]:
    """Return a function that takes a scope and returns the budget that a strategy has left; 0 without a budget."""
    if isinstance(strategy, smithy.StandardRetryStrategy):
        return strategy.available_quota
    if isinstance(strategy, smithy.BudgetRetryStrategy):
        return strategy.available_budget
    return lambda scope: 0.0


def _cost_of(token: smithy.RetryToken) -> int:
    return token.quota_acquired if isinstance(token, smithy.SingleUseToken) else 0
