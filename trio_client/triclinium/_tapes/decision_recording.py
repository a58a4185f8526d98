"""Recording of one cluster's decision tape: it writes the facts of the recorder to files, in threads."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from triclinium._tapes.signals import listening
from triclinium._tapes.tape import Recording
from triclinium._tapes.tape_file import TapeFile, save
from triclinium_core.checks import check_type
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.decision_tape.encoding import TapeEncoder, end_line
from triclinium_core.decision_tape.lines import EndReason
from triclinium_core.decision_tape.recorder import DecisionRecorder, Fact
from triclinium_core.errors import CouchbaseException

GATHERED_SECONDS = 0.1
"""Time in seconds for which facts are gathered before they are written together."""
LAST_SECONDS = 2.0
"""Maximum time in seconds that the end of a cluster waits for its last facts, or for an automatic file."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """Events at which a ring is saved automatically."""

    folder: Path
    signal: signal.Signals | None
    errors: tuple[type[CouchbaseException], ...]
    files_max: int


class DecisionRecording(Recording):
    """Recorder of a cluster, and the files of its tape.

    Args:
        machine: machine with the recorder.
        recorder: recorder of the facts.
        file: file for all facts; None for a ring.
        triggers: events at which a ring is saved; None without any.
        warn: writes a message to the log at WARNING. Any thread may call it.
    """

    def __init__(
        self,
        machine: ClientMachine,
        recorder: DecisionRecorder,
        *,
        file: TapeFile | None,
        triggers: Triggers | None,
        warn: Callable[[str], None],
    ) -> None:
        super().__init__(machine)
        self._recorder = recorder
        self._file = file
        self._triggers = triggers
        self._warn = warn
        self._limiter = trio.CapacityLimiter(1)
        """Limiter of this tape's threads, because the program may have used up the default one."""
        self._nursery: trio.Nursery
        self._saved = 0
        """Number of automatic files, written or failed."""
        self._number = 0
        """Number in the name of the newest automatic file."""

    def start(self, nursery: trio.Nursery) -> None:
        """Start the writer of the file, or the task that saves the ring at a signal."""
        self._nursery = nursery
        self._recorder.now = trio.current_time()
        if self._file is not None:
            nursery.start_soon(self._run_writer, FileWriter(self._file, self._recorder, self._warn))
        elif self._triggers is not None and self._triggers.signal is not None:
            self._listen(self._triggers.signal, self._triggers)

    @trio.lowlevel.enable_ki_protection
    async def _run_writer(self, writer: FileWriter) -> None:
        """Run the writer of the tape's file until the cluster is closed."""
        writer.start()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(writer.stop, limiter=self._limiter)

    def close(self) -> None:
        """Do nothing: the background tasks end the recording."""

    def pseudonym(self, key: str) -> str:
        """Return the pseudonym of a document's key on the tape.

        Raises:
            InvalidArgumentException: the tape has no pseudonyms, or the key is not a string.
        """
        check_type(key, "key", str)
        return super().pseudonym(key) if self._recorder.pseudonym is None else self._recorder.pseudonym(key)

    # -- The ring.

    async def save(self, path: Path, *, is_automatic: bool = False) -> None:
        """Write the ring and the open operations to a file. A checkpoint.

        Args:
            is_automatic: whether an existing file is an error, and a cancellation leaves the thread behind.

        Raises:
            InvalidArgumentException: the tape is not a ring.
            OSError: the file cannot be written.

        Cancellation: waits until the file is written or the write has failed, unless ``is_automatic``.
        """
        if self._file is not None:
            await super().save(path)
        facts: Sequence[Fact] = [*self._recorder.facts(), *self.machine.open_calls()]
        encoder = TapeEncoder(self._recorder, unix_time=time.time())
        end = end_line("saved", at=self._recorder.now, lost=self._recorder.lost)

        def pieces() -> Iterator[bytes]:
            yield encoder.header()
            yield encoder.facts(facts)
            yield end

        def write() -> None:
            save(path, pieces(), replace=not is_automatic)

        await trio.to_thread.run_sync(write, abandon_on_cancel=is_automatic, limiter=self._limiter)

    def failed(self, error: CouchbaseException) -> None:
        """Save the ring in the background if ``error``, which leaves a call, is of a class that the tape names."""
        triggers = self._triggers
        if triggers is not None and self._saved < triggers.files_max and isinstance(error, triggers.errors):
            self._nursery.start_soon(self._save_next, triggers)

    def _listen(self, number: signal.Signals, triggers: Triggers) -> None:
        """Save the ring at signals from now on, until the nursery is cancelled."""
        arrivals, received = trio.open_memory_channel[None](1)

        def notify() -> None:
            # A save is due already, or the cluster has been closed.
            with suppress(trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
                arrivals.send_nowait(None)

        block = ExitStack()
        block.enter_context(listening(number, notify))
        block.enter_context(arrivals)
        block.enter_context(received)
        self._nursery.start_soon(self._await_signals, received, block, triggers)

    @trio.lowlevel.enable_ki_protection
    async def _await_signals(
        self, received: trio.MemoryReceiveChannel[None], block: ExitStack, triggers: Triggers
    ) -> None:
        with block:
            async for _ in received:
                await self._save_next(triggers)

    @trio.lowlevel.enable_ki_protection
    async def _save_next(self, triggers: Triggers) -> None:
        """Save the ring to the next automatic file, unless one is being written or there are enough of them."""
        if self._saved == triggers.files_max or self._limiter.borrowed_tokens:
            return
        self._saved += 1
        while True:
            self._number += 1
            path = triggers.folder / f"triclinium-{os.getpid()}-{self._number}.tape"
            try:
                # Shield the save, because an error that triggers it may also end the block of the cluster.
                with trio.move_on_after(LAST_SECONDS, shield=True) as limit:
                    await self.save(path, is_automatic=True)
                if limit.cancelled_caught:
                    self._warn(f"the decision tape is not saved to {path} yet: the disk is slow")
            except FileExistsError:
                # Another cluster, or a process with the same id, wrote the file: ids repeat in containers.
                continue
            except OSError as error:
                self._warn(f"the decision tape was not saved to {path}: {error.strerror}")
            return


class FileWriter(threading.Thread):
    """Thread that writes the facts of a recorder to a file.

    The tape does not use one of Trio's threads for each write, because that would need a task and Trio's clock, which a
    test may set.
    """

    def __init__(self, file: TapeFile, recorder: DecisionRecorder, warn: Callable[[str], None]) -> None:
        super().__init__(name="triclinium-tape", daemon=True)
        self._file = file
        self._recorder = recorder
        self._warn = warn
        self._encoder = TapeEncoder(recorder, unix_time=time.time())
        self._stopped = threading.Event()

    def run(self) -> None:
        """Write until ``stop``, then the last facts and the last line. Drop facts after the file has ended."""
        self._append(self._encoder.header())
        while not self._stopped.wait(GATHERED_SECONDS):
            self._append(self._encoder.facts(self._recorder.take()))
        self._append(self._encoder.facts(self._recorder.take()))
        self._finish("closed")

    def stop(self) -> None:
        """End the thread, and wait for it, but not for long: the disk may hang."""
        self._stopped.set()
        self.join(LAST_SECONDS)

    def _append(self, lines: bytes) -> None:
        if self._file.is_finished or not lines:
            return
        try:
            left = self._file.append(lines)
            if left:
                self._finish("full", left)
        except OSError as error:
            self._warn(f"the decision tape {self._file.path} ends here: {error.strerror}")
            self._finish("disk", lines.count(b"\n"))

    def _finish(self, reason: EndReason, left: int = 0) -> None:
        """Write the last line.

        Args:
            left: number of taken facts that are not in the file.
        """
        if self._file.is_finished:
            return
        try:
            self._file.finish(end_line(reason, at=self._recorder.now, lost=self._recorder.lost + left))
        except OSError as error:
            self._warn(f"the decision tape {self._file.path} has no last line: {error.strerror}")
