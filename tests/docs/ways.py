"""The way of one call through the code, as the functions that it enters, drawn for the page on the architecture."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.bench.own_calls import NOT_THE_CLIENT, PACKAGES

PATH_COLUMN = 64
LEFT_OUT = (*NOT_THE_CLIENT, *(str(Path(package) / "_speedups.py") for package in PACKAGES))
"""The cluster in memory, and the scanner of headers, of which there are two."""

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


def _is_door(frame: FrameType, callers: Sequence[FrameType]) -> bool:
    """Tell whether a function was called from another file than its own, and is no helper of many."""
    path = frame.f_code.co_filename
    is_called_from_elsewhere = not callers or callers[0].f_code.co_filename != path
    return is_called_from_elsewhere and not path.endswith(HELPERS) and "<locals>" not in frame.f_code.co_qualname


class Way:
    """The functions that are entered while a block is ``watched``.

    Args:
        only_doors: whether to leave out what is called from its own file, is called there for the second time, or
            stands in one of the ``HELPERS``.
    """

    def __init__(self, *, only_doors: bool = False) -> None:
        self._only_doors = only_doors
        self._lines = list[str]()
        self._doors = list[tuple[str, ...]]()
        """Of the run of a task that is under way, each with those that lead to it, in the order of the picture."""

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note every function of ours that is entered in the block, by whichever task."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def drawn(self) -> str:
        """Return a line for each function, deeper ones further right, and the file it is in.

        A function that goes on after it has waited stands there again, unless it only waits once more: when it does so is drawn by trio.
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
        if not self._only_doors:
            self._lines.append(_line(len(callers) - 1, frame))
        elif _is_door(frame, callers[1:]):
            doors = [each for number, each in enumerate(callers) if _is_door(each, callers[number + 1 :])]
            self._add_door(tuple(map(_name, reversed(doors))), frame)

    def _add_door(self, door: tuple[str, ...], frame: FrameType) -> None:
        """Add a door of a run below the one that it was entered from, unless it stands there."""
        if len(door) == 1:
            self._doors.clear()
        elif door in self._doors:
            return
        # Behind all that was entered from the same door.
        parent = door[:-1]
        place = max((number for number, each in enumerate(self._doors, 1) if each[: len(parent)] == parent), default=0)
        at = len(self._lines) - len(self._doors) + place
        self._doors.insert(place, door)
        self._lines.insert(at, _line(len(door) - 1, frame))
