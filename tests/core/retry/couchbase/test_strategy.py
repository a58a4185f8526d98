"""The shipped strategies, and checks of a strategy's decision."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tests.core.retry.couchbase.request_cases import Awaits, Refusal, Says, map_entry, retry_request
from tests.core.retry.smithy.cases import Fixed
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import RESOLUTION, Random, exponential

R = couchbase.RetryReason

TERMINAL_TABLE_OF_THE_RFC = {
    "AUTHENTICATION_ERROR": ("AuthenticationFailureException", "AuthenticationFailureException"),
    "TLS_ERROR": ("CouchbaseException", "TlsException"),
    "BUCKET_ACCESS_ERROR": ("CouchbaseException", "BucketAccessException"),
    "SCOPE_NOT_FOUND": ("ScopeNotFoundException", "ScopeNotFoundException"),
    "COLLECTION_NOT_FOUND": ("CollectionNotFoundException", "CollectionNotFoundException"),
}
"""SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)": the RFC's class, and triclinium's more specific class (C32)."""


def test_the_terminal_errors_are_those_of_the_rfc() -> None:
    """The terminal errors are those of the RFC's five reasons; the default strategy returns the one for TLS_ERROR."""
    assert TERMINAL_TABLE_OF_THE_RFC == {
        reason.name: (error.rfc_class.__name__, error.__name__) for reason, error in couchbase.TERMINAL_ERRORS.items()
    }
    assert couchbase.RetryAction.no_retry(
        errors.TlsException
    ) == couchbase.FastFailOnTerminalErrorRetryStrategy().retry_after(retry_request(), R.TLS_ERROR)


def constant(retry_attempts: int, rng: Random, /) -> float:
    """Return 70 ms plus one second per earlier retry."""
    return 0.07 + retry_attempts


@rows(
    "strategy", [couchbase.BestEffortRetryStrategy(constant), couchbase.FastFailOnTerminalErrorRetryStrategy(constant)]
)
def test_the_backoff_can_be_replaced(strategy: couchbase.BestEffortRetryStrategy) -> None:
    """A custom backoff replaces the strategy's delays but not its refusals."""
    assert couchbase.RetryAction(2.07) == strategy.retry_after(retry_request(retry_attempts=2), R.KV_LOCKED)
    assert couchbase.RetryAction(None) == strategy.retry_after(retry_request(retry_attempts=2), R.UNKNOWN)


def test_jitter_comes_from_the_request() -> None:
    """A backoff with jitter draws from the random source of the request, so a run is repeatable."""
    strategy = couchbase.BestEffortRetryStrategy(exponential(jitter=1.0))
    request = retry_request(retry_attempts=4, rng=Fixed(0.75))

    assert couchbase.RetryAction(0.004) == strategy.retry_after(request, R.KV_LOCKED)


LINEAR = map_entry(
    "auto-retry", "temp", retry={"strategy": "linear", "interval": 10, "after": 5, "max-duration": 1500, "ceil": 200}
)
WITHOUT_SCHEDULE = map_entry("auto-retry", "temp")

ASKED = R.KV_ERROR_MAP_RETRY_INDICATED


@rows(
    ("since_first_failure", "expected"),
    [
        (0.0, couchbase.RetryAction(0.01, within=1.5)),
        (1.499, couchbase.RetryAction(0.01, within=1.5 - 1.499)),
        (1.5 - 2 * RESOLUTION, couchbase.RetryAction(0.01, within=1.5 - (1.5 - 2 * RESOLUTION))),
        (1.5 - RESOLUTION / 2, couchbase.RetryAction(None)),
        (1.5, couchbase.RetryAction(None)),
        (1.501, couchbase.RetryAction(None)),
        (99.0, couchbase.RetryAction(None)),
    ],
)
def test_error_map_ends_with_max_duration(since_first_failure: float, expected: couchbase.RetryAction) -> None:
    """Until ``max-duration`` after the first failure, the rest of it limits a delay; then retries are refused (C15)."""
    request = retry_request(retry_attempts=1, since_first_failure=since_first_failure, entry=LINEAR)

    assert expected == couchbase.ErrorMapRetryStrategy().retry_after(request, ASKED)


def test_max_duration_counts_from_the_status() -> None:
    """``max-duration`` counts from the status if the request has the time since then, else from the first failure."""
    early = replace(retry_request(since_first_failure=99.0, entry=LINEAR), since_this_status=0.25)
    late = replace(early, since_this_status=1.5)

    assert couchbase.RetryAction(0.005, within=1.25) == couchbase.ErrorMapRetryStrategy().retry_after(early, ASKED)
    assert couchbase.RetryAction(None) == couchbase.ErrorMapRetryStrategy().retry_after(late, ASKED)


