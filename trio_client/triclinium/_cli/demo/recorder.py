"""Recorder of the events of the demo in order, as the client and the node report them.

The client reports through two of its loggers, which every program can read. The node reports through its logs of
commands and requests.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from triclinium._cli.demo.scenarios import DemoScenario
from triclinium._cluster_driver.log import connection_logger, retry_logger
from triclinium_core.error_context import ErrorContext
from triclinium_core.testing import FakeNode, FakeNodeOptions, LoggedCommand, LoggedRequest, NodeAction


@dataclass(frozen=True, slots=True)
class NodeTook:
    """Event: the node received a command, or a request to a service. ``at`` is Trio's time, like all times here."""

    at: float
    command: LoggedCommand | LoggedRequest


@dataclass(frozen=True, slots=True)
class ConnectionReported:
    """Event: the client reported a change of a connection."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class ClientDecided:
    """Event: the client reported its decision about a failure."""

    at: float
    key: str | None
    age: float
    """Seconds from the call to the failure; the client writes the record a little later."""
    reason: str
    delay: float | None
    """Seconds until the retry, even of one that the deadline prevents; None without a retry."""
    dispatches: bool = True
    """Whether the retry starts before the deadline. True without a retry."""


Entry = NodeTook | ConnectionReported | ClientDecided


class RecordedNode(FakeNode):
    """Fake node that records each command and each request as soon as the node has logged it."""

    def __init__(self, options: FakeNodeOptions, entries: list[Entry]) -> None:
        super().__init__(options)
        self._entries = entries

    def bytes_received(self, connection: int, data: bytes, now: float) -> Sequence[NodeAction]:
        """Handle the data of a client, and record its commands or requests."""
        commands, requests = len(self.command_log), len(self.request_log)
        actions = super().bytes_received(connection, data, now)
        taken: Sequence[LoggedCommand | LoggedRequest] = self.command_log[commands:] or self.request_log[requests:]
        self._entries += [NodeTook(trio.current_time(), command) for command in taken]
        return actions


class Recorder(logging.Handler):
    """Log handler that records the client's log among the events of the node."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.client_has_decided = trio.Event()
        """Event that is set at the client's first decision, or when the first operation ends."""
        self._news = trio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Store a log record of ``triclinium.retry`` as a decision, any other as an event of a connection."""
        at = trio.current_time()
        if record.name != retry_logger.name:
            self.entries.append(ConnectionReported(at, _news(record)))
            self._news.set()
            return
        fields = vars(record)
        delay, dispatches = fields.get("delay"), fields.get("dispatches", True)
        self.entries.append(ClientDecided(at, fields["key"], fields["age"], fields["reason"], delay, dispatches))
        self.client_has_decided.set()

    async def wait_for_news(self) -> None:
        """Wait for the next event of a connection."""
        self._news = trio.Event()
        await self._news.wait()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record what the client logs during a block."""
        levels = {retry_logger: logging.DEBUG, connection_logger: logging.INFO}
        before = {logger: logger.level for logger in levels}
        for logger, level in levels.items():
            logger.setLevel(level)
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger, level in before.items():
                logger.removeHandler(self)
                logger.setLevel(level)


def _news(record: logging.LogRecord) -> str:
    """Return the text of a connection's record without the node's name, because the demo has only one node."""
    if not isinstance(record.args, tuple):
        return record.getMessage()
    node, text = record.args
    return str(text).removeprefix(f"{node}: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Result of one scenario. ``began`` and ``ended`` are Trio's time, as in the entries."""

    scenario: DemoScenario
    began: float
    ended: float
    entries: tuple[Entry, ...]
    outcome: str
    message: str
    """Message of the exception; empty for a success."""
    answer: object
    context: ErrorContext | None
    retries_by_reason: Mapping[str, int]
    """Number of retries by reason, as the client's statistics count them during the operation."""
    prepared: int = 0
    """Number of statements that the node planned during the operation."""

    @property
    def decisions(self) -> list[ClientDecided]:
        """Decisions in the client's log about this operation."""
        key = self.scenario.logged_key
        return [entry for entry in self.entries if isinstance(entry, ClientDecided) and entry.key == key]

    @property
    def delays(self) -> list[float]:
        """Seconds before each retry, as the client logged them."""
        return [decision.delay for decision in self.decisions if decision.delay is not None]

    @property
    def frames(self) -> list[LoggedCommand | LoggedRequest]:
        """Requests of the operation that reached the node."""
        taken = [entry.command for entry in self.entries if isinstance(entry, NodeTook)]
        return [command for command in taken if self.is_about(command)]

    @property
    def applied(self) -> int:
        """Number of times the node applied the operation."""
        return sum(frame.applied for frame in self.frames)

    def is_about(self, command: LoggedCommand | LoggedRequest) -> bool:
        """Return whether ``command`` belongs to the scenario's operation."""
        scenario = self.scenario
        if isinstance(command, LoggedRequest):
            return command.service is scenario.operation.travels_as
        return command.opcode == scenario.operation.travels_as and command.key == scenario.key.encode()
