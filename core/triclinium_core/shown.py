"""Foreign text for messages, logs and output: printable, on one line, and bounded.

Text is foreign if a node, a network or a caller chose it. ``str.isprintable`` is the rule: it rejects control
characters (C0, DEL, C1), bidirectional controls, line and paragraph separators and lone surrogates. Each becomes a
visible escape, as in ``repr``, so that no text can forge a line of a log or control a terminal.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

_BITS_MAX = 10_000
"""Maximum length in bits of an integer that is shown. Python refuses to convert slightly longer ones, because the time
grows with the square of the length."""


SERVER_TEXT_MAX = 300
"""Maximum length of a server's text in errors and logs: longer than the known texts of servers."""

TEXT_READ_MAX = 2_000
"""Maximum number of characters to read of a server's text. An HTML page may begin with white space."""

MESSAGE_MAX = 4_000
"""Maximum length of an error message: three times the longest message of the client itself."""

STATEMENT_SHOWN_MAX = 1_000
"""Maximum length of a statement in errors, logs and spans: enough to recognise it, and short enough for a log."""

NAME_SHOWN_MAX = 250
"""Maximum length of a text in the representation of a context. A document key, the longest name that a server stores,
has at most 250 bytes."""

ENTRIES_SHOWN_MAX = 20
"""Maximum number of entries of a collection in the representation of a context: more than a message lists."""

VALUE_SHOWN_MAX = 500
"""Maximum length of a value in a message. A nested value can exceed the limits of its parts."""


def printable(text: str, most: int = MESSAGE_MAX) -> str:
    r"""Return ``text`` with at most ``most`` characters, each non-printable one written as an escape such as ``\x1b``.

    Cut a text that is too long in the middle, because messages end with the next step.
    """
    if len(text) <= most and text.isprintable():
        return text
    if len(text) > most:
        text = _cut(text, most)
    return _cut("".join(each if each.isprintable() else _escaped(each) for each in text), most)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end - 3]}...{text[-end:]}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    """Return the beginning of a server's text as one printable line of at most ``SERVER_TEXT_MAX`` characters.

    Replace each run of white space with one space, and other non-printable characters with escapes.
    """
    line = " ".join(text[:TEXT_READ_MAX].split())
    if not line.isprintable():
        line = "".join(each if each.isprintable() else _escaped(each) for each in line)
    return line if len(line) <= SERVER_TEXT_MAX else f"{line[: SERVER_TEXT_MAX - 3]}..."


def beginning(text: str, most: int) -> str:
    """Return at most ``most`` characters of ``text``, with three dots at the end if it was cut."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def printable_json(text: str) -> str:
    """Return JSON text of the same value with each non-printable character, except line breaks, as an escape."""
    return "\n".join(
        line if line.isprintable() else "".join(each if each.isprintable() else _json_escape(each) for each in line)
        for line in text.split("\n")
    )


def json_text(value: object) -> str:
    """Return ``value`` as one printable line of JSON in ASCII."""
    return printable_json(json.dumps(value))


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        return "<int>" if x.bit_length() > _BITS_MAX else super().repr_int(x, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxlong = 60
_SHORT.maxother = 200


def shown(value: object) -> str:
    """Return ``repr(value)``, printable, and shortened if it is long or deeply nested.

    Return the name of the type if ``repr`` raises, because a message must not fail on the value that it describes.
    """
    try:
        return printable(_SHORT.repr(value), VALUE_SHOWN_MAX)
    except Exception:
        return printable(f"<{type(value).__name__}>", VALUE_SHOWN_MAX)


def short_repr(value: object) -> str:
    """Return ``repr(value)`` with at most ``NAME_SHOWN_MAX`` characters of a text and ``ENTRIES_SHOWN_MAX`` entries.

    Write a text, and the texts in a tuple or a frozenset, as Python does. Shorten any other value as ``shown`` does.
    """
    if isinstance(value, str):
        return repr(beginning(value, NAME_SHOWN_MAX))
    if not isinstance(value, tuple | frozenset):
        return shown(value)
    entries = [short_repr(each) if isinstance(each, str) else shown(each) for each in islice(value, ENTRIES_SHOWN_MAX)]
    if len(value) > ENTRIES_SHOWN_MAX:
        entries.append("...")
    listed = ", ".join(entries)
    if isinstance(value, tuple):
        return f"({listed},)" if len(entries) == 1 else f"({listed})"
    return f"frozenset({{{listed}}})" if entries else "frozenset()"


def total_repr(describe: Callable[[T], str]) -> Callable[[T], str]:
    """Return a ``__repr__`` with printable results that never fails because of missing attributes.

    If a constructor raises, the half-built object is a local variable of the traceback, and crash reports show it.
    """

    @wraps(describe)
    def described(self: T) -> str:
        try:
            return printable(describe(self))
        except AttributeError:
            return f"<{type(self).__name__}: not initialised>"

    return described


JSON_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def in_json(value: object) -> str:
    """Return the name of the type of ``value`` in JSON."""
    return JSON_KINDS.get(type(value), type(value).__name__)
