"""Pings: the client sends a NOOP on each connection of the cluster or bucket, and returns one report."""

from __future__ import annotations

import pytest

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
    """Return the result of a completed ping."""
    result = simulation.results[token]
    assert isinstance(result, PingResult)
    return result


def reports(simulation: Recorded, token: Token) -> list[EndpointPingReport]:
    """Return the reports in the result of a ping, ordered by the opening of the connections."""
    return list(result_of(simulation, token).endpoints[Service.KV])


def ping(simulation: Recorded, bucket: str | None = "travel") -> Token:
    """Submit a ping, run the simulation until the result arrives, and return the token."""
    token = simulation.inquire(Ping(bucket, "i"))
    simulation.run()
    assert token in simulation.results
    return token


def seeded() -> Recorded:
    """Return a simulation of a client whose connection string lists all three nodes."""
    return Recorded(RecordedCluster().nodes, client_options(SEEDS))


def noops(simulation: Recorded) -> list[tuple[StreamId, Frame]]:
    """Return each NOOP that the client has sent, with its stream."""
    return [
        (stream, frame)
        for stream, frames in simulation.requests.items()
        for frame in frames
        if frame.opcode == Opcode.NOOP
    ]


def test_all_at_once() -> None:
    """A ping sends the NOOPs of all connections before the client receives the first response."""
    simulation = RecordedCluster()
    simulation.write()
    before = len(noops(simulation))
    simulation.inquire(Ping(None, "i"))

    assert before + 4 == len(noops(simulation))


@pytest.mark.parametrize(("bucket", "seconds", "links"), [("travel", 0.0, 4), (None, 1.0, 3)])
def test_the_first_ping(bucket: str | None, seconds: float, links: int) -> None:
    """The first ping, as the first event of a client or after the client has the map, reaches all nodes of the map."""
    simulation = RecordedCluster()
    simulation.live(seconds)
    token = ping(simulation, bucket)

    assert NODES == sorted(found.remote for found in reports(simulation, token))
    assert {PingState.OK} == {found.state for found in reports(simulation, token)}
    assert links == len(simulation.links)


def test_a_cluster_ping_follows_the_map() -> None:
    """The connections of a cluster ping follow the map: the client connects to new nodes and leaves removed ones."""
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


def test_a_connection_that_moves_to_another_seed() -> None:
    """If a seed dies, its connection moves to another seed, and the report still lists each node once."""
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


def test_a_late_response() -> None:
    """The report does not wait for a late NOOP response, which counts as an orphan."""
    simulation = ready()
    simulation.node.faults.next(Opcode.NOOP, delay(4.0))
    token = ping(simulation)
    simulation.live(2.0)
    (found,) = reports(simulation, token)

    assert (PingState.TIMEOUT, 2.5) == (found.state, found.latency)
    assert 1 == simulation.machine.statistics().orphans
    assert 0 == simulation.machine.statistics().in_flight


def probes(simulation: Recorded) -> list[tuple[type[ReportDispatch | ReportAnswer], Token, StreamId]]:
    """Return the type, token and stream of each report about a probe, oldest first."""
    reported = [action for action in simulation.actions if isinstance(action, ReportDispatch | ReportAnswer)]
    return [(type(report), report.token, report.stream) for report in reported]


def test_only_traced_probes_are_reported() -> None:
    """A traced ping reports the start and the end of each probe with its stream; an untraced ping reports no probes."""
    simulation = RecordedCluster()
    ping(simulation)
    assert [] == probes(simulation)

    simulation.is_traced = True
    token = ping(simulation)
    reported = probes(simulation)
    begun, ended = reported[:3], reported[3:]

    assert [(ReportDispatch, token)] * 3 == [each[:2] for each in begun]
    assert [(ReportAnswer, token)] * 3 == [each[:2] for each in ended]
    assert 3 == len({stream for _, _, stream in begun})
    assert {stream for _, _, stream in begun} == {stream for _, _, stream in ended}


def test_a_connection_that_is_lost() -> None:
    """If a connection is lost during a ping, its probe ends and the report has the error; the next ping uses a new
    connection.
    """
    simulation = ready()
    simulation.is_traced = True
    simulation.node.faults.next(Opcode.NOOP, hang_up())
    lost = ping(simulation)
    answered = ping(simulation)
    (_, _, first), _, (_, _, second), _ = reported = probes(simulation)
    (found,), (again,) = reports(simulation, lost), reports(simulation, answered)

    assert [
        (ReportDispatch, lost, first),
        (ReportAnswer, lost, first),
        (ReportDispatch, answered, second),
        (ReportAnswer, answered, second),
    ] == reported
    assert (PingState.ERROR, "127.0.0.1:11210: closed by the server") == (found.state, found.error)
    assert PingState.OK is again.state
    assert found.id != again.id


