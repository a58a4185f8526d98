"""Decisions on a failed request: the strategy's decision, limited by rules that hold for every strategy.

A request whose attempt may have been applied is sent again only if it is idempotent. A strategy is not consulted about
a reason that is always retried. No delay goes past the deadline.

Source: SDK-RFC 0049 "Retry Orchestration".
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.retry.backoff import RESOLUTION, cap, controlled
from triclinium_core.retry.couchbase.strategy import RetryAction, RetryRequest
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.values import lean
from triclinium_core.shown import shown


@lean
@dataclass(frozen=True, slots=True)
class Retry:
    """Wait ``delay`` seconds, then send the request again if ``dispatches``; otherwise fail it without sending it."""

    delay: float
    dispatches: bool
    times_out: bool = False
    """Whether the delay was cut at the deadline. The request then fails with a timeout instead of the error with which
    the attempt failed."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Fail the request with the exception class ``error``; None for the class that belongs to the failure."""

    error: type[errors.CouchbaseException] | None = None
    because: str | None = None
    """Text in which the strategy explains its refusal; None without one."""


@dataclass(frozen=True, slots=True)
class TimeOut:
    """Fail the request with a timeout, because its deadline has already passed."""


Verdict = Retry | Refuse | TimeOut


def decide_without_strategy(request: RetryRequest, reason: RetryReason) -> Verdict | None:
    """Return the decision if it does not depend on the strategy, or None if the strategy must be consulted."""
    if request.remaining <= RESOLUTION:
        return TimeOut()
    if reason.always_retry:
        # RFC 0049 §Controlled Backoff for Always Retry; the counter is shared with strategy retries (decision C3).
        return judge(request, reason, RetryAction.after(controlled(request.retry_attempts)))
    return None


def judge(request: RetryRequest, reason: RetryReason, answer: object) -> Verdict:
    """Return the decision on ``request`` after a strategy has returned ``answer``.

    Raises:
        TypeError: ``answer`` is not a RetryAction.
    """
    if not isinstance(answer, RetryAction):
        if inspect.iscoroutine(answer):
            answer.close()
            raise TypeError("the retry strategy returned a coroutine; make retry_after itself an `async def`")
        raise TypeError(
            f"the retry strategy returned {shown(answer)}; it must return a RetryAction, such as RetryAction.no_retry()"
        )
    if request.remaining <= RESOLUTION:
        # Decision C23: an asynchronous strategy may return its decision after the deadline.
        return TimeOut()
    # RFC 0049 §Network Time: to avoid losing data, fail an operation that is not idempotent unless the reason permits a
    # retry.
    if answer.delay is None or not (request.idempotent or reason.allows_non_idempotent_retry):
        return Refuse(answer.error, answer.because)
    limit = request.remaining
    if answer.within is not None and answer.within < limit:
        limit = answer.within
    delay, dispatches = cap(answer.delay, limit)
    return Retry(delay, dispatches, not dispatches and limit == request.remaining)
