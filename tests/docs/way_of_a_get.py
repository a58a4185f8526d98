"""The way of one get through the code, as the functions that it enters, drawn for the page on the architecture.

``uv run python -m tests.docs.way_of_a_get`` prints it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import trio
import trio.testing

from tests.bench.own_calls import NOT_THE_CLIENT, PACKAGES, of_fake_cluster

PATH_COLUMN = 64
LEFT_OUT = (*NOT_THE_CLIENT, *(str(Path(package) / "_speedups.py") for package in PACKAGES))
"""The cluster in memory, and the scanner of headers, of which there are two."""


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(PACKAGES)


def _line(depth: int, frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    package = next(Path(package) for package in PACKAGES if path.is_relative_to(package))
    name = f"{'  ' * depth}{frame.f_code.co_qualname}"
    return f"{name:<{PATH_COLUMN}} {path.relative_to(package).as_posix()}"


def way_of_a_get() -> str:
    """Return a line for each function that a lone task's get enters, deeper ones further right, and the file it is in.

    A function that goes on after it has waited stands there again, unless it only waits once more: when it does so is drawn by trio.
    """
    lines = list[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not _is_ours(frame):
            return
        callers = list[FrameType]()
        caller: FrameType | None = frame
        while caller is not None:
            callers += [caller] if _is_ours(caller) else []
            caller = caller.f_back
        if not any(each.f_code.co_filename.startswith(LEFT_OUT) for each in callers):
            lines.append(_line(len(callers) - 1, frame))

    async def main() -> None:
        async with of_fake_cluster() as collection:
            await collection.upsert("ada", 1)
            await collection.get("ada")
            await trio.testing.wait_all_tasks_blocked()
            sys.setprofile(note)
            try:
                await collection.get("ada")
            finally:
                sys.setprofile(None)

    trio.run(main)
    runs = list[list[str]]()
    for line in lines:
        if not line.startswith(" "):
            runs.append([])
        runs[-1].append(line)
    longer = [[other[: len(run)] for other in runs if len(other) > len(run)] for run in runs]
    return "\n".join("\n".join(run) for run, others in zip(runs, longer, strict=True) if run not in others)


if __name__ == "__main__":
    sys.stdout.write(way_of_a_get() + "\n")
