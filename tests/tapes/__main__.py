"""``python -m tests.tapes record`` and ``python -m tests.tapes update``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from tests.tapes.golden import FOLDER, NAMES, changes, path_of, text_of, updated
from tests.tapes.recording import recorded


def main() -> None:
    """Write the golden tapes and their texts."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.tapes",
        description="Write the golden tapes in tests/data/tapes, which contain the credentials of the fake node only.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record", help="play the demo again; all events, times and ports change")
    commands.add_parser("update", help="replay the same events, and rewrite the digests that differ")
    if parser.parse_args().command == "update":
        _update()
    else:
        _write(recorded())


def _update() -> None:
    for name in NAMES:
        tape = path_of(name).read_bytes()
        difference = changes(tape)
        if difference:
            print(f"{name}\n{difference}\n")
        _write([(name, updated(tape))])


def _write(tapes: Iterable[tuple[str, bytes]]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, tape in tapes:
        path_of(name).write_bytes(tape)
        path_of(name).with_suffix(".txt").write_text(text_of(tape), encoding="utf-8")


main()
