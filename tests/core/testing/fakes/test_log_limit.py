"""Limits of the logs of a fake node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pytest

from tests.core.testing.http_client import HttpClient
from tests.core.testing.node_client import ready_client
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeNode
from triclinium_core.testing.fakes import log_limit

SIZE = 1000
"""Size limit in bytes of the logs in these tests."""


class Logging(Protocol):
    """Function that adds entries of at most 100 bytes to a log and returns the sizes of all its entries."""

    def __call__(self, count: int) -> list[int]: ...


def bodies() -> Logging:
    """Return a function that adds requests to the request log."""
    client = HttpClient(FakeNode())

    def ask(count: int) -> list[int]:
        for number in range(count):
            client.query(f"SELECT {number:20}")
        return [len(request.body) + len(request.statement or "") for request in client.node.request_log]

    return ask


def keys() -> Logging:
    """Return a function that fills the command log with long keys."""
    client = ready_client()
    client.node.command_log.clear()

    def ask(count: int) -> list[int]:
        for number in range(count):
            client.ask(Opcode.GET, key=b"\x00" + f"{number:099}".encode())
        return [len(command.key) for command in client.node.command_log]

    return ask


@pytest.mark.parametrize("fill", [bodies, keys])
def test_a_log_is_bounded_in_bytes(fill: Callable[[], Logging], monkeypatch: pytest.MonkeyPatch) -> None:
    """After any number of small entries, the log of a node is within its limit and not empty."""
    monkeypatch.setattr(log_limit, "LOG_SIZE_BYTES_MAX", SIZE)
    log = fill()

    for count in (1, 9, 30):
        sizes = log(count)
        assert 0 < sum(sizes) <= SIZE


def test_the_newest_entry_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that exceeds the limit is the only one in the log."""
    monkeypatch.setattr(log_limit, "LOG_SIZE_BYTES_MAX", SIZE)
    limit, log = log_limit.LogLimit[str](100, len), ["a", "b"]
    limit.add(log, "c" * (SIZE + 1))

    assert ["c" * (SIZE + 1)] == log


def test_the_newest_half_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that exceeds its limit keeps its newest entries, up to half of the limit."""
    monkeypatch.setattr(log_limit, "LOG_SIZE_BYTES_MAX", SIZE)
    limit, log = log_limit.LogLimit[str](100, len), list[str]()
    for number in range(11):
        limit.add(log, f"{number:0100}")

    assert [6, 7, 8, 9, 10] == list(map(int, log))


def test_cleared_log_has_its_complete_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that a test removed from the log do not count towards its size."""
    monkeypatch.setattr(log_limit, "LOG_SIZE_BYTES_MAX", SIZE)
    limit, log = log_limit.LogLimit[str](100, len), list[str]()
    for _ in range(3):
        log.clear()
        for number in range(5):
            limit.add(log, f"{number:0100}")

    assert [0, 1, 2, 3, 4] == list(map(int, log))
