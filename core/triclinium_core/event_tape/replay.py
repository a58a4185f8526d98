"""Replay of an event tape: a new machine gets the recorded events, and its digests are compared with the tape."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from types import coroutine
from typing import Any, cast

import msgspec

from triclinium_core._version import __version__
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import couchbase, neutral
from triclinium_core.decision_tape.reading import TapeError, numbered_lines
from triclinium_core.event_tape import lines
from triclinium_core.event_tape.digest import digest_of, digest_of_context
from triclinium_core.event_tape.user_code import Ask, Convert, stand_in
from triclinium_core.event_tape.values import InvalidValue, decode_value
from triclinium_core.options import ClientOptions
from triclinium_core.shown import one_line, shown

_BAD_JSON = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError)
"""Exceptions of the decoder, also for text that is not UTF-8 and for deep nesting."""


@dataclass(frozen=True, slots=True)
class Difference:
    """First call of the machine whose digest differs from the tape."""

    line: int
    """Number of the line, from 1."""
    call: str
    """Name of the event or the method, and the time."""
    recorded: tuple[str, ...]
    """Digest on the tape."""
    replayed: tuple[str, ...]
    """Digest of the machine now. Its last entries name the answers and random numbers that the machine did not use."""

    def __str__(self) -> str:
        pairs = zip_longest(self.recorded, self.replayed, fillvalue="nothing")
        recorded, replayed = next((one_line(one), one_line(other)) for one, other in pairs if one != other)
        return f"line {self.line}, {self.call}: the tape has {recorded!r}, and the machine now {replayed!r}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """Result of a replay."""

    calls: int
    """Number of calls of the machine that agree with the tape."""
    difference: Difference | None
    """First difference; None if all calls agree."""
    core: str
    """Version of the core that recorded the tape. Another version may decide differently for a good reason."""
    ending: str | None = None
    """Reason why the recording ended before the client; None if it did not."""


def replay(chunks: Iterable[bytes], *, make: Callable[..., ClientMachine] = ClientMachine) -> Replayed:
    """Replay an event tape until its end or the first difference. The memory in use does not depend on its length.

    Args:
        chunks: bytes of the tape, in pieces of any size.
        make: makes the machine from options and ``rng``, for example one with an observer.

    Raises:
        TapeError: the tape cannot be read. The message names the line.
    """
    numbered = numbered_lines(chunks, lines.LINE_SIZE_MAX)
    header = _header(*next(numbered, (1, b"")))
    book = _Replayer()
    try:
        options = decode_value(header.options, book.resolve)
        if not isinstance(options, ClientOptions):
            raise InvalidValue(f"options are a {type(options).__name__}; expected ClientOptions")
        book.load((), header.random)
        machine = make(options, rng=book)
    except Exception as error:
        raise TapeError(1, f"no machine can be made from the header: {one_line(shown(error))}") from error
    replayer, calls = _Replay(machine, book), 0
    for number, text in numbered:
        line = _read(text, number, lines.Line)
        if isinstance(line, lines.EndLine):
            return Replayed(calls, None, header.core, one_line(line.reason))
        if isinstance(line, lines.PermitLine):
            replayer.permit_changed(line, number)
            continue
        difference = replayer.call(line, number)
        if difference is not None:
            return Replayed(calls, difference, header.core)
        calls += 1
    return Replayed(calls, None, header.core)


class _Kind(msgspec.Struct, frozen=True):
    """Part of the header that every version of the format has."""

    tape: str
    version: int


def _header(number: int, text: bytes) -> lines.Header:
    kind = _read(text, number, _Kind)
    if kind.tape != "events":
        raise TapeError(1, f"it begins a tape of the kind {shown(kind.tape)}; expected 'events'")
    if kind.version > lines.FORMAT:
        raise TapeError(
            1,
            f"the tape has version {kind.version} of the format, and this is {__version__} of triclinium-core, which reads "
            f"version {lines.FORMAT}; install a newer one",
        )
    header: lines.Header = _read(text, number, lines.Header)
    return header


def _read(text: bytes, number: int, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except _BAD_JSON as error:
        what = "a line" if kind is lines.Line else "the header"
        raise TapeError(number, f"expected {what} of an event tape: {one_line(str(error))}") from error


class _Replay:
    """Machine under replay, and the permits that wait for an asynchronous strategy."""

    def __init__(self, machine: ClientMachine, book: _Replayer) -> None:
        self._machine = machine
        self._book = book
        self._permits: dict[int, Generator[Any, Any, None]] = {}
        """Newest call of a permit, by operation, until its decision or the end of the operation."""

    def call(self, line: lines.EventLine | lines.CallLine, number: int) -> Difference | None:
        """Repeat one call. Return the difference from the tape, if there is one."""
        book, now = self._book, _decoded(line.now, self._book, number)
        if isinstance(line, lines.CallLine):
            token, name = _decoded(line.token, book, number), str(line.method)
            replayed = self._attempt(lambda: self._method(line.method, token, now))
        else:
            event = _decoded(line.event, book, number)
            book.load(_answers(line.answers, book, number), line.random)
            name, replayed = type(event).__name__, self._attempt(lambda: self._event(event, now))
        replayed = (*replayed, *book.unused())
        return None if replayed == line.digest else Difference(number, f"{name} at {shown(now)}", line.digest, replayed)

    def _attempt(self, call: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        try:
            return call()
        except Exception as error:
            return f"raised {type(error).__name__}", *digest_of((), self._machine.wakeup)

    def _method(self, method: str, token: Any, now: Any) -> tuple[str, ...]:
        if method == "error_context":
            return digest_of_context(self._machine.error_context(token, now))
        return digest_of(self._machine.last_reports(now), self._machine.wakeup)

    def _event(self, event: Any, now: Any) -> tuple[str, ...]:
        actions = self._machine.handle(event, now)
        if isinstance(event, neutral.StrategyDecided | couchbase.OperationAbandoned):
            self._forget(event.token)
        for action in actions:
            if isinstance(action, neutral.AcquirePermit | neutral.ConsultStrategy):
                self._forget(action.token)
                self._permits[action.token] = _call(action)
            elif isinstance(action, couchbase.FailOperation):
                self._forget(action.token)
        return digest_of(actions, self._machine.wakeup)

    def permit_changed(self, line: lines.PermitLine, number: int) -> None:
        """Begin to await a permit, or continue with the answer of its strategy. Ignore an operation that has ended."""
        self._book.load(_answers(line.answers, self._book, number), ())
        call = self._permits.get(line.token) if isinstance(line.token, int) else None
        if call is not None:
            with suppress(Exception, StopIteration):
                # The result of the call, or its exception, is the next ``StrategyDecided`` on the tape.
                call.send(None)

    def _forget(self, token: Any) -> None:
        call = self._permits.pop(token, None)
        if call is not None:
            call.close()


def _call(action: neutral.AcquirePermit | neutral.ConsultStrategy) -> Generator[Any, Any, None]:
    """Yield until the driver has the decision of a strategy."""
    if isinstance(action, neutral.AcquirePermit):
        yield from action.permit.acquire().__await__()
    else:
        yield from action.strategy.retry_after(action.request, action.reason).__await__()


Answers = Iterable[tuple[str, object, Exception | None]]


def _decoded(data: object, book: _Replayer, number: int) -> Any:
    try:
        return decode_value(data, book.resolve)
    except InvalidValue as error:
        raise TapeError(number, str(error)) from error


def _answers(
    answers: Iterable[lines.Answer], book: _Replayer, number: int
) -> Iterator[tuple[str, object, Exception | None]]:
    for each in answers:
        raised = _decoded(each.raised, book, number)
        if raised is not None and not isinstance(raised, Exception):
            raise TapeError(number, f"{shown(each.of)} raised {shown(raised)}; expected an exception")
        yield each.of, _decoded(each.gave, book, number), raised


class _Unrecorded(Exception):
    """The machine requested an answer that the tape does not have."""


class _Replayer:
    """Book that answers from the tape."""

    def __init__(self) -> None:
        self._answers: deque[tuple[str, object, Exception | None]] = deque()
        self._random: deque[object] = deque()
        self._missing: list[str] = []

    def load(self, answers: Answers, random: Iterable[object]) -> None:
        """Replace the answers and random numbers by those of the next line."""
        self._answers, self._random, self._missing = deque(answers), deque(random), []

    def unused(self) -> tuple[str, ...]:
        """Return what the machine requested without an answer on the tape, and what it did not request."""
        left = [f"no call of {of}" for of, _, _ in self._answers]
        if self._random:
            left.append(f"{len(self._random)} random numbers fewer")
        return (*self._missing, *left)

    def resolve(self, name: str, number: int, role: str) -> object:
        return stand_in(self, name, number, role)

    def number(self) -> int:
        return 0

    def random(self) -> float:
        if not self._random:
            self._missing.append("a further random number")
            return 0.0
        return cast(float, self._random.popleft())

    def answer(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        recorded, gave, raised = self._answers.popleft() if self._answers else ("nothing", None, None)
        if recorded != of:
            self._missing.append(f"a call of {of} instead of {recorded}")
            raise _Unrecorded(of)
        if raised is not None:
            raise raised
        return again(gave)

    async def awaited(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        while not self._answers:
            await _until_continued()
        return self.answer(of, ask, note, again)


@coroutine
def _until_continued() -> Generator[None, None, None]:
    """Wait for the line with the answer."""
    yield
