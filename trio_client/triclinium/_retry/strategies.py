"""Smithy's strategies for a trio program: with their own randomness, and trio's clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType

import trio

from triclinium._context import block_values
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.call_strategies import AnyCallStrategy, call_strategy
from triclinium_core.retry.kinds import DeciderKind, kind_of
from triclinium_core.retry.smithy import (
    AdaptiveRetryStrategy as CoreAdaptiveRetryStrategy,
    AnyRetryStrategy,
    AwsRetryNumbers,
    RetryBackoffStrategy,
    SimpleRetryStrategy as CoreSimpleRetryStrategy,
    StandardRetryStrategy as CoreStandardRetryStrategy,
)

COUCHBASE = DeciderKind.COUCHBASE
_JITTER = random.Random()
_NO_VALUES = MappingProxyType[str, object]({})


def lending(strategy: AnyCallStrategy, operation: str) -> AnyRetryStrategy:
    """Return ``strategy`` itself if it lends tokens; one of Couchbase's in that shape, with trio's clock.

    Args:
        operation: name of the call in the requests that a Couchbase strategy sees.

    Raises:
        ArgumentError: ``strategy`` is a class of Couchbase strategies, not an object.
    """
    if kind_of(strategy) is not COUCHBASE:
        return strategy  # type: ignore[return-value]  # of one kind or the other
    return call_strategy(
        strategy,  # type: ignore[arg-type]  # as above
        operation,
        rng=_JITTER,
        clock=trio.current_time,
        deadline=trio.current_effective_deadline,
        client_context=_values,
    )


def _values() -> Mapping[str, object]:
    """Return what the strategy may look at."""
    return block_values.get() or _NO_VALUES


class StandardRetryStrategy(CoreStandardRetryStrategy):
    """Retries what is safe to retry, while the quota lasts.

    When a service is down, all its clients together send it little more than first attempts. Share one strategy among
    all calls to a service.

    Args:
        rng: draws for the backoffs; a generator of its own unless given.
        max_attempts: attempts of one call, including the first; 0 means 1, because the first is never refused. That of
            ``numbers`` unless given.
        numbers: costs, backoffs, and what is not given here.
        quota_capacity: what the quota of each scope begins with; 0 permits no retry at all. That of ``numbers`` unless
            given.
        clamp_retry_after: whether a server's ``retry_after`` lengthens a backoff by 5 s at most. Without that, a retry
            waits for as long as the server asked.
        backoff: replaces the backoff of ``numbers``.
        throttling_backoff: replaces that after throttling errors.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    def __init__(
        self,
        *,
        rng: Random | None = None,
        max_attempts: int | None = None,
        numbers: AwsRetryNumbers = AwsRetryNumbers.OF_2026,
        quota_capacity: int | None = None,
        clamp_retry_after: bool = False,
        backoff: RetryBackoffStrategy | None = None,
        throttling_backoff: RetryBackoffStrategy | None = None,
    ) -> None:
        super().__init__(
            rng=random.Random() if rng is None else rng,
            max_attempts=max_attempts,
            numbers=numbers,
            quota_capacity=quota_capacity,
            clamp_retry_after=clamp_retry_after,
            backoff=backoff,
            throttling_backoff=throttling_backoff,
        )


class SimpleRetryStrategy(CoreSimpleRetryStrategy):
    """Retries what is safe to retry until ``max_attempts`` were made. It stops no storm: see ``StandardRetryStrategy``.

    Args:
        rng: draws for the backoff; a generator of its own unless given.
        max_attempts: attempts of one request, including the first; 0 means 1, because the first is never refused.
        backoff: replaces 25 ms, doubled up to 20 s, half of it random.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    def __init__(
        self, *, rng: Random | None = None, max_attempts: int = 5, backoff: RetryBackoffStrategy | None = None
    ) -> None:
        super().__init__(rng=random.Random() if rng is None else rng, max_attempts=max_attempts, backoff=backoff)


class AdaptiveRetryStrategy(CoreAdaptiveRetryStrategy):
    """The standard strategy that also holds calls back once a service has throttled, first attempts too.

    There is one rate for all scopes: use a strategy for each service.

    Args:
        rng: draws for the backoffs; a generator of its own unless given.
        clock: tells the present in seconds, and never goes back; trio's unless given, so that a strategy serves one run of
            trio.
        max_attempts, numbers, quota_capacity, clamp_retry_after, backoff, throttling_backoff: as for
            ``StandardRetryStrategy``.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    def __init__(
        self,
        *,
        rng: Random | None = None,
        clock: Callable[[], float] | None = None,
        max_attempts: int | None = None,
        numbers: AwsRetryNumbers = AwsRetryNumbers.OF_2026,
        quota_capacity: int | None = None,
        clamp_retry_after: bool = False,
        backoff: RetryBackoffStrategy | None = None,
        throttling_backoff: RetryBackoffStrategy | None = None,
    ) -> None:
        super().__init__(
            rng=random.Random() if rng is None else rng,
            clock=trio.current_time if clock is None else clock,
            max_attempts=max_attempts,
            numbers=numbers,
            quota_capacity=quota_capacity,
            clamp_retry_after=clamp_retry_after,
            backoff=backoff,
            throttling_backoff=throttling_backoff,
        )
