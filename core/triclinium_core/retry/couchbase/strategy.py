"""Retry strategies: their interface, the facts that they receive about a failed request, and four implementations.

Source: SDK-RFC 0049 rev 16 "Retry Strategies", "Request Annotation", "Accessible Context in the RetryStrategy";
decisions C1, C14 to C16.
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
    """Snapshot of a request at the time of a failure. Durations are in seconds."""

    service: Service | None
    """Service of the request; None for anything but a Couchbase request, such as a call that ``retry`` makes."""
    operation: str
    idempotent: bool
    rng: Random
    """Random source for jitter. A strategy that uses another source makes a replay of the events differ."""
    key: str | None = None
    retry_attempts: int = 0
    """Number of retries so far, for any reason."""
    retry_reasons: frozenset[RetryReason] = frozenset()
    """Reasons for which the request was retried so far. The reason of the current failure is a separate argument."""
    age: float = 0.0
    """Time since the submission of the request."""
    remaining: float
    """Time until the deadline."""
    since_first_failure: float = 0.0
    """Time since the first failure, for any reason."""
    since_this_status: float | None = None
    """Time since the first response with the current status; None without such a response, or if it was the first
    failure. The ``max-duration`` of an error map limits this time."""
    attempts_this_status: int = 0
    """Number of retries since the status last changed (RFC 0013 "Questions"). The schedule of an error map uses this
    number."""
    error_map_entry: ErrorMapEntry | None = None
    """Entry for the status in the node's error map; None without an entry, or for a failure without a key-value
    response."""
    client_context: Mapping[str, object] = field(default_factory=dict)
    """Data that the application attached to the request."""
    retry_strategy: object = None
    """Strategy that decides about the request: the object that the caller passed, the strategy in its ``TokenScope``,
    or a default.

    Source: RFC 0049 "Request Annotation", ``retryStrategy()``."""


@lean
@dataclass(frozen=True, slots=True, init=False)
class RetryAction:
    """Decision of a strategy. Create it with ``after`` or ``no_retry``.

    Raises:
        InvalidArgumentException: a duration has the wrong type, is negative or not finite, or ``error`` is not a
            CouchbaseException class.
    """

    delay: float | None
    """Seconds until the retry; None for no retry."""
    error: type[errors.CouchbaseException] | None = None
    """Exception class that the caller receives if there is no retry; None for the class that belongs to the failure.
    The class is called with a message and an ``ErrorContext``, like CouchbaseException."""
    within: float | None = None
    """Seconds within which the retry must be sent. If the delay is not shorter, the request waits only this time, and
    then fails without being sent. None for no limit."""
    because: str | None = None
    """Text for the error that explains why there is no retry; None if the retry reason is explanation enough."""

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
        """Return an action that retries the request after ``seconds``.

        The client waits at least one millisecond, even if ``seconds`` is less.

        Raises:
            InvalidArgumentException: ``seconds`` or ``within`` is not a duration, is negative or not finite.
        """
        # The constructor checks a float. Check any other value here, because the constructor accepts None for no retry.
        return cls(seconds if isinstance(seconds, float) else check_duration(seconds, "delay"), None, within)

    @classmethod
    def no_retry(
        cls, error: type[errors.CouchbaseException] | None = None, *, because: str | None = None
    ) -> RetryAction:
        """Return an action that fails the request.

        Args:
            error: exception class that the caller receives. Default: the class that belongs to the failure.
            because: text for the error that explains why there is no retry. Default: None, for no explanation.

        Raises:
            InvalidArgumentException: ``error`` is not a CouchbaseException class.
        """
        return cls(None, error, None, because)


class RetryStrategy(Protocol):
    """Synchronous strategy. It must not block. It needs no clock, because the request contains the times."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return whether and when to retry. An exception fails the request, and is the ``__cause__`` of its error."""
        ...


class AsyncRetryStrategy(Protocol):
    """Asynchronous strategy, which the driver awaits. It may do I/O."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return whether and when to retry. An exception fails the request, and is the ``__cause__`` of its error."""
        ...


AnyRetryStrategy = RetryStrategy | AsyncRetryStrategy


