"""Real memcached on a local port, in a process that the tests start and kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

VALUE_SIZE_MAX = 8 * 1024 * 1024
"""Maximum size that this memcached stores, including key and header."""

WAIT_SECONDS = 120.0
"""Seconds after which a server that has not started or ended has failed."""

OPTIONS = ("-l", "127.0.0.1", "-U", "0", "-m", "64", "-I", str(VALUE_SIZE_MAX))
"""Options: listen on loopback, no UDP, 64 MiB of memory, and the maximum size of a document."""

ANY_PORT = -1
"""Port number with which memcached chooses a free port, and writes it to the file in ``MEMCACHED_PORT_FILENAME``."""


class Memcached:
    """Context manager that starts one server and ends it.

    Args:
        port: port on which it listens; any free port by default.
        threads: number of concurrent threads, each with its own connections.
    """

    def __init__(self, program: str, port: int = ANY_PORT, *, threads: int = 1) -> None:
        self._program = program
        self._threads = threads
        self._folder = Path(tempfile.mkdtemp(prefix="memcached-"))
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            # Make the unprivileged user the owner, because memcached drops its privileges before it writes the file.
            shutil.chown(self._folder, "nobody")
        self.port = port

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        shutil.rmtree(self._folder)

    @property
    def connection_string(self) -> str:
        """Connection string with the scheme ``memcached``."""
        return f"memcached://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server without documents, on its previous port if it had one."""
        port_file = self._folder / "port"
        port_file.unlink(missing_ok=True)
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [self._program, *OPTIONS, "-t", str(self._threads), "-p", str(self.port), *user],
            env={**os.environ, "MEMCACHED_PORT_FILENAME": str(port_file)},
            stdin=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + WAIT_SECONDS
        while not port_file.exists():
            assert self._process.poll() is None, f"memcached ended with status {self._process.returncode}"
            assert time.monotonic() < deadline, "memcached does not listen"
            time.sleep(0.005)
        self.port = int(port_file.read_text().rpartition(":")[2])

    def end(self) -> None:
        """Kill the server, unless it has ended. Its documents are lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(WAIT_SECONDS)
            self._process = None

    def pause(self) -> None:
        """Stop the process until ``end`` kills it. Requests of clients wait in the kernel."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        # Wait until the process has stopped: until then, threads other than the one that handles the signal continue.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)
