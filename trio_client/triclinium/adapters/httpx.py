"""Retries inside ``httpx`` clients that run on trio: ``AsyncClient(transport=RetryTransport())``. Needs the extra ``httpx``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, TracebackType
from typing import Self

import trio

from triclinium._retry.calls import RetriedCall
from triclinium._retry.strategies import StandardRetryStrategy
from triclinium._trio_run import not_on_trio
from triclinium_core.checks import check_type
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.calls.history import attempts_of
from triclinium_core.retry.calls.http_rules import HttpFailure, HttpRequestFacts, HttpRetryRules
from triclinium_core.retry.calls.reports import RetryHook
from triclinium_core.retry.calls.terms import CallTerms
from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.protocols import AnyRetryStrategy
from triclinium_core.shown import shown

try:
    import httpx
except ImportError as _missing:
    raise ImportError("the package httpx is missing; run: pip install 'triclinium[httpx]'") from _missing

__all__ = ["ATTEMPTS", "FailedAnswer", "HttpRetryRules", "RetryTransport", "host_of"]

ATTEMPTS = "triclinium_attempts"
"""The key of ``response.extensions`` under which the failed attempts of the request stand, oldest first: a tuple of
:py:class:`triclinium.AttemptRecord`, empty where the first attempt was good. Where the response itself is a failure, it is
the last of them, and its ``ending`` tells why no other attempt followed."""

# fmt: off
_FAILURES: Mapping[type[Exception], HttpFailure] = {
    # No connection, so nothing was sent.
    httpx.ConnectError:        HttpFailure(is_unsent=True),
    httpx.ConnectTimeout:      HttpFailure(is_unsent=True, is_timeout=True),
    httpx.PoolTimeout:         HttpFailure(is_unsent=True, is_timeout=True),
    # Any part may have arrived, and may have been acted upon.
    httpx.ReadError:           HttpFailure(),
    httpx.WriteError:          HttpFailure(),
    httpx.CloseError:          HttpFailure(),
    httpx.RemoteProtocolError: HttpFailure(),
    httpx.ReadTimeout:         HttpFailure(is_timeout=True),
    httpx.WriteTimeout:        HttpFailure(is_timeout=True),
}
"""What is known of a request by how it failed. Whatever is not here fails the same way again: a proxy that refuses, a scheme
that nobody speaks, a request that is none."""
# fmt: on


class FailedAnswer(Exception):
    """Stands for an answer among the attempts of a request; it is never raised."""

    def __init__(self, status_code: int, info: ErrorInfo) -> None:
        super().__init__(f"{status_code} {httpx.codes.get_reason_phrase(status_code)}".rstrip())
        self.status_code: int = status_code
        """Of the answer."""
        self.info: ErrorInfo = info
        """What a strategy was told of it; ``retry_after`` is what the answer asked for."""


def host_of(request: httpx.Request) -> str | None:
    """Return the host that a request is for: the scope of its quota, unless a transport is told another one."""
    return request.url.host


class RetryTransport(httpx.AsyncBaseTransport):
    """Sends requests through another transport, again where that does no harm and a strategy permits it.

    Sent again are idempotent requests after 408, 425, 429, 502, 503 and 504 and after failures of the transport, and any
    request of which nothing was sent. A body that is a stream or a form with files can be sent only once; read it into
    memory first where it should be sent again (``await request.aread()``). What breaks while the body of an answer is being
    read is the reader's to retry, with :py:func:`triclinium.retry` around it.

    The end is what ``httpx`` does without retries: the last answer, whatever its status, or the last error. The attempts are
    in ``response.extensions["triclinium_attempts"]`` or ``triclinium.attempts_of(error)``. If the next attempt could not
    begin before the deadline of the cancel scopes around, the end comes at once. Timeouts of ``httpx`` are for each attempt.

    An answer that is given up for another attempt is closed unread before the wait, so it holds no connection of a pool.

    Cancellation: never retried. The strategy is not told of the attempt, as of one that failed for good.

    Args:
        transport: what sends; an ``httpx.AsyncHTTPTransport()`` unless given. It is closed with this one.
        strategy: decides, and has the quota: share it among all that talk to the same service. A
            ``StandardRetryStrategy`` of its own unless given: three attempts.
        rules: which requests, answers and waits are in question.
        token_scope: separates the quotas of one strategy, by request; ``host_of`` unless given.
        hooks: functions that are told of each retry and of its end.
        wall_clock: seconds since 1970-01-01 UTC, for a ``Retry-After`` that is a date; ``time.time`` unless given.

    Raises:
        InvalidArgumentException: an argument is wrong.
    """

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        strategy: AnyRetryStrategy | None = None,
        rules: HttpRetryRules | None = None,
        token_scope: Callable[[httpx.Request], str | None] | None = None,
        hooks: Sequence[RetryHook] = (),
        wall_clock: Callable[[], float] | None = None,
    ) -> None:
        check_type(transport, "transport", httpx.AsyncBaseTransport, NoneType)
        check_type(rules, "rules", HttpRetryRules, NoneType)
        for name, function in (("token_scope", token_scope), ("wall_clock", wall_clock)):
            if function is not None and not callable(function):
                raise InvalidArgumentException(f"{name}={function!r} must be a function", parameter=name)
        self._strategy = StandardRetryStrategy() if strategy is None else strategy
        self._rules = HttpRetryRules() if rules is None else rules
        self._token_scope = host_of if token_scope is None else token_scope
        self._hooks = tuple(hooks) if isinstance(hooks, list) else hooks
        self._wall_clock = time.time if wall_clock is None else wall_clock
        # Strategy and hooks are looked at where they are used, and here for the first time.
        CallTerms[object](self._strategy, hooks=self._hooks)
        self._transport = httpx.AsyncHTTPTransport() if transport is None else transport

    def __repr__(self) -> str:
        return f"<RetryTransport over {type(self._transport).__name__}: {shown(self._strategy)}>"

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._transport.__aexit__(exc_type, exc_value, traceback)

    async def aclose(self) -> None:
        """Close the transport that sends."""
        await self._transport.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer to a request; ``httpx`` calls this.

        Raises:
            httpx.TransportError: the last attempt ended without an answer.
            InvalidArgumentException: the strategy, or ``token_scope``, answered nonsense.
            RuntimeError: it is not called on trio.
        """
        if not trio.lowlevel.in_trio_task():
            raise not_on_trio("RetryTransport sleeps and counts as trio does; use its client")
        facts = _facts_of(request)
        call = RetriedCall(self._terms(request, facts))
        await call.begin()
        while True:
            try:
                response = await self._transport.handle_async_request(request)
            except httpx.TransportError as error:
                if not await call.goes_on(error, None):
                    raise
            else:
                if not await self._goes_on_after(response, call, facts):
                    return response
            await call.sleep()

    async def _goes_on_after(self, response: httpx.Response, call: RetriedCall, facts: HttpRequestFacts) -> bool:
        """Tell whether another attempt follows ``response``, which is closed then."""
        status, rules = response.status_code, self._rules
        try:
            if rules.is_success(status):
                response.extensions[ATTEMPTS] = call.records
                await call.succeed()
                return False
            retry_after = response.headers.get("retry-after")
            answer = FailedAnswer(status, rules.judge_answer(facts, status, retry_after, self._wall_clock()))
            if not await call.goes_on(answer, None):
                response.extensions[ATTEMPTS] = attempts_of(answer)
                return False
        except BaseException:
            # Nobody will get it.
            await response.aclose()
            raise
        try:
            # Unread: a body may be without end. Another connection costs little, and may lead to another server.
            await response.aclose()
        except BaseException:
            call.abandon()
            raise
        return True

    def _terms(self, request: httpx.Request, facts: HttpRequestFacts) -> CallTerms[httpx.Response]:
        def info_of(error: Exception) -> bool | ErrorInfo:
            if isinstance(error, FailedAnswer):
                return error.info
            failure = next((_FAILURES[kind] for kind in type(error).__mro__ if kind in _FAILURES), None)
            return False if failure is None else self._rules.judge_failure(facts, failure)

        scope, name = self._token_scope(request), f"{request.method} {request.url.host}"
        return CallTerms(self._strategy, on=info_of, token_scope=scope, name=name, hooks=self._hooks)


def _facts_of(request: httpx.Request) -> HttpRequestFacts:
    # Of other streams nobody knows whether they can be read twice; those of forms with files cannot where a file is a pipe.
    return HttpRequestFacts(
        method=request.method,
        has_idempotency_key="idempotency-key" in request.headers,
        is_replayable=isinstance(request.stream, httpx.ByteStream),
    )
