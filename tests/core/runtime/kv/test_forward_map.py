"""Forward map of a rebalance: if a node refuses an operation without a newer map, the future node gets it."""

from __future__ import annotations

from tests.core.runtime.kv.simulated import upsert
from tests.core.runtime.kv.test_cluster import KEYS, MUTE, RecordedCluster, clear_logs, owner_of, written
from triclinium_core import errors
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.testing.fakes.faults import not_my_vbucket


def rebalancing() -> tuple[RecordedCluster, str]:
    """Return a simulation whose client knows of a move of all vbuckets to the other node, and a key of the old node."""
    simulation = written(2, MUTE)
    key = next(key for key in KEYS if owner_of(simulation, key) == 0)
    simulation.nodes.announce_move(simulation.nodes.vbuckets_of(0), to=1)
    simulation.live(2.6)
    return simulation, key


def test_the_next_node_is_tried() -> None:
    """If the old node refuses a write without a newer map, the write goes to the new node before the next poll."""
    simulation, key = rebalancing()
    simulation.nodes.hold_config(0)
    simulation.nodes[0].faults.always(Opcode.SET, not_my_vbucket(with_config=False))
    simulation.nodes.move(simulation.nodes.vbuckets_of(0), to=1)
    clear_logs(simulation)
    begun = simulation.now
    token = simulation.finish(upsert(key))

    assert [1] == simulation.takers(key)
    assert 0.1 > simulation.settled_at[token] - begun
    assert 1 == simulation.machine.statistics().retries_by_reason[RetryReason.KV_NOT_MY_VBUCKET]


def test_both_nodes_are_tried_in_turn() -> None:
    """While both nodes refuse an operation, its attempts alternate between the nodes."""
    simulation, key = rebalancing()
    for node in simulation.nodes:
        node.faults.always(Opcode.SET, not_my_vbucket(with_config=False))
        node.command_log.clear()
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert(key))
    asked = sorted(
        (command.now, place)
        for place, node in enumerate(simulation.nodes)
        for command in node.command_log
        if command.opcode == Opcode.SET
    )

    assert ["KV_NOT_MY_VBUCKET"] == list(error.context.retry_reasons)
    assert [0, 1, 0, 1, 0, 1] == [place for _, place in asked][:6]


def test_a_rebalance_that_is_not_done_yet() -> None:
    """While the old node accepts operations, the client does not use the forward map."""
    simulation, key = rebalancing()
    clear_logs(simulation)
    simulation.write()

    assert [0] == simulation.takers(key)
    assert RetryReason.KV_NOT_MY_VBUCKET not in simulation.machine.statistics().retries_by_reason


def test_a_newer_map_takes_precedence() -> None:
    """If a refusal contains a newer map, the client uses that map and drops the old forward map."""
    simulation, key = rebalancing()
    simulation.nodes.move(simulation.nodes.vbuckets_of(0), to=1)
    simulation.nodes.move(simulation.nodes.vbuckets_of(1), to=0)
    simulation.nodes[1].command_log.clear()
    simulation.write([key])

    assert [0, 0] == simulation.takers(key)
