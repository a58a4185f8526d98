"""Node commands during a run: their starts, their ends, and which of several wins."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.core.testing.http_client import HttpClient
from tests.core.testing.node_client import ready_client, status_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import FakeNode, FakeNodes, LoggedChange
from triclinium_core.testing.fakes import schedule


def pass_time(nodes: FakeNodes, now: float) -> None:
    """Pass the time to each node."""
    for node in nodes:
        node.time_passed(now)


def happened(nodes: FakeNodes) -> list[tuple[float, str, int | None, bool]]:
    """Return the changes of nodes: time, command, node, and whether the change is an end."""
    return [(each.now, each.name, each.node, each.is_end) for each in nodes.changes]


def test_kill_strikes_between_two_requests() -> None:
    """A kill after three requests strikes between the third and the fourth, even if all arrive at the same time."""
    node = FakeNode()
    nodes = FakeNodes.around(node)
    client = ready_client(node)
    nodes.kill(0, after_requests=3)
    data = b"".join(client.encode_of(Opcode.SET, f"n{number}", extras=bytes(8)) for number in range(5))
    replies = client.send(data)
    client.wait(0.0)

    assert 3 * [Status.SUCCESS] == list(map(status_of, replies))
    assert client.is_hung_up
    assert not node.is_alive
    assert 3 * [True] + 2 * [False] == [nodes.documents.get("default", f"n{number}") is not None for number in range(5)]


def test_requests_of_all_nodes_and_services_count() -> None:
    """Commands on documents and HTTP requests at any node count, and the bootstrap does not."""
    nodes = FakeNodes(nodes=2)
    nodes.fail_over(0, after_requests=3)
    client = ready_client(nodes[1])
    client.ask_of(Opcode.GET, "ada")
    HttpClient(nodes[0], connection=2).ask("POST", "/query/service", b'{"statement": "SELECT 1"}')
    before = nodes.map.members
    client.ask_of(Opcode.GET, "ada")

    assert ((0, 1), (1,)) == (before, nodes.map.members)


def test_times_wake_the_driver() -> None:
    """A command wakes the driver at its start and its end, and takes effect although no client is connected."""
    nodes = FakeNodes(nodes=2)
    rung: list[float] = []
    nodes.set_alarm(lambda: rung.append(nodes.wakeup))
    nodes.cut_off(1, at_seconds=2, for_seconds=3)
    wakeups = [nodes.wakeup]
    for now in (2.0, 5.0):
        pass_time(nodes, now)
        wakeups.append(nodes.wakeup)

    assert 2.0 == rung[0]
    assert [2.0, 5.0, math.inf] == wakeups
    assert [(2.0, "cut_off", 1, False), (5.0, "cut_off", 1, True)] == happened(nodes)


@rows(
    ("start", "is_changed"),
    [
        (lambda nodes: nodes.kill(1, for_seconds=2), lambda nodes: not nodes[1].is_alive),
        (lambda nodes: nodes.restart(1, for_seconds=2), lambda nodes: not nodes[1].is_alive),
        (lambda nodes: nodes.cut_off(1, for_seconds=2), lambda nodes: nodes[1].network.cuts_all),
        (lambda nodes: nodes.slow_down(1, 0.5, for_seconds=2), lambda nodes: nodes[1].network.slowness == 0.5),
        (lambda nodes: nodes.hold_replication(1, for_seconds=2), lambda nodes: 1 in nodes[1].cluster.held_replicas),
        (
            lambda nodes: nodes.learn_late(1, 0.5, for_seconds=2),
            lambda nodes: nodes[1].cluster.buckets.lateness.learned_until(1) < nodes.now,
        ),
        (
            lambda nodes: (nodes.hold_config(1, for_seconds=2), nodes.move([0], to=2)),
            lambda nodes: nodes[1].config_version != nodes.map.version,
        ),
    ],
)
def test_end_undoes_the_start(start: Callable[[FakeNodes], None], is_changed: Callable[[FakeNodes], bool]) -> None:
    """Each command with an end changes the node until then, and not after it."""
    nodes = FakeNodes(nodes=3)
    pass_time(nodes, 1.0)
    start(nodes)
    states = [is_changed(nodes)]
    for now in (2.9, 3.0):
        pass_time(nodes, now)
        states.append(is_changed(nodes))

    assert [True, True, False] == states


def test_restart_without_duration_is_immediate() -> None:
    """A restart without a duration closes the connections, and the node accepts new ones immediately."""
    nodes = FakeNodes(nodes=2)
    client = ready_client(nodes[1])
    nodes.restart(1)
    client.wait(0.0)

    assert client.is_hung_up
    assert nodes[1].accepts(0.0)
    assert [(0.0, "restart", 1, False)] == happened(nodes)


@rows(
    ("later", "alive_at"),
    [
        (lambda nodes: None, [False, False, True, True]),
        # Without an end, the later kill lasts.
        (lambda nodes: nodes.kill(1, at_seconds=2), [False, False, False, False]),
        (lambda nodes: nodes.kill(1, at_seconds=2, for_seconds=3), [False, False, False, True]),
        (lambda nodes: nodes.revive(1, at_seconds=2), [False, True, True, True]),
        # A command for another node or property changes nothing.
        (lambda nodes: nodes.kill(0, at_seconds=2), [False, False, True, True]),
        (lambda nodes: nodes.slow_down(1, 1, at_seconds=2), [False, False, True, True]),
    ],
)
def test_newest_command_wins(later: Callable[[FakeNodes], None], alive_at: list[bool]) -> None:
    """The start of a command cancels the end of an earlier one for the same property of the node."""
    nodes = FakeNodes(nodes=2)
    nodes.kill(1, for_seconds=4)
    later(nodes)
    found = []
    for now in (1.0, 2.0, 4.0, 5.0):
        pass_time(nodes, now)
        found.append(nodes[1].is_alive)

    assert alive_at == found


def test_impossible_planned_command_has_no_effect() -> None:
    """A planned command that has become impossible changes nothing; the log and the listener get the reason."""
    nodes = FakeNodes(nodes=2)
    received: list[LoggedChange] = []
    nodes.set_change_listener(received.append)
    nodes.fail_over(1, at_seconds=2)
    nodes.remove_node(1)
    pass_time(nodes, 2.0)
    failed = nodes.changes[-1]

    assert list(nodes.changes) == received
    assert (2.0, "fail_over", 1) == (failed.now, failed.name, failed.node)
    assert failed.error is not None
    assert "node 1" in failed.error
    assert (0,) == nodes.map.members


@rows(
    ("perform", "parameter"),
    [
        (lambda nodes: nodes.kill(2), "index"),
        (lambda nodes: nodes.kill(2, at_seconds=1), "index"),
        (lambda nodes: nodes.kill(1, at_seconds=-1), "at_seconds"),
        (lambda nodes: nodes.fail_over(1, for_seconds=1), "for_seconds"),
        (lambda nodes: nodes.restart(1, keep_data=0), "keep_data"),
        (lambda nodes: nodes.slow_down(1, -1, at_seconds=1), "seconds"),
        (lambda nodes: nodes.learn_late(1, "1", at_seconds=1), "seconds"),
        (lambda nodes: nodes.clear_faults(2), "index"),
    ],
)
def test_invalid_command_is_refused(perform: Callable[[FakeNodes], None], parameter: str) -> None:
    """An invalid argument raises immediately, also for a planned command, and plans nothing."""
    nodes = FakeNodes(nodes=2)
    with pytest.raises(errors.InvalidArgumentException) as caught:
        perform(nodes)

    assert parameter == caught.value.parameter
    assert (math.inf, []) == (nodes.wakeup, happened(nodes))


def test_clear_forgets_planned_commands() -> None:
    """Clearing the faults of one node or all nodes removes planned commands, and keeps the end of a started one."""
    nodes = FakeNodes(nodes=2)
    nodes.kill(0, for_seconds=1)
    for index in (0, 1):
        nodes.slow_down(index, 1, at_seconds=3)
    nodes.rebalance(at_seconds=3)
    nodes.clear_faults(0)
    after_one = [(change.name, change.node) for change, _, _ in nodes.schedule.planned]
    nodes.clear_faults()
    after_all = [(change.name, change.node) for change, _, _ in nodes.schedule.planned]
    pass_time(nodes, 1.0)

    assert [("slow_down", 1), ("rebalance", None), ("kill", 0)] == sorted(after_one, key=lambda each: each[0] == "kill")
    assert [("kill", 0)] == after_all
    assert nodes[0].is_alive


def test_plans_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the maximum number of waiting commands, a further one raises."""
    monkeypatch.setattr(schedule, "PLANNED_MAX", 2)
    nodes = FakeNodes(nodes=2)
    nodes.kill(0, at_seconds=1)
    nodes.kill(1, at_seconds=1)

    with pytest.raises(errors.InvalidArgumentException, match="maximum"):
        nodes.revive(1)


def test_clock_of_the_driver_is_current() -> None:
    """With the clock of a driver, a duration counts from the call, even if no event has come for a while."""
    nodes = FakeNodes(nodes=2)
    now = 7.0
    nodes.set_clock(lambda: now)
    nodes.start_clock()
    nodes.kill(1, for_seconds=2)
    nodes.revive(0, at_seconds=5)
    now = 8.0

    assert 1.0 == nodes.seconds
    assert 9.0 == nodes.wakeup
    pass_time(nodes, 9.0)
    assert 12.0 == nodes.wakeup
