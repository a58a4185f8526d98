"""Lines of an event tape.

A tape has one JSON object per line: a ``Header``, then one ``Line`` for each call that can change the machine or a
permit. If the recording ends before the client, an ``EndLine`` follows. Fields with their default value are omitted.
Times are monotonic seconds. ``values`` defines the form of events and answers.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

FORMAT = 1
"""Version of the format. A reader refuses a tape with a higher version."""

LINE_SIZE_MAX = 64 * 1024 * 1024
"""Maximum size of a line in bytes, without the line break: two of the largest documents in Base64. A recording ends at
a larger event, such as a block of many large documents."""

PARTS_MAX = 4_000_000
"""Maximum number of commas and opening brackets in a line. Each may need 100 bytes of memory when it is decoded."""

NOTICE = "treat this file as a core dump: it contains data and credentials"


class Answer(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Answer of user code, such as a strategy that the caller passed to the client."""

    of: str
    """Number of the object on this tape, and the name of its method."""
    gave: object = None
    """Result as a value."""
    raised: object = None
    """Exception as a value; None if the method returned."""


class Header(Struct, frozen=True, omit_defaults=True, tag_field="tape", tag="events"):
    """First line of a tape."""

    version: int
    core: str
    """Version of the core that recorded the tape."""
    notice: str
    options: object
    """``ClientOptions`` as a value."""
    random: tuple[object, ...] = ()
    """Random numbers that the constructor of the machine drew."""


class EventLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="line", tag="event"):
    """One call of ``handle``."""

    now: object
    event: object
    digest: tuple[str, ...]
    """Entries of the actions in order, or the exception if ``handle`` raised one; then ``wakeup``."""
    answers: tuple[Answer, ...] = ()
    """Answers of user code inside ``handle``, in order."""
    random: tuple[object, ...] = ()
    """Random numbers that the machine drew; not those that user code drew."""


class PermitLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="line", tag="permit"):
    """The driver began to await a permit, or its asynchronous strategy answered. Both change the permit.

    The ``StrategyDecided`` with the decision is a later line, unless the operation has ended.
    """

    token: object
    answers: tuple[Answer, ...] = ()
    """Answer of the strategy; empty at the beginning."""


class CallLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="line", tag="call"):
    """One call of another method that changes the machine."""

    method: Literal["error_context", "last_reports"]
    now: object
    digest: tuple[str, ...]
    token: object = None


class EndLine(Struct, frozen=True, forbid_unknown_fields=True, tag_field="line", tag="end"):
    """The recording ended before the client, for this reason."""

    reason: str


Line = EventLine | PermitLine | CallLine | EndLine


def is_too_large(line: bytes) -> bool:
    """Return whether a line, with or without its line break, exceeds a maximum, so that no reader accepts it."""
    return (
        len(line) > LINE_SIZE_MAX + line.endswith(b"\n")
        or line.count(b",") + line.count(b"[") + line.count(b"{") > PARTS_MAX
    )
