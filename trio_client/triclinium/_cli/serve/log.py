"""``triclinium serve --log``: a line for each command and each request that a node processes, for people or as JSON.

A thread writes the lines, so that nodes continue if the output is not read. The queue of lines is bounded.
"""

from __future__ import annotations

from functools import partial

import click
import trio

from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.shown import json_text, shown
from triclinium_core.testing import FakeNodes, LoggedChange, LoggedCommand, LoggedRequest
from triclinium_core.testing.fakes.fault_names import described, spelled

LINES_WAITING_MAX = 100_000
"""Maximum number of lines in the queue; further lines are counted and dropped."""
LINES_WAITING_SIZE_MAX = 16 * 1024 * 1024
"""Maximum number of characters in the queue: a line of JSON contains the complete statement of a request."""
LINES_AT_ONCE = 1000
"""Maximum number of lines that are written together."""
LAST_LINES_SECONDS = 1.0
"""Time limit in seconds for writing the last lines: a reader that has stopped reading must not delay the exit."""

Logged = LoggedCommand | LoggedRequest


class ServeLog:
    """Log of the commands and requests that the nodes process after its creation, in that order.

    It also has the changes of the nodes, and the lines of ``print_line``.

    Args:
        nodes: the nodes.
        as_json: whether a line is a JSON object.
        failures_only: whether to omit commands, requests, and changes that have an effect.
    """

    def __init__(self, nodes: FakeNodes, *, as_json: bool, failures_only: bool = False) -> None:
        self._nodes = nodes
        self._as_json = as_json
        self._lost = 0
        self._waiting_size = 0
        self._lines, self._waiting = trio.open_memory_channel[str](LINES_WAITING_MAX)
        self._failures_only = failures_only
        nodes.set_change_listener(self._log_change)
        if not failures_only:
            for number, node in enumerate(nodes):
                node.set_log_listener(partial(self._log, number))

    async def print_lines(self) -> None:
        """Print the lines as they arrive, until ``end``.

        Raises:
            OutputLost: standard output cannot be written.

        Cancellation: does not wait for the current write, and drops the queue.
        """
        async for line in self._waiting:
            lines = [line]
            try:
                while len(lines) < LINES_AT_ONCE:
                    lines.append(self._waiting.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                pass
            self._waiting_size -= sum(map(len, lines))
            await trio.to_thread.run_sync(click.echo, "\n".join(lines), abandon_on_cancel=True)
            lost, self._lost = self._lost, 0
            if lost:
                await trio.to_thread.run_sync(click.echo, self._lost_line(lost), abandon_on_cancel=True)

    def end(self) -> None:
        """Stop recording. ``print_lines`` ends after it has printed the queue."""
        self._nodes.set_change_listener(None)
        for node in self._nodes:
            node.set_log_listener(None)
        self._lines.close()

    def _log(self, number: int, logged: Logged) -> None:
        self.print_line((json_line if self._as_json else line)(number, logged))

    def _log_change(self, logged: LoggedChange) -> None:
        if logged.error is not None or not self._failures_only:
            self.print_line((json_change if self._as_json else change)(logged))

    def print_line(self, text: str) -> None:
        """Print a line after those in the queue. If the queue is full, drop and count the line."""
        if self._waiting_size + len(text) > LINES_WAITING_SIZE_MAX:
            self._lost += 1
            return
        try:
            self._lines.send_nowait(text)
        except trio.WouldBlock:
            self._lost += 1
        else:
            self._waiting_size += len(text)

    def _lost_line(self, lost: int) -> str:
        if self._as_json:
            return json_text({"event": "lines_lost", "lines": lost})
        return f"{lost} lines are missing here, because they arrived faster than they were read"


def line(node: int, logged: Logged) -> str:
    """Return a command or request and its response as a line for people.

    Shape for a command: ``seconds node N connection N: COMMAND 'key' -> ANSWER``. If a fault affected the
    command or request, the line ends with whether the node applied it, and with the fault.
    """
    where = f"{logged.now:.3f} node {node} connection {logged.connection}:"
    if isinstance(logged, LoggedCommand):
        what = command_name(logged.opcode)
        if logged.key:
            what += f" {shown(logged.key.decode(errors='backslashreplace'))}"
        if logged.collection_id:
            what += f" in collection 0x{logged.collection_id:x}"
        answer = None if logged.status is None else status_name(logged.status)
    else:
        what = f"{logged.service} {logged.method} {shown(logged.target)[1:-1]}"
        if logged.statement is not None:
            what += f" {shown(logged.statement)}"
        answer = None if logged.status is None else str(logged.status)
    text = f"{where} {what} -> {'no answer' if answer is None else answer}"
    if logged.fault is None:
        return text
    return f"{text}, {'applied' if logged.applied else 'not applied'}: {spelled(logged.fault)}"


def json_line(node: int, logged: Logged) -> str:
    """Return a command or request and its response as a JSON object on one line."""
    entry: dict[str, object] = {
        "event": "command" if isinstance(logged, LoggedCommand) else "request",
        "seconds": logged.now,
        "node": node,
        "connection": logged.connection,
    }
    if isinstance(logged, LoggedCommand):
        entry |= {
            "command": command_name(logged.opcode),
            "bucket": logged.bucket,
            "collection_id": logged.collection_id,
            "key": logged.key.decode(errors="backslashreplace"),
            "vbucket": logged.vbucket,
            # A string, because not every JSON parser keeps such large numbers exact.
            "cas": str(logged.cas),
            "status": logged.status,
            "status_name": None if logged.status is None else status_name(logged.status),
        }
    else:
        entry |= {
            "service": logged.service.value,
            "method": logged.method,
            "target": logged.target,
            "statement": logged.statement,
            "status": logged.status,
        }
    entry["applied"] = logged.applied
    entry["fault"] = None if logged.fault is None else described(logged.fault)
    return json_text(entry)


def change(logged: LoggedChange) -> str:
    """Return a change of a node or of the cluster as a line for people."""
    where = "cluster" if logged.node is None else f"node {logged.node}"
    text = f"{logged.now:.3f} {where}: {'end of ' if logged.is_end else ''}{logged.name}"
    return text if logged.error is None else f"{text} has no effect: {logged.error}"


def json_change(logged: LoggedChange) -> str:
    """Return a change of a node or of the cluster as a JSON object on one line."""
    entry: dict[str, object] = {"event": "change", "seconds": logged.now, "node": logged.node}
    return json_text({**entry, "command": logged.name, "is_end": logged.is_end, "error": logged.error})


def command_name(opcode: int) -> str:
    """Return the name of a command for ``--fault``, or its number if it has no name."""
    try:
        return Opcode(opcode).name.lower()
    except ValueError:
        return f"0x{opcode:02x}"


def status_name(status: int) -> str:
    """Return the name of a KV status, or its number if it has no name."""
    try:
        return Status(status).name
    except ValueError:
        return f"0x{status:04x}"
