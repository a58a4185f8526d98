"""Servers of the drivers."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.live.line_process import SERVE, LineProcess
from tests.live.memcached import Memcached
from tests.live.ports import quiet_ports


@pytest.fixture(scope="module")
def said() -> Iterator[Mapping[str, Any]]:
    """Yield the connection data of ``triclinium serve`` with three nodes."""
    with LineProcess([*SERVE, "--nodes", "3"], end_with=signal.SIGTERM) as server:
        yield server.hear()


@pytest.fixture
def mortal_memcached(memcached_program: str) -> Iterator[Memcached]:
    """Yield a memcached that a test may stop and start."""
    (port,) = quiet_ports(1)
    with Memcached(memcached_program, port) as server:
        yield server
