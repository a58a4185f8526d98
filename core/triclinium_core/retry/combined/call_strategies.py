"""Adapters that give a Couchbase strategy the interface of a token strategy, so that it can retry any function.

The token holds the state of one call. The adapter passes each failed attempt to the strategy as a failed request. If
the context of the error has a refused retry reason, the request has the same one. Otherwise its reason is
``SERVICE_RESPONSE_CODE_INDICATED``, the RFC's reason for a service whose response permits a retry, or ``UNKNOWN``.

Source: SDK-RFC 0049 "Accessible Context in the RetryStrategy"; decision T9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import DELAY_LEAST, Random
from triclinium_core.retry.combined.strategies import TokenStrategy
from triclinium_core.retry.smithy import ClassifiedError, ErrorInfo, RetryError, RetryToken, classify
from triclinium_core.shown import total_repr


@dataclass(frozen=True, slots=True)
class CallToken:
    """State of a call during one of its attempts. Times are in monotonic seconds."""

    began: float
    """Time at which the call acquired its first token."""
    retry_count: int = 0
    retry_delay: float = 0.0
    first_failure_at: float | None = None
    retry_reasons: frozenset[couchbase.RetryReason] = frozenset()


def reason_of(error: Exception, info: ErrorInfo) -> couchbase.RetryReason:
    """Return the retry reason of an attempt that raised ``error``.

    If ``error`` is the error of a Couchbase operation whose retry was refused, the reason is the refused one. Otherwise
    it is ``SERVICE_RESPONSE_CODE_INDICATED`` if a retry is known to be safe, and ``UNKNOWN`` in all other cases.
    """
    cause = error.__cause__ if isinstance(error, ClassifiedError) else error
    refused = cause.context.refused_reason if isinstance(cause, errors.CouchbaseException) else None
    if refused is not None and refused in couchbase.RetryReason.__members__:
        return couchbase.RetryReason[refused]
    return (
        couchbase.RetryReason.SERVICE_RESPONSE_CODE_INDICATED if info.is_retry_safe else couchbase.RetryReason.UNKNOWN
    )


class _Calls:
    """Base of both adapters: it makes a request from a failed attempt, and a token from the strategy's decision."""

    def __init__(
        self,
        strategy: couchbase.AnyRetryStrategy,
        operation: str,
        *,
        rng: Random,
        clock: Callable[[], float],
        deadline: Callable[[], float],
        client_context: Callable[[], Mapping[str, object]],
    ) -> None:
        self._strategy = strategy
        self._operation = operation
        self._rng = rng
        self._clock = clock
        self._deadline = deadline
        self._client_context = client_context

    @total_repr
    def __repr__(self) -> str:
        return repr(self._strategy)

    def _question(
        self, token: RetryToken, error: Exception
    ) -> tuple[couchbase.RetryRequest, couchbase.RetryReason, CallToken]:
        assert isinstance(token, CallToken), "a call returns the token that it received"
        info, now = classify(error), self._clock()
        first = now if token.first_failure_at is None else token.first_failure_at
        reason = reason_of(error, info)
        request = couchbase.RetryRequest(
            service=None,
            operation=self._operation,
            idempotent=info.is_retry_safe is True,
            rng=self._rng,
            retry_attempts=token.retry_count,
            retry_reasons=token.retry_reasons,
            age=now - token.began,
            remaining=self._deadline() - now,
            since_first_failure=now - first,
            client_context=self._client_context(),
            retry_strategy=self._strategy,
        )
        following = CallToken(token.began, token.retry_count + 1, 0.0, first, token.retry_reasons | {reason})
        return request, reason, following

    def _token(
        self,
        question: tuple[couchbase.RetryRequest, couchbase.RetryReason, CallToken],
        answer: object,
        error: Exception,
    ) -> CallToken:
        """Return the token for the next attempt.

        Raises:
            RetryError: a retry is refused, the delay reaches ``within``, or the deadline has passed.
            TypeError: the strategy returned something other than a RetryAction.
        """
        request, reason, following = question
        verdict = couchbase.judge(request, reason, answer)
        # Accept a delay that was cut to the deadline: the machine of the call then gives up and reports the deadline.
        if not isinstance(verdict, couchbase.Retry) or not (verdict.dispatches or verdict.times_out):
            raise RetryError(
                f"{type(error).__name__} is not retried: {type(self._strategy).__name__} permits no retry in time "
                f"({reason})"
            )
        delay = max(verdict.delay, DELAY_LEAST, classify(error).retry_after or 0.0)
        return CallToken(
            following.began, following.retry_count, delay, following.first_failure_at, following.retry_reasons
        )


class CallStrategy(_Calls):
    """Adapter of a synchronous Couchbase strategy."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token of a call that begins now. Ignore the scope."""
        return CallToken(self._clock())

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return the token for the next attempt. It has the strategy's delay, at least ``retry_after`` and 1 ms.

        Raises:
            RetryError: a retry is refused, the delay reaches ``within``, or the deadline has passed.
            Exception: any other exception of the strategy.
        """
        question = self._question(token_to_renew, error)
        answer = cast(couchbase.RetryStrategy, self._strategy).retry_after(question[0], question[1])
        return self._token(question, answer, error)

    def record_success(self, *, token: RetryToken) -> None:
        """Do nothing: a Couchbase strategy has no method that records a success."""


class AsyncCallStrategy(_Calls):
    """Adapter of an asynchronous Couchbase strategy."""

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token of a call that begins now, without consulting the strategy. Ignore the scope."""
        return CallToken(self._clock())

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return the token for the next attempt. It has the strategy's delay, at least ``retry_after`` and 1 ms.

        Raises:
            RetryError: a retry is refused, the delay reaches ``within``, or the deadline has passed.
            Exception: any other exception of the strategy.
        """
        question = self._question(token_to_renew, error)
        answer = await cast(couchbase.AsyncRetryStrategy, self._strategy).retry_after(question[0], question[1])
        return self._token(question, answer, error)

    async def record_success(self, *, token: RetryToken) -> None:
        """Do nothing: a Couchbase strategy has no method that records a success."""


AnyCallStrategy = couchbase.AnyRetryStrategy | TokenStrategy
"""Strategy that decides about calls of any function."""


def call_strategy(
    strategy: couchbase.AnyRetryStrategy,
    operation: str,
    *,
    rng: Random,
    clock: Callable[[], float],
    deadline: Callable[[], float],
    client_context: Callable[[], Mapping[str, object]],
) -> TokenStrategy:
    """Return an adapter that gives a Couchbase strategy the interface of a token strategy.

    Args:
        operation: name of the call in the requests that the strategy receives.
        rng: random source for jitter.
        clock: function that returns the current time in monotonic seconds.
        deadline: function that returns the deadline of the call on ``clock``; ``inf`` for no deadline.
        client_context: function that returns the caller's values for the strategy.

    Raises:
        ArgumentError: ``strategy`` is a class and not an instance of it, or is not a Couchbase strategy.
    """
    try:
        couchbase.require_strategy(strategy, "strategy")
    except errors.InvalidArgumentException as error:
        raise ArgumentError(error.message, parameter="strategy") from None
    kind = AsyncCallStrategy if couchbase.is_async(strategy) else CallStrategy
    return kind(strategy, operation, rng=rng, clock=clock, deadline=deadline, client_context=client_context)
