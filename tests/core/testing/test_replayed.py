"""Event tape as a regression test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.event_tape.tapes import small_tape
from triclinium_core.testing import replayed


def test_a_tape_is_a_regression_test(tmp_path: Path) -> None:
    """A tape that agrees returns its number of calls; a changed digest raises AssertionError with the line."""
    path, tape = tmp_path / "tape.jsonl", small_tape()
    path.write_bytes(b"".join(tape))

    assert len(tape) - 1 == replayed(str(path)).calls
    path.write_bytes(b"".join(tape).replace(b"wakeup 2.5", b"wakeup 2.6", 1))
    with pytest.raises(AssertionError, match=r"tape.jsonl: line \d+, .*wakeup 2.6.*wakeup 2.5"):
        replayed(str(path))
