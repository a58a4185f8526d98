"""Permits of requests: a token strategy with the interface that the retry machine of a request needs.

A permit has the token in hand of one request.

The strategy is asked for a token before the first attempt. The machine asks about each failure that the RFC leaves to a
strategy; what is always retried keeps the token that the request has. A token ends once. It is renewed, or refused, for an
attempt that failed; it is recorded where the request succeeded; it is given back where its attempt was never made. The
token of an attempt that was made, but whose caller did not wait for its end or which nobody may repeat, is gone, and
with it what it cost.

Source: the Smithy Python retry design, "Specification", "Example Usage"; decisions T1 to T6.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

from triclinium_core import errors
from triclinium_core.retry.backoff import cap
from triclinium_core.retry.calls import RetryEnding, abandon, delay_of, is_refusal, refuse_first
from triclinium_core.retry.combined.reason_infos import FailedAttempt, FailedAttemptError, describe
from triclinium_core.retry.combined.strategies import TokenLender, TokenStrategy
from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryAction, RetryReason, RetryRequest
from triclinium_core.retry.smithy import AsyncMinimalRetryStrategy, MinimalRetryStrategy, RetryToken, is_async
from triclinium_core.shown import total_repr

ERRORS_OF_UNWELL_SERVICES: tuple[type[errors.CouchbaseException], ...] = (
    errors.TimeoutException,
    errors.InternalServerFailureException,
    errors.TemporaryFailureException,
    errors.ServiceNotAvailableException,
    errors.RateLimitedException,
    errors.QuotaLimitedException,
    errors.JobQueueFullException,
    errors.DecodingFailureException,
    errors.DurabilityAmbiguousException,
    errors.DurabilityImpossibleException,
)
"""Final answers that say that a service could not do what it was asked for (decision T4)."""


def says_well(error: errors.CouchbaseException) -> bool:
    """Tell whether a final answer that stands for ``error`` shows a service that is well.

    That a document is not there, or a statement is wrong, says nothing against it.
    """
    # The base itself is an answer that nobody understands.
    return type(error) is not errors.CouchbaseException and not isinstance(error, ERRORS_OF_UNWELL_SERVICES)


class _Question(NamedTuple):
    """What a strategy is asked about a failed attempt."""

    token: RetryToken
    error: FailedAttemptError
    attempt: FailedAttempt


class _Lent:
    """What both shapes have in common: the token in hand, and whether its attempt was made."""

    __slots__ = ("_is_made", "_is_over", "_scope", "_strategy", "_token", "obstacle")

    def __init__(self, strategy: TokenStrategy, token_scope: str | None) -> None:
        self._strategy: TokenStrategy = strategy
        self._scope = token_scope
        self._token: RetryToken | None = None
        self._is_made = False
        self._is_over = False
        self.obstacle: str | None = None
        """Why the first attempt has not been made yet, in words; None where the strategy is no obstacle."""

    @total_repr
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._strategy!r}>"

    @property
    def strategy(self) -> TokenStrategy:
        """What hands out the tokens."""
        return self._strategy

    def postpone(self, delay: float, time_left: float) -> float | None:
        """Return after how many seconds the first attempt is made; None where that is past the deadline, as T5 has it.

        The token of an attempt that will not be made is given back, and ``obstacle`` tells what the deadline waits for.

        Args:
            delay: what the strategy asks for.
            time_left: seconds to the deadline.
        """
        if not delay:
            self.obstacle = None
            return 0.0
        self.obstacle = f"its retry strategy holds it back for {delay:g} s"
        if not cap(delay, time_left)[1]:
            self.give_back()
            return None
        return delay

    def hold_is_over(self) -> bool:
        """Record that the strategy holds the first attempt back no longer; return whether it did."""
        was_held, self.obstacle = self.obstacle is not None, None
        return was_held

    def begin(self) -> None:
        """Record that the attempt of the token in hand is made."""
        self._is_made = True

    def give_back(self) -> None:
        """Hand back the token, where there is one whose attempt will not be made."""
        token, self._token = self._token, None
        if not self._is_made:
            abandon(self._strategy, token)

    def _end(self, *, succeeded: bool) -> RetryToken | None:
        """Return the token that is to be recorded, if the request succeeded; no other one is handed out afterwards."""
        self._is_over = True
        if not succeeded:
            self.give_back()
        token, self._token = self._token, None
        return token

    def _take_first(self, token: RetryToken) -> float:
        """Return the seconds to wait before the first attempt. Where they make no sense the token is there to give back."""
        self._token = token
        if self._is_over:
            self.give_back()
            return 0.0
        return delay_of(self._strategy, token)

    def _question(self, request: RetryRequest, reason: RetryReason) -> _Question | RetryAction:
        """Return what to ask the strategy, or the answer where there is nothing to ask."""
        if reason in TERMINAL_ERRORS:
            return RetryAction.no_retry(TERMINAL_ERRORS[reason])
        attempt = describe(request, reason)
        # What throttles is shown to the strategy all the same: it may have a rate to lower.
        if self._is_over or not (attempt.info.is_retry_safe or attempt.info.is_throttling_error):
            return RetryAction.no_retry()
        token, self._token = self._token, None
        if token is None:
            return RetryAction.no_retry(because=str(RetryEnding.NO_TOKEN))
        # The machine of the request knows these tokens only, and the strategy knows itself.
        seen = replace(request, retry_strategy=self._strategy)
        return _Question(token, FailedAttemptError(seen, reason, attempt.info), attempt)

    def _refuse(self, question: _Question, refusal: Exception) -> RetryAction:
        if not is_refusal(refusal):
            try:
                raise refusal
            finally:
                # The traceback of the error refers to this frame: together they would form a cycle.
                del refusal
        words = str(refusal).removeprefix(f"{type(question.error).__name__} is not retried: ")
        return RetryAction.no_retry(because=words or str(RetryEnding.REFUSED))

    def _grant(self, question: _Question, token: RetryToken) -> RetryAction:
        self._token, self._is_made = token, False
        # A strategy may let an error pass that is not retry-safe; Smithy forbids it to, and so do we.
        if self._is_over or not question.attempt.info.is_retry_safe:
            self.give_back()
            return RetryAction.no_retry()
        return RetryAction.after(delay_of(self._strategy, token, question.error), within=question.attempt.within)


class Permit(_Lent):
    """The permit of one request, from a strategy that answers at once."""

    __slots__ = ()

    def acquire(self) -> float:
        """Return the seconds to wait before the first attempt, having got its token.

        A strategy that has none lets the request have one attempt.

        Raises:
            ArgumentError: the strategy answered nonsense.
            Exception: whatever else it raised that is no ``RetryError``.
        """
        strategy = cast(MinimalRetryStrategy, self._strategy)
        try:
            token = strategy.acquire_initial_retry_token(token_scope=self._scope)
        except Exception as refusal:
            refuse_first(refusal)
            return 0.0
        return self._take_first(token)

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return what the strategy says to a failed attempt. Whatever it raises that is no ``RetryError`` passes."""
        question = self._question(request, reason)
        if isinstance(question, RetryAction):
            return question
        strategy = cast(MinimalRetryStrategy, self._strategy)
        try:
            token = strategy.refresh_retry_token_for_retry(token_to_renew=question.token, error=question.error)
        except Exception as refusal:
            return self._refuse(question, refusal)
        return self._grant(question, token)

    def end(self, *, succeeded: bool) -> None:
        """Tell the strategy of a success, or give back what was lent for an attempt that is not made. The second time: nothing.

        Raises:
            Exception: whatever the strategy raised when it was told.
        """
        if self._is_over:
            return
        token = self._end(succeeded=succeeded)
        if token is not None:
            cast(MinimalRetryStrategy, self._strategy).record_success(token=token)