def require_strategy(strategy: object, parameter: str = "retry_strategy") -> None:
    """Raise InvalidArgumentException, about ``parameter``, unless ``strategy`` is an object with ``retry_after``."""
    if not callable(getattr(strategy, "retry_after", None)):
        hint = other_kind(strategy, DeciderKind.COUCHBASE) or "it has no such method"
    elif isinstance(strategy, type):
        hint = f"it is a class; pass an instance: {strategy.__name__}()"
    else:
        return
    raise errors.InvalidArgumentException(
        f"{parameter}={shown(strategy)} must be an object with a method retry_after(request, reason), such as "
        f"BestEffortRetryStrategy(); {hint}",
        parameter=parameter,
    )


def is_async(strategy: AnyRetryStrategy) -> TypeGuard[AsyncRetryStrategy]:
    """Return whether ``strategy.retry_after`` is an ``async def``."""
    return inspect.iscoroutinefunction(strategy.retry_after)


class BestEffortRetryStrategy:
    """Strategy that retries every request that is safe to retry, until its deadline.

    Args:
        backoff: function that computes the delays. Default: 1, 2, 4 … 256, 500, 500 ms.

    Raises:
        InvalidArgumentException: ``backoff`` is not callable.

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
        """Return a retry if the request is idempotent, or if the reason allows the retry of any request."""
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
"""Exception class for each of the five terminal reasons of RFC 0049 "Fail Fast (Terminal Errors)". Each class is as
specific as possible (decision C32)."""


class FastFailOnTerminalErrorRetryStrategy(BestEffortRetryStrategy):
    """Default strategy. It fails a request immediately if a retry is unlikely to help, and otherwise is best effort.

    Args:
        backoff: function that computes the delays. Default: 1, 2, 4 … 256, 500, 500 ms.

    Volatile: any release may change the set of terminal reasons, so that the default remains the most helpful strategy.
    To pin the current behaviour, copy this class.

    Source: RFC 0049 rev 16 "Fail Fast (Terminal Errors)".
    """

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return no retry for the five terminal reasons, and the decision of best effort for all others."""
        if reason in TERMINAL_ERRORS:
            return RetryAction.no_retry(TERMINAL_ERRORS[reason])
        return super().retry_after(request, reason)


class ErrorMapRetryStrategy:
    """Opt-in strategy that follows the retry schedule in the node's error map. Without a schedule, ``otherwise`` decides.

    Args:
        otherwise: strategy for failures to which the error map does not apply, or for which it has no schedule.
            Default: the default strategy.

    Raises:
        InvalidArgumentException: ``otherwise`` is not a strategy, or is asynchronous.

    Source: RFC 0013 "Retry Intervals"; decisions C14 to C17.
    """

    def __init__(self, otherwise: RetryStrategy | None = None) -> None:
        if otherwise is not None:
            require_strategy(otherwise, "otherwise")
            if is_async(otherwise):
                raise errors.InvalidArgumentException(
                    f"otherwise={shown(otherwise)} must be a synchronous strategy", parameter="otherwise"
                )
        self.otherwise: RetryStrategy = otherwise if otherwise is not None else FastFailOnTerminalErrorRetryStrategy()

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(otherwise={self.otherwise!r})"

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a retry after the delay that the error map specifies.

        Return no retry if ``max-duration`` has passed, or if the error map names an unknown algorithm. Return the
        decision of ``otherwise`` if the error map does not apply or has no schedule.
        """
        entry = request.error_map_entry
        if reason is not RetryReason.KV_ERROR_MAP_RETRY_INDICATED or entry is None:
            return self.otherwise.retry_after(request, reason)
        if entry.unknown_algorithm is not None:
            # RFC 0013 §Questions: if the client does not support the map's retry strategy, the user receives the error.
            words = f"the error map requests the retry strategy {entry.unknown_algorithm!r}, which this client does not support"
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
    """Internal strategy that permits no retry. Only reasons that are always retried cause retries.

    Under a token strategy, the client uses it for requests without a waiting caller.

    Source: RFC 0049 "Fail Fast (Strict)"; decision C1.
    """

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return no retry."""
        return RetryAction.no_retry()
