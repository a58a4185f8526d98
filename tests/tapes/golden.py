"""Golden tapes and their texts. This module uses only the core, because its tests also run inside WebAssembly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from triclinium_core.event_tape.lines import CallLine, EndLine, EventLine, Line, PermitLine
from triclinium_core.event_tape.replay import replay

FOLDER = Path(__file__).parents[1] / "data" / "tapes"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def path_of(name: str) -> Path:
    """Return the path of a tape."""
    return FOLDER / f"{name}.jsonl"


def updated(tape: bytes) -> bytes:
    """Return a tape with the same events, and with the digests of today's code.

    Raises:
        TapeError: the tape cannot be read.
    """
    lines = tape.splitlines(keepends=True)
    while (difference := replay(lines).difference) is not None:
        line = msgspec.json.decode(lines[difference.line - 1], type=EventLine | CallLine)
        line = msgspec.structs.replace(line, digest=difference.replayed)
        lines[difference.line - 1] = msgspec.json.encode(line) + b"\n"
    return b"".join(lines)


def text_of(tape: bytes) -> str:
    """Return the events, calls and other lines of a tape as text, with each entry of a digest on its own line."""
    return "".join(f"{text}\n" for text in _texts(tape))


def changes(tape: bytes) -> str:
    """Return a diff from the digests of a tape to those of today's code; an empty string if they are equal."""
    before, after = (text_of(each).splitlines() for each in (tape, updated(tape)))
    return "\n".join(unified_diff(before, after, "the tape", "today", lineterm="", n=2))


def _texts(tape: bytes) -> Iterator[str]:
    for number, text in islice(enumerate(tape.splitlines(), 1), 1, None):
        line: Line = msgspec.json.decode(text, type=Line)
        match line:
            case EventLine():
                yield f"{number}: {_name(line.event)}"
            case CallLine():
                yield f"{number}: {line.method}"
            case PermitLine():
                yield f"{number}: permit"
            case EndLine():
                yield f"{number}: {line.reason}"
        if isinstance(line, EventLine | CallLine):
            yield from (f"    {entry}" for entry in line.digest)


def _name(event: Any) -> str:
    """Return the class of an event, and that of its operation or request."""
    inner = event.get("operation") or event.get("request")
    return f"{event['$']} {inner['$']}" if isinstance(inner, Mapping) else str(event["$"])
