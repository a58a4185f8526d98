"""Concealment of credentials in foreign text, because a proxy or a service may repeat a request in its error."""

from __future__ import annotations

import re
from dataclasses import dataclass

PART_MIN = 6
"""Minimum length of a replaced part of a token: six characters of base64 carry four bytes, less than a password."""

PASSWORD_MIN = 6
"""Minimum length of a replaced password; a shorter one may be an ordinary word of the text."""

TEXT_SIZE_MAX = 8_000
"""Maximum length of a searched text, at 1 to 3 microseconds for each character: twice that of the longest message."""

CONCEALED = "***"
"""The replacement."""

_UNIT = re.compile(
    r"%([0-9a-f]{2})|\\u00([0-9a-f]{2})|&#x0*([0-9a-f]{2});|&#0*([0-9]{2,3});|&(lt|gt|amp|quot|apos);|\\([/\\\"])|(.)",
    re.IGNORECASE | re.DOTALL,
)
"""One character of a text, as a percent-code, a JSON escape, an HTML reference or itself."""

_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclass(frozen=True, slots=True)
class Secrets:
    """Credentials in the forms in which a text may repeat them."""

    tokens: tuple[str, ...] = ()
    """Opaque credentials, such as user name and password in base64; any part of ``PART_MIN`` characters is replaced."""
    passwords: tuple[str, ...] = ()
    """Readable credentials; only a whole one is replaced."""

    def __repr__(self) -> str:
        return "Secrets()"

    def with_passwords(self, passwords: tuple[str, ...]) -> Secrets:
        """Return these secrets with more passwords. Leave out short ones."""
        more = tuple(password for password in passwords if len(password) >= PASSWORD_MIN)
        return Secrets(self.tokens, (*self.passwords, *more)) if more else self

    def conceal(self, text: str) -> str:
        """Return ``text`` with ``***`` in place of each secret, in any case and in escapes of URLs, JSON and HTML.

        A text of more than ``TEXT_SIZE_MAX`` characters is cut: what is not searched is not returned.
        """
        if not (text and (self.tokens or self.passwords)):
            return text
        if len(text) > TEXT_SIZE_MAX:
            text = f"{text[: TEXT_SIZE_MAX - 3]}..."
        units = list(_UNIT.finditer(text))
        plain = "".join(_lower(_character(unit)) for unit in units)
        spans = [span for token in self.tokens for span in _parts(plain, token)]
        spans += [span for password in self.passwords for span in _wholes(plain, password)]
        kept, done = [], 0
        for start, end in sorted(spans):
            if start >= done:
                kept += [text[_start(units, done, text) : _start(units, start, text)], CONCEALED]
            done = max(done, end)
        return "".join([*kept, text[_start(units, done, text) :]])


NO_SECRETS = Secrets()


def _character(unit: re.Match[str]) -> str:
    percent, json, hexadecimal, decimal, named, escaped, itself = unit.groups()
    code = percent or json or hexadecimal
    if code is not None:
        return chr(int(code, 16))
    if named is not None:
        return _NAMED[named.lower()]
    return chr(int(decimal)) if decimal is not None else escaped or itself


def _lower(character: str) -> str:
    lower = character.lower()
    # One character has a lower case of two characters, which would shift the rest.
    return lower if len(lower) == 1 else character


def _start(units: list[re.Match[str]], index: int, text: str) -> int:
    return units[index].start() if index < len(units) else len(text)


def _parts(plain: str, token: str) -> list[tuple[int, int]]:
    """Return the spans of parts of a token in ``plain``; they may overlap. A short token counts only as a whole."""
    if len(token) < PART_MIN:
        return _wholes(plain, token)
    lower = "".join(map(_lower, token))
    parts = {lower[at : at + PART_MIN] for at in range(len(lower) - PART_MIN + 1)}
    return [(at, at + PART_MIN) for at in range(len(plain) - PART_MIN + 1) if plain[at : at + PART_MIN] in parts]


def _wholes(plain: str, password: str) -> list[tuple[int, int]]:
    """Return the spans of a password in ``plain`` that are not part of a longer word."""
    # Percent-codes stand for bytes of UTF-8, and a form writes a space as a plus sign.
    forms = {"".join(map(_lower, form)).replace("+", " ") for form in (password, password.encode().decode("latin-1"))}
    text = plain.replace("+", " ")
    return [match.span() for form in forms if form for match in re.finditer(rf"(?<!\w){re.escape(form)}(?!\w)", text)]
