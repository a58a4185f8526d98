"""Permits, which let a Couchbase request use a token strategy. A permit holds the current token of one request.

A permit has the interface of a Couchbase strategy, so that the retry machine of the request can consult it. A request
acquires a token before its first attempt. The machine consults the permit about each failure that the RFC leaves to a
strategy. A failure with a reason that is always retried does not change the token. Each token ends once:

- The attempt failed: the strategy renews the token, or refuses to.
- The request succeeded: the strategy records the success with the token.
- The attempt was never made: the permit releases the token.
- The attempt was made, but the caller did not wait for its end, or the request must not be sent again: the token and
  its cost are lost.

Source: the Smithy Python retry design, "Specification", "Example Usage"; decisions T1 to T6.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

from triclinium_core import errors
from triclinium_core.retry.backoff import cap
from triclinium_core.retry.calls import RetryEnding, abandon, delay_of, is_refusal, refuse_first
from triclinium_core.retry.combined.reason_infos import FailedAttempt, FailedAttemptError, describe
from triclinium_core.retry.combined.strategies import PermitIssuer, TokenStrategy
from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryAction, RetryReason, RetryRequest
from triclinium_core.retry.smithy import AsyncMinimalRetryStrategy, MinimalRetryStrategy, RetryToken, is_async
from triclinium_core.shown import total_repr

ERRORS_OF_UNWELL_SERVICES: tuple[type[errors.CouchbaseException], ...] = (
    errors.TimeoutException,
    errors.InternalServerFailureException,
    errors.TemporaryFailureException,
    errors.RateLimitedException,
    errors.QuotaLimitedException,
    errors.JobQueueFullException,
    errors.DecodingFailureException,
    errors.DurabilityAmbiguousException,
    errors.DurabilityImpossibleException,
)
"""Errors which show that a service could not do its work, if a final response raises them (decision T4)."""


def is_healthy_response(error: errors.CouchbaseException) -> bool:
    """Return whether the service that sent a final response with ``error`` is healthy.

    A response about a missing document or an invalid statement comes from a healthy service.
    """
    # The client raises the base class itself for a response that it does not understand.
    return type(error) is not errors.CouchbaseException and not isinstance(error, ERRORS_OF_UNWELL_SERVICES)


class _Question(NamedTuple):
    """Arguments with which a strategy is consulted about a failed attempt, and the facts about the attempt."""

    token: RetryToken
    error: FailedAttemptError
    attempt: FailedAttempt


class _PermitBase:
    """Base of both permits: it stores the current token, and whether the attempt with this token was made."""

    __slots__ = ("_is_made", "_is_over", "_scope", "_strategy", "_token", "obstacle")

    def __init__(self, strategy: TokenStrategy, token_scope: str | None) -> None:
        self._strategy: TokenStrategy = strategy
        self._scope = token_scope
        self._token: RetryToken | None = None
        self._is_made = False
        self._is_over = False
        self.obstacle: str | None = None
        """Reason, as text for an error, why the first attempt was not made; None if the strategy does not delay it."""

    @total_repr
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._strategy!r}>"

    @property
    def strategy(self) -> TokenStrategy:
        """Strategy that issues the tokens."""
        return self._strategy

    def postpone(self, delay: float, time_left: float) -> float | None:
        """Return the seconds until the first attempt; None if the delay reaches the deadline (decision T5).

        If the delay reaches the deadline, release the token, and describe the delay in ``obstacle`` for the error.

        Args:
            delay: delay that the strategy requires, in seconds.
            time_left: seconds until the deadline.
        """
        if not delay:
            self.obstacle = None
            return 0.0
        self.obstacle = f"its retry strategy delays it by {delay:g} s"
        if not cap(delay, time_left)[1]:
            self.release_unused()
            return None
        return delay

    def hold_is_over(self) -> bool:
        """Clear the obstacle to the first attempt; return whether there was one."""
        was_held, self.obstacle = self.obstacle is not None, None
        return was_held

    def begin(self) -> None:
        """Record that the request makes the attempt for which it holds the current token."""
        self._is_made = True

    def release_unused(self) -> None:
        """Drop the current token. If its attempt was not made, release it first."""
        token, self._token = self._token, None
        if not self._is_made:
            abandon(self._strategy, token)

    def _end(self, *, succeeded: bool) -> RetryToken | None:
        """End the permit. Return the token with which to record a success; None after a failure or without a token.

        The permit releases a token that arrives later.
        """
        self._is_over = True
        if not succeeded:
            self.release_unused()
        token, self._token = self._token, None
        return token

    def _take_first(self, token: RetryToken) -> float:
        """Keep the first token, and return the seconds to wait before the first attempt.

        If the delay of the token is invalid, raise, but keep the token, so that it is released later.
        """
        self._token = token
        if self._is_over:
            self.release_unused()
            return 0.0
        return delay_of(self._strategy, token)

    def _question(self, request: RetryRequest, reason: RetryReason) -> _Question | RetryAction:
        """Return the arguments for the strategy, or the decision if the strategy need not be consulted."""
        if reason in TERMINAL_ERRORS:
            return RetryAction.no_retry(TERMINAL_ERRORS[reason])
        attempt = describe(request, reason)
        # Consult the strategy about a throttling error even if a retry is not safe: it may have to lower its rate.
        if self._is_over or not (attempt.info.is_retry_safe or attempt.info.is_throttling_error):
            return RetryAction.no_retry()
        token, self._token = self._token, None
        if token is None:
            return RetryAction.no_retry(because=str(RetryEnding.NO_TOKEN))
        # ``request.retry_strategy`` is this permit, but the strategy expects itself there.
        seen = replace(request, retry_strategy=self._strategy)
        return _Question(token, FailedAttemptError(seen, reason, attempt.info), attempt)

    def _refuse(self, question: _Question, refusal: Exception) -> RetryAction:
        if not is_refusal(refusal):
            try:
                raise refusal
            finally:
                # The traceback of the error refers to this frame. A reference from the frame to the error would be a
                # cycle.
                del refusal
        words = str(refusal).removeprefix(f"{type(question.error).__name__} is not retried: ")
        return RetryAction.no_retry(because=words or str(RetryEnding.REFUSED))

    def _grant(self, question: _Question, token: RetryToken) -> RetryAction:
        self._token, self._is_made = token, False
        # The strategy may permit a retry that is not safe. Smithy forbids such a retry, and so does this class.
        if self._is_over or not question.attempt.info.is_retry_safe:
            self.release_unused()
            return RetryAction.no_retry()
        return RetryAction.after(delay_of(self._strategy, token, question.error), within=question.attempt.within)


class Permit(_PermitBase):
    """Permit of one request under a synchronous strategy."""

    __slots__ = ()

    def acquire(self) -> float:
        """Acquire the first token. Return the seconds to wait before the first attempt.

        If the strategy refuses a token, only reasons that are always retried lead to a retry of the request.

        Raises:
            ArgumentError: the strategy's token is invalid.
            Exception: any other exception of the strategy except ``RetryError``.
        """
        strategy = cast(MinimalRetryStrategy, self._strategy)
        try:
            token = strategy.acquire_initial_retry_token(token_scope=self._scope)
        except Exception as refusal:
            refuse_first(refusal)
            return 0.0
        return self._take_first(token)

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the strategy's decision on a failed attempt. Exceptions other than ``RetryError`` propagate."""
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
        """Record a success with the strategy, or release the token if its attempt was not made. Later calls do nothing.

        Raises:
            Exception: any exception of the strategy.
        """
        if self._is_over:
            return
        token = self._end(succeeded=succeeded)
        if token is not None:
            cast(MinimalRetryStrategy, self._strategy).record_success(token=token)


