"""Permits of requests: a token strategy with the interface that the retry machine of a request needs.

A permit holds the current token of one request.

A request acquires a token before its first attempt. The machine asks the strategy about each failure that the RFC
leaves to a strategy; a reason that is always retried keeps the token. Each token ends once. If its attempt failed, it
is renewed or refused. If the request succeeded, it is recorded. If its attempt was never made, it is released. If its
attempt was made, but the caller did not wait for the end or the request must not be repeated, the token and its cost
are lost.

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
    errors.ServiceNotAvailableException,
    errors.RateLimitedException,
    errors.QuotaLimitedException,
    errors.JobQueueFullException,
    errors.DecodingFailureException,
    errors.DurabilityAmbiguousException,
    errors.DurabilityImpossibleException,
)
"""Errors of final responses in which a service reports that it could not do its work (decision T4)."""


def is_healthy_response(error: errors.CouchbaseException) -> bool:
    """Return whether a final response with ``error`` shows a healthy service.

    A missing document or an invalid statement does not count against the service.
    """
    # The base class itself stands for a response that the client does not understand.
    return type(error) is not errors.CouchbaseException and not isinstance(error, ERRORS_OF_UNWELL_SERVICES)


class _Question(NamedTuple):
    """Question to a strategy about a failed attempt."""

    token: RetryToken
    error: FailedAttemptError
    attempt: FailedAttempt


class _PermitBase:
    """Common part of both permits: the current token, and whether its attempt was made."""

    __slots__ = ("_is_made", "_is_over", "_scope", "_strategy", "_token", "obstacle")

    def __init__(self, strategy: TokenStrategy, token_scope: str | None) -> None:
        self._strategy: TokenStrategy = strategy
        self._scope = token_scope
        self._token: RetryToken | None = None
        self._is_made = False
        self._is_over = False
        self.obstacle: str | None = None
        """Why the first attempt has not been made yet, in words; None if the strategy does not delay it."""

    @total_repr
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._strategy!r}>"

    @property
    def strategy(self) -> TokenStrategy:
        """Strategy that issues the tokens."""
        return self._strategy

    def postpone(self, delay: float, time_left: float) -> float | None:
        """Return the seconds until the first attempt; None if the delay reaches the deadline (decision T5).

        In that case the token is released, and ``obstacle`` describes the delay for the error.

        Args:
            delay: seconds that the strategy requires.
            time_left: seconds to the deadline.
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
        """Record that the attempt of the current token is made."""
        self._is_made = True

    def release_unused(self) -> None:
        """Release the current token, if there is one and its attempt was not made."""
        token, self._token = self._token, None
        if not self._is_made:
            abandon(self._strategy, token)

    def _end(self, *, succeeded: bool) -> RetryToken | None:
        """End the permit, and return the token to record after a success, if any. Later tokens are released."""
        self._is_over = True
        if not succeeded:
            self.release_unused()
        token, self._token = self._token, None
        return token

    def _take_first(self, token: RetryToken) -> float:
        """Return the seconds to wait before the first attempt. A token with an invalid delay is kept for release."""
        self._token = token
        if self._is_over:
            self.release_unused()
            return 0.0
        return delay_of(self._strategy, token)

    def _question(self, request: RetryRequest, reason: RetryReason) -> _Question | RetryAction:
        """Return the question to the strategy, or the answer if the strategy need not be consulted."""
        if reason in TERMINAL_ERRORS:
            return RetryAction.no_retry(TERMINAL_ERRORS[reason])
        attempt = describe(request, reason)
        # A strategy sees throttling errors even if they are not retried: it may have to lower its rate.
        if self._is_over or not (attempt.info.is_retry_safe or attempt.info.is_throttling_error):
            return RetryAction.no_retry()
        token, self._token = self._token, None
        if token is None:
            return RetryAction.no_retry(because=str(RetryEnding.NO_TOKEN))
        # The request's machine has this permit as its strategy; the strategy expects to see itself.
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
        # A strategy may permit a retry of an error that is not retry-safe. Smithy forbids that, and so do we.
        if self._is_over or not question.attempt.info.is_retry_safe:
            self.release_unused()
            return RetryAction.no_retry()
        return RetryAction.after(delay_of(self._strategy, token, question.error), within=question.attempt.within)


class Permit(_PermitBase):
    """Permit of one request under a synchronous strategy."""

    __slots__ = ()

    def acquire(self) -> float:
        """Acquire the first token. Return the seconds to wait before the first attempt.

        If the strategy refuses a token, the request has one attempt.

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
        """Return the strategy's answer to a failed attempt. Exceptions other than ``RetryError`` propagate."""
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
        """Record a success with the strategy, or release the token of an attempt that is not made.

        Later calls do nothing.

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
        """Whether the token of the first attempt is still pending."""
        self.obstacle: str | None = "its retry strategy has not decided yet whether it may start"

    async def acquire(self) -> RetryAction:
        """Return an action with the delay of the first attempt. Raises the same exceptions as ``Permit.acquire``.

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
        """Return the strategy's answer to a failed attempt. Exceptions other than ``RetryError`` propagate.

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
        """Release the token of an attempt that is not made; return whether ``record`` must be awaited.

        Later calls do nothing and return False.
        """
        if self._is_over:
            return False
        self._recorded = self._end(succeeded=succeeded)
        return self._recorded is not None

    async def record(self) -> None:
        """Record the success with the strategy. Its exceptions propagate."""
        token, self._recorded = self._recorded, None
        if token is not None:
            await cast(AsyncMinimalRetryStrategy, self._strategy).record_success(token=token)


AnyPermit = Permit | AsyncPermit


def permit_of(issuer: PermitIssuer) -> AnyPermit:
    """Return the permit of a new request under a token strategy."""
    kind = AsyncPermit if is_async(issuer.strategy) else Permit
    return kind(issuer.strategy, issuer.token_scope)
