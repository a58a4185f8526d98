"""Retries inside an HTTP client, for libraries with the transport interface of ``httpx``.

The adapters of libraries are :py:mod:`triclinium.adapters.httpx` and :py:mod:`triclinium.adapters.httpx2`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import ModuleType, NoneType, TracebackType
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import trio

from triclinium._retry.calls import RetriedCall
from triclinium._retry.strategies import StandardRetryStrategy
from triclinium._trio_run import not_on_trio
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.calls import CallTerms, HttpFailure, HttpRequestFacts, HttpRetryRules, RetryHook, attempts_of
from triclinium_core.retry.checks import check_type
from triclinium_core.retry.smithy import AnyRetryStrategy, ErrorInfo
from triclinium_core.shown import shown, total_repr

__all__ = ["ATTEMPTS", "FailedAnswer", "HttpRetryTransport", "HttpTransportLibrary", "host_of"]

ATTEMPTS = "triclinium_attempts"
"""Key of the failed attempts in ``response.extensions``. The value is a tuple of
:py:class:`triclinium.retries.AttemptRecord`, oldest first, and empty if the first attempt succeeded. If the response
itself is a failure, the last record is its attempt, whose ``ending`` gives the reason why no other attempt followed."""

# fmt: off
_FAILURES: Mapping[str, HttpFailure] = {
    # The library had no connection, so it sent nothing.
    "ConnectError":        HttpFailure(is_unsent=True),
    "ConnectTimeout":      HttpFailure(is_unsent=True, is_timeout=True),
    "PoolTimeout":         HttpFailure(is_unsent=True, is_timeout=True),
    # The service may have received and processed any part of the request.
    "ReadError":           HttpFailure(),
    "WriteError":          HttpFailure(),
    "CloseError":          HttpFailure(),
    "RemoteProtocolError": HttpFailure(),
    "ReadTimeout":         HttpFailure(is_timeout=True),
    "WriteTimeout":        HttpFailure(is_timeout=True),
}
"""State of the request after each error. Errors that are not listed are not retried, because they would occur again: a
proxy that refuses, an unknown scheme, an invalid request."""
# fmt: on


class _Url(Protocol):
    @property
    def host(self) -> str: ...


class _Request(Protocol):
    @property
    def method(self) -> str: ...
    @property
    def url(self) -> _Url: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def stream(self) -> object: ...


class _Response(Protocol):
    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def extensions(self) -> MutableMapping[str, object]: ...
    async def aclose(self) -> None: ...


RequestT = TypeVar("RequestT", bound=_Request)
RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
ResponseT = TypeVar("ResponseT", bound=_Response)
ResponseT_co = TypeVar("ResponseT_co", covariant=True)


class _Transport(Protocol[RequestT_contra, ResponseT_co]):
    async def __aenter__(self) -> object: ...
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...
    async def handle_async_request(self, request: RequestT_contra) -> ResponseT_co: ...
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class HttpTransportLibrary:
    """Classes of an HTTP library that the transport uses."""

    transport: type
    """Base class of its asynchronous transports."""
    bytes_stream: type
    """Class of a body that can be sent twice. Other bodies may not be readable again: a form may contain a file that is
    a pipe."""
    transport_error: type[Exception]
    """Base class of the errors that a transport raises instead of a response."""
    failures: Mapping[type[Exception], HttpFailure]
    """State of the request after each error."""

    @classmethod
    def of(cls, library: ModuleType) -> HttpTransportLibrary:
        """Return the library of a module that has the names of ``httpx``."""
        failures = {getattr(library, name): failure for name, failure in _FAILURES.items()}
        return cls(library.AsyncBaseTransport, library.ByteStream, library.TransportError, failures)


class FailedAnswer(Exception):
    """Error response among the attempts of a request; it is never raised."""

    def __init__(self, status_code: int, info: ErrorInfo) -> None:
        known = {status.value: status.phrase for status in HTTPStatus}
        super().__init__(f"{status_code} {known.get(status_code, '')}".rstrip())
        self.status_code: int = status_code
        """Status code of the response."""
        self.info: ErrorInfo = info
        """Information for the strategy; ``retry_after`` is the delay that the response requested."""
        self.error_type: str = str(status_code)
        """``error.type`` of the span, according to OpenTelemetry's conventions for HTTP."""


def host_of(request: _Request) -> str | None:
    """Return the host of a request, the default scope of its quota."""
    return request.url.host


async def _let_go(response: _Response, error: BaseException) -> None:
    """Close an unused response. If closing fails, add a note to ``error``, the reason why the response is unused."""
    try:
        await response.aclose()
    except Exception as failure:
        # Catch any type: libraries do not translate errors of closing, and the caller's result does not depend on them.
        error.add_note(f"closing the response failed: {failure!r}")


