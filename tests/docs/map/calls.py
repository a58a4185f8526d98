"""Trace of one call through the code, as an indented list of the functions that it enters."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.bench.own_calls import NOT_THE_CLIENT, PACKAGES

PATH_COLUMN = 64
LEFT_OUT = (*NOT_THE_CLIENT, *(str(Path(package) / "_speedups.py") for package in PACKAGES))
"""Files that are left out: the in-memory cluster, and the header scanner, which has two implementations."""

HELPERS = ("checks.py", "_trio_run.py", "contract/neutral/timers.py")


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(PACKAGES)


def _name(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename} {frame.f_code.co_qualname}"


def _line(depth: int, frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    package = next(Path(package) for package in PACKAGES if path.is_relative_to(package))
    name = f"{'  ' * depth}{frame.f_code.co_qualname}"
    return f"{name:<{PATH_COLUMN}} {path.relative_to(package).as_posix()}"


def _is_entry(frame: FrameType, callers: Sequence[FrameType]) -> bool:
    """Return whether a function was called from another file, is not in one of the ``HELPERS``, and is not nested."""
    path = frame.f_code.co_filename
    is_called_from_elsewhere = not callers or callers[0].f_code.co_filename != path
    return is_called_from_elsewhere and not path.endswith(HELPERS) and "<locals>" not in frame.f_code.co_qualname


class CallTrace:
    """Functions that are entered while a block is ``watched``.

    Args:
        only_entries: whether to leave out a function that is nested, is called from its own file, is called from the
        same place for the second time, or is in one of the ``HELPERS``.
    """

    def __init__(self, *, only_entries: bool = False) -> None:
        self._only_entries = only_entries
        self._lines = list[str]()
        self._entries = list[tuple[str, ...]]()
        """Entries of the current run of a task, each with its callers, in the order of the picture."""

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Record the functions of triclinium that any task enters in the block, except those of ``LEFT_OUT``."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def drawn(self) -> str:
        """Return a line for each function with its file; a callee is indented below its caller.

        A function that continues after a wait is listed again, unless it only waits once more, because trio determines
        when that happens.
        """
        runs = list[list[str]]()
        for line in self._lines:
            if not line.startswith(" "):
                runs.append([])
            runs[-1].append(line)
        longer = [[other[: len(run)] for other in runs if len(other) > len(run)] for run in runs]
        kept = ["\n".join(run) for run, others in zip(runs, longer, strict=True) if run not in others]
        return "\n".join(run for number, run in enumerate(kept) if run not in kept[:number])

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not _is_ours(frame):
            return
        callers = list[FrameType]()
        caller: FrameType | None = frame
        while caller is not None:
            callers += [caller] if _is_ours(caller) else []
            caller = caller.f_back
        if any(each.f_code.co_filename.startswith(LEFT_OUT) for each in callers):
            return
        if not self._only_entries:
            self._lines.append(_line(len(callers) - 1, frame))
        elif _is_entry(frame, callers[1:]):
            entries = [each for number, each in enumerate(callers) if _is_entry(each, callers[number + 1 :])]
            self._add_entry(tuple(map(_name, reversed(entries))), frame)

    def _add_entry(self, entry: tuple[str, ...], frame: FrameType) -> None:
        """Add an entry below its caller, unless it is already there."""
        if len(entry) == 1:
            self._entries.clear()
        elif entry in self._entries:
            return
        # Insert the entry after all entries that have the same caller.
        parent = entry[:-1]
        place = max(
            (number for number, each in enumerate(self._entries, 1) if each[: len(parent)] == parent), default=0
        )
        at = len(self._lines) - len(self._entries) + place
        self._entries.insert(place, entry)
        self._lines.insert(at, _line(len(entry) - 1, frame))
