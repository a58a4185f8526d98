"""Retry strategies: their interface, the facts they get about a failed request, and those shipped.

Source: SDK-RFC 0049 rev 16 "Retry Strategies", "Request Annotation", "Accessible Context in the RetryStrategy"; decisions
C1, C14 to C16.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeGuard

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration
from triclinium_core.retry.backoff import RESOLUTION, Backoff, Random, exponential
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapEntry
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.kinds import DeciderKind, other_kind
from triclinium_core.retry.values import lean
from triclinium_core.shown import shown, total_repr


@lean
@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequest:
    """A snapshot of a request at the moment of a failure. Durations are seconds."""

    service: Service | None
    """None for a call of any function, under ``retry`` and its kin."""
    operation: str
    idempotent: bool
    rng: Random
    """Randomness for jitter; draw nothing from elsewhere, or a replay will differ."""
    key: str | None = None
    retry_attempts: int = 0
    """Retries already done, whatever their reasons."""
    retry_reasons: frozenset[RetryReason] = frozenset()
    """Reasons of earlier failures; the present one is passed beside the request."""
    age: float = 0.0
    """Since submission."""
    remaining: float
    """Until the deadline."""
    since_first_failure: float = 0.0
    """Since the first failure, whatever its reason."""
    since_this_status: float | None = None
    """Since the first answer with the present status; None if that was the first failure. The ``max-duration`` of an
    error map limits this time."""
    attempts_this_status: int = 0
    """Retries done since the status last changed (RFC 0013 "Questions"); the schedule of an error map counts these."""
    error_map_entry: ErrorMapEntry | None = None
    """What the node says of the status, where the client does not know it."""
    client_context: Mapping[str, object] = field(default_factory=dict)
    """What the application attached to the request."""
    retry_strategy: object = None
    """The strategy that decides about the request, as its caller passed it; of a ``TokenScope`` the strategy inside.

    Source: RFC 0049 "Request Annotation", ``retryStrategy()``."""


@lean
@dataclass(frozen=True, slots=True, init=False)
class RetryAction:
    """A strategy's answer. Build it with ``after`` or ``no_retry``.

    Raises:
        InvalidArgumentException: a duration is negative or not finite, or ``error`` is no class of ours.
    """

    delay: float | None
    """Seconds until the retry; None for no retry."""
    error: type[errors.CouchbaseException] | None = None
    """What the caller gets when there is no retry; None for the error that the failure itself stands for. It is built
    with a message and an ``ErrorContext``, as all our errors are."""
    within: float | None = None
    """Seconds in which the retry must be sent; a longer delay is cut to it and the request then fails unsent."""
    because: str | None = None
    """Why there is no retry, in words for the caller's error; None where the reason of the failure says enough."""

    def __init__(
        self,
        delay: Duration | None,
        error: type[errors.CouchbaseException] | None = None,
        within: Duration | None = None,
        because: str | None = None,
    ) -> None:
        if error is not None and not (isinstance(error, type) and issubclass(error, errors.CouchbaseException)):
            raise errors.InvalidArgumentException(
                f"error={shown(error)} must be CouchbaseException or a subclass of it", parameter="error"
            )
        self.delay = None if delay is None else check_duration(delay, "delay")  # type: ignore[misc]
        self.error = error  # type: ignore[misc]
        self.within = None if within is None else check_duration(within, "within")  # type: ignore[misc]
        self.because = because  # type: ignore[misc]

    @classmethod
    def after(cls, seconds: Duration, *, within: Duration | None = None) -> RetryAction:
        """Return the order to retry after ``seconds``; less than a millisecond is taken for one.

        Raises:
            InvalidArgumentException: ``seconds`` or ``within`` is no duration, negative or not finite.
        """
        # The constructor checks a float. None would stand for no retry there.
        return cls(seconds if isinstance(seconds, float) else check_duration(seconds, "delay"), None, within)

    @classmethod
    def no_retry(
        cls, error: type[errors.CouchbaseException] | None = None, *, because: str | None = None
    ) -> RetryAction:
        """Return the order to fail the request, with ``error`` where one is given, and with the words ``because`` in it.

        Raises:
            InvalidArgumentException: ``error`` is no class of ours.
        """
        return cls(None, error, None, because)


class RetryStrategy(Protocol):
    """A strategy that answers at once. It must not block, and needs no clock: the request has the times."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return whether to retry. Whatever this raises fails the request, as the cause."""
        ...


class AsyncRetryStrategy(Protocol):
    """A strategy that may do I/O before it answers; the driver awaits it."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return whether to retry. Whatever this raises fails the request, as the cause."""
        ...


AnyRetryStrategy = RetryStrategy | AsyncRetryStrategy


def require_strategy(strategy: object, parameter: str = "retry_strategy") -> None:
    """Raise InvalidArgumentException, about ``parameter``, unless ``strategy`` is an object with a method retry_after."""
    if not callable(getattr(strategy, "retry_after", None)):
        hint = other_kind(strategy, DeciderKind.COUCHBASE) or "it has no such method"
    elif isinstance(strategy, type):
        hint = f"it is a class; make one: {strategy.__name__}()"
    else:
        return
    raise errors.InvalidArgumentException(
        f"{parameter}={shown(strategy)} must be an object with a method retry_after(request, reason), such as "
        f"BestEffortRetryStrategy(); {hint}",
        parameter=parameter,
    )


