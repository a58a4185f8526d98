"""User code that the machine calls: strategies, backoffs and encodings, each behind a stand-in.

While a tape is recorded, a stand-in calls the object of the user and passes the answer to the ``Book``. In a replay,
the book returns the recorded answers. The core's own strategies and backoffs need no stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeVar, cast

from triclinium_core.errors import DecodingFailureException, EncodingFailureException
from triclinium_core.event_tape.values import STRATEGIES, InvalidValue, UserObject
from triclinium_core.retry.backoff import ExponentialBackoff, Random
from triclinium_core.retry.calls import abandon
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, TokenScope, require_strategy
from triclinium_core.retry.couchbase import RetryReason, RetryRequest
from triclinium_core.retry.kinds import DeciderKind, kind_of
from triclinium_core.services.service_request import Encoding, HttpRequest
from triclinium_core.shown import shown
from triclinium_core.transcoding.transcoder import EncodedValue

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

    def number(self) -> int:
        """Return the number of the next object of the user."""
        ...

    def answer(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        """Return the answer of user code, or raise its exception."""
        ...

    async def awaited(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        """Return the answer of asynchronous user code, or raise its exception."""
        ...


class StandIn(UserObject):
    """Base of the stand-ins.

    Args:
        book: book of the tape.
        original: object of the user; None in a replay.
    """

    def __init__(self, name: str, number: int, role: str, book: Book, original: Any = None) -> None:
        super().__init__(name, number, role)
        self._book = book
        self._original = original

    def __repr__(self) -> str:
        return f"<{self.name}>" if self._original is None else shown(self._original)

    def _answer(self, method: str, ask: Ask, note: Convert = _same, again: Convert = _same) -> Any:
        return self._book.answer(f"{self.number} {method}", ask, note, again)


class UserStrategy(StandIn):
    """Synchronous strategy."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> Any:
        """Return the decision of the user's strategy."""
        seen = replace(request, retry_strategy=self._original)
        return self._answer("retry_after", lambda: self._original.retry_after(seen, reason))


class UserAsyncStrategy(StandIn):
    """Asynchronous strategy. The driver awaits it, and its decision is an event."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> Any:
        """Return the decision of the user's strategy."""
        return await self._original.retry_after(replace(request, retry_strategy=self._original), reason)


class _TokenStandIn(StandIn):
    """Base of the stand-ins of token strategies."""

    def abandon(self, *, token: Any) -> None:
        """Release a token, if the user's strategy can. There is no answer."""
        abandon(self._original, token)

    def _acquire(self, token_scope: str | None) -> Any:
        return self._original.acquire_initial_retry_token(token_scope=token_scope)

    def _refresh(self, token: Any, error: Exception) -> Any:
        if isinstance(error, FailedAttemptError):
            error.request = replace(error.request, retry_strategy=self._original)
        return self._original.refresh_retry_token_for_retry(token_to_renew=token, error=error)


class UserTokenStrategy(_TokenStandIn):
    """Synchronous token strategy."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        """Return a token of the user's strategy."""
        return self._answer("acquire", lambda: self._acquire(token_scope), _delay_of_token, _Token)

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
        """Return the next token of the user's strategy."""
        return self._answer("refresh", lambda: self._refresh(token_to_renew, error), _delay_of_token, _Token)

    def record_success(self, *, token: Any) -> None:
        """Record a success with the user's strategy."""
        self._answer("success", lambda: self._original.record_success(token=token), lambda returned: None)


class UserAsyncTokenStrategy(_TokenStandIn):
    """Asynchronous token strategy."""

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        """Return a token of the user's strategy."""
        of = f"{self.number} acquire"
        return await self._book.awaited(of, lambda: self._acquire(token_scope), _delay_of_token, _Token)

    async def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
        """Return the next token of the user's strategy."""
        of = f"{self.number} refresh"
        return await self._book.awaited(of, lambda: self._refresh(token_to_renew, error), _delay_of_token, _Token)

    async def record_success(self, *, token: Any) -> None:
        """Record a success with the user's strategy, which does not change the machine."""
        await self._original.record_success(token=token)