class AsyncPermit(_Lent):
    """The permit of one request, from a strategy that has to be awaited: its caller may leave at any moment."""

    __slots__ = ("_recorded", "is_acquiring")

    def __init__(self, strategy: TokenStrategy, token_scope: str | None) -> None:
        super().__init__(strategy, token_scope)
        self._recorded: RetryToken | None = None
        self.is_acquiring: bool = True
        """Whether the token of the first attempt has yet to come."""
        self.obstacle: str | None = "its retry strategy has not answered yet whether it may begin"

    async def acquire(self) -> RetryAction:
        """Return after how long the first attempt is made; what it raises is what ``Permit.acquire`` raises.

        Cancellation: a token that comes when the request is over is handed back.
        """
        strategy = cast(AsyncMinimalRetryStrategy, self._strategy)
        try:
            token = await strategy.acquire_initial_retry_token(token_scope=self._scope)
        except Exception as refusal:
            refuse_first(refusal)
            return RetryAction.after(0.0)
        return RetryAction.after(self._take_first(token))

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return what the strategy says to a failed attempt. Whatever it raises that is no ``RetryError`` passes.

        Cancellation: a token that comes when the request is over is handed back.
        """
        question = self._question(request, reason)
        if isinstance(question, RetryAction):
            return question
        strategy = cast(AsyncMinimalRetryStrategy, self._strategy)
        try:
            token = await strategy.refresh_retry_token_for_retry(token_to_renew=question.token, error=question.error)
        except Exception as refusal:
            return self._refuse(question, refusal)
        return self._grant(question, token)

    def end(self, *, succeeded: bool) -> bool:
        """Give back what was lent for an attempt that is not made; return whether ``record`` has to be awaited.

        The second time there is nothing to do.
        """
        if self._is_over:
            return False
        self._recorded = self._end(succeeded=succeeded)
        return self._recorded is not None

    async def record(self) -> None:
        """Tell the strategy of the success. Whatever it raises passes."""
        token, self._recorded = self._recorded, None
        if token is not None:
            await cast(AsyncMinimalRetryStrategy, self._strategy).record_success(token=token)


AnyPermit = Permit | AsyncPermit


def permit_of(lender: TokenLender) -> AnyPermit:
    """Return the permit of a new request under a token strategy."""
    kind = AsyncPermit if is_async(lender.strategy) else Permit
    return kind(lender.strategy, lender.token_scope)
