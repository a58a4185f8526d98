"""Recorder of all events of the demo, in order, from both sides.

The client's side is what it reports for everybody: the records of its two loggers. The node's side is its command log.
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
    """The node took up a command, or a request to one of its services. ``at`` is Trio's time, here as everywhere in this file."""

    at: float
    command: LoggedCommand | LoggedRequest


@dataclass(frozen=True, slots=True)
class ConnectionTold:
    """The client told what happened to a connection."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class ClientDecided:
    """The client told what it decided about a failure."""

    at: float
    key: str | None
    age: float
    """Seconds from the call to what was decided about; writing the log takes its time."""
    reason: str
    delay: float | None
    """Seconds until the retry; None where there is none."""
    dispatches: bool = True
    """Whether the request is sent again after the delay, if there is one."""


Entry = NodeTook | ConnectionTold | ClientDecided


class RecordedNode(FakeNode):
    """A fake node that writes down each command, and each request, as soon as it is in its logs."""

    def __init__(self, options: FakeNodeOptions, entries: list[Entry]) -> None:
        super().__init__(options)
        self._entries = entries

    def bytes_received(self, connection: int, data: bytes, now: float) -> Sequence[NodeAction]:
        """Take up what a client sent, and write it down."""
        commands, requests = len(self.command_log), len(self.request_log)
        actions = super().bytes_received(connection, data, now)
        taken: Sequence[LoggedCommand | LoggedRequest] = self.command_log[commands:] or self.request_log[requests:]
        self._entries += [NodeTook(trio.current_time(), command) for command in taken]
        return actions


class Recorder(logging.Handler):
    """Writes down what the client tells, among what the node does."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.client_has_decided = trio.Event()
        """Set at the client's first decision."""
        self._news = trio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Note what the client says; a retry or a refusal by the attributes that ``triclinium.retry`` promises."""
        at = trio.current_time()
        if record.name != retry_logger.name:
            self.entries.append(ConnectionTold(at, _news(record)))
            self._news.set()
            return
        fields = vars(record)
        delay, dispatches = fields.get("delay"), fields.get("dispatches", True)
        self.entries.append(ClientDecided(at, fields["key"], fields["age"], fields["reason"], delay, dispatches))
        self.client_has_decided.set()

    async def wait_for_news(self) -> None:
        """Wait until something happens to a connection."""
        self._news = trio.Event()
        await self._news.wait()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to the client's loggers for the length of a block."""
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
    """Return what a connection's record says, without the node: there is only one."""
    if not isinstance(record.args, tuple):
        return record.getMessage()
    node, text = record.args
    return str(text).removeprefix(f"{node}: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One scenario, played. ``began`` and ``ended`` are Trio's time, as in the entries."""

    scenario: DemoScenario
    began: float
    ended: float
    entries: tuple[Entry, ...]
    outcome: str
    message: str
    """What the exception says; empty for a success."""
    answer: object
    context: ErrorContext | None
    retries_by_reason: Mapping[str, int]
    """What the client's statistics counted meanwhile."""
    prepared: int = 0
    """How many statements the node planned meanwhile."""

    @property
    def decisions(self) -> list[ClientDecided]:
        """What the client logged about this operation."""
        key = self.scenario.logged_key
        return [entry for entry in self.entries if isinstance(entry, ClientDecided) and entry.key == key]

    @property
    def delays(self) -> list[float]:
        """Seconds before each retry, as the client logged them."""
        return [decision.delay for decision in self.decisions if decision.delay is not None]

    @property
    def frames(self) -> list[LoggedCommand | LoggedRequest]:
        """The operation's requests that reached the node."""
        taken = [entry.command for entry in self.entries if isinstance(entry, NodeTook)]
        return [command for command in taken if self.is_about(command)]

    @property
    def applied(self) -> int:
        """How often the node applied the operation."""
        return sum(frame.applied for frame in self.frames)

    def is_about(self, command: LoggedCommand | LoggedRequest) -> bool:
        """Tell whether ``command`` is the operation of the scenario."""
        scenario = self.scenario
        if isinstance(command, LoggedRequest):
            return command.service is scenario.operation.travels_as
        return command.opcode == scenario.operation.travels_as and command.key == scenario.key.encode()
