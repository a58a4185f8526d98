"""Histories in which an application closes a client during its work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.core.testing.simulation.played import two_nodes
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.couchbase import Action, Event, OperationAbandoned
from triclinium_core.contract.neutral import SendBytes, StreamId
from triclinium_core.kv.operation.document_operations import Get, Upsert
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.testing.simulation.endings import has_endings
from triclinium_core.testing.simulation.history import DEFAULT, ClusterHistory
from triclinium_core.testing.simulation.simulation_command import REGRESSIONS


@pytest.mark.parametrize("clients", [1, 2])
def test_closed_client_is_replaced(clients: int) -> None:
    """Closing a client ends its operations and streams; a new one opens new streams, and other clients go on."""
    simulation = two_nodes(clients)
    before = set(simulation.links)
    values = [simulation.model.unique_values.fragment() for _ in range(2 * clients)]
    simulation.submit_together([(Upsert(DEFAULT, "k1", value, 0), None) for value in values])
    others = [token for token in range(1, 2 * clients + 1) if token % clients != 0]
    simulation.close_client(0)
    commands = [len(node.command_log) for node in simulation.nodes]

    assert not {stream for stream in simulation.links if stream % clients == 0} & before
    assert len(others) == simulation.open_operations

    simulation.flow_for(1.0)
    simulation.submit_together([(Get(DEFAULT, "k1"), None) for _ in range(clients)])
    simulation.flow()
    read_on = [
        command.connection
        for node, count in zip(simulation.nodes, commands, strict=True)
        for command in node.command_log[count:]
    ]

    assert set(others) | {2 * clients + number for number in range(1, clients + 1)} == set(simulation.settled_at)
    assert not {StreamId(stream) for stream in read_on if stream % clients == 0} & before
    simulation.check_frames()


def test_client_that_keeps_operations_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that keeps an abandoned operation open while it is closed violates a law."""
    simulation = two_nodes(1)
    handle = ClientMachine.handle

    def forget_nothing(self: ClientMachine, event: Event, now: float) -> Sequence[Action]:
        return [] if isinstance(event, OperationAbandoned) else handle(self, event, now)

    simulation.submit(Get(DEFAULT, "k1"))
    monkeypatch.setattr(ClientMachine, "handle", forget_nothing)

    with pytest.raises(Violation, match="the client is closed, but its number of open operations is 1"):
        simulation.close_client(0)


def test_client_that_sends_while_closed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends anything while it is closed violates a law."""
    simulation = two_nodes(1)
    handle = ClientMachine.handle
    stream = next(iter(simulation.links))

    def send_on(self: ClientMachine, event: Event, now: float) -> Sequence[Action]:
        actions = handle(self, event, now)
        return [*actions, SendBytes(stream, b"more")] if isinstance(event, OperationAbandoned) else actions

    simulation.submit(Get(DEFAULT, "k1"))
    monkeypatch.setattr(ClientMachine, "handle", send_on)

    with pytest.raises(Violation, match="client.* closed"):
        simulation.close_client(0)


@pytest.mark.history
def test_clients_are_closed_during_operations() -> None:
    """A history with closed clients closes several, some of them with open operations."""
    history = ClusterHistory(next(seed for seed in range(99) if has_endings(seed)))
    history.run()

    assert history.figures().changes["clients closed"] > 1
    assert any(" is closed with " in line and "with 0" not in line for line in history.simulation.timeline)


def test_known_seeds_close_no_client() -> None:
    """No known regression closes a client, so these histories stay as they were."""
    assert not any(map(has_endings, REGRESSIONS))
