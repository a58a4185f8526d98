"""Replacement of credentials in text from the network. A proxy or a service may quote a request in an error."""

from __future__ import annotations

import re
from dataclasses import dataclass

PART_MIN = 6
"""Minimum length of a part of a token that is replaced. Six characters of base64 carry 36 bits, which is less than most
passwords have."""

PASSWORD_MIN = 6
"""Minimum length of a password that is replaced. A shorter password may also be an ordinary word in the text."""

BEGINNING_MIN = 4
"""Minimum number of characters that are replaced if text was cut within a credential. Fewer would reveal little."""

CUT = "..."
"""Characters at the end of text that was cut."""

TEXT_SIZE_MAX = 8_000
"""Maximum number of characters to search: twice the length of the longest message. The search takes 1 to 3 microseconds
per character."""

CONCEALED = "***"
"""Text that replaces a secret."""

_UNIT = re.compile(
    r"%([0-9a-f]{2})|\\u00([0-9a-f]{2})|&#x0*([0-9a-f]{2});|&#0*([0-9]{2,3});|&(lt|gt|amp|quot|apos);|\\([/\\\"])|(.)",
    re.IGNORECASE | re.DOTALL,
)
"""Pattern of one character: a percent-code, a JSON escape, an HTML reference, or the character itself."""

_UNFINISHED = re.compile(r"(?:%[0-9a-f]?|\\(?:u0{0,2}[0-9a-f]?)?|&[#a-z0-9]{0,6})\Z")
"""Pattern of an incomplete escape at the end of lower-case text."""

_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclass(frozen=True, slots=True)
class Secrets:
    """Credentials in the forms in which text from the network may repeat them."""

    tokens: tuple[str, ...] = ()
    """Encoded credentials, such as user name and password in base64. Any part of at least ``PART_MIN`` characters is
    replaced."""
    passwords: tuple[str, ...] = ()
    """Passwords in plain text. A password is replaced if all of it occurs outside a longer word, or if its beginning
    occurs before a cut."""

    def __repr__(self) -> str:
        return "Secrets()"

    def with_passwords(self, passwords: tuple[str, ...]) -> Secrets:
        """Return these secrets and ``passwords``, without those shorter than ``PASSWORD_MIN``."""
        more = tuple(password for password in passwords if len(password) >= PASSWORD_MIN)
        return Secrets(self.tokens, (*self.passwords, *more)) if more else self

    def conceal(self, text: str) -> str:
        """Return ``text`` with ``***`` in place of each secret.

        Find a secret regardless of case, even if its characters are escaped as in URLs, JSON or HTML. Three dots show
        that ``text`` was cut: replace the beginning of a secret before the dots too, if the beginning has at least
        ``BEGINNING_MIN`` characters. Cut ``text`` to at most ``TEXT_SIZE_MAX`` characters, so that no part of the
        result is unsearched.
        """
        if not (text and (self.tokens or self.passwords)):
            return text
        if len(text) > TEXT_SIZE_MAX:
            text = f"{text[: TEXT_SIZE_MAX - len(CUT)]}{CUT}"
        units = list(_UNIT.finditer(text))
        plain = "".join(_lower(_character(unit)) for unit in units)
        spans = [span for token in self.tokens for span in _parts(plain, token)]
        spans += [span for password in self.passwords for span in _wholes(plain, password)]
        if CUT in plain:
            spans += [span for secret in (*self.tokens, *self.passwords) for span in _beginnings(plain, secret)]
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
    # Some characters, such as U+0130, become two in lower case, which would shift all later positions.
    return lower if len(lower) == 1 else character


def _start(units: list[re.Match[str]], index: int, text: str) -> int:
    return units[index].start() if index < len(units) else len(text)


def _parts(plain: str, token: str) -> list[tuple[int, int]]:
    """Return the spans of parts of a token in ``plain``. Spans may overlap. A short token must occur completely."""
    if len(token) < PART_MIN:
        return _wholes(plain, token)
    lower = "".join(map(_lower, token))
    parts = {lower[at : at + PART_MIN] for at in range(len(lower) - PART_MIN + 1)}
    return [(at, at + PART_MIN) for at in range(len(plain) - PART_MIN + 1) if plain[at : at + PART_MIN] in parts]


def _wholes(plain: str, password: str) -> list[tuple[int, int]]:
    """Return the spans of a password in ``plain`` that are not part of a longer word."""
    forms, text = _forms(password), plain.replace("+", " ")
    return [match.span() for form in forms if form for match in re.finditer(rf"(?<!\w){re.escape(form)}(?!\w)", text)]


def _beginnings(plain: str, secret: str) -> list[tuple[int, int]]:
    """Return the spans in ``plain`` in which a secret begins at the start of a word and is cut off.

    If the cut is within an escape, the span includes the part of the escape before the cut.
    """
    text, spans = plain.replace("+", " "), list[tuple[int, int]]()
    for form in _forms(secret):
        start = text.find(form[:BEGINNING_MIN]) if len(form) > BEGINNING_MIN else -1
        while start >= 0:
            # A cut escape adds at most six characters.
            end = text.find(CUT, start, start + len(form) + PART_MIN + len(CUT))
            begun = text[start:end] if end >= 0 and not re.match(r"\w", text[start - 1 : start]) else ""
            if any(
                len(each) >= BEGINNING_MIN and form.startswith(each) for each in (begun, _UNFINISHED.sub("", begun))
            ):
                spans.append((start, end))
            start = text.find(form[:BEGINNING_MIN], start + 1)
    return spans


def _forms(secret: str) -> set[str]:
    """Return the spellings of a secret to search for in text whose escapes have been decoded."""
    # Each percent-code was decoded to one character, although a character may have several bytes in UTF-8. HTML forms
    # encode a space as a plus sign.
    written = (secret, secret.encode().decode("latin-1"))
    return {"".join(map(_lower, form)).replace("+", " ") for form in written}
