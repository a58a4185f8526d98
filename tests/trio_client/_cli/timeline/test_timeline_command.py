"""``triclinium timeline`` on the command line: selections, forms of the output, and tapes that cannot be read."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from rich.console import Console

from tests.core.timeline.tapes import HEADER, NODE, lost, opening, operation, read, retried_steps, tape_of, tapes
from tests.rows import rows
from tests.tapes.golden import FOLDER
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli.group import main
from triclinium._cli.timeline.show import BLOCK_MAX, Screen, repeated
from triclinium._cli.timeline.timeline_command import DRAWN_MAX
from triclinium.tapes import DecisionTape
from triclinium.testing import Opcode, open_fake_cluster
from triclinium_core.decision_tape import lines
from triclinium_core.shown import printable
from triclinium_core.testing import temporary_failure
from triclinium_core.timeline import Selection, timelines

RETRIED = operation(7, steps=retried_steps(10.0, [0.001, 0.01, 0.05, 0.1, 0.1]), key="a" * 32)
FAILED = operation(
    8, 11.0, steps=(*operation(8, 11.0).steps, lost(11.5)), result="failed", error="RequestCanceledException"
)
TAPE = tape_of(opening(9.0, 3), RETRIED, FAILED, operation(9, 12.0))


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """Write a tape with a retried, a failed and a simple operation, and return its path."""
    (tmp_path / "client.tape").write_bytes(TAPE)
    return tmp_path / "client.tape"


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["timeline", *map(str, arguments)])


def objects(*arguments: object) -> list[dict[str, object]]:
    """Run the command with ``--json``, and return the objects that it prints."""
    return [json.loads(line) for line in run(*arguments, "--json").stdout.splitlines()]


def words_of(svg: Path) -> str:
    """Return the words of a picture."""
    return "".join(ET.fromstring(svg.read_bytes()).itertext()).replace("\xa0", " ")  # noqa: S314  # trusted input


def test_default_shows_trouble_and_summary(tape: Path) -> None:
    """Without a selection, the command shows the failed and retried operations, the slowest first, and the summary."""
    result = run(tape)

    assert 0 == result.exit_code
    titles = [line for line in result.stdout.splitlines() if line.startswith("upsert")]
    assert ["upsert, token 7", "upsert, token 8"] == titles
    assert "operations and requests: 2 completed, 2 with a failed attempt, 1 failed" in result.stdout


def test_repeated_retries_are_one_row(tape: Path) -> None:
    """Several retries for the same reason are shown once, with the number and the delays of the others."""
    result = run(tape, "--token", 7)

    assert (0, 1) == (result.exit_code, result.stdout.count("TEMPORARY_FAILURE [0x86]"))
    assert "the same 4 more times, with delays of 10 to 100 ms" in result.stdout


@rows(
    ("selection", "tokens"),
    [
        (["--token", 9], [9]),
        (["--key", "a" * 32], [7]),
        (["--failed"], [8]),
        (["--slowest", 1, "--failed"], [8]),
        (["--connection", 3], [3]),
    ],
)
def test_json_has_the_selected_operations(tape: Path, selection: list[object], tokens: list[int]) -> None:
    """With ``--json``, each selected operation or connection is one object on one line."""
    found = [each.get("operation") or each["connection"] for each in objects(tape, *selection)]

    assert tokens == [each.get("token", each.get("stream")) for each in found]  # type: ignore[attr-defined]


def test_json_has_the_facts_of_the_tape(tape: Path) -> None:
    """The facts in the JSON are those of the tape, and the last object without a selection is the summary."""
    first, second, summary = objects(tape)

    assert (0, 0.5) == (summary["summary"]["lost"], second["seconds"])  # type: ignore[index]
    facts = [row["fact"] for row in first["rows"] if "fact" in row]  # type: ignore[attr-defined]
    assert RETRIED.steps == tuple(msgspec.convert(fact, lines.Step) for fact in facts)


def test_svg_is_a_picture_without_requests(tape: Path, tmp_path: Path) -> None:
    """The picture is well-formed XML with the words of the timelines, and refers to no file on the network."""
    path = tmp_path / "picture.svg"

    assert 0 == run(tape, "--svg", path).exit_code
    words = words_of(path)
    assert [] == [word for word in (NODE, "KV_TEMPORARY_FAILURE", "RequestCanceledException") if word not in words]
    assert "url(" not in path.read_text().replace("url(#", "")


def test_svg_has_a_maximum_of_timelines(tmp_path: Path) -> None:
    """A picture has a limited number of timelines, and states how many it lacks."""
    path, tape = tmp_path / "picture.svg", tmp_path / "many.tape"
    tape.write_bytes(tape_of(*[operation(number) for number in range(DRAWN_MAX + 4)]))

    assert 0 == run(tape, "--slowest", 100, "--svg", path).exit_code
    assert "4 more timelines are not drawn" in words_of(path)


@rows("selection", [["--token", 1], ["--key", "b" * 32], ["--connection", 99]])
def test_an_empty_selection_exits_with_1(tape: Path, selection: list[object]) -> None:
    """A selection that nothing on the tape matches is an error with status 1."""
    assert_refused(run(tape, *selection), "client.tape", status=1)


@rows(
    ("contents", "words"),
    [
        (b"", "line 1"),
        (b"{}\n", "line 1"),
        (TAPE.replace(b'"token":8', b'"token":"\\u001b[2J"'), "line 4"),
        (TAPE.replace(b'"token":8', b'"token":-8'), "line 4"),
        (TAPE.replace(b"n1:11210", b"\\u001b]0;n\\u0007", 1), "line 2"),
        (msgspec.json.encode(msgspec.structs.replace(HEADER, version=99)), "line 1"),
    ],
)
def test_a_damaged_tape_exits_with_2(tmp_path: Path, contents: bytes, words: str) -> None:
    """A tape with an invalid line is an error with status 2 that names the line, without terminal escapes."""
    path = tmp_path / "damaged.tape"
    path.write_bytes(contents)

    result = run(path, "--failed")

    assert_refused(result, words)
    assert "\x1b" not in result.output


@rows(
    "arguments",
    [
        ["--key", "ada"],
        ["--slowest", 0],
        ["--token", -1],
        ["--connection", 3, "--failed"],
        ["--svg", "/missing/picture.svg"],
    ],
)
def test_wrong_options_exit_with_2(tape: Path, arguments: list[object]) -> None:
    """An invalid option, or a picture that cannot be written, is an error of one line with status 2."""
    result = run(tape, *arguments)

    assert (2, 1) == (result.exit_code, len(result.stderr.splitlines()))


def test_an_event_tape_has_timelines(tmp_path: Path) -> None:
    """An event tape is replayed for its timelines, and a difference from the tape ends them with a note."""
    golden = (FOLDER / "temporary_failure.jsonl").read_bytes()
    (tmp_path / "changed").write_bytes(golden.replace(b"retry 1: KV_TEMPORARY_FAILURE", b"retry 1: KV_LOCKED", 1))
    whole, changed = run(FOLDER / "temporary_failure.jsonl"), run(tmp_path / "changed")

    assert (0, "") == (whole.exit_code, whole.stderr)
    assert "retry in 1 ms: KV_TEMPORARY_FAILURE" in whole.stdout
    assert (0, True) == (changed.exit_code, "the timeline ends at a difference" in changed.stderr)


def test_an_unreadable_tape_exits_with_2() -> None:
    """An error of the system while the tape is read has status 2."""
    assert_refused(run("/proc/self/mem"), "Input/output error")


def test_a_cut_off_tape_is_noted(tmp_path: Path) -> None:
    """The timelines of a tape without its last line end with a note."""
    path = tmp_path / "cut_off.tape"
    path.write_bytes(tape_of(FAILED, is_cut_off=True))

    assert "cut off" in run(path, "--failed").stdout.splitlines()[-1]


def test_runs_of_rows_cover_all_rows() -> None:
    """Repeated blocks are found at any length up to the maximum, and the runs together have all rows."""
    for size in range(1, BLOCK_MAX + 1):
        keys = ["first", *[*range(size)] * 4, "last"]
        assert [(1, 1), (4 * size, size), (1, 1)] == [*repeated(keys)]
    assert [(1, 1)] * 4 == [*repeated([1, 2, 1, 2])]


async def test_a_recorded_failure_is_shown(tmp_path: Path) -> None:
    """The tape of a client shows a write that a node refused, and its connection, with the decision."""
    path = tmp_path / "client.tape"
    async with open_fake_cluster() as fake, fake.open_client(tape=DecisionTape.ring()) as cluster:
        people = cluster.bucket(fake.node.options.buckets[0]).default_collection()
        await people.upsert("ada", 1)
        fake.node.faults.next(Opcode.SET, temporary_failure())
        await people.upsert("ada", 2)
        await cluster.save_tape(path)

    (shown, _) = objects(path)
    assert ["caller", "client", "node", "client", "client", "caller"] == [row["source"] for row in shown["rows"]]  # type: ignore[attr-defined]
    stream = shown["rows"][1]["fact"]["stream"]  # type: ignore[index]
    assert "retry in 1 ms: KV_TEMPORARY_FAILURE" in run(path, "--connection", stream).stdout


@given(tapes())
def test_output_has_the_events_of_any_tape(contents: bytes) -> None:
    """Of any tape, the output has the words of each row or of the run that repeats it, and is printable."""
    for timeline in timelines(read(contents), Selection()):
        file, first = StringIO(), 0
        Screen(Console(file=file)).timeline(timeline)
        output = "".join(file.getvalue().split())
        for run_length, size in repeated([row.text for row in timeline.rows]):
            words = ["".join(printable(row.text).split()) for row in timeline.rows[first : first + size]]
            assert [] == [each for each in words if each not in output]
            first += run_length
        assert len(timeline.rows) == first
        assert file.getvalue().replace("\n", "").isprintable()
