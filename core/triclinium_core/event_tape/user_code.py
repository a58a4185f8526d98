"""User code that the machine calls: strategies, backoffs and encodings, each behind a stand-in.

While a tape is recorded, a stand-in calls the object of the user and passes the answer to the ``Book``. In a replay,
the book returns the recorded answers. The core's own strategies and backoffs need no stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast

from triclinium_core.event_tape.values import NAME_SIZE_MAX, STRATEGIES, InvalidValue, UserObject
from triclinium_core.retry.backoff import ExponentialBackoff, Random
from triclinium_core.retry.calls import abandon
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.retry.combined.strategies import TokenScope, require_strategy
from triclinium_core.retry.couchbase import RetryReason, RetryRequest, strategy as couchbase
from triclinium_core.retry.kinds import DeciderKind, kind_of
from triclinium_core.retry.smithy import protocols as smithy
from triclinium_core.services.service_request import Encoding, HttpRequest
from triclinium_core.shown import printable, shown, total_repr

S = TypeVar("S")
Ask = Callable[[], Any]
Convert = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


class Book(Protocol):
    """Answers of user code: the recorder writes them, a replay reads them.

    ``of`` names the object by its number, and the method. ``ask`` calls the user code. ``note`` returns the value of
    the answer for the tape, and ``again`` returns the answer for such a value.
    """

    numbers: Iterator[int]
    """Numbers of the next objects of the user."""

    def answer(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        """Return the answer of user code, or raise its exception."""
        ...

    async def awaited(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        """Return the answer of asynchronous user code, or raise its exception."""
        ...


class StandIn(UserObject):
    """Base of the stand-ins, which ``stand_in`` and ``_recorded`` create.

    Args:
        book: book of the tape.
        original: object of the user; None in a replay.
    """

    def __init__(self, name: str, number: int, role: str, book: Book, original: Any = None) -> None:
        super().__init__(name, number, role)
        self._book = book
        self._original = original
        self.passed: object = original
        """Strategy that the caller passed; ``original`` may be a part of it."""

    @total_repr
    def __repr__(self) -> str:
        return f"<{self.name}>" if self._original is None else shown(self._original)

    def _answer(self, method: str, ask: Ask, note: Convert = _same, again: Convert = _same) -> Any:
        return self._book.answer(f"{self.number} {method}", ask, note, again)

    def _seen(self, request: RetryRequest) -> RetryRequest:
        """Return the request as the user's strategy sees it without a tape."""
        return replace(request, retry_strategy=self.passed)


class _Strategy(StandIn):
    """Synchronous strategy."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> Any:
        return self._answer("retry_after", lambda: self._original.retry_after(self._seen(request), reason))


class _AsyncStrategy(StandIn):
    """Asynchronous strategy. The driver awaits it, and its decision is an event."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> Any:
        return await self._original.retry_after(self._seen(request), reason)


class _AnyTokenStrategy(StandIn):
    """Base of the token strategies."""

    def abandon(self, *, token: Any) -> None:
        """Release a token, if the user's strategy has a synchronous ``abandon``. Record no answer."""
        abandon(self._original, token)

    def _acquisition(self, token_scope: str | None) -> tuple[str, Ask, Convert, Convert]:
        ask = lambda: self._original.acquire_initial_retry_token(token_scope=token_scope)  # noqa: E731 - one line
        return f"{self.number} acquire", ask, _delay_of_token, _Token

    def _refresh(self, token: Any, error: Exception) -> tuple[str, Ask, Convert, Convert]:
        def ask() -> Any:
            if isinstance(error, FailedAttemptError):
                error.request = self._seen(error.request)
            return self._original.refresh_retry_token_for_retry(token_to_renew=token, error=error)

        return f"{self.number} refresh", ask, _delay_of_token, _Token


