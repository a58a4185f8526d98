"""Functions that make untrusted text safe for messages, logs and output: printable, and mostly on one short line.

Text is untrusted if a node, a network or a caller chose it. A character is printable if ``str.isprintable`` accepts it.
That method rejects control characters (C0, DEL, C1), bidirectional controls, line and paragraph separators, and lone
surrogates. The functions replace each rejected character, except line breaks between lines of JSON, with a visible
escape, as ``repr`` does, or a space, so that no text can forge a line of a log or control a terminal.
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
"""Maximum length in bits of an integer that is shown in full. By default, Python refuses to convert integers of more
than about 14,000 bits to text, because the conversion time grows with the square of the length."""


SERVER_TEXT_MAX = 300
"""Maximum length of a server's text in errors and logs. The known texts of servers are shorter."""

TEXT_READ_MAX = 2_000
"""Maximum number of characters to read from a server's text. It exceeds ``SERVER_TEXT_MAX``, because an HTML page may
begin with much white space."""

MESSAGE_MAX = 4_000
"""Maximum length of an error message: three times the longest message of the client itself."""

STATEMENT_SHOWN_MAX = 1_000
"""Maximum length of a statement in errors, logs and spans: enough to recognise it, and short enough for a log."""

NAME_SHOWN_MAX = 250
"""Maximum length of a string in the ``repr`` of a context. A document key has at most 250 bytes."""

ENTRIES_SHOWN_MAX = 20
"""Maximum number of entries of a collection in the ``repr`` of a context. A message lists fewer."""

VALUE_SHOWN_MAX = 500
"""Maximum length of a value in a message. ``reprlib`` limits each part of a nested value, but not the complete text."""


def printable(text: str, most: int = MESSAGE_MAX) -> str:
    r"""Return ``text`` with each non-printable character as an escape such as ``\x1b``, in at most ``most`` characters.

    If the text is too long, cut out its middle, because the end of a message has the next step.
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

    Replace each run of white space with one space, and each other non-printable character with an escape.
    """
    line = " ".join(text[:TEXT_READ_MAX].split())
    if not line.isprintable():
        line = "".join(each if each.isprintable() else _escaped(each) for each in line)
    return line if len(line) <= SERVER_TEXT_MAX else f"{line[: SERVER_TEXT_MAX - 3]}..."


def beginning(text: str, most: int) -> str:
    """Return at most ``most`` characters of ``text``, with three dots at the end if it was cut."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def printable_json(text: str) -> str:
    """Return the JSON ``text`` with each non-printable character as a JSON escape. Line breaks stay."""
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
    """Return ``repr(value)`` as printable text, shortened if the value is long or deeply nested.

    If ``repr`` raises, return the name of the type: an error in ``repr`` must not replace the error that is reported.
    """
    try:
        return printable(_SHORT.repr(value), VALUE_SHOWN_MAX)
    except Exception:
        return printable(f"<{type(value).__name__}>", VALUE_SHOWN_MAX)


def short_repr(value: object) -> str:
    """Return ``repr(value)``, shortened.

    Cut a string, and each string in a tuple or a frozenset, to ``NAME_SHOWN_MAX`` characters, and a tuple or a
    frozenset to ``ENTRIES_SHOWN_MAX`` entries. Shorten any other value as ``shown`` does.
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
    """Return a ``__repr__`` that returns the printable text of ``describe`` and never raises AttributeError.

    If a constructor raises, crash reports call ``repr`` on the incomplete object, because the traceback refers to it.
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
    """Return the name of the type of ``value`` in JSON, or in Python if JSON has no such type."""
    return JSON_KINDS.get(type(value), type(value).__name__)
