"""What an error carries of the attempts that led to it, and what it does not grow to."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from dataclasses import dataclass

from tests.rows import rows
from triclinium_core.retry.calls import AttemptRecord, RetryEnding, attempts_of
from triclinium_core.retry.calls.history import NOTE_LENGTH_MAX, NOTES_MAX, attach, describe

FIRST = AttemptRecord(1, ConnectionError("first\nline"), 0.0, 0.25)


def last(
    error: Exception | None, ending: RetryEnding = RetryEnding.EXHAUSTED, *, elapsed: float = 0.5
) -> AttemptRecord:
    """Return the record of a second and last attempt, which ended a call."""
    return AttemptRecord(2, error, 1.0, elapsed, ending)


@dataclass(frozen=True)
class Frozen(Exception):
    """An error that refuses to be changed."""

    code: int


class Slotted(Exception):
    """An error that names its attributes."""

    __slots__ = ("code",)


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise ZeroDivisionError


class Closed(Exception):
    """An error whose attributes nobody gets at."""

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise ZeroDivisionError


def test_notes_tell_of_each_attempt_in_a_line() -> None:
    """When it was, how long it took, and what it raised; of the last one why there is no other."""
    error = ConnectionError("second")
    attach([FIRST], last(error), ended=9.0)

    assert [
        "attempt 1: took 0.250 s: ConnectionError: first line",
        "attempt 2: waited 1.000 s, took 0.500 s: this error; no attempt is left",
    ] == error.__notes__
    assert (FIRST, last(error)) == attempts_of(error)


def test_nothing_is_noted_where_nothing_was_retried() -> None:
    """An error that nobody wanted retried, of an only attempt; the records are there."""
    error = ValueError()
    record = AttemptRecord(1, error, 0.0, 0.0, RetryEnding.NOT_RETRY_SAFE)
    attach([], record, ended=9.0)

    assert not hasattr(error, "__notes__")
    assert (record,) == attempts_of(error)


@rows("error", [Frozen(1), Slotted()])
def test_errors_that_refuse_attributes(error: Exception) -> None:
    """Their attempts are kept all the same."""
    attach([FIRST], last(error), ended=9.0)

    assert 2 == len(attempts_of(error))
    assert 2 == len(error.__notes__)


def test_an_error_that_takes_nothing() -> None:
    """It goes without, and nothing is raised; a result has nothing to keep them."""
    error = Closed()
    attach([FIRST], last(error), ended=9.0)
    attach([FIRST], last(None), ended=9.0)

    assert ((), (), ()) == (attempts_of(error), attempts_of(ValueError()), attempts_of(KeyboardInterrupt()))


def test_an_error_that_ends_one_call_after_the_other() -> None:
    """It has the attempts and notes of the last one, and those that somebody else added."""
    error = ConnectionError()
    error.add_note("mine")
    for ended in range(10, 100, 10):
        attach([FIRST], last(error), ended=ended)
        error.add_note(f"of call {ended}") if ended == 10 else None

    assert ["mine", "of call 10"] == error.__notes__[:2]
    assert 4 == len(error.__notes__)
    assert 2 == len(attempts_of(error))


def test_notes_of_an_inner_call_stay() -> None:
    """It ended within the last attempt of the outer one."""
    error = ConnectionError()
    attach([FIRST], last(error), ended=9.0)
    attach([], AttemptRecord(1, error, 0.0, 2.0, RetryEnding.QUOTA), ended=10.0)

    assert 3 == len(error.__notes__)
    assert error.__notes__[-1].endswith("the retry quota is used up")
    assert 1 == len(attempts_of(error))


def test_no_more_notes_than_anybody_reads() -> None:
    """However many attempts there were, or calls within calls."""
    error = ConnectionError()
    for _ in range(5):
        attach([FIRST] * 50, last(error), ended=9.0)

    assert NOTES_MAX == len(error.__notes__)


def test_notes_that_are_none() -> None:
    """What somebody put in the place of the list stays."""
    error = ConnectionError()
    vars(error)["__notes__"] = "mine"
    attach([FIRST], last(error), ended=9.0)

    assert "mine" == vars(error)["__notes__"]


@rows("copied", [copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])  # noqa: S301
def test_copies_keep_the_notes(copied: object) -> None:
    """Records do not travel, for errors of other attempts may be such as cannot."""
    error, unpicklable = ConnectionError("second"), ConnectionError(lambda: None)
    attach([AttemptRecord(1, unpicklable, 0.0, 0.0)], last(error), ended=9.0)
    found = copied(error)  # type: ignore[operator]

    assert (2, ()) == (len(found.__notes__), attempts_of(found))


@rows(
    ("error", "text"),
    [
        (None, "a result that was to be retried"),
        (ValueError(), "ValueError"),
        (Mute(), "Mute"),
        (ValueError("two\n lines"), "ValueError: two lines"),
        (ValueError("x" * 999), f"ValueError: {'x' * (NOTE_LENGTH_MAX - 1)}…"),
    ],
)
def test_errors_in_a_line(error: Exception | None, text: str) -> None:
    """Type and text, on one line that ends."""
    assert text == describe(error)


def test_an_error_that_ended_every_attempt_is_in_no_cycle() -> None:
    """The records have it, and it does not have itself: it goes without waiting for the garbage collector."""
    error = Mute()
    earlier = [FIRST._replace(error=error), AttemptRecord(2, None, 0.5, 0.25)]
    attach(earlier, AttemptRecord(3, error, 1.0, 0.5, RetryEnding.EXHAUSTED), ended=9.0)
    errors = [record.error for record in attempts_of(error)]
    gone = weakref.ref(error)

    assert [error, None, error] == errors
    gc.disable()
    try:
        del error, earlier, errors

        assert gone() is None
    finally:
        gc.enable()
