"""Timelines of the operations and requests of a selection, or of a connection, in one pass over a tape."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge, nlargest
from typing import NamedTuple

from msgspec import to_builtins
from msgspec.structs import replace

from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.decision_tape import lines
from triclinium_core.timeline.rows import NetworkFact, Row, Source, in_ms, named, network_row, step_row

RECENT_MAX = 5_000
"""Maximum number of events of the network in memory: those of one minute if 20 nodes reconnect every second."""

HELD_MAX = 10_000
"""Maximum number of operations that ended at the same instant and wait for the other events of that instant."""

ROWS_MAX = 5_000
"""Maximum number of rows of a connection. Newer events replace the oldest."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Operations and requests to show: those that fulfil all conditions."""

    token: int | None = None
    key: str | None = None
    """Pseudonym of the key; None for any key."""
    failed: bool = False
    """Only those that failed, or whose caller stopped waiting at a time limit."""
    troubled: bool = False
    """Only those that ``failed`` selects, or whose attempts did not all succeed."""
    slowest: int | None = None
    """Maximum number of operations: only the slowest, slowest first. None for all, in the order of the tape."""

    def includes(self, operation: lines.Operation) -> bool:
        """Return whether an operation fulfils the conditions, except ``slowest``."""
        has_failed = operation.result == "failed" or operation.abandoned is AbandonReason.TIMEOUT
        return (
            self.token in (None, operation.token)
            and self.key in (None, operation.key)
            and (has_failed or not self.failed)
            and (has_failed or not self.troubled or had_trouble(operation))
        )


