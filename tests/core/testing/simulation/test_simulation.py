"""Simulation of a client, with control of each byte of its streams, virtual time, and the rules of a driver."""

from __future__ import annotations

import math

import pytest

from tests.core.runtime.kv.phases import Asking
from triclinium_core import errors
from triclinium_core.contract.neutral import ConsultStrategy, LossCause, StrategyDecided, StreamId
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Noop, Operation, Upsert
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import delay, drop_response, hang_up_mid_reply, refuse_connection
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.simulation import Simulation

BUCKET = Keyspace("default")


def get(key: str = "k") -> Operation:
    """Return a read."""
    return Get(BUCKET, key)


def upsert(key: str = "k") -> Operation:
    """Return a write."""
    return Upsert(BUCKET, key, b"{}", 0)


def newest(simulation: Simulation) -> StreamId:
    """Return the stream that was opened last."""
    return max(simulation.links)


def ready() -> Simulation:
    """Return a simulation with two ready connections."""
    simulation = Simulation()
    simulation.flow()
    simulation.submit(Noop(BUCKET))
    simulation.run()
    return simulation


def test_round_trip() -> None:
    """A default client and a default node complete all operations without passing time."""
    simulation = Simulation()
    write, read = simulation.submit(upsert()), simulation.submit(get())
    simulation.run()
    result = simulation.results[read]

    assert isinstance(result, GetResult)
    assert b"{}" == result.data
    assert {write, read} == set(simulation.results)
    assert (0.0, 0, {}) == (simulation.now, simulation.open_operations, simulation.errors)
    assert ["0.000 127.0.0.1:11210 ready"] * 2 == simulation.log


def test_custom_node_and_options() -> None:
    """A test may supply a node and options; by default the client has the node's credentials."""
    options = FakeNodeOptions(username="ada", password="secret", port=4000, host="node.example")
    simulation = Simulation(FakeNode(options))
    simulation.flow()
    other = Simulation(
        FakeNode(options),
        ClientOptions(connection_string="couchbase://x:1", authenticator=PasswordAuthenticator("ada", "wrong")),
    )
    other.flow()

    assert ["0.000 node.example:4000 ready"] == simulation.log
    assert "refused the credentials of 'ada'" in other.log[0]


def test_handing_over_and_delivering_piece_by_piece() -> None:
    """A test moves bytes in pieces; an incomplete request or response has no effect."""
    simulation = ready()
    token = simulation.submit(get())
    stream = newest(simulation)
    link = simulation.links[stream]
    size = len(link.outgoing)
    handed_over = link.handed_over
    simulation.hand_over(stream, size - 1)

    assert (1, handed_over + size - 1, 0) == (len(link.outgoing), link.handed_over, len(link.incoming))
    assert Opcode.GET not in {command.opcode for command in simulation.node.command_log}

    simulation.hand_over(stream, 5)

    assert (0, handed_over + size) == (len(link.outgoing), link.handed_over)
    assert Opcode.GET in {command.opcode for command in simulation.node.command_log}

    simulation.deliver(stream, len(link.incoming) - 1)

    assert 1 == simulation.open_operations

    simulation.deliver(stream, 1)

    assert token in simulation.errors
    assert 0 == simulation.open_operations


def test_lost_stream() -> None:
    """When its stream is lost, a write with a byte handed over fails; one without is sent again (decision C24)."""
    simulation = ready()
    token = simulation.submit(upsert())
    stream = newest(simulation)
    simulation.hand_over(stream, 1)
    simulation.lose(stream)

    assert stream not in simulation.links
    assert errors.RequestCanceledException is type(simulation.errors[token])

    simulation.run()
    other = simulation.submit(upsert())
    simulation.lose(newest(simulation), LossCause.UNREACHABLE)
    simulation.run()

    assert other in simulation.results
    assert "address unreachable" in simulation.log[-2]


def test_node_that_closes() -> None:
    """The stream's end follows the node's last byte; bytes handed over later are discarded."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET, hang_up_mid_reply(bytes_sent=10))
    simulation.submit(get())
    stream = newest(simulation)
    simulation.hand_over(stream)
    simulation.submit(get("other"))
    simulation.hand_over(stream)
    link = simulation.links[stream]

    assert (True, 10) == (link.is_hung_up, len(link.incoming))
    assert 1 == sum(command.opcode == Opcode.GET for command in simulation.node.command_log)

    simulation.deliver(stream, 9)

    assert stream in simulation.links

    simulation.deliver(stream)

    assert stream not in simulation.links
    assert "closed by the server" in simulation.log[2]


def test_closed_streams_deliver_nothing() -> None:
    """Bytes that the node sends on a closed stream are discarded."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET, delay(1.0))
    simulation.submit(get())
    stream = newest(simulation)
    simulation.hand_over(stream)
    simulation.links[stream].incoming += b"nonsense"
    simulation.deliver(stream)

    assert stream not in simulation.links

    simulation.advance(2.0)
    simulation.flow()

    assert 2 == simulation.now
    assert 0 == simulation.open_operations


