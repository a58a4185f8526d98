"""The simulation: streams controlled byte by byte, time that only it moves, and the rules of a driver."""

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
    """Return a simulation whose two connections are ready."""
    simulation = Simulation()
    simulation.flow()
    simulation.submit(Noop(BUCKET))
    simulation.run()
    return simulation


def test_round_trip() -> None:
    """By default client and node get along, and no time passes."""
    simulation = Simulation()
    write, read = simulation.submit(upsert()), simulation.submit(get())
    simulation.run()
    result = simulation.results[read]

    assert isinstance(result, GetResult)
    assert b"{}" == result.data
    assert {write, read} == set(simulation.results)
    assert (0.0, 0, {}) == (simulation.now, simulation.open_operations, simulation.errors)
    assert ["0.000 127.0.0.1:11210 ready"] * 2 == simulation.log


def test_own_node_and_options() -> None:
    """Both may be given; the credentials are the node's unless the options say otherwise."""
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
    """A test decides how far the bytes come; half a request does not count, nor does half an answer."""
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


def test_losing() -> None:
    """The client learns how many bytes had been handed over (decision C24): before the first a write is sent again."""
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


def test_hanging_up() -> None:
    """The end comes after the last byte that the node sent; what is still handed over goes nowhere."""
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


def test_closed_streams_are_not_heard_of_again() -> None:
    """What the node still sends on one goes nowhere."""
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


def test_advance_stops_where_something_is_due() -> None:
    """Deadlines fire at their time, although no bytes move."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET, drop_response())
    token = simulation.submit(get())
    simulation.advance(60.0)

    assert 2.5 == simulation.settled_at[token]
    assert 60 == simulation.now


def test_run_ends_with_the_last_operation() -> None:
    """Or when the time is over, whatever comes first; without operations at once."""
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
    """Without deadlines and timers an open operation is left open."""
    options = ClientOptions(
        connection_string=("couchbase://127.0.0.1:11210?kv_timeout=inf&connect_timeout=inf"),
        authenticator=PasswordAuthenticator("Administrator", "password"),
    )
    simulation = Simulation(options=options)
    simulation.node.faults.always(Opcode.SELECT_BUCKET, drop_response())
    simulation.node.faults.next(Opcode.SASL_AUTH, drop_response(), times=2)
    simulation.submit(get())
    simulation.run()

    assert (0.0, 1, math.inf) == (simulation.now, simulation.open_operations, simulation.machine.wakeup)


def test_consulting() -> None:
    """The driver's part of an asynchronous strategy is played by the test."""
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
    """A strategy that asks for no time to pass."""

    def retry_after(self, request: RetryRequest, reason: RetryReason) -> RetryAction:
        """Return no delay."""
        return RetryAction.after(0)


def test_livelock_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Client and node that keep each other busy for ever fail the test instead of hanging it."""
    monkeypatch.setattr("triclinium_core.testing.simulation.simulation.STEPS_MAX", 500)
    monkeypatch.setattr("triclinium_core.retry.couchbase.retry_machine.DELAY_LEAST", 0.0)
    simulation = Simulation()
    simulation.node.faults.always(None, refuse_connection())
    simulation.submit(get(), retry_strategy=Restless())

    with pytest.raises(AssertionError, match="without time passing"):
        simulation.run()
    with pytest.raises(AssertionError, match="without time passing"):
        simulation.advance(1.0)
    assert 0.0 == simulation.now


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
    with pytest.raises(errors.InvalidArgumentException, match="FakeNodes"):
        Simulation(FakeNodes()[0])