def is_async(strategy: AnyRetryStrategy) -> TypeGuard[AsyncRetryStrategy]:
    """Tell whether ``strategy.retry_after`` is an ``async def``."""
    return inspect.iscoroutinefunction(strategy.retry_after)


class BestEffortRetryStrategy:
    """Retries whatever is safe to retry, until the deadline.

    Args:
        backoff: replaces the delay calculator; 1, 2, 4 … 500 ms unless given.

    Raises:
        InvalidArgumentException: ``backoff`` cannot be called.

    Source: RFC 0049 "Best Effort".
    """

    def __init__(self, backoff: Backoff | None = None) -> None:
        if backoff is not None and not callable(backoff):
            raise errors.InvalidArgumentException(
                f"backoff={shown(backoff)} must be callable as backoff(retry_attempts, rng)", parameter="backoff"
            )
        self._backoff = backoff if backoff is not None else exponential()

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(backoff={self._backoff!r})"

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a retry where the request is idempotent or the reason allows one for any request."""
        if request.idempotent or reason.allows_non_idempotent_retry:
            return RetryAction.after(self._backoff(request.retry_attempts, request.rng))
        return RetryAction.no_retry()


TERMINAL_ERRORS: dict[RetryReason, type[errors.CouchbaseException]] = {
    RetryReason.AUTHENTICATION_ERROR: errors.AuthenticationFailureException,
    RetryReason.TLS_ERROR: errors.TlsException,
    RetryReason.BUCKET_ACCESS_ERROR: errors.BucketAccessException,
    RetryReason.SCOPE_NOT_FOUND: errors.ScopeNotFoundException,
    RetryReason.COLLECTION_NOT_FOUND: errors.CollectionNotFoundException,
}
"""RFC 0049 "Fail Fast (Terminal Errors)": the five mapped reasons and what they fail with, each class as narrow as can be
(decision C32)."""


class FastFailOnTerminalErrorRetryStrategy(BestEffortRetryStrategy):
    """The default: fails at once where a retry is unlikely to help, and is best effort otherwise.

    Volatile: what counts as terminal may change in any release, so that the default stays the most helpful one. Copy
    this class to pin today's behaviour.

    Source: RFC 0049 rev 16 "Fail Fast (Terminal Errors)".
    """

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return no retry for the five terminal reasons, else what best effort says."""
        if reason in TERMINAL_ERRORS:
            return RetryAction.no_retry(TERMINAL_ERRORS[reason])
        return super().retry_after(request, reason)


class ErrorMapRetryStrategy:
    """Opt-in: follows the ``retry`` object of the node's error map, and another strategy for everything else.

    Args:
        otherwise: decides where the map has no usable schedule; the default strategy unless given.

    Raises:
        InvalidArgumentException: ``otherwise`` is no strategy, or one that has to be awaited.

    Source: RFC 0013 "Retry Intervals"; decisions C14 to C17.
    """

    def __init__(self, otherwise: RetryStrategy | None = None) -> None:
        if otherwise is not None:
            require_strategy(otherwise, "otherwise")
            if is_async(otherwise):
                raise errors.InvalidArgumentException(
                    f"otherwise={shown(otherwise)} must be a strategy that answers at once", parameter="otherwise"
                )
        self.otherwise: RetryStrategy = otherwise if otherwise is not None else FastFailOnTerminalErrorRetryStrategy()

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(otherwise={self.otherwise!r})"

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the delay that the map requests.

        Return no retry once ``max-duration`` has passed, or if the map names an algorithm that is unknown here.
        """
        entry = request.error_map_entry
        if reason is not RetryReason.KV_ERROR_MAP_RETRY_INDICATED or entry is None:
            return self.otherwise.retry_after(request, reason)
        if entry.unknown_algorithm is not None:
            # RFC 0013 §Questions: an error whose retry strategy the client cannot handle goes back to the user.
            words = f"the error map requests the retry strategy {entry.unknown_algorithm!r}, which this client does not know"
            return RetryAction.no_retry(because=words)
        if entry.retry is None:
            return self.otherwise.retry_after(request, reason)
        delay = entry.retry.delay(request.attempts_this_status)
        if entry.retry.max_duration_ms is None:
            return RetryAction.after(delay)
        since = request.since_first_failure if request.since_this_status is None else request.since_this_status
        within = entry.retry.max_duration_ms / 1000 - since
        if within <= RESOLUTION:
            return RetryAction.no_retry()
        return RetryAction.after(delay, within=within)


class FailFastRetryStrategy:
    """Internal: retries nothing but what is always retried; meant for config polls, which come with clusters.

    Source: RFC 0049 "Fail Fast (Strict)"; decision C1.
    """

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return no retry."""
        return RetryAction.no_retry()
