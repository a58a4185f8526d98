"""Phrases that a native maintainer would rewrite, and a search for them in the project's prose."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.prose.sentences import Prose, prose_of


class Phrase(NamedTuple):
    """Pattern of a phrase to rewrite."""

    name: str
    pattern: re.Pattern[str]
    instead: str
    """Replacement."""
    examples: tuple[str, ...]
    """Sentences with the phrase."""


def _read_phrases() -> tuple[Phrase, ...]:
    """Read ``phrases.toml``.

    Raises:
        ValueError: two phrases have the same name.
    """
    rows = tomllib.loads((Path(__file__).parent / "phrases.toml").read_text(encoding="utf-8"))["phrase"]
    phrases = tuple(
        Phrase(row["name"], re.compile(row["pattern"]), row["instead"], tuple(row["examples"])) for row in rows
    )
    for name, count in Counter(phrase.name for phrase in phrases).items():
        if count > 1:
            raise ValueError(f"phrases.toml has {count} phrases with the name {name!r}")
    return phrases


PHRASES = _read_phrases()


class Finding(NamedTuple):
    """Phrase that was found in a text."""

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
