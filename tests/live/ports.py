"""Ports for servers that need a given port."""

from __future__ import annotations

import os
import socket
from itertools import chain, islice

NEVER_GIVEN_PORTS = range(20_000, 32_000)
"""Ports outside the default ephemeral ranges of Linux, macOS and Windows."""
PORTS_OF_A_PROCESS = 16
"""Number of ports from the first port of a process to that of the process with the next id."""


def quiet_ports(count: int) -> list[int]:
    """Return free ports that other processes are unlikely to use while their server is down."""
    first = os.getpid() * PORTS_OF_A_PROCESS % len(NEVER_GIVEN_PORTS)
    candidates = chain(NEVER_GIVEN_PORTS[first:], NEVER_GIVEN_PORTS[:first])
    found = list(islice(filter(_is_free, candidates), count))
    assert count == len(found), "every port is taken"
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return bool(probe.connect_ex(("127.0.0.1", port)))