def test_an_unknown_algorithm_is_refused() -> None:
    """If the algorithm is unknown, the retry is refused and the wrapped strategy not called (RFC 0013 "Questions")."""
    otherwise = Says(couchbase.RetryAction.after(0.0))
    entry = map_entry("auto-retry", retry={"strategy": "fibonacci", "interval": 1, "after": 1})
    action = couchbase.ErrorMapRetryStrategy(otherwise).retry_after(retry_request(entry=entry), ASKED)

    assert (None, None, []) == (action.delay, action.error, otherwise.asked)
    assert "fibonacci" in (action.because or "")


@rows("entry", [None, WITHOUT_SCHEDULE])
def test_error_map_without_a_schedule(entry: couchbase.ErrorMapEntry | None) -> None:
    """If the entry has no usable schedule, the default strategy decides (decision C16)."""
    request = retry_request(retry_attempts=3, entry=entry)

    assert couchbase.RetryAction(0.008) == couchbase.ErrorMapRetryStrategy().retry_after(request, ASKED)


def test_the_wrapped_strategy_decides_otherwise() -> None:
    """For any reason but the error map's, the wrapped strategy decides."""
    otherwise = Says(couchbase.RetryAction.no_retry(Refusal))
    request = retry_request(entry=LINEAR)

    assert couchbase.RetryAction.no_retry(Refusal) == couchbase.ErrorMapRetryStrategy(otherwise).retry_after(
        request, R.KV_LOCKED
    )
    assert [(request, R.KV_LOCKED)] == otherwise.asked
    assert couchbase.RetryAction(0.005, within=1.5) == couchbase.ErrorMapRetryStrategy(otherwise).retry_after(
        request, ASKED
    )


@rows(
    "strategy",
    [
        couchbase.BestEffortRetryStrategy(),
        couchbase.FastFailOnTerminalErrorRetryStrategy(),
        couchbase.FailFastRetryStrategy(),
    ],
)
def test_shipped_strategies_ignore_the_schedule(
    strategy: couchbase.BestEffortRetryStrategy | couchbase.FailFastRetryStrategy,
) -> None:
    """All shipped strategies but ErrorMapRetryStrategy ignore the schedule (RFC 0049 "KV Error Map Handling")."""
    plain = strategy.retry_after(retry_request(retry_attempts=3, since_first_failure=99.0), ASKED)
    mapped = strategy.retry_after(retry_request(retry_attempts=3, since_first_failure=99.0, entry=LINEAR), ASKED)

    assert plain == mapped


NO_TIME = [-0.001, -math.inf, math.nan, math.inf, True, "1", [], 1j]
NO_ERROR = [ValueError, Exception, object, "CouchbaseException", errors.CouchbaseException("built"), 1]
NO_BACKOFF = [0.5, "exponential", (0.001, 0.5)]


@rows(
    ("build", "parameter", "values"),
    [
        (couchbase.RetryAction, "delay", NO_TIME),
        (couchbase.RetryAction.after, "delay", [*NO_TIME, None]),
        (lambda value: couchbase.RetryAction.after(0.1, within=value), "within", NO_TIME),
        (couchbase.RetryAction.no_retry, "error", NO_ERROR),
        (functools.partial(couchbase.RetryAction, None), "error", NO_ERROR),
        (couchbase.BestEffortRetryStrategy, "backoff", NO_BACKOFF),
        (couchbase.FastFailOnTerminalErrorRetryStrategy, "backoff", NO_BACKOFF),
    ],
)
def test_invalid_values_are_refused_at_creation(
    build: Callable[[Any], object], parameter: str, values: list[Any]
) -> None:
    """Invalid delays, errors and backoffs are refused when the object is created, not at the first failure."""
    for value in values:
        with refusal_of(parameter, kind=errors.InvalidArgumentException, said=repr(value)):
            build(value)


async def refuse_later(
    nothing: None, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /
) -> couchbase.RetryAction:
    """Return a refusal, asynchronously."""
    return couchbase.RetryAction.no_retry()


def test_is_async() -> None:
    """A strategy is asynchronous if and only if its method is an ``async def``, which may be inherited or wrapped."""

    class Inherited(Awaits):
        pass

    assert couchbase.is_async(Awaits())
    assert couchbase.is_async(Inherited())
    assert couchbase.is_async(SimpleNamespace(retry_after=functools.partial(refuse_later, None)))
    assert not couchbase.is_async(Says(None))
    assert not couchbase.is_async(couchbase.FailFastRetryStrategy())


@rows("otherwise", [42, object(), Awaits()])
def test_error_map_strategy_wraps_synchronous_strategies_only(otherwise: object) -> None:
    """ErrorMapRetryStrategy refuses to wrap an invalid strategy or an asynchronous strategy."""
    with refusal_of("otherwise", kind=errors.InvalidArgumentException):
        couchbase.ErrorMapRetryStrategy(otherwise)  # type: ignore[arg-type]
