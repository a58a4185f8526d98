"""Command ``triclinium replay``: its output and exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner, Result

from tests.core.event_tape.tapes import small_tape
from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli.group import main
from triclinium.errors import RequestCanceledException
from triclinium.tapes import DecisionTape
from triclinium.testing import Opcode, hang_up, open_fake_cluster, temporary_failure
from triclinium_core import __version__


@pytest.fixture(scope="module")
def tape() -> bytes:
    """Return a recorded tape."""
    return b"".join(small_tape())


def replayed(tape: bytes) -> Result:
    """Run the command with a tape on standard input."""
    return CliRunner().invoke(main, ["replay", "-"], input=tape)


def test_agreement_exits_with_zero(tape: bytes, tmp_path: Path) -> None:
    """The output for a tape that agrees is a line with the number of calls; the tape is a file or standard input."""
    path = tmp_path / "tape"
    path.write_bytes(tape)
    calls = tape.count(b"\n") - 1
    from_file = CliRunner().invoke(main, ["replay", str(path)])

    expected = f"agreement: {calls} calls of the machine return the same actions\n"
    assert (0, expected) == (from_file.exit_code, from_file.output)
    assert from_file.output == replayed(tape).output


def test_a_difference_exits_with_one(tape: bytes) -> None:
    """The first difference is shown with both digests; escapes on the tape are not sent to the terminal."""
    result = replayed(tape.replace(b"hello #1", b"\\u001b[31mhello #9", 1))

    assert 1 == result.exit_code
    assert "StreamOpened at 0.0" in result.stdout
    assert r"-send 1: 265 bytes: \x1b[31mhello #9" in result.stdout
    assert "+send 1: 265 bytes: hello #1" in result.stdout
    assert "\x1b" not in result.output


def test_a_long_digest_is_cut(tape: bytes) -> None:
    """Of a digest with thousands of entries, only those around the first difference are shown."""
    lines = tape.splitlines(keepends=True)
    line = json.loads(lines[1])
    entries = [str(at * 7 % 101) for at in range(50_000)]
    result = replayed(b"".join([lines[0], json.dumps({**line, "digest": line["digest"] + entries}).encode()]))

    assert 1 == result.exit_code
    assert 100 <= result.output.count("\n") < 120


def test_other_versions_are_warned_of(tape: bytes) -> None:
    """A tape of another core version is replayed after a warning on standard error."""
    result = replayed(tape.replace(f'"core":"{__version__}"'.encode(), b'"core":"9.9\\u001b"', 1))

    assert (0, True, True) == (result.exit_code, "9.9" in result.stderr, "\x1b" not in result.stderr)


# -- Decision tapes, and unreadable or missing files.


@pytest.fixture
def decisions(tmp_path: Path) -> Path:
    """Record a write that is retried, and one that is lost in flight, and return the path of the tape."""

    async def record() -> None:
        async with open_fake_cluster() as fake, fake.open_client(tape=DecisionTape.ring()) as cluster:
            people = cluster.bucket("default").default_collection()
            fake.node.faults.next(Opcode.SET, temporary_failure())
            await people.upsert("ada", 1)
            fake.node.faults.next(Opcode.SET, hang_up())
            with pytest.raises(RequestCanceledException):
                await people.upsert("ada", 2)
            await cluster.save_tape(tmp_path / "ring.tape")

    trio.run(record)
    return tmp_path / "ring.tape"


def test_agreeing_decisions_are_counted(decisions: Path) -> None:
    """The output for a decision tape that agrees is a line with its numbers; for a cut-off tape, stderr has a note."""
    tape = decisions.read_bytes()
    whole, cut = replayed(tape), replayed(tape[: tape.rindex(b'{"type":"end"')])

    expected = "agreement: 3 decisions about 2 operations and requests\n"
    assert (0, expected, "") == (whole.exit_code, whole.stdout, whole.stderr)
    assert (whole.stdout, True) == (cut.stdout, "cut off" in cut.stderr)


@rows(
    ("recorded", "edited", "words"),
    [
        (b'"kind":"retry"', b'"kind":"fail"', "retry in 1 ms"),
        (b'"status":134', b'"status":1', "DocumentNotFoundException"),
        (b'"event":"woken"', b'"event":"strategy_responded","answer":{}', "the event is impossible"),
    ],
)
def test_a_different_decision_exits_with_one(decisions: Path, recorded: bytes, edited: bytes, words: str) -> None:
    """The first difference names the line, the operation and both decisions, and has status 1."""
    tape = decisions.read_bytes()
    assert recorded in tape
    result = replayed(tape.replace(recorded, edited, 1))

    assert 1 == result.exit_code
    assert "upsert with token 1" in result.stdout
    assert words in result.stdout.splitlines()[-1]


@rows(
    ("tape", "named"),
    [
        (b"", "line 1"),
        (b"\x00\xff", "line 1"),
        (b'{"tape":"events","version":99}\n', "version 99"),
        (b'{"tape":"\\u001b[31m","version":1}\n', "header of a decision tape"),
        (b"x" * 3_000_000, "line 1"),
    ],
)
def test_unreadable_tapes_exit_with_two(tape: bytes, named: str) -> None:
    """A file that is not a tape, or has a newer format, exits with 2 and one printable line that names the problem."""
    result = replayed(tape)

    assert_refused(result, named)
    assert result.stderr.rstrip("\n").isprintable()


def test_missing_files_exit_with_two() -> None:
    """A path without a file exits with 2."""
    assert_refused(CliRunner().invoke(main, ["replay", "/no/such/tape"]), "/no/such/tape")
