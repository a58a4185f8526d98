"""Records of the attempts of a call, and functions that attach them to the call's last error and add notes to it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

NOTES_MAX = 20
"""Maximum number of notes that this module adds to an error. Only the latest attempts have notes."""

NOTE_LENGTH_MAX = 160
"""Maximum number of characters of an error's text in a note."""

_KEY = "_triclinium_attempts"


class RetryEnding(Enum):
    """Reason why a call made no further attempt."""

    NOT_RETRY_SAFE = "the error is not retry-safe"
    EXHAUSTED = "no attempt is left"
    QUOTA = "the retry quota is used up"
    REFUSED = "the strategy refused and gave no known reason"
    DEADLINE = "the next attempt would start at or after the deadline"
    NO_TOKEN = "the strategy issued no first token, so there was only one attempt"  # noqa: S105 - a sentence

    def __str__(self) -> str:
        return self.value


class AttemptRecord(NamedTuple):
    """Record of one failed attempt."""

    number: int
    """Number of the attempt, from 1."""
    error: Exception | None
    """Error that the attempt raised; None if it returned a result that the caller's rule did not accept."""
    delay: float
    """Seconds for which the call waited before the attempt."""
    elapsed: float
    """Duration of the attempt, in seconds."""
    ending: RetryEnding | None = None
    """Reason why this attempt was the last; None if another attempt followed."""


_THIS = Exception("the error with the history")
"""Placeholder in the records that are attached to an error, in place of the error itself."""


class _Story:
    """Attempts of a call, attached to the error with which the call ended.

    The same error object may have ended earlier attempts too. The records then have a placeholder instead of the error,
    which avoids a reference cycle.
    """

    __slots__ = ("delay", "earlier", "elapsed", "ended", "ending", "notes", "number")

    def __init__(self, earlier: Sequence[AttemptRecord], last: AttemptRecord, ended: float) -> None:
        self.earlier = _exchange(earlier, last.error, _THIS)
        self.number, _, self.delay, self.elapsed, self.ending = last
        self.ended = ended
        self.notes: list[str] = []

    def __reduce__(self) -> tuple[object, ...]:
        # A copied or unpickled error has no records, because the errors of earlier attempts may not support copying or
        # pickling. It keeps its notes.
        return _nothing, ()


def _nothing() -> None:
    return None


def _exchange(records: Sequence[AttemptRecord], old: Exception | None, new: Exception) -> tuple[AttemptRecord, ...]:
    return tuple(record._replace(error=new) if record.error is old else record for record in records)


def attempts_of(error: BaseException) -> tuple[AttemptRecord, ...]:
    """Return the attempts of the call that ended with ``error``, oldest first; empty if none are attached to it.

    After more than a hundred failures, only the last attempt and the hundred attempts before it are kept. While
    ``error`` exists, it keeps alive the errors of these attempts, their tracebacks, and all objects to which the frames
    refer.

    If calls are nested, the result has the attempts of the outermost call. The errors of its earlier attempts have the
    attempts of the inner calls. A copied or unpickled error has no attempts, but keeps its notes.
    """
    story = _story_of(error)
    if story is None or not isinstance(error, Exception):
        return ()
    return (
        *_exchange(story.earlier, _THIS, error),
        AttemptRecord(story.number, error, story.delay, story.elapsed, story.ending),
    )


def attach(earlier: Sequence[AttemptRecord], last: AttemptRecord, *, ended: float) -> None:
    """Attach the records of all attempts to the error of the last attempt, and add notes about the attempts.

    This function never raises, even if the error's class refuses attributes. If the same error has already ended
    another call, replace the attempts and notes of that call. But if that call was made within the last attempt, keep
    its notes before the new ones.

    Args:
        last: record of the last attempt, with the error to which the records are attached.
        ended: time at which the last attempt ended, in monotonic seconds.
    """
    error = last.error
    if error is None:
        return
    before, story = _story_of(error), _Story(earlier, last, ended)
    is_inner = before is not None and before.ended >= ended - last.elapsed
    story.notes = [*(before.notes if before is not None and is_inner else ()), *_notes(earlier, last)][-NOTES_MAX:]
    try:
        # ``setattr`` would raise for an error that is a frozen dataclass.
        error.__dict__[_KEY] = story
        _replace_notes(error, before.notes if before is not None else (), story.notes)
    except Exception:
        # The error may be of a user's class, which may refuse attributes or notes.
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
    """Return a note for each attempt, but no note for a single attempt whose retry was not safe."""
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
    """Return the type and the text of an error in one line. Cut the text to ``NOTE_LENGTH_MAX`` characters.

    None stands for a result that the caller's rule did not accept.
    """
    if error is None:
        return "a result that requires a retry"
    try:
        text = " ".join(str(error).split())
    except Exception:
        # The ``__str__`` of a user's error class may raise.
        text = ""
    if len(text) > NOTE_LENGTH_MAX:
        text = f"{text[: NOTE_LENGTH_MAX - 1]}…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
