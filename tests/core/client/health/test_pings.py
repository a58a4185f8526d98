"""Pings: a NOOP on each connection, and one report of all, whatever becomes of the connections meanwhile."""

from __future__ import annotations

from tests.core.runtime.kv.simulated import TIMEOUT, Recorded, client_options, node_options, ready, respond
from tests.core.runtime.kv.test_cluster import RecordedCluster
from triclinium_core.contract.couchbase import ReportAnswer, ReportDispatch
from triclinium_core.contract.neutral import LossCause, StreamId, Token
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady
from triclinium_core.kv.operation.reports import EndpointPingReport, PingResult, PingState
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.couchbase import Service, Status
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.faults import delay, drop_response, hang_up, status

SEEDS = "couchbase://127.0.0.1:11210,127.0.0.1:11212,127.0.0.1:11214"
NODES = ["127.0.0.1:11210", "127.0.0.1:11212", "127.0.0.1:11214"]


def result_of(simulation: Recorded, token: Token) -> PingResult:
    """Return the report of a ping that is complete."""
    result = simulation.results[token]
    assert isinstance(result, PingResult)
    return result


def reports(simulation: Recorded, token: Token) -> list[EndpointPingReport]:
    """Return what a ping has found, in the order in which the connections were opened."""
    return list(result_of(simulation, token).endpoints[Service.KV])


def ping(simulation: Recorded, bucket: str | None = "travel") -> Token:
    """Ping, and let everything run until the report is there."""
    token = simulation.inquire(Ping(bucket, "i"))
    simulation.run()
    assert token in simulation.results
    return token


def seeded() -> Recorded:
    """Return a client of three nodes that knows all of them from the beginning."""
    return Recorded(RecordedCluster().nodes, client_options(SEEDS))


def noops(simulation: Recorded) -> list[tuple[StreamId, Frame]]:
    """Return every NOOP that was ordered."""
    return [
        (stream, frame)
        for stream, frames in simulation.requests.items()
        for frame in frames
        if frame.opcode == Opcode.NOOP
    ]


def test_all_at_once() -> None:
    """Each connection gets a NOOP of its own before any has answered."""
    simulation = RecordedCluster()
    simulation.write()
    before = len(noops(simulation))
    simulation.inquire(Ping(None, "i"))

    assert before + 4 == len(noops(simulation))


def test_before_the_beginning() -> None:
    """A ping may be the very first event."""
    simulation = RecordedCluster()
    token = ping(simulation)

    assert NODES == sorted(found.remote for found in reports(simulation, token))
    assert {PingState.OK} == {found.state for found in reports(simulation, token)}


def test_every_node_is_reached_from_now_on() -> None:
    """The connections that a ping of the cluster opens follow the map: a new node gets one, one that leaves none."""
    simulation = RecordedCluster()
    simulation.nodes.remove_node(2)
    first = reports(simulation, ping(simulation, None))
    simulation.nodes.remove_node(0)
    simulation.nodes.add_node(2)
    simulation.live(0.1)
    second = reports(simulation, ping(simulation, None))

    assert NODES[:2] == sorted(found.remote for found in first)
    assert NODES[1:] == sorted(found.remote for found in second)
    assert 2 == len(simulation.links)


def test_a_map_that_is_known_already() -> None:
    """It is followed when the first ping comes, from the connection that told it."""
    simulation = RecordedCluster()
    simulation.live(1.0)
    token = ping(simulation, None)

    assert NODES == sorted(found.remote for found in reports(simulation, token))
    assert 3 == len(simulation.links)


def test_a_teller_that_moved_on() -> None:
    """A connection that is on its way to another seed is not taken for the one to the node that told the map."""
    simulation = seeded()
    simulation.live(1.0)
    simulation.nodes.kill(0)
    simulation.flow()
    token = ping(simulation, None)
    simulation.nodes.revive(0)
    simulation.live(5.0)
    later = ping(simulation, None)

    assert set(NODES) == {found.remote for found in reports(simulation, token)}
    assert NODES == sorted(found.remote for found in reports(simulation, later))
    assert 3 == len(simulation.links)


