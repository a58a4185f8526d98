"""Injected faults, which end through the drivers of the documentation as through the trio client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from docs.howto.examples.control_through_http import ask
from tests.hosts.event_loops.clients import DRIVERS, Server, Step, through_asyncio, through_trio
from tests.live.waiting import PATIENT
from triclinium_core import TimeoutOptions

pytestmark = [pytest.mark.hosts, pytest.mark.native]

HASTY = TimeoutOptions(kv=2.0, query=2.0)
"""Timeouts for faults that outlast every retry. A client connects and sends the request in a small part of that."""

FAULTS: Mapping[str, str] = {
    "get: temporary_failure x2": "read b'old'",
    "get: temporary_failure always": "UnambiguousTimeoutException after [KV_TEMPORARY_FAILURE]",
    "get: delay(0.05)": "read b'old'",
    "get: hang_up": "read b'old'",
    "get: hang_up_mid_reply(bytes_sent=12)": "read b'old'",
    "get: drop_response always": "UnambiguousTimeoutException after []",
    "get: garble": "read b'old'",
    "get: not_my_vbucket x2": "read b'old'",
    "get: status(0x84)": "InternalServerFailureException after []",
    "get: wrong_length": "read b'old'",
    "refuse_connection x2": "read b'old'",
    "set: locked always": "UnambiguousTimeoutException after [KV_LOCKED]",
    "set: temporary_failure x2": "done",
    "set: hang_up": "RequestCanceledException after [SOCKET_CLOSED_WHILE_IN_FLIGHT]",
    "set: hang_up_after_applying": "RequestCanceledException after [SOCKET_CLOSED_WHILE_IN_FLIGHT]",
    "set: drop_response always": "AmbiguousTimeoutException after []",
    "set: not_my_vbucket x2": "done",
}
"""Faults of a read, a write ("set") or a connection, each with the ending of the operation."""

QUERY_FAULTS: Mapping[str, TimeoutOptions] = {
    "query: http_status(503) x2": PATIENT,
    "query: hang_up": PATIENT,
    "query: drop_response x3": HASTY,
    "query: cut_body(bytes_sent=20)": PATIENT,
    "query: garble": HASTY,
    "query: hang_up_mid_reply(bytes_sent=12)": PATIENT,
    "query: answer_twice": PATIENT,
    "query: close_announced": PATIENT,
}
"""Faults of a query, each with the timeouts of the client."""

Program = Callable[[Server, Sequence[Step]], Sequence[str]]


def faults_left(served: Mapping[str, Any]) -> Sequence[object]:
    """Return the faults of each node that have not struck yet."""
    return [node["faults"] for node in ask(served["control"], "/state")["nodes"]]


def endings(
    served: Mapping[str, Any], fault: str, steps: Sequence[Step], timeouts: TimeoutOptions, programs: Iterable[Program]
) -> Sequence[Sequence[str]]:
    """Return the endings of steps with a fault, for the trio client and for other programs."""
    found: list[Sequence[str]] = []
    for program in (through_trio, *programs):
        ask(served["control"], "/commands", "clear_faults")
        ask(served["control"], "/commands", fault)
        before = faults_left(served)
        found.append(program(Server.of(served, timeouts), steps))
        assert fault.endswith("always") or faults_left(served) != before, f"{fault} did not strike"
    ask(served["control"], "/commands", "clear_faults")
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_an_operation(fault: str, served: Mapping[str, Any], key: str) -> None:
    """A read or write with a fault ends with each driver as with the trio client."""
    is_read = not fault.startswith("set: ")
    last = Step("get", key) if is_read else Step("upsert", key, b"new")
    steps = [Step("upsert", key, b"old") if is_read else Step("remove", key), last]
    found = endings(served, fault, steps, HASTY if fault.endswith("always") else PATIENT, DRIVERS.values())

    assert [FAULTS[fault]] * 3 == [end for _, end in found]
    assert not is_read or ["done"] * 3 == [first for first, _ in found]


@pytest.mark.parametrize("fault", QUERY_FAULTS)
def test_faults_of_a_query(fault: str, served: Mapping[str, Any]) -> None:
    """A query with a fault ends through the asyncio driver as through the trio client."""
    found = endings(served, fault, [Step("query", "SELECT RAW 1")], QUERY_FAULTS[fault], [through_asyncio])

    assert [found[0]] * 2 == found
