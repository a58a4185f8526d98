"""``triclinium serve --log``: a line for each command and each request as it comes, for people or as JSON.

Lines are written by a thread, so that nodes go on where nobody reads what is printed; what waits is bounded.
"""

from __future__ import annotations

from functools import partial

import click
import trio

from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.shown import json_text, shown
from triclinium_core.testing import FakeNodes, LoggedCommand, LoggedRequest
from triclinium_core.testing.fakes.fault_names import described, spelled

LINES_WAITING_MAX = 100_000
"""Lines that wait to be written; what comes then is counted and not kept."""
LINES_WAITING_SIZE_MAX = 16 * 1024 * 1024
"""Maximum number of characters that wait to be written: as JSON, a line has the whole statement of a request."""
LINES_AT_ONCE = 1000
"""Lines that are written together where many wait."""
LAST_LINES_SECONDS = 1.0
"""How long the last lines may take at the end: a reader that has stopped reading holds up nobody."""

Logged = LoggedCommand | LoggedRequest


class ServeLog:
    """Writes down what nodes are asked, in the order in which they answer, from now on."""

    def __init__(self, nodes: FakeNodes, *, as_json: bool) -> None:
        self._nodes = nodes
        self._as_json = as_json
        self._lost = 0
        self._waiting_size = 0
        self._lines, self._waiting = trio.open_memory_channel[str](LINES_WAITING_MAX)
        for number, node in enumerate(nodes):
            node.set_log_listener(partial(self._tell, number))

    async def print_lines(self) -> None:
        """Print the lines as they come, until ``end``.

        Raises:
            OutputLost: standard output cannot be written.

        Cancellation: what is being written is left to itself, and what waits is lost.
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
                await trio.to_thread.run_sync(click.echo, self._told_of(lost), abandon_on_cancel=True)

    def end(self) -> None:
        """Listen no more; ``print_lines`` ends when all that waits is printed."""
        for node in self._nodes:
            node.set_log_listener(None)
        self._lines.close()

    def _tell(self, number: int, logged: Logged) -> None:
        text = (json_line if self._as_json else line)(number, logged)
        if self._waiting_size + len(text) > LINES_WAITING_SIZE_MAX:
            self._lost += 1
            return
        try:
            self._lines.send_nowait(text)
        except trio.WouldBlock:
            self._lost += 1
        else:
            self._waiting_size += len(text)

    def _told_of(self, lost: int) -> str:
        if self._as_json:
            return json_text({"event": "lines_lost", "lines": lost})
        return f"{lost} lines are missing here: they came faster than they were read"


def line(node: int, logged: Logged) -> str:
    """Return what came and what was answered, for people.

    Shape: ``seconds node N connection N: COMMAND 'key' -> ANSWER``, and behind that the fault, if one struck, and
    whether the command was carried out.
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
    said = f"{where} {what} -> {'no answer' if answer is None else answer}"
    if logged.fault is None:
        return said
    return f"{said}, {'applied' if logged.applied else 'not applied'}: {spelled(logged.fault)}"


def json_line(node: int, logged: Logged) -> str:
    """Return what came and what was answered, as an object of JSON on one line."""
    told: dict[str, object] = {
        "event": "command" if isinstance(logged, LoggedCommand) else "request",
        "seconds": logged.now,
        "node": node,
        "connection": logged.connection,
    }
    if isinstance(logged, LoggedCommand):
        told |= {
            "command": command_name(logged.opcode),
            "bucket": logged.bucket,
            "collection_id": logged.collection_id,
            "key": logged.key.decode(errors="backslashreplace"),
            "vbucket": logged.vbucket,
            # Larger than the numbers that every reader of JSON keeps whole.
            "cas": str(logged.cas),
            "status": logged.status,
            "status_name": None if logged.status is None else status_name(logged.status),
        }
    else:
        told |= {
            "service": logged.service.value,
            "method": logged.method,
            "target": logged.target,
            "statement": logged.statement,
            "status": logged.status,
        }
    told["applied"] = logged.applied
    told["fault"] = None if logged.fault is None else described(logged.fault)
    return json_text(told)


def command_name(opcode: int) -> str:
    """Return a command by the name that ``--fault`` takes, or by its number where it has none."""
    try:
        return Opcode(opcode).name.lower()
    except ValueError:
        return f"0x{opcode:02x}"


def status_name(status: int) -> str:
    """Return a status of KV by its name, or by its number where it has none."""
    try:
        return Status(status).name
    except ValueError:
        return f"0x{status:04x}"