def test_an_answer_that_comes_late() -> None:
    """The report does not wait for it, and nobody waits for it any more."""
    simulation = ready()
    simulation.node.faults.next(Opcode.NOOP, delay(4.0))
    token = ping(simulation)
    simulation.live(2.0)
    (found,) = reports(simulation, token)

    assert (PingState.TIMEOUT, 2.5) == (found.state, found.latency)
    assert 1 == simulation.machine.statistics().orphans
    assert 0 == simulation.machine.statistics().in_flight


def probes(simulation: Recorded) -> list[tuple[type[ReportDispatch | ReportAnswer], Token, StreamId]]:
    """Return what was told of probes, oldest first."""
    told = [action for action in simulation.actions if isinstance(action, ReportDispatch | ReportAnswer)]
    return [(type(report), report.token, report.stream) for report in told]


def test_probes_are_told_where_that_is_asked_for() -> None:
    """Of a ping of several nodes all attempts are under way at once, told by their streams; of another ping none is."""
    simulation = RecordedCluster()
    ping(simulation)
    assert [] == probes(simulation)

    simulation.is_traced = True
    token = ping(simulation)
    told = probes(simulation)
    begun, ended = told[:3], told[3:]

    assert [(ReportDispatch, token)] * 3 == [each[:2] for each in begun]
    assert [(ReportAnswer, token)] * 3 == [each[:2] for each in ended]
    assert 3 == len({stream for _, _, stream in begun})
    assert {stream for _, _, stream in begun} == {stream for _, _, stream in ended}


def test_a_probe_whose_connection_is_lost() -> None:
    """It is over with its stream, and the next stream has a probe of its own: of the same ping where an address is left."""
    simulation = ready()
    simulation.is_traced = True
    simulation.node.faults.next(Opcode.NOOP, hang_up())
    lost = ping(simulation)
    answered = ping(simulation)
    (_, _, first), _, (_, _, second), _ = told = probes(simulation)

    assert [
        (ReportDispatch, lost, first),
        (ReportAnswer, lost, first),
        (ReportDispatch, answered, second),
        (ReportAnswer, answered, second),
    ] == told
    assert first != second


def test_a_probe_that_nobody_answers() -> None:
    """It is over when the time of key-value is, though the ping still waits for another service."""
    simulation = Recorded(FakeNode(node_options(services=frozenset({Service.KV, Service.QUERY}))))
    simulation.inquire(WaitUntilReady(None, service_types=(Service.KV,)))
    simulation.run()
    simulation.is_traced = True
    simulation.node.faults.next(Opcode.NOOP, drop_response())
    simulation.node.faults.next(Service.QUERY, drop_response())
    token = simulation.inquire(Ping(None, "i", (Service.KV, Service.QUERY)))
    simulation.live(TIMEOUT)

    assert token not in simulation.results
    assert 1 == len(simulation.attempts[token])


def test_a_bootstrap_that_takes_too_long() -> None:
    """The report says how far it has come."""
    simulation = Recorded()
    simulation.node.faults.next(Opcode.SASL_AUTH, drop_response())
    (found,) = reports(simulation, ping(simulation, None))

    assert (PingState.TIMEOUT, 2.5) == (found.state, found.latency)
    assert "127.0.0.1:11210: authenticating; it has not answered SASL_AUTH, 2.5 s after the ping began" == found.error


def test_a_connection_that_is_lost() -> None:
    """With a ping on its way, that is an error; the next connection is for the next ping."""
    simulation = ready()
    simulation.node.faults.next(Opcode.NOOP, hang_up())
    (found,) = reports(simulation, ping(simulation))
    (again,) = reports(simulation, ping(simulation))

    assert (PingState.ERROR, "127.0.0.1:11210: closed by the server") == (found.state, found.error)
    assert PingState.OK is again.state
    assert found.id != again.id


