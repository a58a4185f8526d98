"""Scripts of what each node answers in turn, played to the request machine."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import errors
from triclinium_core.tools.vectors.cassandra_script import FixedPolicy, UnusableScript, play, read_answer


def end_of(verdict: cassandra.RetryVerdict | None, *script: tuple[str, str], idempotent: bool = True) -> object:
    """Return how a request ends whose policy always answers ``verdict``."""
    return play(cassandra.CassandraRequest(policy=FixedPolicy(verdict), idempotent=idempotent), script)


@rows("text", ["rows", " Rows ", "empty"])
def test_results(text: str) -> None:
    """They are handed on by name."""
    assert cassandra.ResultReceived(7, text.strip().lower()) == read_answer(text).event(7, b"")


@rows(
    ("text", "kind", "handed_over"),
    [
        ("Heartbeat", errors.HeartbeatFailure, None),
        ("Heartbeat(abort)", errors.HeartbeatFailure, None),
        ("ClosedConnection (abort)", errors.ClosedConnection, None),
        ("ClosedConnection(unsent)", errors.ClosedConnection, 0),
        ("Throwable(abort)", errors.RequestAborted, None),
        ("FrameTooLong", errors.FrameTooLong, None),
        ("FrameTooLong(unsent)", errors.FrameTooLong, None),
        ("Throttled", errors.RequestThrottled, 0),
        ("Throttled(unsent)", errors.RequestThrottled, 0),
    ],
)
def test_aborts(text: str, kind: type[errors.CassandraError], handed_over: int | None) -> None:
    """Why there is no answer, and whether anything was sent; the error has the script's name as its note."""
    event = read_answer(text).event(7, b"")

    assert isinstance(event, cassandra.AttemptAborted)
    assert (7, kind, handed_over) == (event.attempt, type(event.error), event.handed_over)
    assert [text] == event.error.__notes__


@rows(
    ("text", "kind"),
    [
        ("ReadTimeout", errors.ReadTimeout),
        ("READ_TIMEOUT", errors.ReadTimeout),
        ("Unavailable", errors.Unavailable),
        ("UnavailableException", errors.Unavailable),
        ("ServerError", errors.ServerError),
        ("INVALID", errors.InvalidQuery),
    ],
)
def test_errors(text: str, kind: type[errors.CassandraError]) -> None:
    """They come from the coordinator, and have the script's name as their note."""
    event = read_answer(text).event(7, b"")

    assert isinstance(event, cassandra.ErrorReceived)
    assert (7, kind, [text]) == (event.attempt, type(event.error), event.error.__notes__)


@rows(
    ("text", "write_type"),
    [
        ("WriteTimeout", cassandra.WriteType.SIMPLE),
        *((f"WriteTimeout({write_type})", write_type) for write_type in cassandra.WriteType),
    ],
)
def test_write_timeouts(text: str, write_type: cassandra.WriteType) -> None:
    """They say what kind of write it was."""
    event = read_answer(text).event(7, b"")

    assert isinstance(event, cassandra.ErrorReceived)
    assert isinstance(event.error, errors.WriteTimeout)
    assert write_type is event.error.write_type


def test_other_answers() -> None:
    """No connection, no answer at all, and the two answers to a PREPARE."""
    assert cassandra.ConnectionMissed(7) == read_answer("NodeUnavailable").event(7, b"")
    assert cassandra.TimerFired() == read_answer("timeout").event(7, b"")
    assert cassandra.StatementPrepared(7, b"id") == read_answer("prepared").event(7, b"id")
    assert cassandra.StatementPrepared(7, b"id") != read_answer("prepared(other)").event(7, b"id")


@rows(
    "text", ["", "row", "(abort)", "ReadTimeout(SIMPLE)", "WriteTimeout(FAST)", "rows(1)", "Foo", "Foo(prepare)", "a(b"]
)
def test_refuses_what_is_no_answer(text: str) -> None:
    """The text says which it is, and what there is."""
    with pytest.raises(UnusableScript) as caught:
        read_answer(text)

    assert str(caught.value).startswith(f"{text!r} is not known; an answer is rows, ")


def test_each_node_gives_its_answers_in_order() -> None:
    """The plan is the nodes in the order in which they first occur; what is left goes unused."""
    end = end_of(
        cassandra.RETRY_NEXT, ("a", "Overloaded"), ("b", "ServerError"), ("a", "rows"), ("c", "rows"), ("c", "INVALID")
    )

    assert isinstance(end, cassandra.Complete)
    assert ("rows", "c") == (end.result, end.info.coordinator)
    assert [("a", errors.Overloaded), ("b", errors.ServerError)] == [
        (node, type(error)) for node, error in end.info.errors
    ]


def test_the_same_node_is_asked_again() -> None:
    """Its next answer may stand anywhere behind."""
    end = end_of(cassandra.RETRY_SAME, ("a", "Overloaded"), ("b", "rows"), ("a", "empty"))

    assert isinstance(end, cassandra.Complete)
    assert ("empty", "a") == (end.result, end.info.coordinator)


@rows(
    ("answers", "expected"),
    [
        (["rows"], cassandra.Complete),
        (["prepared", "rows"], cassandra.Complete),
        (["UNPREPARED", "prepared", "rows"], cassandra.Complete),
        (["prepared(other)", "rows"], errors.RepreparationFailed),
        (["INVALID(prepare)", "rows"], errors.InvalidQuery),
        (["ServerError(prepare)", "rows"], errors.AllNodesFailed),
        (["ServerError"], errors.ServerError),
    ],
)
def test_a_node_that_does_not_know_the_statement(answers: list[str], expected: type) -> None:
    """It has prepared it, unless its next answer is one to a PREPARE."""
    end = end_of(cassandra.RETHROW, ("a", "UNPREPARED"), *(("a", answer) for answer in answers))

    assert expected is type(end.error if isinstance(end, cassandra.Fail) else end)


@rows(
    ("script", "message"),
    [
        ([("a", "ReadTimeout")], "'a' is asked once more, and has no further answer"),
        ([("a", "UNPREPARED")], "'a' is asked once more, and has no further answer"),
        ([("a", "prepared")], "'a' answers 'prepared', and was sent no PREPARE"),
        ([("a", "rows"), ("b", "?")], "'?' is not known"),
    ],
)
def test_refuses_a_script_that_does_not_fit(script: list[tuple[str, str]], message: str) -> None:
    """An answer is missing, or nobody asked for it."""
    with pytest.raises(UnusableScript) as caught:
        end_of(cassandra.RETRY_SAME, *script)

    assert str(caught.value).startswith(message)
