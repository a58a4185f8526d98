"""Comparison of two recordings, which shows the first difference of each history."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

IDLE = re.compile(r"\S+ client \d+ TimePassed\(")
"""Pattern of a line with a ``TimePassed``, which is ignored if no action follows."""
LINES_BEFORE = 4
"""Maximum number of equal lines that are shown before a difference."""
LINES_AFTER = 3
"""Maximum number of lines of each recording that are shown, beginning with the difference."""


class Difference(NamedTuple):
    """First difference of one history."""

    seed: str
    before: Sequence[str]
    """Last equal lines."""
    old: Sequence[str]
    new: Sequence[str]

    def __str__(self) -> str:
        lines = [f"  {line}" for line in self.before]
        lines += [f"- {line}" for line in self.old] + [f"+ {line}" for line in self.new]
        return "\n".join([self.seed, *lines])


class Comparison(NamedTuple):
    """Result of comparing two recordings."""

    histories: int
    actions: int
    """Number of actions in the old recording."""
    differences: Sequence[Difference]


def compared(
    old: Iterable[Sequence[str]], new: Iterable[Sequence[str]], renamed: Mapping[str, str] | None = None
) -> Comparison:
    """Compare the histories of two recordings of the same seeds.

    A ``TimePassed`` without actions does not count: ``wakeup`` may be early.

    Args:
        renamed: new names of classes and fields by their old names.
    """
    renamed = renamed or {}
    names = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in renamed) or r"(?!)")
    histories = actions = 0
    differences = list[Difference]()
    for each_old, each_new in zip_longest(old, new, fillvalue=()):
        lines = [names.sub(lambda found: renamed[found[0]], line) for line in _busy(each_old)]
        histories += 1
        actions += sum(line.startswith("\t") for line in lines)
        difference = _first_difference(lines, list(_busy(each_new)))
        if difference is not None:
            differences.append(difference)
    return Comparison(histories, actions, differences)


def read(path: Path) -> Iterator[Sequence[str]]:
    """Yield the lines of each history in a file that ``recording.write`` wrote."""
    lines = list[str]()
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            if line.startswith("seed ") and lines:
                yield lines
                lines = []
            lines.append(line.rstrip("\n"))
    if lines:
        yield lines


def _busy(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines without the events ``TimePassed`` that have no actions."""
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if following.startswith("\t") or not IDLE.match(line):
            yield line


def _first_difference(old: Sequence[str], new: Sequence[str]) -> Difference | None:
    for index, (left, right) in enumerate(zip_longest(old, new)):
        if left != right:
            before = old[max(index - LINES_BEFORE, 0) : index]
            seed = (old or new)[0]
            return Difference(seed, before, old[index : index + LINES_AFTER], new[index : index + LINES_AFTER])
    return None