class _TokenStrategy(_AnyTokenStrategy):
    """Synchronous token strategy."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        return self._book.answer(*self._acquisition(token_scope))

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
        return self._book.answer(*self._refresh(token_to_renew, error))

    def record_success(self, *, token: Any) -> None:
        self._answer("success", lambda: self._original.record_success(token=token), lambda _: None)


class _AsyncTokenStrategy(_AnyTokenStrategy):
    """Asynchronous token strategy. Recording a success does not change the machine."""

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        return await self._book.awaited(*self._acquisition(token_scope))

    async def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
        return await self._book.awaited(*self._refresh(token_to_renew, error))

    async def record_success(self, *, token: Any) -> None:
        await self._original.record_success(token=token)


class _Backoff(StandIn):
    """Backoff of a strategy of the core."""

    def __call__(self, retry_attempts: int, rng: Random, /) -> Any:
        return self._answer("backoff", lambda: self._original(retry_attempts, rng))


class _Encoding(StandIn):
    """Encoder of the payloads of a request. A replay encodes again, and compares the size."""

    def __call__(self, encode: Callable[[], HttpRequest]) -> Any:
        def again(noted: tuple[int, float]) -> tuple[HttpRequest, float]:
            request, (size, seconds) = encode(), noted
            if len(request.body) != size:
                raise ValueError(f"the size of the payload is {len(request.body)}, but on the tape it is {size}")
            return request, seconds

        note = lambda made: (len(made[0].body), made[1])  # noqa: E731 - a pair with ``again``
        return self._answer("encoding", lambda: self._original(encode), note, again)


class _Transcoder(StandIn):
    """Transcoder in a replay. The machine passes it on with a result, and calls no method."""

    def decode(self, *arguments: object) -> Any:
        raise AssertionError(f"the machine called {self.name}, whose answers are not on the tape")

    encode = decode


_ROLES: Mapping[str, type[StandIn]] = {
    "strategy": _Strategy,
    "async strategy": _AsyncStrategy,
    "token strategy": _TokenStrategy,
    "async token strategy": _AsyncTokenStrategy,
    "backoff": _Backoff,
    "encoding": _Encoding,
    "transcoder": _Transcoder,
}
"""Stand-ins by their role on a tape."""


@lru_cache(256)
def _class_of(role: str, name: str, qualified: str) -> type[StandIn]:
    """Return a class with the name of the user's class, because errors and timelines show it."""
    return type(name, (_ROLES[role],), {"__qualname__": qualified})


def stand_in(book: Book, name: str, number: int, role: str) -> StandIn:
    """Return the stand-in for an object of the user in a replay.

    Raises:
        InvalidValue: there is no such role, or the name is not a string.
    """
    if role not in _ROLES or not isinstance(name, str):
        raise InvalidValue(
            f"{shown(role)} is not a role of user code, or its object has no name; expected one of {', '.join(_ROLES)}"
        )
    return _class_of(role, printable(name, NAME_SIZE_MAX), name)(name, number, role, book)


def _recorded(role: str, original: Any, book: Book) -> Any:
    kind = type(original)
    made_of = _class_of(role, printable(kind.__name__, NAME_SIZE_MAX), kind.__qualname__)
    return made_of(kind.__name__, next(book.numbers), role, book, original)


def recorded_strategy(strategy: S, book: Book, passed: object = None) -> S:
    """Return a strategy whose user code is behind stand-ins; ``strategy`` itself if it has none or is invalid.

    Args:
        passed: strategy that the caller passed, if ``strategy`` is a part of it.
    """
    if isinstance(strategy, TokenScope):
        return replace(strategy, strategy=recorded_strategy(strategy.strategy, book))
    passed = strategy if passed is None else passed
    kind: Any = type(strategy)
    if kind in STRATEGIES:
        part = getattr(strategy, STRATEGIES[kind] or "", None)
        if part is None or type(part) is ExponentialBackoff:
            return strategy
        is_backoff = STRATEGIES[kind] == "_backoff"
        recorded = _recorded("backoff", part, book) if is_backoff else recorded_strategy(part, book, passed)
        return strategy if recorded is part else cast(S, kind(recorded))
    try:
        require_strategy(strategy)
        role = _role_of(strategy)
    except Exception:  # The machine refuses an invalid strategy.
        return strategy
    recorded = _recorded(role, strategy, book)
    recorded.passed = passed
    return cast(S, recorded)


def _role_of(strategy: Any) -> str:
    if kind_of(strategy) is DeciderKind.COUCHBASE:
        return "async strategy" if couchbase.is_async(strategy) else "strategy"
    return "async token strategy" if smithy.is_async(strategy) else "token strategy"


def recorded_encoding(encoding: Encoding, book: Book) -> Encoding:
    """Return an encoder behind a stand-in."""
    return cast(Encoding, _recorded("encoding", encoding, book))


def _delay_of_token(token: Any) -> object:
    """Return what the machine reads from a token: its delay, in a tuple; the empty tuple without one."""
    try:
        return (token.retry_delay,)
    except Exception:
        return ()


class _Token:
    """Token of a strategy of the user in a replay."""

    def __init__(self, delay: tuple[float, ...]) -> None:
        if delay:
            (self.retry_delay,) = delay
