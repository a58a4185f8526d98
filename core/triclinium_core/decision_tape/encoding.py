"""Encoding of recorded facts as lines of a tape."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from triclinium_core._version import __version__
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.recorder import DecisionRecorder, Fact, RecordedCall, sent_line
from triclinium_core.decision_tape.retry_recording import class_name
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.retry.couchbase import (
    BestEffortRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
)
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy

_NAME = re.compile(lines.NAME_PATTERN)

STATELESS: dict[str, Callable[[], AnyRetryStrategy]] = {
    kind.__name__: kind
    for kind in (BestEffortRetryStrategy, FailFastRetryStrategy, FastFailOnTerminalErrorRetryStrategy)
}
"""Strategies that a replay runs again, by name, if they have their default backoff."""


class TapeEncoder:
    """Encoder of the lines of one tape.

    Args:
        recorder: recorder of the facts.
        unix_time: time of the clock at ``recorder.now``, in seconds since 1970; None if it is unknown.
    """

    def __init__(self, recorder: DecisionRecorder, *, unix_time: float | None = None) -> None:
        self._pseudonym = recorder.pseudonym
        self._names = recorder.names
        self._numbers: dict[str, int] = {}
        """Numbers of names that the tape replaces or cannot contain."""
        self._strategy: tuple[object, lines.StrategyFacts] | None = None
        self._encode = msgspec.json.Encoder().encode
        self._header = lines.Header(
            version=lines.FORMAT,
            core=__version__,
            at=recorder.now,
            unix_time=unix_time,
            names=recorder.names,
            pseudonyms=self._pseudonym is not None,
        )

    def header(self) -> bytes:
        """Return the first line."""
        return self._encode(self._header) + b"\n"

    def facts(self, facts: Iterable[Fact]) -> bytes:
        """Return the lines of facts."""
        return b"".join([self._encode(self._line(fact)) + b"\n" for fact in facts])

    def _line(self, fact: Fact) -> lines.Fact:
        if isinstance(fact, RecordedCall):
            return self._operation(fact)
        if fact.bucket is None:
            return fact
        return msgspec.structs.replace(fact, bucket=self._name(str(fact.bucket)))

    def _operation(self, call: RecordedCall) -> lines.Operation:
        place = call.place
        steps = tuple(call.steps) if call.steps is not None else (sent_line(call),) if call.stream is not None else ()
        return lines.Operation(
            token=call.token,
            name=call.name,
            service=call.service,
            idempotent=call.idempotent,
            strategy=self._strategy_facts(call),
            submitted_at=call.submitted_at,
            deadline=None if call.deadline == math.inf else float(call.deadline),
            ended_at=call.ended_at,
            result=_result(call),
            error=None if call.error is None else class_name(call.error),
            abandoned=call.abandoned,
            bucket=self._name(place.bucket),
            scope=self._name(place.scope),
            collection=self._name(place.collection),
            index=None if isinstance(place, Keyspace) else self._name(place.index),
            key=self._pseudonym(call.key) if self._pseudonym is not None and call.key else None,
            began_in_flight=call.began_in_flight and bool(steps),
            steps=steps,
            omitted=call.omitted,
        )

    def _name(self, name: str | None) -> str | int | None:
        """Return a name, or its number if the tape replaces names or cannot contain this name."""
        if name is None:
            return None
        if self._names and _NAME.match(name):
            return name
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def _strategy_facts(self, call: RecordedCall) -> lines.StrategyFacts:
        if self._strategy is None or self._strategy[0] is not call.strategy:
            self._strategy = call.strategy, strategy_facts(call.strategy)
        facts = self._strategy[1]
        return msgspec.structs.replace(facts, is_async=True) if call.is_async else facts


def end_line(reason: lines.EndReason, *, at: float, lost: int) -> bytes:
    """Return the last line of a tape.

    Args:
        at: monotonic seconds.
        lost: number of facts until then that are not on the tape.
    """
    return msgspec.json.encode(lines.End(at=at, reason=reason, lost=lost)) + b"\n"


def _result(call: RecordedCall) -> Literal["completed", "failed", "abandoned", "open"]:
    if call.ended_at is None:
        return "open"
    if call.abandoned is not None:
        return "abandoned"
    return "completed" if call.error is None else "failed"


def strategy_facts(strategy: object) -> lines.StrategyFacts:
    """Return the line of a strategy. Run no code of its class: the caller may be another thread."""
    kind = type(strategy)
    name = class_name(kind)
    built_in = STATELESS.get(name)
    if built_in is not kind:
        return lines.StrategyFacts(name)
    given, default = vars(strategy), vars(STATELESS[name]())
    has_types = given.keys() == default.keys() and all(type(given[key]) is type(default[key]) for key in default)
    return lines.StrategyFacts(name, is_default=has_types and given == default)