def had_trouble(operation: lines.Operation) -> bool:
    """Return whether an attempt of an operation did not succeed."""
    return any(not isinstance(step, lines.Sent) and step.decision.kind != "complete" for step in operation.steps)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Timeline of an operation, a request or a connection."""

    title: str
    notes: tuple[str, ...]
    """Further facts in words."""
    rows: tuple[Row, ...]
    """Rows, oldest first."""
    subject: Mapping[str, object]
    """Facts about the operation or connection as JSON values, without its events."""
    succeeded: bool
    """Whether the operation completed, or the connection was not lost."""

    @property
    def began_at(self) -> float:
        """Time of the first row in monotonic seconds."""
        return self.rows[0].at

    def to_json(self) -> dict[str, object]:
        """Return the timeline as JSON values, with the times of rows in seconds since the first row."""
        rows = [
            {"after": round(row.at - self.began_at, 9), "source": row.source, "text": row.text, "decided": row.decided}
            | ({} if row.fact is None else {"fact": to_builtins(row.fact)})
            for row in self.rows
        ]
        return {**self.subject, "notes": list(self.notes), "rows": rows}


# -- Operations and requests.


def timelines(facts: Iterable[lines.Fact], selection: Selection) -> Iterator[Timeline]:
    """Yield the timelines of the operations and requests in a selection. Memory use does not grow with the tape.

    Args:
        facts: facts in the order of the tape.
    """
    lives: Iterable[_Life] = _lives(facts, selection)
    if selection.slowest is not None:
        lives = nlargest(selection.slowest, lives, key=lambda life: life.ended_at - life.operation.submitted_at)
    return map(_timeline, lives)


class _Life(NamedTuple):
    """Operation with the events of the network during its life, each with its node."""

    operation: lines.Operation
    ended_at: float
    """For an open operation, the time of the newest fact."""
    events: tuple[tuple[NetworkFact, str | None], ...]
    is_complete: bool


def _lives(facts: Iterable[lines.Fact], selection: Selection) -> Iterator[_Life]:
    recent, held, newest = _RecentEvents(), deque[lines.Operation](), -math.inf
    for fact in facts:
        at = fact.ended_at if isinstance(fact, lines.Operation) else fact.at
        # Events of the instant at which an operation ended may be after the operation on the tape.
        while held and ((at is not None and at > newest) or len(held) > HELD_MAX):
            yield recent.life(held.popleft(), newest)
        newest = newest if at is None else at
        if isinstance(fact, lines.Operation):
            if selection.includes(fact):
                held.append(fact)
        elif not isinstance(fact, lines.End):
            recent.add(fact)
    yield from (recent.life(operation, newest) for operation in held)


class _RecentEvents:
    """Newest events of connections, circuit breakers and maps, each with its node."""

    def __init__(self) -> None:
        self._events: deque[tuple[NetworkFact, str | None]] = deque(maxlen=RECENT_MAX)
        self._nodes = OrderedDict[int, str | None]()
        """Nodes of the newest streams, for events that name only the stream."""
        self._dropped_at = -math.inf

    def add(self, fact: NetworkFact) -> None:
        """Add an event, and drop the oldest at the limit."""
        node = getattr(fact, "node", None)
        if isinstance(fact, lines.Connection):
            node = self._nodes[fact.stream] = node or self._nodes.pop(fact.stream, None)
            if len(self._nodes) > RECENT_MAX:
                self._nodes.popitem(last=False)
        if len(self._events) == RECENT_MAX:
            self._dropped_at = self._events[0][0].at
        self._events.append((fact, node))

    def life(self, operation: lines.Operation, newest: float) -> _Life:
        """Return the life of an operation, with the events that may have affected it."""
        began_at, until = operation.submitted_at, newest if operation.ended_at is None else operation.ended_at
        nodes = {getattr(step, "node", None) for step in operation.steps} - {None}
        streams = {getattr(step, "stream", None) for step in operation.steps} - {None}
        events: deque[tuple[NetworkFact, str | None]] = deque()
        for fact, node in reversed(self._events):
            if fact.at < began_at:
                break
            # An operation that reached no node may have waited for any node.
            is_of_all = not nodes or isinstance(fact, lines.ClusterMap)
            is_near = fact.bucket in (None, operation.bucket) if is_of_all else node in nodes
            if fact.at <= until and (is_near or getattr(fact, "stream", None) in streams):
                events.appendleft((fact, node))
        return _Life(operation, until, tuple(events), self._dropped_at < began_at)


_RESULTS: Mapping[str, str] = {
    "completed": "gets the result",
    "failed": "gets {error}",
    "abandoned": "stops waiting: {abandoned}",
    "open": "still waits at the end of the tape",
}


def _timeline(life: _Life) -> Timeline:
    of = life.operation
    place = named(of.bucket, of.scope, of.collection, of.index)
    idempotent = "idempotent" if of.idempotent else "not idempotent"
    deadline = "no deadline" if of.deadline is None else f"deadline after {in_ms(of.deadline - of.submitted_at)}"
    notes = [f"{of.service}, {idempotent}, {of.strategy.name}, {deadline}"]
    if of.key is not None:
        notes.append(f"key {of.key}")
    if of.omitted:
        notes.append(f"{of.omitted} later events of this operation are not on the tape")
    if not life.is_complete:
        notes.append(f"only the newest {RECENT_MAX} events of connections are shown")
    result = _RESULTS[of.result].format(error=of.error or "an error", abandoned=of.abandoned or "no reason")
    rows = (
        Row(of.submitted_at, Source.CALLER, f"calls {of.name}"),
        *merge((network_row(*event) for event in life.events), _steps(of), key=lambda row: row.at),
        Row(life.ended_at, Source.CALLER, result),
    )
    subject = {"operation": to_builtins(replace(of, steps=())), "seconds": round(life.ended_at - of.submitted_at, 9)}
    title = f"{of.name}{f' in {place}' if place else ''}, token {of.token}"
    return Timeline(title, tuple(notes), rows, subject, of.result == "completed")


def _steps(operation: lines.Operation) -> Iterator[Row]:
    node = None
    for step in operation.steps:
        node = step.node if isinstance(step, lines.Sent) else node
        yield step_row(step, node, operation.strategy.name)


# -- Connections.


def connection_timeline(facts: Iterable[lines.Fact], stream: int) -> Timeline | None:
    """Return the timeline of a stream: opening, bootstrap, circuit breaker, failed attempts, loss. None if it is empty.

    Args:
        facts: facts in the order of the tape.
    """
    node: str | None = None
    bucket: lines.Name | None = None
    is_open, attempts = False, 0
    rows = deque[Row](maxlen=ROWS_MAX)
    for fact in facts:
        match fact:
            case lines.Connection() if fact.stream == stream:
                node, is_open = fact.node or node, fact.event != "stream_lost"
                bucket = bucket if fact.bucket is None else fact.bucket
                rows.append(network_row(fact, node))
            case lines.Breaker() if is_open and (fact.node, fact.bucket) == (node, bucket):
                rows.append(network_row(fact, node))
            case lines.Operation():
                attempts += sum(isinstance(step, lines.Sent) and step.stream == stream for step in fact.steps)
                rows.extend(_failures(fact, stream))
    if not rows:
        return None
    counted = f"{attempts} attempt{'' if attempts == 1 else 's'}"
    notes = [f"{counted} by operations on the tape; only failed attempts are shown"]
    notes += [f"only the newest {ROWS_MAX} events are shown"] if len(rows) == ROWS_MAX else []
    subject = {"connection": {"stream": stream, "node": node, "attempts": attempts}}
    title = f"connection to {node or 'an unknown node'}, stream {stream}"
    return Timeline(title, tuple(notes), tuple(sorted(rows, key=lambda row: row.at)), subject, is_open)


def _failures(operation: lines.Operation, stream: int) -> Iterator[Row]:
    """Yield a row for each attempt on the stream that did not succeed."""
    # A response that completes the request may be undecodable, and then the operation fails.
    sent, has_failed = None, operation.result == "failed"
    for step in operation.steps:
        if isinstance(step, lines.Sent):
            sent = step
        elif sent is not None and sent.stream == stream and (has_failed or step.decision.kind != "complete"):
            row, sent = step_row(step, sent.node, operation.strategy.name), None
            yield row._replace(text=f"{operation.name}, token {operation.token}: {row.text}")
