"""Process that communicates in lines of JSON."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

SERVE = (sys.executable, "-c", "from triclinium._cli import main; main()", "serve", "--json")
"""Command of ``triclinium serve``."""

SAFETY_NET_SECONDS = 300.0
"""Seconds after which a silent process is killed, and its test fails."""


class LineProcess:
    """Context manager that starts one process and ends it.

    Args:
        command: program and arguments.
        end_with: signal that ends the process; None if the end of its input ends it.
    """

    def __init__(self, command: Sequence[str], *, end_with: signal.Signals | None = None) -> None:
        self._command = command
        self._end_with = end_with
        self._process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            if self._end_with is not None:
                process.send_signal(self._end_with)
            with _watched(process):
                status = process.wait()
        assert 0 == status, f"{self._command} ended with status {status}"

    def ask(self, **question: Any) -> Mapping[str, Any]:
        """Return the answer to one question."""
        assert self._process.stdin is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return self.hear()

    def hear(self) -> Mapping[str, Any]:
        """Return the next line of its output."""
        assert self._process.stdout is not None
        with _watched(self._process):
            line = self._process.stdout.readline()
        assert line, f"{self._command} said nothing and ended"
        found = json.loads(line)
        assert isinstance(found, dict)
        return found


@contextmanager
def _watched(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kill a process unless the block ends before the safety net's seconds have passed."""
    timer = threading.Timer(SAFETY_NET_SECONDS, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
