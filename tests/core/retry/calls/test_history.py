"""History of a call: the records and notes of its attempts on the last error, and their limits."""

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
    """Return the record of a second attempt, which is the last."""
    return AttemptRecord(2, error, 1.0, elapsed, ending)


@dataclass(frozen=True)
class Frozen(Exception):
    """Error that refuses new attributes."""

    code: int


class Slotted(Exception):
    """Error with ``__slots__``."""

    __slots__ = ("code",)


class Mute(Exception):
    """Error whose ``str`` raises."""

    def __str__(self) -> str:
        raise ZeroDivisionError


class Closed(Exception):
    """Error that raises another error if its ``__dict__`` is read."""

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise ZeroDivisionError


def test_each_attempt_has_a_note() -> None:
    """The error gets a note for each attempt with delay, duration and error; the last note states why the call ended."""
    error = ConnectionError("second")
    attach([FIRST], last(error), ended=9.0)

    assert [
        "attempt 1: took 0.250 s: ConnectionError: first line",
        "attempt 2: waited 1.000 s, took 0.500 s: this error; no attempt is left",
    ] == error.__notes__
    assert (FIRST, last(error)) == attempts_of(error)


def test_a_single_unsafe_attempt_has_no_note() -> None:
    """If the only attempt fails with an error that is not retry-safe, the error has a record but no note."""
    error = ValueError()
    record = AttemptRecord(1, error, 0.0, 0.0, RetryEnding.NOT_RETRY_SAFE)
    attach([], record, ended=9.0)

    assert not hasattr(error, "__notes__")
    assert (record,) == attempts_of(error)


@rows("error", [Frozen(1), Slotted()])
def test_errors_that_refuse_attributes(error: Exception) -> None:
    """Frozen and slotted errors also get records and notes."""
    attach([FIRST], last(error), ended=9.0)

    assert 2 == len(attempts_of(error))
    assert 2 == len(error.__notes__)


def test_an_error_without_attributes() -> None:
    """If an error's attributes cannot be read, or the last attempt has no error, nothing is recorded or raised."""
    error = Closed()
    attach([FIRST], last(error), ended=9.0)
    attach([FIRST], last(None), ended=9.0)

    assert ((), (), ()) == (attempts_of(error), attempts_of(ValueError()), attempts_of(KeyboardInterrupt()))


def test_an_error_of_several_calls() -> None:
    """An error that several calls raise has the attempts of the last call, and keeps the notes of other code."""
    error = ConnectionError()
    error.add_note("mine")
    for ended in range(10, 100, 10):
        attach([FIRST], last(error), ended=ended)
        error.add_note(f"of call {ended}") if ended == 10 else None

    assert ["mine", "of call 10"] == error.__notes__[:2]
    assert 4 == len(error.__notes__)
    assert 2 == len(attempts_of(error))


def test_notes_of_an_inner_call_stay() -> None:
    """The notes of an inner call stay on the error, and the outer call replaces the records of the inner call."""
    error = ConnectionError()
    attach([FIRST], last(error), ended=9.0)
    attach([], AttemptRecord(1, error, 0.0, 2.0, RetryEnding.QUOTA), ended=10.0)

    assert 3 == len(error.__notes__)
    assert error.__notes__[-1].endswith("the retry quota is used up")
    assert 1 == len(attempts_of(error))


def test_notes_are_limited() -> None:
    """An error has at most ``NOTES_MAX`` notes, even after many attempts and nested calls."""
    error = ConnectionError()
    for _ in range(5):
        attach([FIRST] * 50, last(error), ended=9.0)

    assert NOTES_MAX == len(error.__notes__)


def test_invalid_notes_stay() -> None:
    """A ``__notes__`` that is not a list stays unchanged."""
    error = ConnectionError()
    vars(error)["__notes__"] = "mine"
    attach([FIRST], last(error), ended=9.0)

    assert "mine" == vars(error)["__notes__"]


@rows("copied", [copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])  # noqa: S301
def test_copies_keep_the_notes(copied: object) -> None:
    """A copy or pickle of an error keeps the notes but not the records, because records may not be picklable."""
    error, unpicklable = ConnectionError("second"), ConnectionError(lambda: None)
    attach([AttemptRecord(1, unpicklable, 0.0, 0.0)], last(error), ended=9.0)
    found = copied(error)  # type: ignore[operator]

    assert (2, ()) == (len(found.__notes__), attempts_of(found))


@rows(
    ("error", "text"),
    [
        (None, "a result that requires a retry"),
        (ValueError(), "ValueError"),
        (Mute(), "Mute"),
        (ValueError("two\n lines"), "ValueError: two lines"),
        (ValueError("x" * 999), f"ValueError: {'x' * (NOTE_LENGTH_MAX - 1)}…"),
    ],
)
def test_errors_in_a_line(error: Exception | None, text: str) -> None:
    """An error is described by its type and text in one line of limited length."""
    assert text == describe(error)


def test_records_make_no_reference_cycle() -> None:
    """An error that its own records contain is freed without the garbage collector."""
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
