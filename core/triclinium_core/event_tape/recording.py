"""Client machine that records each call that can change it on an event tape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import msgspec

from triclinium_core._version import __version__
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import couchbase, neutral
from triclinium_core.error_context import ErrorContext
from triclinium_core.event_tape import lines
from triclinium_core.event_tape.digest import digest_of, digest_of_context
from triclinium_core.event_tape.user_code import Ask, Convert, recorded_encoding, recorded_strategy
from triclinium_core.event_tape.values import encode_value
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.permits import AsyncPermit
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest

Write = Callable[[bytes], None]
"""Function that receives each line with its line break. It must not raise."""

_ENCODER = msgspec.json.Encoder()
_CALLS = (couchbase.OperationSubmitted, couchbase.RequestSubmitted)


class RecordedMachine(ClientMachine):
    """``ClientMachine`` that passes ``write`` one line for each call that can change it. It decides in the same way.

    The tape contains data and credentials. The machine replaces user code with stand-ins that call it (``user_code``).

    Args:
        options: options of the client.
        rng: random source.
        write: function that receives the lines. It must not raise.

    Raises:
        InvalidArgumentException: the connection string or another option is invalid. Nothing was written.
    """

    def __init__(self, options: ClientOptions, *, rng: Random, write: Write) -> None:
        self._book = _Recorder(rng)
        self._write = write
        options = replace(options, retry_strategy=recorded_strategy(options.retry_strategy, self._book))
        super().__init__(options, rng=self._book)
        _, drawn = self._book.take()
        self._note(lines.Header(lines.FORMAT, __version__, lines.NOTICE, encode_value(options), drawn))

    def handle(self, event: couchbase.Event, now: float) -> Sequence[couchbase.Action]:
        """Process ``event`` as ``ClientMachine`` does, and record it. The exceptions are the same.

        A ``KeyboardInterrupt`` in user code stops the machine in the middle of the event, and ends the recording.
        """
        event = _recorded_event(event, self._book)
        written, at, digest = encode_value(event), encode_value(now), tuple[str, ...]()
        self._book.take()  # Drop the answers since the last line: the machine got none of them.
        try:
            actions = super().handle(event, now)
            digest = digest_of(actions, self.wakeup)
        except Exception as error:
            digest = f"raised {type(error).__name__}", *digest_of((), self.wakeup)
            raise
        except BaseException as error:
            self._end(f"{type(error).__name__} interrupted the client")
            raise
        finally:
            answers, drawn = self._book.take()
            self._note(lines.EventLine(at, written, digest, answers, drawn))
        return [self._recorded_action(action) for action in actions]

    def error_context(self, token: neutral.Token, now: float) -> ErrorContext | None:
        """Return the error context as ``ClientMachine`` does, and record the call, because it may change the state."""
        context = super().error_context(token, now)
        digest = digest_of_context(context)
        self._note(lines.CallLine("error_context", encode_value(now), digest, encode_value(token)))
        return context

    def last_reports(self, now: float | None = None) -> Sequence[couchbase.ReportTelemetry]:
        """Return and clear the reports as ``ClientMachine`` does, and record the call."""
        reports = super().last_reports(now)
        self._note(lines.CallLine("last_reports", encode_value(now), digest_of(reports, self.wakeup)))
        return reports

    def _note(self, line: lines.Header | lines.Line) -> None:
        encoded = _ENCODER.encode(line)
        if lines.is_too_large(encoded):
            self._end(f"an event of {len(encoded)} bytes is too large for a line")
        else:
            self._write(encoded + b"\n")

    def _end(self, reason: str) -> None:
        self._write(_ENCODER.encode(lines.EndLine(reason)) + b"\n")
        self._write = _discard

    def _recorded_action(self, action: couchbase.Action) -> couchbase.Action:
        """Return the action with a permit that records the answers of its asynchronous strategy."""
        if isinstance(action, neutral.AcquirePermit) and isinstance(action.permit, AsyncPermit):
            return msgspec.structs.replace(action, permit=_RecordedPermit(action.permit, action.token, self))
        if isinstance(action, neutral.ConsultStrategy) and isinstance(action.strategy, AsyncPermit):
            return msgspec.structs.replace(action, strategy=_RecordedPermit(action.strategy, action.token, self))
        return action

    async def awaited(self, token: neutral.Token, call: Awaitable[RetryAction]) -> RetryAction:
        """Return the result of a call of a permit, and record its beginning and the answer of the strategy."""
        self._note(lines.PermitLine(token))
        try:
            return await call
        finally:
            # No other task runs between the answer of the strategy and this line.
            answers, _ = self._book.take()
            if answers:
                self._note(lines.PermitLine(token, answers))


class _RecordedPermit(AsyncPermit):
    """Permit that the driver awaits, and that records the answers of its strategy."""

    def __init__(self, permit: AsyncPermit, token: neutral.Token, machine: RecordedMachine) -> None:
        super().__init__(permit.strategy, None)
        self._permit = permit
        self._operation = token
        self._machine = machine

    async def acquire(self) -> RetryAction:
        return await self._machine.awaited(self._operation, self._permit.acquire())

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        return await self._machine.awaited(self._operation, self._permit.retry_after(request, reason))


class _Recorder:
    """Book that calls user code and keeps the answers and the random numbers for the next line."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._answers: list[lines.Answer] = []
        self._drawn: list[object] = []
        self._is_in_user_code = False
        self.numbers: Iterator[int] = count(1)

    def take(self) -> tuple[tuple[lines.Answer, ...], tuple[object, ...]]:
        """Return and forget the answers and the random numbers since the last call."""
        taken = tuple(self._answers), tuple(self._drawn)
        self._answers, self._drawn = [], []
        return taken

    def random(self) -> float:
        value = self._rng.random()
        if not self._is_in_user_code:
            self._drawn.append(encode_value(value))
        return value

    def answer(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        self._is_in_user_code = True
        try:
            given = ask()
        except Exception as error:
            self._answers.append(lines.Answer(of, raised=encode_value(error)))
            raise
        finally:
            self._is_in_user_code = False
        self._answers.append(lines.Answer(of, encode_value(note(given))))
        return given

    async def awaited(self, of: str, ask: Ask, note: Convert, again: Convert) -> Any:
        try:
            given = await ask()
        except Exception as error:
            self._answers = [lines.Answer(of, raised=encode_value(error))]
            raise
        self._answers = [lines.Answer(of, encode_value(note(given)))]
        return given


def _recorded_event(event: Any, book: _Recorder) -> Any:
    """Return the event with stand-ins for its user code."""
    if type(event) is couchbase.OperationsSubmitted:
        return couchbase.OperationsSubmitted(tuple(_recorded_event(each, book) for each in event.submissions))
    if type(event) not in _CALLS:
        return event
    changes: dict[str, object] = {}
    if event.retry_strategy is not None:
        changes["retry_strategy"] = recorded_strategy(event.retry_strategy, book)
    if callable(getattr(event, "encoding", None)):
        changes["encoding"] = recorded_encoding(event.encoding, book)
    return msgspec.structs.replace(event, **changes) if changes else event


def _discard(line: bytes) -> None:
    """Drop a line after the end of the recording."""