class UserBackoff(StandIn):
    """Backoff of a strategy of the core."""

    def __call__(self, retry_attempts: int, rng: Random, /) -> Any:
        """Return the delay that the user's backoff computes."""
        return self._answer("backoff", lambda: self._original(retry_attempts, rng))


class UserEncoding(StandIn):
    """Encoder of the payloads of a request. A replay encodes again, and compares the size."""

    def __call__(self, encode: Callable[[], HttpRequest]) -> Any:
        """Return the encoded payload, and the duration in seconds."""

        def again(noted: tuple[int, float]) -> tuple[HttpRequest, float]:
            request, (size, seconds) = encode(), noted
            if len(request.body) != size:
                raise ValueError(f"the payload has {len(request.body)} bytes, and on the tape {size}")
            return request, seconds

        return self._answer(
            "encoding", lambda: self._original(encode), lambda made: (len(made[0].body), made[1]), again
        )


class UserTranscoder(StandIn):
    """Transcoder of the user in a replay. The machine only passes it on with a result."""

    def encode(self, value: object, /) -> EncodedValue:
        """Raise EncodingFailureException."""
        raise EncodingFailureException(f"a replay has no {self.name}")

    def decode(self, data: bytes, flags: int, as_type: type[S], /) -> S:
        """Raise DecodingFailureException."""
        raise DecodingFailureException(f"a replay has no {self.name}")


ROLES: Mapping[str, type[StandIn]] = {
    "strategy": UserStrategy,
    "async strategy": UserAsyncStrategy,
    "token strategy": UserTokenStrategy,
    "async token strategy": UserAsyncTokenStrategy,
    "backoff": UserBackoff,
    "encoding": UserEncoding,
    "transcoder": UserTranscoder,
}
"""Stand-ins by their role on a tape."""


def stand_in(book: Book, name: str, number: int, role: str) -> StandIn:
    """Return the stand-in for an object of the user in a replay.

    Raises:
        InvalidValue: there is no such role.
    """
    if role not in ROLES:
        raise InvalidValue(f"{shown(role)} is not a role of user code; expected one of {', '.join(ROLES)}")
    return ROLES[role](name, number, role, book)


def recorded_strategy(strategy: S, book: Book) -> S:
    """Return a strategy whose user code is behind stand-ins; ``strategy`` itself if it has none or is invalid."""
    if isinstance(strategy, TokenScope):
        return replace(strategy, strategy=recorded_strategy(strategy.strategy, book))
    if type(strategy) in STRATEGIES:
        name = STRATEGIES[type(strategy)]
        part = None if name is None else getattr(strategy, name)
        recorded = part if type(part) is ExponentialBackoff or part is None else _recorded_part(part, name, book)
        return strategy if recorded is part else type(strategy)(recorded)  # type: ignore[call-arg]
    try:
        require_strategy(strategy)
        role = _role_of(cast(AnyRetryStrategy, strategy))
    except Exception:  # The machine refuses the strategy.
        return strategy
    return cast(S, ROLES[role](type(strategy).__name__, book.number(), role, book, strategy))


def _recorded_part(part: Any, name: str | None, book: Book) -> object:
    if name == "otherwise":
        return recorded_strategy(part, book)
    return UserBackoff(getattr(part, "__name__", type(part).__name__), book.number(), "backoff", book, part)


def _role_of(strategy: Any) -> str:
    if kind_of(strategy) is DeciderKind.COUCHBASE:
        return "async strategy" if iscoroutinefunction(strategy.retry_after) else "strategy"
    return "async token strategy" if iscoroutinefunction(strategy.refresh_retry_token_for_retry) else "token strategy"


def recorded_encoding(encoding: Encoding, book: Book) -> Encoding:
    """Return an encoder behind a stand-in."""
    return UserEncoding(type(encoding).__name__, book.number(), "encoding", book, encoding)


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
