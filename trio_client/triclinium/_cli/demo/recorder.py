"""Everything that happens in the demo, in the order in which it happens, from both sides.

The client's side is what it reports for everybody: the records of its two loggers. The node's side is its command log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from triclinium._log import connection_logger, retry_logger
from triclinium_core.testing import FakeNode, FakeNodeOptions, LoggedCommand, NodeAction


@dataclass(frozen=True, slots=True)
class NodeTook:
    """The node took up a command. ``at`` is Trio's time, here as everywhere in this file."""

    at: float
    command: LoggedCommand


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
    error: str | None
    """What the operation fails with; None where it is retried."""


Entry = NodeTook | ConnectionTold | ClientDecided


class WatchedNode(FakeNode):
    """A fake node that tells of each command as soon as it is in the log."""

    def __init__(self, options: FakeNodeOptions, tell: Callable[[LoggedCommand], None]) -> None:
        super().__init__(options)
        self._tell = tell

    def bytes_received(self, connection: int, data: bytes, now: float) -> Sequence[NodeAction]:
        """Take up what a client sent, and tell of it."""
        known = len(self.command_log)
        actions = super().bytes_received(connection, data, now)
        for command in self.command_log[known:]:
            self._tell(command)
        return actions


class Recorder(logging.Handler):
    """Notes what node and client tell."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.client_has_decided = trio.Event()
        """Set at the client's first decision."""
        self._news = trio.Event()

    def node_took(self, command: LoggedCommand) -> None:
        """Note a command that reached the node."""
        self.entries.append(NodeTook(trio.current_time(), command))

    def emit(self, record: logging.LogRecord) -> None:
        """Note what the client says; a retry or a refusal by the attributes that ``triclinium.retry`` promises."""
        at = trio.current_time()
        if record.name != retry_logger.name:
            self.entries.append(ConnectionTold(at, _news(record)))
            self._news.set()
            return
        fields = vars(record)
        self.entries.append(
            ClientDecided(at, fields["key"], fields["age"], fields["reason"], fields.get("delay"), fields.get("error"))
        )
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
