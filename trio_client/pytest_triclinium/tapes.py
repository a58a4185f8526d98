"""Event tapes of failed tests, for the option ``--triclinium-tape``, and of failed state machines.

With the option, each client that a test opens for a cluster on this machine writes a tape, unless the test gives it
one. If the test passes, its tapes are removed; if it fails, its report names them. A client that a fixture opens for
several tests belongs to the first of these tests.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from triclinium.tapes import EventTape
    from triclinium_core.options import ClientOptions

T = TypeVar("T")

NAME_SIZE_MAX = 80
"""Maximum length of the part of a file name that names the test and its state machine."""


class TapesOfTests:
    """Plugin that keeps the tapes of failed tests.

    Args:
        folder: folder for the tapes. None records no client, and keeps the tapes of state machines in a temporary
            folder.
    """

    def __init__(self, folder: str | None) -> None:
        self._parent = folder
        self._folder: Path | None = None
        self._number = 0
        self._test = ""
        self._paths: list[Path] = []
        self._notes: list[str] = []
        self._has_failed = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, T, T]:
        """Collect the tapes of a test. Remove them if it passes."""
        self._test, self._paths, self._notes, self._has_failed = item.nodeid, [], [], False
        seams = list(self._seams())
        for owner, name, function in seams:
            setattr(owner, name, function)
        try:
            return (yield)
        finally:
            for owner, name, _ in seams:
                setattr(owner, name, None)
            for path in [] if self._has_failed else self._paths:
                path.unlink(missing_ok=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """List the tapes, and the clients without one, in the report of a failure."""
        report = yield
        self._has_failed |= report.failed
        lines = [f"triclinium replay {shlex.quote(str(path))}" for path in self._paths if path.exists()] + self._notes
        if report.failed and lines:
            report.sections.append(("triclinium event tapes", "\n".join(lines)))
        return report

    def pytest_sessionfinish(self) -> None:
        """Remove the folder if no tape is left."""
        if self._folder is not None and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _seams(self) -> Iterator[tuple[type, str, object]]:
        """Yield the functions to install: for each, the class, the name of its attribute, and the function."""
        # Until the module of the state machine is imported, no test uses the state machine.
        module = sys.modules.get("triclinium_core.testing.state_machine")
        if module is not None:
            yield module.KVStateMachine, "keep_tape", self._keep
        if self._parent is not None:
            from triclinium.tapes import Tape

            yield Tape, "make_default", self._make_tape

    def _make_tape(self, options: ClientOptions) -> EventTape | None:
        from triclinium._tapes.event_tape import EventTape, distant_host

        distant = distant_host(options)
        if distant is None:
            return EventTape(self._new_path())
        self._notes.append(f"no tape of the client of {distant}: it would contain data of another machine")
        return None

    def _keep(self, machine: str, tape: bytes) -> None:
        self._new_path(machine).write_bytes(tape)

    def _new_path(self, suffix: str = "") -> Path:
        if self._folder is None:
            # Each process has its own folder, which only the owner can read.
            self._folder = Path(tempfile.mkdtemp(prefix="triclinium-tapes-", dir=self._parent))
        self._number += 1
        name = re.sub(r"[^A-Za-z0-9_]+", "-", f"{self._test}-{suffix}")[-NAME_SIZE_MAX:].strip("-")
        self._paths.append(self._folder / f"{self._number:04}-{name}.jsonl")
        return self._paths[-1]