def test_a_seed_that_hangs_up() -> None:
    """There are others to try, so the NOOP is sent again, on the next stream."""
    simulation = seeded()
    simulation.nodes[0].faults.next(Opcode.SASL_AUTH, hang_up())
    token = ping(simulation, None)

    assert {PingState.OK} == {found.state for found in reports(simulation, token)}
    assert simulation.settled_at[token] < 0.1


def test_no_seed_at_all() -> None:
    """When each was tried once, the report says what became of the last one."""
    simulation = seeded()
    for node in range(3):
        simulation.nodes.kill(node)
    (found,) = reports(simulation, ping(simulation, None))

    assert (PingState.ERROR, "127.0.0.1:11214: connection refused") == (found.state, found.error)
    assert 3 == len(simulation.opened_at)


def test_a_bucket_that_may_not_be_opened() -> None:
    """It is not knocked at again for a report, however many seeds there are."""
    simulation = seeded()
    token = ping(simulation, "secret")
    (found,) = reports(simulation, token)

    assert PingState.ERROR is found.state
    assert "user 'Administrator' may not open it" in str(found.error)
    assert 0 == simulation.settled_at[token]


def test_a_node_that_leaves_meanwhile() -> None:
    """A last answer is still an answer."""
    simulation = RecordedCluster()
    simulation.write()
    simulation.nodes[2].faults.next(Opcode.NOOP, delay(1.0))
    token = simulation.inquire(Ping("travel", "i"))
    simulation.flow()
    simulation.nodes.remove_node(2)
    simulation.run()

    assert {(node, PingState.OK) for node in NODES} == {
        (found.remote, found.state) for found in reports(simulation, token)
    }


def test_two_at_once() -> None:
    """Each has NOOPs of its own."""
    simulation = ready()
    first, second = simulation.inquire(Ping("travel", "a")), simulation.inquire(Ping("travel", "b"))
    assert 2 == simulation.open_operations
    simulation.run()

    assert ["a", "b"] == [result_of(simulation, token).id for token in (first, second)]
    assert 0 == simulation.open_operations


def test_abandoned() -> None:
    """Nothing is reported, no timer is left, and the answer is an orphan."""
    simulation = ready()
    wakeup = simulation.machine.wakeup
    token = simulation.inquire(Ping("travel", "i"))
    assert simulation.machine.wakeup < wakeup
    assert not simulation.machine.is_ambiguous(token)
    simulation.abandon(token)
    simulation.run()

    assert simulation.machine.wakeup == wakeup
    assert token not in simulation.settled_at
    assert (0, 1) == (simulation.open_operations, simulation.machine.statistics().orphans)


def test_the_newest_revision() -> None:
    """The report tells it, whichever bucket it is from."""
    simulation = ready()
    simulation.nodes.set_config_revision(53, epoch=2)
    simulation.live(0.1)

    assert 53 == result_of(simulation, ping(simulation)).config_rev


def test_over_memcached() -> None:
    """It answers a NOOP like any other server; there are neither nodes nor revisions to tell of."""
    simulation = Recorded(options=client_options("memcached://127.0.0.1:11210", authenticator=None))
    simulation.advance(0)
    simulation.open(simulation.newest)
    token = simulation.inquire(Ping(None, "i"))
    simulation.swallow(simulation.newest)
    ((_, request),) = noops(simulation)
    simulation.inject(respond(request))

    assert [PingState.OK] == [found.state for found in reports(simulation, token)]
    assert result_of(simulation, token).config_rev is None


def test_an_answer_that_says_no() -> None:
    """Whatever a node says to a NOOP, it is there."""
    simulation = ready()
    simulation.node.faults.next(Opcode.NOOP, status(int(Status.TEMPORARY_FAILURE)))

    assert [PingState.OK] == [found.state for found in reports(simulation, ping(simulation))]


def test_a_loss_of_another_connection() -> None:
    """A bucket's ping is not about it."""
    simulation = ready()
    simulation.node.faults.next(Opcode.NOOP, delay(0.5))
    token = simulation.inquire(Ping("travel", "i"))
    simulation.lose(StreamId(1), LossCause.RESET)
    simulation.run()

    assert [PingState.OK] == [found.state for found in reports(simulation, token)]
