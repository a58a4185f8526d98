"""Smithy's strategies for a trio program, with default randomness and trio's clock."""

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


def as_token_strategy(strategy: AnyCallStrategy, operation: str) -> AnyRetryStrategy:
    """Return ``strategy`` if it issues tokens; for a Couchbase strategy an adapter that issues them, with trio's clock.

    Args:
        operation: name of the call in the requests that a Couchbase strategy sees.

    Raises:
        ArgumentError: ``strategy`` is the class of a Couchbase strategy instead of an object.
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
    """Return the context values for the strategy."""
    return block_values.get() or _NO_VALUES


class StandardRetryStrategy(CoreStandardRetryStrategy):
    """Strategy that retries everything that is safe to retry, up to ``max_attempts`` and while the quota lasts.

    When a service is down, all clients with this strategy together send it little more than first attempts. Share one
    strategy among all calls to a service.

    Args:
        rng: source of randomness for the backoffs; a new generator if None.
        max_attempts: attempts of one call, including the first; 0 means 1, because the first is never refused. Default:
            that of ``numbers``.
        numbers: costs and backoffs, and defaults of ``max_attempts`` and ``quota_capacity``. Default:
            ``AwsRetryNumbers.OF_2026``.
        quota_capacity: initial and maximum quota of each scope; 0 permits no retry at all. Default: that of
            ``numbers``.
        clamp_retry_after: whether a server's ``retry_after`` lengthens a backoff by at most 5 s. With False, the
            default, a retry waits at least as long as the server requests.
        backoff: replaces the default backoff, that of ``numbers``.
        throttling_backoff: replaces the default backoff after throttling errors, that of ``numbers``.

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
    """Strategy that retries everything that is safe to retry, up to ``max_attempts``.

    It does not prevent retry storms: see ``StandardRetryStrategy``.

    Args:
        rng: source of randomness for the backoff; a new generator if None.
        max_attempts: attempts of one call, including the first; 0 means 1, because the first is never refused.
            Default: 5.
        backoff: delays before retries. Default: 25 ms, doubled up to 20 s, half of it random.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    def __init__(
        self, *, rng: Random | None = None, max_attempts: int = 5, backoff: RetryBackoffStrategy | None = None
    ) -> None:
        super().__init__(rng=random.Random() if rng is None else rng, max_attempts=max_attempts, backoff=backoff)


class AdaptiveRetryStrategy(CoreAdaptiveRetryStrategy):
    """Standard strategy that also delays calls, including first attempts, after a service has throttled.

    One rate applies to all scopes: use a strategy for each service.

    Args:
        rng: source of randomness for the backoffs; a new generator if None.
        clock: returns the time in seconds, and never goes back. Default: trio's clock, which limits the strategy to one
            trio run.
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