class AsyncPermit(_PermitBase):
    """Permit of one request under an asynchronous strategy, whose caller may be cancelled at any time."""

    __slots__ = ("_recorded", "is_acquiring")

    def __init__(self, strategy: TokenStrategy, token_scope: str | None) -> None:
        super().__init__(strategy, token_scope)
        self._recorded: RetryToken | None = None
        self.is_acquiring: bool = True
        """Whether the strategy has neither returned nor refused the first token yet."""
        self.obstacle: str | None = "its retry strategy has not decided yet whether it may start"

    async def acquire(self) -> RetryAction:
        """Return an action with the delay of the first attempt. Raise the same exceptions as ``Permit.acquire``.

        Cancellation: a token that arrives after the end of the request is released.
        """
        strategy = cast(AsyncMinimalRetryStrategy, self._strategy)
        try:
            token = await strategy.acquire_initial_retry_token(token_scope=self._scope)
        except Exception as refusal:
            refuse_first(refusal)
            return RetryAction.after(0.0)
        return RetryAction.after(self._take_first(token))

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the strategy's decision on a failed attempt. Exceptions other than ``RetryError`` propagate.

        Cancellation: a token that arrives after the end of the request is released.
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
        """Release the token if its attempt was not made. Return whether the driver must await ``record``.

        Later calls do nothing and return False.
        """
        if self._is_over:
            return False
        self._recorded = self._end(succeeded=succeeded)
        return self._recorded is not None

    async def record(self) -> None:
        """Record the success with the strategy. Exceptions of the strategy propagate."""
        token, self._recorded = self._recorded, None
        if token is not None:
            await cast(AsyncMinimalRetryStrategy, self._strategy).record_success(token=token)


AnyPermit = Permit | AsyncPermit


def permit_of(issuer: PermitIssuer) -> AnyPermit:
    """Return the permit for a new request under a token strategy."""
    kind = AsyncPermit if is_async(issuer.strategy) else Permit
    return kind(issuer.strategy, issuer.token_scope)
