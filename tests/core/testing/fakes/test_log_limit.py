"""Limits of the logs of a fake node."""

from __future__ import annotations

import pytest

from tests.core.testing.http_client import HttpClient
from tests.core.testing.node_client import ready_client
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeNode
from triclinium_core.testing.fakes import log_limit

SIZE = 1000
"""Size limit in bytes of the logs in these tests."""


def test_logs_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each small entry, the logs of commands and of requests are within the limit and not empty."""
    monkeypatch.setattr(log_limit, "LOG_SIZE_BYTES_MAX", SIZE)
    kv, http = ready_client(), HttpClient(FakeNode())
    kv.node.command_log.clear()

    for number in range(40):
        kv.ask(Opcode.GET, key=f"\0{number:099}".encode())
        http.query(f"SELECT {number:20}")
        assert 0 < sum(len(command.key) for command in kv.node.command_log) <= SIZE
        assert 0 < sum(len(request.body) + len(request.statement or "") for request in http.node.request_log) <= SIZE


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
