"""Injected faults, which end through the drivers of the documentation as through the trio client."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from docs.howto.examples.control_through_http import ask
from tests.hosts.event_loops.clients import DRIVERS, PATIENT, Kind, Server, Step, through_trio
from tests.live.line_process import SERVE, LineProcess
from triclinium_core import TimeoutOptions

pytestmark = [pytest.mark.hosts, pytest.mark.native]

HASTY = TimeoutOptions(kv=1.0)
"""Timeouts for faults that outlast every retry."""

READ_FAULTS: Mapping[str, str] = {
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
}
"""Faults of a read, and its ending."""

WRITE_FAULTS: Mapping[str, str] = {
    "set: locked always": "UnambiguousTimeoutException after [KV_LOCKED]",
    "set: temporary_failure x2": "done",
    "set: hang_up": "RequestCanceledException after [SOCKET_CLOSED_WHILE_IN_FLIGHT]",
    "set: hang_up_after_applying": "RequestCanceledException after [SOCKET_CLOSED_WHILE_IN_FLIGHT]",
    "set: drop_response always": "AmbiguousTimeoutException after []",
    "set: not_my_vbucket x2": "done",
}
"""Faults of a write, and its ending."""

Program = Callable[[Server, Sequence[Step]], Sequence[str]]


OPTIONS = ("--fault", "set: temporary_failure x2", "--fault", "get: hang_up")
"""Options of ``triclinium serve``: faults of each node."""


def faults_left(said: Mapping[str, Any]) -> Sequence[object]:
    """Return the faults of each node that have not struck yet."""
    return [node["faults"] for node in ask(said["control"], "/state")["nodes"]]


def endings(said: Mapping[str, Any], fault: str, *steps: Step) -> Sequence[Sequence[str]]:
    """Return the endings of steps with a fault, for the trio client and each driver."""
    server = Server.served(said, HASTY if fault.endswith("always") else PATIENT)
    programs: Sequence[Program] = (through_trio, *DRIVERS.values())
    found: list[Sequence[str]] = []
    for program in programs:
        ask(said["control"], "/commands", "clear_faults")
        ask(said["control"], "/commands", fault)
        before = faults_left(said)
        found.append(program(server, steps))
        assert fault.endswith("always") or faults_left(said) != before, f"{fault} did not strike"
    ask(said["control"], "/commands", "clear_faults")
    return found


@pytest.mark.parametrize("fault", READ_FAULTS)
def test_faults_of_a_read(fault: str, said: Mapping[str, Any], key: str) -> None:
    """A read with a fault, on a stream that works, ends with each driver as with the trio client."""
    steps = Step(Kind.UPSERT, key, b"old"), Step(Kind.GET, key)

    assert [["done", READ_FAULTS[fault]]] * 3 == endings(said, fault, *steps)


@pytest.mark.parametrize("fault", WRITE_FAULTS)
def test_faults_of_a_write(fault: str, said: Mapping[str, Any], key: str) -> None:
    """A write with a fault, on a stream that works, ends with each driver as with the trio client."""
    steps = Step(Kind.REMOVE, key), Step(Kind.UPSERT, key, b"new")
    found = endings(said, fault, *steps)

    assert [WRITE_FAULTS[fault]] * 3 == [ending for _, ending in found]


@pytest.mark.parametrize("driver", DRIVERS)
def test_faults_of_the_command_line(driver: str) -> None:
    """Faults in the options of ``triclinium serve`` strike, and a driver's operations succeed on all nodes."""
    keys = [f"key-{number}" for number in range(10)]
    steps = [Step(kind, key, b"1") for key in keys for kind in (Kind.UPSERT, Kind.GET)]
    with LineProcess([*SERVE, "--nodes", "3", *OPTIONS], end_with=signal.SIGTERM) as nodes:
        said = nodes.hear()

        assert ["done", "read b'1'"] * len(keys) == DRIVERS[driver](Server.served(said), steps)
        assert [[]] * 3 == faults_left(said)
