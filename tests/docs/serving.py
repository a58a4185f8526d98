"""A node in a process of its own, for programs that talk to one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SERVE = "import sys; from triclinium._cli import main; main(sys.argv[1:])"


@contextmanager
def serving(*options: str) -> Iterator[Mapping[str, str]]:
    """Serve a node for the length of a block, and give it what ``triclinium serve --json`` says."""
    command = [sys.executable, "-c", SERVE, "serve", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())
        finally:
            server.terminate()


@contextmanager
def served(*options: str) -> Iterator[str]:
    """Serve a node for the length of a block, and give it the connection string."""
    with serving(*options) as said:
        yield said["connection_string"]
