"""Replay of an event tape: a new machine gets the recorded events, and its digests are compared with the tape."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import repeat, zip_longest
from types import coroutine
from typing import Any, cast

import msgspec

from triclinium_core._version import __version__
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import couchbase, neutral
from triclinium_core.decision_tape.reading import TapeError, decoded, numbered_lines
from triclinium_core.event_tape import lines
from triclinium_core.event_tape.digest import digest_of, digest_of_context
from triclinium_core.event_tape.user_code import Ask, Convert, stand_in
from triclinium_core.event_tape.values import InvalidValue, decode_value
from triclinium_core.options import ClientOptions
from triclinium_core.shown import one_line, shown

_HEADER = msgspec.json.Decoder(lines.Header)
_LINE = msgspec.json.Decoder(lines.Line)


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
    """Digest of the machine now. Its last entries name the answers and random numbers that the machine did not use, or
    that are not on the tape."""

    def around(self, before: int = 3, after: int = 100) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the entries of both digests around the first that differs, so that a long digest is quick to show."""
        pairs = zip_longest(self.recorded, self.replayed)
        first = next(at for at, (one, other) in enumerate(pairs) if one != other)
        shown_entries = slice(max(0, first - before), first + after)
        return self.recorded[shown_entries], self.replayed[shown_entries]

    def __str__(self) -> str:
        recorded, replayed = (one_line(part[0]) if part else "nothing" for part in self.around(0, 1))
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
    """Reason why the recording ended before the client; None if it did not, or if a difference ended the replay."""


