"""Node in a separate process, for programs that connect to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SERVE = "import sys; from triclinium._cli import main; main(sys.argv[1:])"


@contextmanager
def serving(*options: str) -> Iterator[Mapping[str, str]]:
    """Serve a node for the duration of a block, and yield the output of ``triclinium serve --json``."""
    command = [sys.executable, "-c", SERVE, "serve", "--json", *options]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())
        finally:
            server.terminate()


@contextmanager
def served(*options: str) -> Iterator[str]:
    """Serve a node for the duration of a block, and yield its connection string."""
    with serving(*options) as said:
        yield said["connection_string"]
