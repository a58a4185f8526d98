"""Ctrl-C in a separate process, at random moments."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.native

PROGRAM = Path(__file__).with_name("interrupted_program.py")
TIMES = 40
DELAY_SECONDS_MAX = 0.02
"""Maximum delay of a signal, which is longer than opening and closing a cluster takes."""


def test_control_c_is_a_plain_keyboard_interrupt() -> None:
    """Ctrl-C while clusters are opened and closed arrives as KeyboardInterrupt without a group."""
    rng = random.Random(22)
    arrived: list[str] = []
    command = [sys.executable, str(PROGRAM), str(TIMES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            for _ in range(TIMES):
                assert "running\n" == program.stdout.readline()
                time.sleep(rng.uniform(0, DELAY_SECONDS_MAX))
                program.send_signal(signal.SIGINT)
                arrived.append(program.stdout.readline())
            ending = program.stdout.read(), program.wait()
        finally:
            program.kill()

    assert ["KeyboardInterrupt()\n"] * TIMES == arrived
    assert ("", 0) == ending