def replay(chunks: Iterable[bytes], *, make: Callable[..., ClientMachine] = ClientMachine) -> Replayed:
    """Replay an event tape until its end or the first difference. Keep only one line of the tape in memory.

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
            raise InvalidValue(f"options are of type {type(options).__name__}; expected ClientOptions")
        book.load((), header.random)
        machine = make(options, rng=book)
    except Exception as error:
        raise TapeError(1, f"no machine can be made from the header: {one_line(shown(error))}") from error
    replayer, calls = _Replay(machine, book), 0
    for number, text in numbered:
        if lines.is_too_large(text):
            raise TapeError(
                number,
                f"it has more than {lines.PARTS_MAX} commas and opening brackets, the maximum for a line of a tape;"
                " the file is damaged or is not a tape",
            )
        line = decoded(_LINE, number, text, "a line of an event tape")
        if isinstance(line, lines.EndLine):
            return Replayed(calls, None, header.core, one_line(line.reason))
        try:
            difference = replayer.repeat(line, number)
        except InvalidValue as error:
            raise TapeError(number, str(error)) from error
        if difference is not None:
            return Replayed(calls, difference, header.core)
        calls += not isinstance(line, lines.PermitLine)
    return Replayed(calls, None, header.core)


class _Version(msgspec.Struct, frozen=True):
    """Part of the header that every version of the format has."""

    version: int = 0


def _header(number: int, text: bytes) -> lines.Header:
    wanted = "the header of an event tape"
    version = decoded(msgspec.json.Decoder(_Version), number, text, wanted).version
    if version > lines.FORMAT:
        raise TapeError(
            number,
            f"the tape has version {version} of the format, but triclinium-core {__version__} reads only versions "
            f"up to {lines.FORMAT}; install a newer one",
        )
    return decoded(_HEADER, number, text, wanted)


class _Replay:
    """Machine under replay, and the permits that wait for an asynchronous strategy."""

    def __init__(self, machine: ClientMachine, book: _Replayer) -> None:
        self._machine = machine
        self._book = book
        self._permits: dict[int, Generator[Any, Any, object]] = {}
        """Newest call of a permit, by operation, until its decision or the end of the operation."""

    def repeat(self, line: lines.EventLine | lines.CallLine | lines.PermitLine, number: int) -> Difference | None:
        """Repeat one call. Return the difference from the tape, if there is one.

        Raises:
            InvalidValue: a value in the line is invalid.
        """
        if isinstance(line, lines.PermitLine):
            self._continue(line)
            return None
        now = self._book.decoded(line.now)
        if isinstance(line, lines.CallLine):
            name, call = str(line.method), partial(self._call, line.method, self._book.decoded(line.token), now)
            self._book.load((), ())
        else:
            event = self._book.decoded(line.event)
            name, call = type(event).__name__, partial(self._handle, event, now)
            self._book.load(line.answers, line.random)
        try:
            replayed = call()
        except Exception as error:
            replayed = f"raised {type(error).__name__}", *digest_of((), self._machine.wakeup)
        replayed = (*replayed, *self._book.unused())
        return None if replayed == line.digest else Difference(number, f"{name} at {shown(now)}", line.digest, replayed)

    def _call(self, method: str, token: Any, now: Any) -> tuple[str, ...]:
        if method == "error_context":
            return digest_of_context(self._machine.error_context(token, now))
        return digest_of(self._machine.last_reports(now), self._machine.wakeup)

    def _handle(self, event: Any, now: Any) -> tuple[str, ...]:
        actions = self._machine.handle(event, now)
        if isinstance(event, neutral.StrategyDecided | couchbase.OperationAbandoned):
            self._forget(event.token)
        for action in actions:
            if isinstance(action, couchbase.FailOperation | neutral.AcquirePermit | neutral.ConsultStrategy):
                self._forget(action.token)
                if not isinstance(action, couchbase.FailOperation):
                    self._permits[action.token] = _decision(action)
        return digest_of(actions, self._machine.wakeup)

    def _continue(self, line: lines.PermitLine) -> None:
        """Begin to await a permit, or continue with the answer of its strategy. Ignore an operation that has ended."""
        self._book.load(line.answers, ())
        call = self._permits.get(line.token) if isinstance(line.token, int) else None
        if call is not None:
            # If the call ends, its result or exception is in a later ``StrategyDecided`` on the tape.
            with suppress(Exception):
                call.send(None)

    def _forget(self, token: Any) -> None:
        call = self._permits.pop(token, None)
        if call is not None:
            call.close()


def _decision(action: neutral.AcquirePermit | neutral.ConsultStrategy) -> Generator[Any, Any, object]:
    """Yield until the driver has the decision of a strategy. A call that never begins creates no coroutine."""
    if isinstance(action, neutral.AcquirePermit):
        return (yield from action.permit.acquire().__await__())
    return (yield from action.strategy.retry_after(action.request, action.reason).__await__())


class _Unrecorded(Exception):
    """The machine requested an answer that the tape does not have."""


class _Replayer:
    """Book that answers from the tape."""

    def __init__(self) -> None:
        self._answers: deque[lines.Answer] = deque()
        self._random: deque[object] = deque()
        self._missing: list[str] = []
        self.numbers: Iterator[int] = repeat(0)

    def load(self, answers: Iterable[lines.Answer], random: Iterable[object]) -> None:
        """Replace the answers and random numbers with those of the next line."""
        self._answers, self._random, self._missing = deque(map(self._answer, answers)), deque(random), []

    def _answer(self, answer: lines.Answer) -> lines.Answer:
        raised = self.decoded(answer.raised)
        if raised is not None and not isinstance(raised, Exception):
            raise InvalidValue(f"{shown(answer.of)} raised {shown(raised)}; expected an exception")
        return lines.Answer(answer.of, self.decoded(answer.gave), raised)

    def unused(self) -> tuple[str, ...]:
        """Return descriptions of the answers and random numbers that the tape lacks, and of those that are unused."""
        fewer = [f"{len(self._random)} random numbers fewer"] if self._random else []
        return (*self._missing, *(f"no call of {answer.of}" for answer in self._answers), *fewer)

    def decoded(self, data: object) -> Any:
        return decode_value(data, self.resolve)

    def resolve(self, name: str, number: int, role: str) -> object:
        return stand_in(self, name, number, role)

    def random(self) -> float:
        if not self._random:
            self._missing.append("a further random number")
            return 0.0
        return cast(float, self._random.popleft())

    def answer(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        recorded = self._answers.popleft() if self._answers else lines.Answer("nothing")
        if recorded.of != of:
            self._missing.append(f"a call of {of} instead of {recorded.of}")
            raise _Unrecorded(of)
        if isinstance(recorded.raised, Exception):
            raise recorded.raised
        return again(recorded.gave)

    async def awaited(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        while not self._answers:
            await _until_continued()
        return self.answer(of, ask, note, again)


@coroutine
def _until_continued() -> Generator[None, None, None]:
    """Wait for the line with the answer."""
    yield
