"""One test file of the official client against nodes that this module serves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.live.line_process import SERVE, LineProcess
from tests.live.official_suite.client import REPORT_MODULE
from tests.live.official_suite.outcomes import FileReport, read_events

SCRIPT = Path(__file__).with_name("script.json")
"""Responses to statements, searches and views whose execution the fake services do not support."""

OPTIONS = ("--nodes", "3", "--replicas", "1", "--script", str(SCRIPT))
"""Options of the nodes: several nodes, so that tests of durability and of replicas apply."""

PROCESSES_MAX = 8
"""Maximum number of processes for one file. After a test that ends its process, the next one runs the other tests."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Client and tests that are ready to run."""

    python: Path
    """Interpreter that has the client."""
    folder: Path
    """Folder with the laid-out tests."""
    seconds_max: float
    """Time limit of one file."""

    def run(self, path: str) -> FileReport:
        """Run one file with new nodes, and return its results."""
        report, why = FileReport(path), ""
        started = time.monotonic()
        with LineProcess([*SERVE, *OPTIONS], end_with=signal.SIGTERM) as nodes, _open_scratch() as scratch:
            environment = _environment(nodes.hear(), scratch)
            for _ in range(PROCESSES_MAX):
                left = self.seconds_max - (time.monotonic() - started)
                done = [result.test for result in report.results]
                why = self._run_once(path, environment, done, scratch, left)
                report.add(read_events(scratch.read_lines()))
                report.process_ended(why)
                if not report.left or time.monotonic() - started > self.seconds_max:
                    break
            report.give_up(why)
        report.seconds = time.monotonic() - started
        return report

    def _run_once(
        self, path: str, environment: Mapping[str, str], done: Sequence[str], scratch: _Scratch, seconds: float
    ) -> str:
        """Run the tests of a file that are not in ``done``, and return how the process ended."""
        command = [str(self.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", REPORT_MODULE, path]
        if path.startswith("txcouchbase"):
            command.append("--txcouchbase")
        scratch.report.write_text("", encoding="utf-8")
        with scratch.output.open("a", encoding="utf-8") as output:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**environment, "OFFICIAL_SUITE_DONE": json.dumps(done)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                status = process.wait(max(seconds, 1.0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return f"the time limit of {self.seconds_max:g} s for the file"
        if status < 0:
            return f"the client ended its process with {signal.Signals(-status).name}"
        return f"pytest ended with status {status}: {scratch.last_line()}"


class _Scratch:
    """Files of one run."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "config.ini"
        self.report = folder / "report.jsonl"
        self.output = folder / "output.txt"

    def read_lines(self) -> list[str]:
        """Return the lines of the report."""
        return self.report.read_text(encoding="utf-8").splitlines()

    def last_line(self) -> str:
        """Return the last line of pytest's output."""
        lines = self.output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "no output"


@contextmanager
def _open_scratch() -> Iterator[_Scratch]:
    with tempfile.TemporaryDirectory() as folder:
        yield _Scratch(Path(folder))


def _environment(served: Mapping[str, Any], scratch: _Scratch) -> Mapping[str, str]:
    management = urlsplit(served["endpoints"]["management"][0])
    scratch.config.write_text(
        "[realserver]\n"
        "enabled = True\n"
        f"host = {management.hostname}\n"
        f"port = {management.port}\n"
        f"admin_username = {served['username']}\n"
        f"admin_password = {served['password']}\n"
        f"bucket_name = {served['bucket']}\n"
        "bucket_password =\n"
        "[gocaves]\n"
        "enabled = False\n",
        encoding="utf-8",
    )
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON", "VIRTUAL"))},
        "OFFICIAL_SUITE_CONFIG": str(scratch.config),
        "OFFICIAL_SUITE_REPORT": str(scratch.report),
        # Some tests turn the string into a URL, so it has one node.
        "OFFICIAL_SUITE_CONNECTION_STRING": served["connection_string"].partition(",")[0],
    }
