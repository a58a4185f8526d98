"""The simulation of a cluster: each stream leads to the node that the client asked for."""

from __future__ import annotations

import math

import pytest

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation.requests import Get, Keyspace, Upsert
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.simulation import Simulation

BUCKET = Keyspace("default")
SECOND = "127.0.0.1:11212"


def options_for(connection_string: str) -> ClientOptions:
    """Return what a client of these hosts is told."""
    return ClientOptions(
        connection_string=connection_string, authenticator=PasswordAuthenticator("Administrator", "password")
    )


def second_alone() -> FakeNodes:
    """Return a cluster whose vbuckets are all the second node's."""
    nodes = FakeNodes(nodes=3)
    nodes.move(range(1024), to=1)
    return nodes


def test_streams_lead_to_the_node_that_was_asked_for() -> None:
    """It answers, and what it is asked stands in its log."""
    nodes = second_alone()
    simulation = Simulation(nodes, options_for(f"couchbase://{SECOND}"))
    token = simulation.submit(Upsert(BUCKET, "ada", b"{}", 0))
    simulation.run()

    assert (nodes, nodes[0]) == (simulation.nodes, simulation.node)
    assert token in simulation.results
    assert b"ada" in [command.key for command in nodes[1].command_log]
    assert f"0.000 {SECOND} ready" in simulation.log
    assert {nodes[1]} <= {link.node for link in simulation.links.values()}


def test_by_default_the_client_is_told_of_all() -> None:
    """Where the first does not let it in, it finds another."""
    nodes = second_alone()
    nodes.kill(0)
    simulation = Simulation(nodes)
    token = simulation.submit(Get(BUCKET, "ada"))
    simulation.run()

    assert token in simulation.errors
    assert [] == nodes[0].command_log


def test_nobody_is_at_an_unknown_address() -> None:
    """The connect is refused, as by a machine that has nothing on that port."""
    simulation = Simulation(second_alone(), options_for("couchbase://127.0.0.1:11211"))
    simulation.flow()

    assert simulation.log
    assert not any("ready" in line for line in simulation.log)
    assert not any(link.is_open for link in simulation.links.values())


def test_a_killed_node_hangs_up() -> None:
    """The client hears of it as soon as bytes flow, and comes back once it may."""
    nodes = second_alone()
    simulation = Simulation(nodes, options_for(f"couchbase://{SECOND}"))
    simulation.submit(Upsert(BUCKET, "ada", b"{}", 0))
    simulation.run()
    before = [stream for stream, link in simulation.links.items() if link.node is nodes[1]]
    nodes.kill(1)

    assert -math.inf == simulation.wakeup
    simulation.flow()
    assert before
    assert not any(stream in simulation.links and simulation.links[stream].is_open for stream in before)
    nodes.revive(1)
    token = simulation.submit(Get(BUCKET, "ada"))
    simulation.run()
    assert token in simulation.results


def test_one_of_several_is_not_the_peer_of_a_client() -> None:
    """The whole cluster is."""
    with pytest.raises(InvalidArgumentException, match="FakeNodes"):
        Simulation(FakeNodes()[0])
