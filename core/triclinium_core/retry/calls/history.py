"""History of the attempts of a call, attached to its last error as records and as notes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

NOTES_MAX = 20
"""Maximum number of notes that this module adds to one error; only the latest attempts get one."""

NOTE_LENGTH_MAX = 160
"""Maximum length of an error's text in a note, in characters."""

_KEY = "_triclinium_attempts"


class RetryEnding(Enum):
    """Reason why no further attempt was made."""

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
    """Error that the attempt raised; None if its result was to be retried."""
    delay: float
    """Seconds waited before the attempt."""
    elapsed: float
    """Duration of the attempt, in seconds."""
    ending: RetryEnding | None = None
    """Why this attempt was the last; None if another one followed."""


_THIS = Exception("the error with the history")
"""Placeholder for an error in its own records."""


class _Story:
    """Attempts that led to an error, as attached to it.

    Records hold a placeholder instead of the error itself, which may have ended earlier attempts too. This avoids a
    reference cycle.
    """

    __slots__ = ("delay", "earlier", "elapsed", "ended", "ending", "notes", "number")

    def __init__(self, earlier: Sequence[AttemptRecord], last: AttemptRecord, ended: float) -> None:
        self.earlier = _exchange(earlier, last.error, _THIS)
        self.number, _, self.delay, self.elapsed, self.ending = last
        self.ended = ended
        self.notes: list[str] = []

    def __reduce__(self) -> tuple[object, ...]:
        # Earlier errors may not support copying or pickling, but must not prevent it here. The notes are copied.
        return _nothing, ()


def _nothing() -> None:
    return None


def _exchange(records: Sequence[AttemptRecord], old: Exception | None, new: Exception) -> tuple[AttemptRecord, ...]:
    return tuple(record._replace(error=new) if record.error is old else record for record in records)


def attempts_of(error: BaseException) -> tuple[AttemptRecord, ...]:
    """Return the attempts that ended with ``error``, oldest first; empty if the error ended no call.

    After more than a hundred failures, only the last attempt and the hundred before it are kept. Their errors keep
    their tracebacks, and thereby all that their frames refer to, for as long as this error lives.

    For nested calls these are the attempts of the outermost call; the errors of its earlier attempts have their own. A
    copied or unpickled error has no attempts, but keeps its notes.
    """
    story = _story_of(error)
    if story is None or not isinstance(error, Exception):
        return ()
    return (
        *_exchange(story.earlier, _THIS, error),
        AttemptRecord(story.number, error, story.delay, story.elapsed, story.ending),
    )


def attach(earlier: Sequence[AttemptRecord], last: AttemptRecord, *, ended: float) -> None:
    """Attach the attempts to the error of the last one, and add a note for each attempt.

    This never raises, even if the error's class refuses attributes. If the error already ended another call, the
    attempts and notes of that call are replaced. If that call was a part of the last attempt, its notes stay in front.

    Args:
        last: its ``error`` gets the attempts.
        ended: end of the last attempt, in monotonic seconds.
    """
    error = last.error
    if error is None:
        return
    before, story = _story_of(error), _Story(earlier, last, ended)
    is_inner = before is not None and before.ended >= ended - last.elapsed
    story.notes = [*(before.notes if before is not None and is_inner else ()), *_notes(earlier, last)][-NOTES_MAX:]
    try:
        # Bypass __setattr__, which raises in a frozen dataclass.
        error.__dict__[_KEY] = story
        _replace_notes(error, before.notes if before is not None else (), story.notes)
    except Exception:
        # The error is the user's and may be of any class. Skip what its class refuses.
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
    """Return a note for each attempt; none for a single attempt whose error is not retry-safe."""
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
    """Return the type and text of an error in one line, with the text limited to ``NOTE_LENGTH_MAX``."""
    if error is None:
        return "a result that requires a retry"
    try:
        text = " ".join(str(error).split())
    except Exception:
        # A user's error whose __str__ raises.
        text = ""
    if len(text) > NOTE_LENGTH_MAX:
        text = f"{text[: NOTE_LENGTH_MAX - 1]}…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
