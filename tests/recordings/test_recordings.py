"""Recordings, which contain each action of a history, and comparisons, in which each action counts."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.recordings.comparison import compared, read
from tests.recordings.description import described
from tests.recordings.recording import recorded, write
from triclinium_core import errors
from triclinium_core.contract.couchbase import FailOperation
from triclinium_core.contract.neutral import SendBytes, StreamId, Token
from triclinium_core.error_context import ErrorContext

SEED = 3

pytestmark = [pytest.mark.history, pytest.mark.native]


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Return the lines of one history."""
    return recorded(SEED)


def test_a_history_has_the_same_lines_every_time(lines: list[str]) -> None:
    """Two recordings of one seed are equal and contain completed operations, failures and bytes."""
    assert lines == recorded(SEED)
    assert "end: every law holds" == lines[-1]
    for kind in ("CompleteOperation", "FailOperation", "SendBytes", "ReportRetry", "ReportAnswer"):
        assert any(line.startswith(f"\t{kind}(") for line in lines)


def test_every_changed_action_is_a_difference(lines: list[str]) -> None:
    """A history in which one action is missing, added, moved or changed differs at that action."""
    at = next(index for index, line in enumerate(lines) if line.startswith("\tFailOperation"))
    without, added = [*lines[:at], *lines[at + 1 :]], [*lines[:at], "\tNothing()", *lines[at:]]
    changed = [*lines[:at], lines[at].replace("key=", "key=b"), *lines[at + 1 :]]
    moved = [*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]]

    for other in (without, added, changed, moved, lines[:at]):
        (difference,) = compared([lines], [other]).differences
        assert f"seed {SEED}" == difference.seed
        assert lines[at] in difference.old or lines[at] in difference.new
    (only_new,) = compared([], [lines]).differences
    assert lines[0] in only_new.new


def test_names_may_change(lines: list[str]) -> None:
    """If a comparison is given the new name of a class, histories that differ in this name only are equal."""
    renamed = [line.replace("FailOperation", "Failed") for line in lines]

    assert compared([lines], [renamed]).differences
    comparison = compared([lines], [renamed], {"FailOperation": "Failed"})
    assert () == tuple(comparison.differences)
    assert sum(line.startswith("\t") for line in lines) == comparison.actions


def test_time_that_passes_without_actions_does_not_count() -> None:
    """An additional TimePassed is a difference only if an action follows it."""
    before, after = "1.0 client 0 StreamLost()", "3.0 client 0 StreamLost()"
    idle, action = "2.0 client 0 TimePassed(unsent={})", "\tSendBytes()"

    assert [] == list(compared([[before, after]], [[before, idle, after]]).differences)
    assert [] != list(compared([[before, after]], [[before, idle, action, after]]).differences)


def test_a_file_has_all_histories(tmp_path: Path) -> None:
    """A file that was written is read as the same histories in the same order."""
    path = tmp_path / "recording.gz"
    seeds = {1: ["seed 1", "event", "\taction"], 2: ["seed 2"]}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.recordings.recording.recorded", seeds.__getitem__)
        write(path, seeds)

    assert list(seeds.values()) == list(read(path))


class Opaque:
    """Object without fields."""


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (SendBytes(StreamId(1), b"x" * 100), SendBytes(StreamId(1), b"x" * 99 + b"y")),
        (
            FailOperation(Token(1), errors.DocumentNotFoundException("gone", ErrorContext(key="a"))),
            FailOperation(Token(1), errors.DocumentNotFoundException("gone", ErrorContext(key="b"))),
        ),
        ({"a": 1}, {"a": 2}),
        ((1, 2), (2, 1)),
    ],
)
def test_every_field_counts(value: object, other: object) -> None:
    """Values that differ in a field outside their repr, an error's context or a part have different descriptions."""
    assert described(value) != described(other)


def test_addresses_and_set_order_do_not_count() -> None:
    """Equal contents have one description, wherever the objects are in memory."""
    assert described([Opaque()]) == described([Opaque()])
    assert described({"a", "b", "c"}) == described({"c", "b", "a"})
    assert "Opaque()" == described(Opaque())
    assert "Point(x=1)" == described(msgspec.defstruct("Point", ["x"])(1))
