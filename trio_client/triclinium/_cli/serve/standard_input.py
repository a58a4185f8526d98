"""Commands from standard input, one per line, with a report for each."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import click
import trio

from triclinium_core.shown import json_text
from triclinium_core.testing import FakeNodes, InvalidCommand, apply_command
from triclinium_core.testing.fakes.control.api import describe_error
from triclinium_core.testing.fakes.control.command_text import COMMAND_SIZE_MAX

STANDARD_INPUT = 0
"""File descriptor of standard input."""
READ_SIZE = 64 * 1024
RETRY_SECONDS = 0.1
"""Time in seconds between two reads of a non-blocking standard input that has no data."""
SHOWN_MAX = 1_000
"""Maximum number of characters of a line that its report repeats."""


async def follow_standard_input(nodes: FakeNodes, print_line: Callable[[str], None], *, as_json: bool) -> None:
    """Carry out the commands of standard input, until its end.

    Each line is a command as for ``--fault``. An empty line, or one that starts with ``#``, is ignored. A command that
    was carried out or planned is reported on standard output. An invalid command changes nothing and is reported on
    standard error, or with ``as_json`` on standard output.

    Args:
        nodes: the nodes.
        print_line: prints a line on standard output, without waiting.
        as_json: whether a report is a JSON object.

    Cancellation: does not wait for the current read.
    """
    number = 0
    async for line in _lines():
        number += 1
        text = line.decode(errors="replace").strip()
        if not text or text.startswith("#"):
            continue
        error = _carry_out(nodes, line)
        report = _report(number, text, error, as_json=as_json)
        if error is None or as_json:
            print_line(report)
        else:
            await trio.to_thread.run_sync(partial(click.echo, report, err=True), abandon_on_cancel=True)


def _carry_out(nodes: FakeNodes, line: bytes) -> InvalidCommand | None:
    """Carry out a command. Return the error of an invalid command; None for a valid one."""
    if len(line) > COMMAND_SIZE_MAX:
        limit = f"at most {COMMAND_SIZE_MAX} bytes"
        return InvalidCommand(f"the line is too long; write {limit}", field="command", allowed=[limit])
    try:
        apply_command(nodes, line.decode().strip())
    except UnicodeDecodeError:
        return InvalidCommand("the line is not UTF-8", field="command", allowed=["text in UTF-8"])
    except InvalidCommand as error:
        return error
    return None


def _report(number: int, text: str, error: InvalidCommand | None, *, as_json: bool) -> str:
    text = text[:SHOWN_MAX]
    if as_json:
        entry: dict[str, object] = {"event": "input", "line": number, "text": text}
        return json_text({**entry, "error": None if error is None else describe_error(error)})
    if error is None:
        return f"done: {text}"
    return f"line {number}: {error.field}: {error.message}"


async def _lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input without their ends. Cut a line that is too long one byte above the limit."""
    unread = bytearray()
    while (data := await trio.to_thread.run_sync(_read, abandon_on_cancel=True)) != b"":
        if data is None:
            await trio.sleep(RETRY_SECONDS)
            continue
        unread += data
        *complete, rest = unread.split(b"\n")
        for line in complete:
            yield bytes(line[: COMMAND_SIZE_MAX + 1])
        unread = bytearray(rest[: COMMAND_SIZE_MAX + 1])
    if unread:
        yield bytes(unread)


def _read() -> bytes | None:
    """Return the next bytes of standard input; empty at its end, or on an error, as in the background of a terminal.

    Return None if standard input is non-blocking and has no data yet. Another process that shares it may set this mode
    at any time.

    The buffer of ``sys.stdin`` is not used: a thread that waits in it would stop the interpreter from exiting.
    """
    try:
        return os.read(STANDARD_INPUT, READ_SIZE)
    except BlockingIOError:
        return None
    except OSError:
        return b""


@contextmanager
def reading_in_background() -> Iterator[None]:
    """During the block, let a read in the background of a terminal fail instead of stopping the process."""
    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGTTIN, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTTIN, before)
