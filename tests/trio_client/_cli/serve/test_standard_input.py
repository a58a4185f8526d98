"""Commands from standard input: lines, their reports, and the end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest
import trio

from triclinium._cli.serve import standard_input
from triclinium._cli.serve.standard_input import follow_standard_input, reading_in_background
from triclinium.testing import FakeNodes
from triclinium_core.testing.fakes.control.command_text import COMMAND_SIZE_MAX


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Replace standard input with a pipe, and yield the descriptor to write to."""
    reading, writing = os.pipe()
    monkeypatch.setattr(standard_input, "STANDARD_INPUT", reading)
    with closing(os.fdopen(reading, "rb", buffering=0)):
        yield writing


async def follow(writing: int, data: bytes, nodes: FakeNodes, *, as_json: bool) -> list[str]:
    """Return the lines that the command prints on standard output for this input, up to its end."""
    lines: list[str] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_write, writing, data)
        await follow_standard_input(nodes, lines.append, as_json=as_json)
    return lines


async def _write(writing: int, data: bytes) -> None:
    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(data)

    await trio.to_thread.run_sync(write)


LINES = {
    b"@1: kill": None,
    b"  @1: kill \r": None,
    b"get: hang_up x2 at 5 seconds": None,
    b"@1: kil": "fault",
    b"@2: kill": "node",
    b"kill for 0 seconds": "for_seconds",
    b"gett: hang_up": "target",
    b"\xff": "command",
    b"kill" + (COMMAND_SIZE_MAX - 4) * b" ": None,
    b"kill" + (COMMAND_SIZE_MAX - 3) * b" ": "command",
}
"""Field that the error of each line names; None for a line without an error."""


async def test_report_of_each_line(pipe: int) -> None:
    """A line is reported as an object with its number and text; the error has the field and the allowed values."""
    printed = await follow(pipe, b"\n# comment\n" + b"\n".join(LINES), FakeNodes(nodes=2), as_json=True)

    for number, (report, line) in enumerate(zip(printed, LINES, strict=True), start=3):
        event = json.loads(report)
        assert ("input", number) == (event["event"], event["line"])
        assert event["text"] == line.decode(errors="replace").strip()[: standard_input.SHOWN_MAX]
        assert LINES[line] == (event["error"] and event["error"]["field"])
        assert event["error"] is None or event["error"]["allowed"]


async def test_lines_take_effect_in_order(pipe: int) -> None:
    """Each valid line changes the nodes, in order, and one that is invalid or too long is refused as a whole."""
    nodes = FakeNodes(nodes=2)
    long = b"@0: kill " + 300 * 1024 * b"x"
    lines = await follow(pipe, b"@1: kill\nnonsense\n" + long + b"\n@1: revive\n@0: kill", nodes, as_json=True)
    reports = list(map(json.loads, lines))

    assert [None, "fault", "command", None, None] == [each["error"] and each["error"]["field"] for each in reports]
    assert ["at most 262144 bytes"] == reports[2]["error"]["allowed"]
    assert [("kill", 1), ("revive", 1), ("kill", 0)] == [(change.name, change.node) for change in nodes.changes]


async def test_errors_for_people_are_on_stderr(pipe: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Without JSON, a valid line is confirmed on standard output, an invalid one reported on standard error."""
    printed = await follow(pipe, b"@0: kill\n@7: kill\n", FakeNodes(nodes=2), as_json=False)
    said = capsys.readouterr()

    assert ["done: @0: kill"] == printed
    assert ("", "line 2: node: node 7 does not exist; the last node is 1\n") == (said.out, said.err)


async def test_closed_input_counts_as_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed standard input has no lines."""
    monkeypatch.setattr(standard_input, "STANDARD_INPUT", -1)
    printed: list[str] = []
    await follow_standard_input(FakeNodes(), printed.append, as_json=True)

    assert [] == printed


async def test_input_may_be_non_blocking(pipe: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A non-blocking standard input without data has not ended: the next line takes effect."""
    os.set_blocking(standard_input.STANDARD_INPUT, False)
    monkeypatch.setattr(standard_input, "RETRY_SECONDS", 0.01)
    nodes = FakeNodes(nodes=2)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(follow_standard_input, nodes, print, as_json=False))
            await trio.sleep(0.05)
            await _write(pipe, b"@1: kill\n")

    assert ["kill"] == [change.name for change in nodes.changes]


async def test_cancellation_does_not_wait(pipe: int) -> None:
    """Cancelling does not wait for the next line."""
    with trio.move_on_after(0.02) as scope:
        await follow_standard_input(FakeNodes(), print, as_json=True)
    os.close(pipe)

    assert scope.cancelled_caught


def test_background_of_a_terminal() -> None:
    """In the block, the signal of a read in the background is ignored; after it, the former handler is back."""
    before = signal.getsignal(signal.SIGTTIN)
    with reading_in_background():
        inside = signal.getsignal(signal.SIGTTIN)

    assert (signal.SIG_IGN, before) == (inside, signal.getsignal(signal.SIGTTIN))
