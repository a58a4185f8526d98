"""Scripts of each node's responses, played to the request machine."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import errors
from triclinium_core.tools.vectors.cassandra_script import FixedPolicy, UnusableScript, play, read_answer


def end_of(verdict: cassandra.RetryVerdict | None, *script: tuple[str, str], idempotent: bool = True) -> object:
    """Return the result of a request whose policy always makes the decision ``verdict``."""
    return play(cassandra.CassandraRequest(policy=FixedPolicy(verdict), idempotent=idempotent), script)


@rows("text", ["rows", " Rows ", "empty"])
def test_results(text: str) -> None:
    """A result is read by its name, whatever its case and the spaces around it."""
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
    """An abort has its reason and the number of bytes sent; the error has the script's name as its note."""
    event = read_answer(text).event(7, b"")

    assert isinstance(event, cassandra.AttemptAborted)
    assert (7, kind, handed_over) == (event.attempt, type(event.error), event.handed_over)
    assert [text] == event.error.__notes__


@rows(
    ("text", "kind", "write_type"),
    [
        ("ReadTimeout", errors.ReadTimeout, None),
        ("READ_TIMEOUT", errors.ReadTimeout, None),
        ("Unavailable", errors.Unavailable, None),
        ("UnavailableException", errors.Unavailable, None),
        ("ServerError", errors.ServerError, None),
        ("INVALID", errors.InvalidQuery, None),
        ("WriteTimeout", errors.WriteTimeout, cassandra.WriteType.SIMPLE),
        *((f"WriteTimeout({of_write})", errors.WriteTimeout, of_write) for of_write in cassandra.WriteType),
    ],
)
def test_errors(text: str, kind: type[errors.CassandraError], write_type: cassandra.WriteType | None) -> None:
    """An error comes from the coordinator, has the script's name as its note, and that write type, by default SIMPLE."""
    event = read_answer(text).event(7, b"")

    assert isinstance(event, cassandra.ErrorReceived)
    assert (7, kind, [text]) == (event.attempt, type(event.error), event.error.__notes__)
    assert write_type is getattr(event.error, "write_type", None)


def test_other_responses() -> None:
    """A missed connection, a timeout and two responses to a PREPARE each give their event."""
    assert cassandra.ConnectionMissed(7) == read_answer("NodeUnavailable").event(7, b"")
    assert cassandra.TimerFired() == read_answer("timeout").event(7, b"")
    assert cassandra.StatementPrepared(7, b"id") == read_answer("prepared").event(7, b"id")
    assert cassandra.StatementPrepared(7, b"id") != read_answer("prepared(other)").event(7, b"id")


@rows(
    "text", ["", "row", "(abort)", "ReadTimeout(SIMPLE)", "WriteTimeout(FAST)", "rows(1)", "Foo", "Foo(prepare)", "a(b"]
)
def test_refuses_an_unknown_response(text: str) -> None:
    """The error quotes the unknown text and lists the known forms."""
    with pytest.raises(UnusableScript) as caught:
        read_answer(text)

    assert str(caught.value).startswith(f"{text!r} is not known; an answer is rows, ")


def test_each_node_responds_in_order() -> None:
    """The plan has the nodes in the order of their first occurrence; each retry gets the next response of its node."""
    end = end_of(
        cassandra.RETRY_NEXT, ("a", "Overloaded"), ("b", "ServerError"), ("a", "rows"), ("c", "rows"), ("c", "INVALID")
    )
    of_same = end_of(cassandra.RETRY_SAME, ("a", "Overloaded"), ("b", "rows"), ("a", "empty"))

    assert isinstance(end, cassandra.Complete)
    assert ("rows", "c") == (end.result, end.info.coordinator)
    assert [("a", errors.Overloaded), ("b", errors.ServerError)] == [
        (node, type(error)) for node, error in end.info.errors
    ]
    assert isinstance(of_same, cassandra.Complete)
    assert ("empty", "a") == (of_same.result, of_same.info.coordinator)


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
def test_node_without_the_statement(answers: list[str], expected: type) -> None:
    """A node without the statement prepares it successfully, unless the script has its response to the PREPARE."""
    end = end_of(cassandra.RETHROW, ("a", "UNPREPARED"), *(("a", answer) for answer in answers))

    assert expected is type(end.error if isinstance(end, cassandra.Fail) else end)


@rows(
    ("script", "message"),
    [
        ([("a", "ReadTimeout")], "'a' receives one more request, but has no further answer"),
        ([("a", "UNPREPARED")], "'a' receives one more request, but has no further answer"),
        ([("a", "prepared")], "'a' answers 'prepared', but was sent no PREPARE"),
        ([("a", "rows"), ("b", "?")], "'?' is not known"),
    ],
)
def test_refuses_an_unplayable_script(script: list[tuple[str, str]], message: str) -> None:
    """A script with a missing or unknown response, or with one to a request that was never made, is refused."""
    with pytest.raises(UnusableScript) as caught:
        end_of(cassandra.RETRY_SAME, *script)

    assert str(caught.value).startswith(message)