def test_advance_stops_at_each_due_time() -> None:
    """Deadlines fire at their time, even if no bytes move."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET, drop_response())
    token = simulation.submit(get())
    simulation.advance(60.0)

    assert 2.5 == simulation.settled_at[token]
    assert 60 == simulation.now


def test_run_ends_with_the_last_operation() -> None:
    """A run ends with its last operation or after its time, and immediately if there are no operations."""
    simulation = Simulation()
    simulation.node.faults.always(None, refuse_connection())
    token = simulation.submit(get())
    simulation.run(1.0)

    assert (1.0, 1) == (simulation.now, simulation.open_operations)

    simulation.run()

    assert 2.5 == simulation.now == simulation.settled_at[token]
    assert errors.UnambiguousTimeoutException is type(simulation.errors[token])

    simulation.run()

    assert 2.5 == simulation.now


def test_run_ends_when_nothing_will_happen() -> None:
    """A run ends with an open operation if no deadline and no timer is left."""
    simulation = Simulation(options=options_for("couchbase://127.0.0.1:11210?kv_timeout=inf&connect_timeout=inf"))
    simulation.node.faults.always(Opcode.SELECT_BUCKET, drop_response())
    simulation.node.faults.next(Opcode.SASL_AUTH, drop_response(), times=2)
    simulation.submit(get())
    simulation.run()

    assert (0.0, 1, math.inf) == (simulation.now, simulation.open_operations, simulation.machine.wakeup)


def test_asynchronous_strategy() -> None:
    """A test awaits an asynchronous strategy and reports its decision, as a driver does."""
    simulation = Simulation()
    simulation.node.faults.always(None, refuse_connection())
    token = simulation.submit(get(), retry_strategy=Asking(), client_context={"robot": True})
    simulation.flow()
    (consulted,) = simulation.consulted
    assert isinstance(consulted, ConsultStrategy)
    assert isinstance(consulted.request, RetryRequest)

    assert (token, {"robot": True}) == (consulted.token, consulted.request.client_context)

    simulation.feed(StrategyDecided(token, RetryAction.no_retry()))

    assert token in simulation.errors
    assert [token] == [refusal.token for refusal in simulation.refusals]


class Restless:
    """A strategy that retries without a delay."""

    def retry_after(self, request: RetryRequest, reason: RetryReason) -> RetryAction:
        """Return a retry without a delay."""
        return RetryAction.after(0)


def test_livelock_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client and a node that keep each other busy without passing time fail the test instead of blocking it."""
    monkeypatch.setattr("triclinium_core.testing.simulation.simulation.STEPS_MAX", 500)
    monkeypatch.setattr("triclinium_core.retry.couchbase.retry_machine.DELAY_LEAST", 0.0)
    simulation = Simulation()
    simulation.node.faults.always(None, refuse_connection())
    simulation.submit(get(), retry_strategy=Restless())

    with pytest.raises(AssertionError, match="client and node keep each other busy"):
        simulation.run()
    with pytest.raises(AssertionError, match="client and node keep each other busy"):
        simulation.advance(1.0)
    assert 0.0 == simulation.now


SECOND = "127.0.0.1:11212"


def options_for(connection_string: str) -> ClientOptions:
    """Return client options for these hosts."""
    return ClientOptions(
        connection_string=connection_string, authenticator=PasswordAuthenticator("Administrator", "password")
    )


def second_alone() -> FakeNodes:
    """Return a cluster whose second node has all vbuckets."""
    nodes = FakeNodes(nodes=3)
    nodes.move(range(1024), to=1)
    return nodes


def test_streams_reach_the_requested_node() -> None:
    """A stream leads to the node at its address, which answers and logs the commands."""
    nodes = second_alone()
    simulation = Simulation(nodes, options_for(f"couchbase://{SECOND}"))
    token = simulation.submit(Upsert(BUCKET, "ada", b"{}", 0))
    simulation.run()

    assert (nodes, nodes[0]) == (simulation.nodes, simulation.node)
    assert token in simulation.results
    assert b"ada" in [command.key for command in nodes[1].command_log]
    assert f"0.000 {SECOND} ready" in simulation.log
    assert {nodes[1]} <= {link.node for link in simulation.links.values()}


def test_client_gets_all_addresses_by_default() -> None:
    """A default client has the addresses of all nodes; if the first refuses, it connects to another."""
    nodes = second_alone()
    nodes.kill(0)
    simulation = Simulation(nodes)
    token = simulation.submit(Get(BUCKET, "ada"))
    simulation.run()

    assert token in simulation.errors
    assert [] == nodes[0].command_log


def test_unknown_address_refuses() -> None:
    """A connect to an unknown address is refused."""
    simulation = Simulation(second_alone(), options_for("couchbase://127.0.0.1:11211"))
    simulation.flow()

    assert simulation.log
    assert not any("ready" in line for line in simulation.log)
    assert not any(link.is_open for link in simulation.links.values())


def test_killed_node_closes_its_streams() -> None:
    """A killed node's streams end as soon as bytes flow; after ``revive`` the client reconnects."""
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


def test_one_node_of_several_is_refused() -> None:
    """A simulation refuses a single node of a cluster and names FakeNodes instead."""
    with pytest.raises(errors.InvalidArgumentException, match="FakeNodes"):
        Simulation(FakeNodes()[0])