class HttpRetryTransport(ABC, Generic[RequestT, ResponseT]):
    """Transport that sends requests through another transport, and retries if this is safe and the strategy permits it.

    By default, the transport retries idempotent requests after 408, 425, 429, 502, 503 and 504 and after timeouts and
    network failures of the wrapped transport, and any request of which nothing was sent. It sends a body that is a
    stream or a form with files only once; to make it repeatable, read it into memory first with
    ``await request.aread()``. The transport does not retry if reading the body of a response fails. The reader can,
    with :py:func:`triclinium.retry` around the request.

    The result is that of the library without retries: the last response, whatever its status, or the last error. The
    failed attempts are in ``response.extensions["triclinium_attempts"]`` or ``triclinium.retries.attempts_of(error)``.
    If the next attempt could not begin before the deadline of the surrounding cancel scopes, the call ends immediately.
    The library's timeouts apply to each attempt.

    A response that is dropped for another attempt is closed unread before the wait, so it occupies no connection of a
    pool. If closing fails, the next attempt follows anyway, and the record of the failed one has a note.

    Cancellation: never retried. The strategy gets no report of the attempt.

    Args:
        transport: sends the requests; default: an ``AsyncHTTPTransport()`` of the library. It is closed with this
            transport.
        strategy: decides about retries and holds the quota: share it among all clients of a service. Default: a new
            ``StandardRetryStrategy``, with three attempts.
        rules: which requests, responses and delays qualify for retries.
        token_scope: returns the quota scope of a request, for separate quotas in one strategy; default: ``host_of``.
        hooks: functions that receive a report of each retry and, after a failed attempt, of the end of the request.
        wall_clock: returns seconds since 1970-01-01 UTC, for a ``Retry-After`` that is a date; default: ``time.time``.

    Raises:
        ArgumentError: an argument is wrong.
    """

    library: ClassVar[HttpTransportLibrary]
    """Library whose requests are sent."""

    @staticmethod
    @abstractmethod
    def default_transport() -> _Transport[RequestT, ResponseT]:
        """Return the transport to use if none is given."""

    def __init__(
        self,
        transport: _Transport[RequestT, ResponseT] | None = None,
        *,
        strategy: AnyRetryStrategy | None = None,
        rules: HttpRetryRules | None = None,
        token_scope: Callable[[RequestT], str | None] | None = None,
        hooks: Sequence[RetryHook] = (),
        wall_clock: Callable[[], float] | None = None,
    ) -> None:
        check_type(transport, "transport", self.library.transport, NoneType)
        check_type(rules, "rules", HttpRetryRules, NoneType)
        for name, function in (("token_scope", token_scope), ("wall_clock", wall_clock)):
            if function is not None and not callable(function):
                raise ArgumentError(f"{name}={shown(function)} must be a function or None", parameter=name)
        self._strategy = StandardRetryStrategy() if strategy is None else strategy
        self._rules = HttpRetryRules() if rules is None else rules
        self._token_scope = host_of if token_scope is None else token_scope
        self._hooks = tuple(hooks) if isinstance(hooks, list) else hooks
        self._wall_clock = time.time if wall_clock is None else wall_clock
        # Check the strategy and the hooks now, so that a wrong one fails here and not in the first request.
        CallTerms[object](self._strategy, hooks=self._hooks)
        self._transport = self.default_transport() if transport is None else transport

    @total_repr
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
        """Close the wrapped transport."""
        await self._transport.aclose()

    async def handle_async_request(self, request: RequestT) -> ResponseT:
        """Return the response to a request. The library calls this.

        Raises:
            TransportError: the library's; the last attempt ended without a response.
            ArgumentError: the strategy, or ``token_scope``, returned an invalid value.
            RuntimeError: the caller is not a task of trio.
        """
        if not trio.lowlevel.in_trio_task():
            raise not_on_trio("RetryTransport uses the clock of trio; use its client")
        facts = self._facts_of(request)
        call = RetriedCall(self._terms(request, facts))
        try:
            await call.begin()
            while True:
                try:
                    response = await self._transport.handle_async_request(request)
                except self.library.transport_error as error:
                    if not await call.goes_on(error, None):
                        raise
                else:
                    if not await self._goes_on_after(response, call, facts):
                        return response
                await call.sleep()
        except BaseException as error:
            call.end(error)
            raise

    async def _goes_on_after(self, response: ResponseT, call: RetriedCall, facts: HttpRequestFacts) -> bool:
        """Return whether another attempt follows ``response``. If so, the response is closed."""
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
                call.end(answer)
                return False
        except BaseException as error:
            # The caller gets the error instead of the response.
            await _let_go(response, error)
            raise
        try:
            # Close the response unread: its body may be endless. Another connection costs little, and may reach
            # another server.
            await _let_go(response, answer)
        except BaseException:
            call.abandon()
            raise
        return True

    def _terms(self, request: RequestT, facts: HttpRequestFacts) -> CallTerms[ResponseT]:
        failures = self.library.failures

        def info_of(error: Exception) -> bool | ErrorInfo:
            if isinstance(error, FailedAnswer):
                return error.info
            failure = next((failures[kind] for kind in type(error).__mro__ if kind in failures), None)
            return False if failure is None else self._rules.judge_failure(facts, failure)

        scope, name = self._token_scope(request), f"{request.method} {request.url.host}"
        return CallTerms(self._strategy, on=info_of, token_scope=scope, name=name, hooks=self._hooks)

    def _facts_of(self, request: RequestT) -> HttpRequestFacts:
        return HttpRequestFacts(
            method=request.method,
            has_idempotency_key="idempotency-key" in request.headers,
            is_replayable=isinstance(request.stream, self.library.bytes_stream),
        )
