"""Recording of the golden tapes, with real sockets."""

from __future__ import annotations

import pytest

from tests.tapes.golden import NAMES, changes
from tests.tapes.recording import recorded

pytestmark = pytest.mark.native


def test_every_scenario_gives_a_tape() -> None:
    """Each scenario of the demo meets its requirements while it is recorded, and its tape, named after it, agrees."""
    tapes = dict(recorded())

    assert NAMES == sorted(tapes)
    assert {""} == {changes(tape) for tape in tapes.values()}
