"""Golden tapes: today's code returns the same actions as the code that recorded them, also inside WebAssembly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tapes.golden import NAMES, changes, path_of, text_of, updated
from triclinium_core.retry.couchbase import Status
from triclinium_core.retry.couchbase.tables import kv_responses
from triclinium_core.testing import replayed


@pytest.mark.parametrize("name", NAMES)
def test_golden_tape_agrees(name: str) -> None:
    """Today's actions for the events on a tape are those on the tape, and in the text beside it."""
    # After an intended change, ``python -m tests.tapes update`` writes the new actions.
    tape = path_of(name).read_bytes()

    assert "" == changes(tape)
    assert text_of(tape) == path_of(name).with_suffix(".txt").read_text(encoding="utf-8")
    assert tape == updated(tape)


def test_every_scenario_has_a_tape() -> None:
    """The tapes together have retries, failures, lost streams, rows of a query, and a refused login."""
    texts = [text_of(path_of(name).read_bytes()) for name in NAMES]

    assert 11 == len(texts)
    parts = ("retry 1: KV_TEMPORARY_FAILURE", "fail 1: RequestCanceled", "StreamLost", "    rows ", "Authentication")
    assert [] == [part for part in parts if part not in "".join(texts)]


def test_changed_rule_shows_as_diff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a row of the table of statuses, the difference has the lost retry, the failure, and no line of bytes."""
    tape = path_of("temporary_failure").read_bytes()
    monkeypatch.delitem(kv_responses.RETRYABLE_STATUSES, Status.TEMPORARY_FAILURE)
    difference = changes(tape)

    with pytest.raises(AssertionError, match=r"line \d+, BytesReceived .*retry 1: KV_TEMPORARY_FAILURE.*now 'fail 1"):
        replayed(str(path_of("temporary_failure")))
    assert "\n-    retry 1: KV_TEMPORARY_FAILURE after 0.001 from" in difference
    assert "\n+    fail 1: TemporaryFailureException status=0x86" in difference
    assert '"$' not in difference
    assert "" == changes(updated(tape))
    assert changes(path_of("locked").read_bytes()) == ""


@pytest.mark.native
def test_replay_needs_no_environment() -> None:
    """A replay of all tapes, in which no module of the core may import I/O, the clock or randomness, agrees."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "tests.tapes.guarded"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    calls = sum(replayed(str(path_of(name))).calls for name in NAMES)

    assert (f"{len(NAMES)} tapes, {calls} calls\n", "", 0) == (run.stdout, run.stderr, run.returncode)
