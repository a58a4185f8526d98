"""SASLprep, which maps equivalent spellings of a user name or password to one spelling.

Source: RFC 4013; RFC 3454 (stringprep).
"""

from __future__ import annotations

from collections.abc import Callable
from stringprep import (
    in_table_a1,
    in_table_b1,
    in_table_c3,
    in_table_c4,
    in_table_c5,
    in_table_c6,
    in_table_c7,
    in_table_c8,
    in_table_c9,
    in_table_c12,
    in_table_c21_c22,
    in_table_d1,
    in_table_d2,
)

# RFC 3454 requires the tables of Unicode 3.2. Newer tables could give other bytes for the same password.
from unicodedata import ucd_3_2_0

_PROHIBITED: tuple[Callable[[str], bool], ...] = (
    in_table_c12,
    in_table_c21_c22,
    in_table_c3,
    in_table_c4,
    in_table_c5,
    in_table_c6,
    in_table_c7,
    in_table_c8,
    in_table_c9,
)


class ProhibitedText(ValueError):
    """A string has a character or direction that SASLprep prohibits. The message names the rule, but not the string."""


def saslprep(text: str, *, stored: bool = False) -> str:
    """Return the SASLprep form of ``text``.

    Args:
        stored: whether ``text`` is a stored string. Stored strings must not contain characters newer than Unicode 3.2.

    Raises:
        ProhibitedText: a prohibited character remains, or the text breaks the rules for right-to-left characters.

    Source: RFC 4013 §2.1 to §2.5; RFC 3454 §6 (direction), §7 (unassigned code points).
    """
    mapped = "".join(" " if in_table_c12(character) else character for character in text if not in_table_b1(character))
    prepared = ucd_3_2_0.normalize("NFKC", mapped)
    if any(is_in_table(character) for is_in_table in _PROHIBITED for character in prepared):
        raise ProhibitedText("has a character that SASLprep (RFC 4013) prohibits, for example a control character")
    if any(map(in_table_d1, prepared)) and (
        any(map(in_table_d2, prepared)) or not (in_table_d1(prepared[0]) and in_table_d1(prepared[-1]))
    ):
        raise ProhibitedText(
            "mixes left-to-right and right-to-left text, or has right-to-left text that does not begin and end with a "
            "right-to-left character, which SASLprep (RFC 4013) prohibits"
        )
    if stored and any(map(in_table_a1, prepared)):
        raise ProhibitedText("has a character that is not in Unicode 3.2; SASLprep (RFC 4013) prohibits it")
    return prepared