def test_an_unanswered_probe() -> None:
    """If a probe gets no response, it ends after the key-value timeout, even if the ping waits for another service."""
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
    """If a bootstrap takes too long, the error in the report names the current step of the bootstrap."""
    simulation = Recorded()
    simulation.node.faults.next(Opcode.SASL_AUTH, drop_response())
    (found,) = reports(simulation, ping(simulation, None))

    assert (PingState.TIMEOUT, 2.5) == (found.state, found.latency)
    assert found.error is not None
    assert found.error.startswith("127.0.0.1:11210: authenticating; ")
    assert "SASL_AUTH" in found.error
    assert "2.5 s" in found.error


def test_a_seed_that_hangs_up() -> None:
    """If a seed closes its connection, the ping continues with the next seed."""
    simulation = seeded()
    simulation.nodes[0].faults.next(Opcode.SASL_AUTH, hang_up())
    token = ping(simulation, None)

    assert {PingState.OK} == {found.state for found in reports(simulation, token)}
    assert simulation.settled_at[token] < 0.1


def test_no_seed_at_all() -> None:
    """If no seed is reachable, the client tries each seed once and reports the error of the last one."""
    simulation = seeded()
    for node in range(3):
        simulation.nodes.kill(node)
    (found,) = reports(simulation, ping(simulation, None))

    assert (PingState.ERROR, "127.0.0.1:11214: connection refused") == (found.state, found.error)
    assert 3 == len(simulation.opened_at)


def test_a_bucket_that_may_not_be_opened() -> None:
    """If the bucket is denied, the ping immediately reports only the denial."""
    simulation = seeded()
    token = ping(simulation, "secret")
    (found,) = reports(simulation, token)

    assert PingState.ERROR is found.state
    assert "user 'Administrator' may not open it" in str(found.error)
    assert 0 == simulation.settled_at[token]


def test_a_node_that_leaves_meanwhile() -> None:
    """If a node is removed during a ping, its late response still counts."""
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


def test_two_concurrent_pings() -> None:
    """Two concurrent pings are two open operations, and each gets its own report."""
    simulation = ready()
    first, second = simulation.inquire(Ping("travel", "a")), simulation.inquire(Ping("travel", "b"))
    assert 2 == simulation.open_operations
    simulation.run()

    assert ["a", "b"] == [result_of(simulation, token).id for token in (first, second)]
    assert 0 == simulation.open_operations


def test_abandoned() -> None:
    """An abandoned ping reports nothing and leaves no timer; its late response is an orphan."""
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
    """The result of a ping has the revision of the newest config."""
    simulation = ready()
    simulation.nodes.set_config_revision(53, epoch=2)
    simulation.live(0.1)

    assert 53 == result_of(simulation, ping(simulation)).config_rev


def test_over_memcached() -> None:
    """If a plain memcached server responds to a ping, the result has no revision."""
    simulation = Recorded(options=client_options("memcached://127.0.0.1:11210", authenticator=None))
    simulation.advance(0)
    simulation.open(simulation.newest)
    token = simulation.inquire(Ping(None, "i"))
    simulation.swallow(simulation.newest)
    ((_, request),) = noops(simulation)
    simulation.inject(respond(request))

    assert [PingState.OK] == [found.state for found in reports(simulation, token)]
    assert result_of(simulation, token).config_rev is None


def test_an_error_response() -> None:
    """If a node responds to a NOOP with an error, the ping counts the node as reached."""
    simulation = ready()
    simulation.node.faults.next(Opcode.NOOP, status(int(Status.TEMPORARY_FAILURE)))

    assert [PingState.OK] == [found.state for found in reports(simulation, ping(simulation))]


def test_a_loss_of_another_connection() -> None:
    """If the connection without a bucket is lost, the ping of a bucket succeeds."""
    simulation = ready()
    simulation.node.faults.next(Opcode.NOOP, delay(0.5))
    token = simulation.inquire(Ping("travel", "i"))
    simulation.lose(StreamId(1), LossCause.RESET)
    simulation.run()

    assert [PingState.OK] == [found.state for found in reports(simulation, token)]
