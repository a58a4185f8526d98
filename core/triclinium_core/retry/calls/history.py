"""History of the attempts of a call, kept with its last error as records and as notes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

NOTES_MAX = 20
"""Lines that one error carries of us at most: of many attempts the last ones tell enough."""

NOTE_LENGTH_MAX = 160
"""Characters of an error's text in a note."""

_KEY = "_triclinium_attempts"


class RetryEnding(Enum):
    """Why a call was not tried once more."""

    NOT_RETRY_SAFE = "the error is not retry-safe"
    EXHAUSTED = "no attempt is left"
    QUOTA = "the retry quota is used up"
    REFUSED = "the strategy refused, without a reason that is known here"
    DEADLINE = "the next attempt would begin at the deadline or after it"
    NO_TOKEN = "the strategy had no token for the first attempt, so it was the only one"  # noqa: S105 - a sentence

    def __str__(self) -> str:
        return self.value


class AttemptRecord(NamedTuple):
    """One attempt that failed."""

    number: int
    """1 is the first."""
    error: Exception | None
    """What it raised; None where its result was to be retried."""
    delay: float
    """Seconds that were waited before it."""
    elapsed: float
    """Seconds that it took."""
    ending: RetryEnding | None = None
    """Why it was the last one; None where another one followed."""


_THIS = Exception("the error that carries the story")
"""Stands for it in its own story."""


class _Story:
    """What an error carries of the attempts that led to it.

    Records are kept without the error itself, which may have ended earlier attempts too, so that it is in no reference cycle.
    """

    __slots__ = ("delay", "earlier", "elapsed", "ended", "ending", "notes", "number")

    def __init__(self, earlier: Sequence[AttemptRecord], last: AttemptRecord, ended: float) -> None:
        self.earlier = _exchange(earlier, last.error, _THIS)
        self.number, _, self.delay, self.elapsed, self.ending = last
        self.ended = ended
        self.notes: list[str] = []

    def __reduce__(self) -> tuple[object, ...]:
        # Earlier errors may be such as cannot be copied or pickled, and must not keep this one from it. The notes travel.
        return _nothing, ()


def _nothing() -> None:
    return None


def _exchange(records: Sequence[AttemptRecord], old: Exception | None, new: Exception) -> tuple[AttemptRecord, ...]:
    return tuple(record._replace(error=new) if record.error is old else record for record in records)


def attempts_of(error: BaseException) -> tuple[AttemptRecord, ...]:
    """Return the attempts that ended with ``error``, oldest first; nothing where it did not end any.

    Of very many attempts these are the last one and the hundred before it. Their errors keep their tracebacks, and with them what their frames
    hold, for as long as this error lives.

    Of nested calls these are the attempts of the outermost; errors of its earlier attempts have theirs. A copy of an error,
    or one that was pickled, has none; its notes are still there.
    """
    story = _story_of(error)
    if story is None or not isinstance(error, Exception):
        return ()
    return (
        *_exchange(story.earlier, _THIS, error),
        AttemptRecord(story.number, error, story.delay, story.elapsed, story.ending),
    )


def attach(earlier: Sequence[AttemptRecord], last: AttemptRecord, *, ended: float) -> None:
    """Keep the attempts with the error of the last one, and write a note for each to it.

    Nothing raises here, whatever the class of the error refuses. An error that had ended another call before has that one's
    attempts and notes replaced, unless that call was a part of the last attempt: then its notes stay in front.

    Args:
        last: its ``error`` gets them.
        ended: seconds, monotonic: when the last attempt ended.
    """
    error = last.error
    if error is None:
        return
    before, story = _story_of(error), _Story(earlier, last, ended)
    is_inner = before is not None and before.ended >= ended - last.elapsed
    story.notes = [*(before.notes if before is not None and is_inner else ()), *_notes(earlier, last)][-NOTES_MAX:]
    try:
        # Past __setattr__: that of a frozen dataclass refuses.
        error.__dict__[_KEY] = story
        _replace_notes(error, before.notes if before is not None else (), story.notes)
    except Exception:
        # The error is the user's, and may be of any make. What it does not take it goes without.
        return


def _story_of(error: BaseException) -> _Story | None:
    try:
        found = error.__dict__.get(_KEY)
    except Exception:
        return None
    return found if isinstance(found, _Story) else None


def _replace_notes(error: Exception, old: Sequence[str], new: Sequence[str]) -> None:
    if not old and not new:
        return
    notes = error.__dict__.setdefault("__notes__", [])
    if isinstance(notes, list):
        known = set(map(id, old))
        notes[:] = [*(note for note in notes if id(note) not in known), *new]


def _notes(earlier: Sequence[AttemptRecord], last: AttemptRecord) -> list[str]:
    """Return a line for each attempt; none for an only one whose error nobody wanted retried."""
    if not earlier and last.ending is RetryEnding.NOT_RETRY_SAFE:
        return []
    lines = [
        f"attempt {number}: {_times(delay, elapsed)}: {describe(error)}" for number, error, delay, elapsed, _ in earlier
    ]
    return [*lines, f"attempt {last.number}: {_times(last.delay, last.elapsed)}: this error; {last.ending}"]


def _times(delay: float, elapsed: float) -> str:
    waited = f"waited {delay:.3f} s, " if delay else ""
    return f"{waited}took {elapsed:.3f} s"


def describe(error: BaseException | None) -> str:
    """Return an error in one line: its type and its text, no longer than a note may be."""
    if error is None:
        return "a result that was to be retried"
    try:
        text = " ".join(str(error).split())
    except Exception:
        # An error of the user's that cannot even say what it is.
        text = ""
    if len(text) > NOTE_LENGTH_MAX:
        text = f"{text[: NOTE_LENGTH_MAX - 1]}…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
