"""Random sentences for a reader to judge, the same ones for the same commit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.prose.sentences import Kind, Prose, prose_of, sentences, tracked_files

PARTS = {"core": ("core/", "c_ext/"), "trio_client": ("trio_client/",), "tests with docs": ("",)}
"""Beginnings of the paths of each part; a file belongs to the first part that matches."""

DRAWN_IN_PART = 10


class Sample(NamedTuple):
    """One sentence and its place."""

    part: str
    prose: Prose
    sentence: str


def drawn(commit: str, files: Sequence[Path] | None = None) -> Iterator[Sample]:
    """Yield ten sentences from each part, with the kinds in turn.

    Args:
        commit: full hash of a commit, as the seed.
        files: files to draw from; all Python files and pages in git by default.
    """
    chance = random.Random(commit)
    by_part: dict[str, dict[Kind, list[Sample]]] = {part: {} for part in PARTS}
    for path in tracked_files(".py", ".md") if files is None else files:
        for prose in prose_of(path):
            part = next(part for part, starts in PARTS.items() if prose.path.startswith(starts))
            found = by_part[part].setdefault(prose.kind, [])
            found += [Sample(part, prose, sentence) for sentence in sentences(prose)]
    for kinds in by_part.values():
        order = sorted(kinds)
        for number in range(DRAWN_IN_PART):
            yield chance.choice(kinds[order[number % len(order)]])
