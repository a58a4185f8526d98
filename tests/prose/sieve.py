"""Phrases that a native maintainer would rewrite, and a search for them in the project's prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.prose.sentences import Prose, prose_of


class Phrase(NamedTuple):
    """A pattern to rewrite."""

    name: str
    pattern: re.Pattern[str]
    instead: str


def _opening(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\A|[.;:!]\s+|^[-*]\s+)(?:{words})\b(?![^.\n]*\?)", re.MULTILINE)


PHRASES = (
    Phrase(
        "opening",
        _opening("What|Who|Whom|Whoever|Whatever|Whose|Nobody|That an?|That the|How whoever|Where nobody"),
        "a noun or a verb",
    ),
    Phrase("nobody", re.compile(r"\b(?:nobody|whoever|somebody|anybody)(?:'s)?\b", re.IGNORECASE), "the actor's name"),
    Phrase(
        "told",
        re.compile(r"\b(?:is|are|was|were|be|been|has|have) (?:not )?told\b|\btold (?:of|what|as|so|by)\b"),
        "sends, reports, receives",
    ),
    Phrase("tells", re.compile(r"\btells? (?:of|what|that|so|about|whether)\b", re.IGNORECASE), "reports, returns"),
    Phrase("hears", re.compile(r"\b(?:hears?|heard) (?:of|from|nothing|about)\b", re.IGNORECASE), "receives"),
    Phrase(
        "idiom",
        re.compile(
            r"\b(?:(?-i:are none)\b|as well as none|what becomes? of|comes? to nothing|has the last word|is of no use|"
            r"by turns|said aloud|is said once|stands? (?:in|on|beside) (?:the|its|their|a)\b|as it were|"
            r"it is said that|those who|none of its own)\b",
            re.IGNORECASE,
        ),
        "the fact",
    ),
    Phrase(
        "lends", re.compile(r"\b(?:lends?|lent|lending|gives? back|given back)\b", re.IGNORECASE), "acquire, release"
    ),
    Phrase(
        "dining",
        re.compile(r"\b(?:guests?|reclin\w+|chew\w*|banquet|dishes)\b", re.IGNORECASE),
        "the field's word",
    ),
)
"""All patterns. A word of the glossary's list of retired words needs no row here."""


class Finding(NamedTuple):
    """A phrase in a text."""

    prose: Prose
    phrase: Phrase
    excerpt: str

    def __str__(self) -> str:
        line = self.prose.line
        return f"{self.prose.path}:{line}: {self.phrase.name}: {self.excerpt!r} (write {self.phrase.instead})"


def findings(files: Iterable[Path]) -> Iterator[Finding]:
    """Yield each phrase of the sieve in the prose of ``files``."""
    for path in files:
        for prose in prose_of(path):
            for phrase in PHRASES:
                for match in phrase.pattern.finditer(prose.text):
                    start = max(0, match.start() - 20)
                    yield Finding(prose, phrase, " ".join(prose.text[start : match.end() + 20].split()))
