"""Waits until connections are ready, and the conditions under which a wait ends."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.simulated import Recorded, client_options, get, ready
from tests.core.runtime.kv.test_cluster import KEYS, RecordedCluster, stream_to
from tests.refusals import refused
from triclinium_core import errors
from triclinium_core.contract.couchbase import InquirySubmitted, OperationSubmitted
from triclinium_core.contract.neutral import StreamId, Token
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.kv.operation.inquiries import Inquiry, Ping, WaitForNodes, WaitUntilReady
from triclinium_core.kv.operation.reports import ClusterState, Ready
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, Status
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.testing.fakes.faults import delay, status

CLUSTER, BUCKET = WaitUntilReady(None), WaitUntilReady("travel")
ANY_OF_CLUSTER, ANY_OF_BUCKET = (
    WaitUntilReady(None, ClusterState.DEGRADED),
    WaitUntilReady("travel", ClusterState.DEGRADED),
)
WRONG = PasswordAuthenticator("Administrator", "wrong")
ONE = StreamId(1)


def settled(simulation: Recorded, inquiry: WaitUntilReady, seconds: float = 5.0) -> bool:
    """Submit the inquiry, abandon it after ``seconds``, and return whether it had completed by then."""
    token = simulation.inquire(inquiry)
    simulation.run(seconds)
    simulation.abandon(token)
    assert 0 == simulation.open_operations
    return token in simulation.settled_at


@pytest.mark.parametrize("inquiry", [CLUSTER, BUCKET, ANY_OF_CLUSTER, ANY_OF_BUCKET])
def test_ready(inquiry: WaitUntilReady) -> None:
    """The client opens the connections that a wait requires, and the wait returns the state that it reached."""
    simulation = RecordedCluster()
    token = simulation.inquire(inquiry)
    simulation.run()
    state = ClusterState.DEGRADED if inquiry.desired_state is ClusterState.DEGRADED else ClusterState.ONLINE

    assert Ready(state) == simulation.results[token]
    assert 0 == simulation.settled_at[token]


def test_one_node_of_three_is_dead() -> None:
    """A wait for ONLINE does not end while a node is dead; a wait for DEGRADED ends."""
    simulation = RecordedCluster()
    simulation.nodes.kill(1)

    assert settled(simulation, ANY_OF_CLUSTER)
    assert settled(simulation, ANY_OF_BUCKET)
    assert not settled(simulation, CLUSTER)
    assert not settled(simulation, BUCKET)

    simulation.nodes.revive(1)

    assert settled(simulation, BUCKET)
    assert settled(simulation, CLUSTER)


def test_degraded_needs_one_node_of_the_bucket() -> None:
    """A wait for DEGRADED of a bucket needs at least one node that serves the bucket."""
    simulation = RecordedCluster()
    assert settled(simulation, CLUSTER)
    for node in simulation.nodes:
        node.faults.always(Opcode.SELECT_BUCKET, delay(60.0))

    assert not settled(simulation, ANY_OF_BUCKET)
    assert settled(simulation, ANY_OF_CLUSTER)


def test_a_bucket_needs_the_cluster_too() -> None:
    """A wait for ONLINE of a bucket needs the connection without a bucket too; DEGRADED does not (RFC 0061)."""
    simulation = ready()
    simulation.node.faults.always(Opcode.SASL_AUTH, delay(60.0))
    simulation.lose(ONE)

    assert not settled(simulation, BUCKET)
    assert settled(simulation, ANY_OF_BUCKET)


def test_other_buckets_are_no_matter() -> None:
    """If one bucket is denied, waits for another bucket and for the cluster still end."""
    simulation = Recorded()
    denied = simulation.inquire(WaitUntilReady("secret"))
    simulation.run()

    assert "BUCKET_ACCESS_ERROR" == simulation.error(errors.BucketAccessException, denied).context.refused_reason
    assert settled(simulation, BUCKET)
    assert settled(simulation, CLUSTER)


@pytest.mark.parametrize("inquiry", [CLUSTER, BUCKET, ANY_OF_CLUSTER, ANY_OF_BUCKET])
def test_wrong_password(inquiry: WaitUntilReady) -> None:
    """If the password is wrong, the wait fails during the bootstrap even with best effort; the error has the node."""
    options = client_options(authenticator=WRONG, retry_strategy=BestEffortRetryStrategy())
    simulation = Recorded(options=options)
    token = simulation.inquire(inquiry)
    simulation.flow()
    error = simulation.error(errors.AuthenticationFailureException, token)

    assert "AUTHENTICATION_ERROR" == error.context.refused_reason
    assert ("wait_until_ready", inquiry.bucket) == (error.context.operation, error.context.bucket)
    assert "127.0.0.1:11210" == error.context.last_dispatched_to
    assert "127.0.0.1:11210: refused the credentials of 'Administrator'" == error.context.last_dispatch_error


@pytest.mark.parametrize(
    ("inquiry", "is_over"), [(CLUSTER, True), (BUCKET, True), (ANY_OF_CLUSTER, False), (ANY_OF_BUCKET, False)]
)
def test_one_node_without_the_password(inquiry: WaitUntilReady, is_over: bool) -> None:
    """A node that the client refuses fails a wait for all nodes, but not a wait that other nodes can satisfy."""
    simulation = RecordedCluster()
    simulation.nodes[1].faults.always(Opcode.SASL_STEP, status(Status.SUCCESS, body=b"v=QQ=="))
    token = simulation.inquire(inquiry)
    simulation.flow()

    if is_over:
        error = simulation.error(errors.AuthenticationFailureException, token)
        assert "wrong server signature" in (error.context.last_dispatch_error or "")
    else:
        assert Ready(ClusterState.DEGRADED) == simulation.results[token]


def test_a_password_that_is_right_again() -> None:
    """If the node refused the credentials earlier, a wait does not fail while the client opens a new connection."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SASL_AUTH, status(0x20))
    simulation.lose(simulation.newest)
    simulation.live(0.5)
    simulation.lose(simulation.newest)
    while simulation.newest not in simulation.links or simulation.links[simulation.newest].is_open:
        simulation.advance(0.01)

    assert settled(simulation, BUCKET)


def test_another_protocol() -> None:
    """If the server speaks only the memcached protocol, all waits fail, and their errors advise ``memcached://``."""
    simulation = Recorded()
    simulation.node.faults.always(Opcode.HELLO, status(0x81))
    tokens = [simulation.inquire(inquiry) for inquiry in (CLUSTER, BUCKET)]
    simulation.flow()

    for token in tokens:
        assert "memcached://" in str(simulation.error(errors.UnsupportedOperationException, token))


def test_a_foreign_protocol_for_another_bucket() -> None:
    """If a server speaks another protocol on one connection, only the waits for this connection fail."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SASL_AUTH, delay(1.0))
    simulation.lose(simulation.newest)
    simulation.live(0.1)
    waiting = simulation.inquire(BUCKET)
    simulation.node.faults.next(Opcode.HELLO, status(0x81))
    other = simulation.inquire(WaitUntilReady("secret"))
    simulation.run(5.0)

    assert isinstance(simulation.errors[other], errors.UnsupportedOperationException)
    assert Ready(ClusterState.ONLINE) == simulation.results[waiting]


def test_a_node_that_joins_meanwhile() -> None:
    """If a node joins during a wait, the wait also requires the connection to that node."""
    simulation = RecordedCluster()
    simulation.nodes.remove_node(2)
    simulation.nodes[1].faults.next(Opcode.SELECT_BUCKET, delay(1.0))
    simulation.nodes[2].faults.next(Opcode.SELECT_BUCKET, delay(2.0))
    token = simulation.inquire(BUCKET)
    simulation.flow()
    simulation.nodes.add_node(2)
    simulation.run()

    assert 2.0 == pytest.approx(simulation.settled_at[token], abs=0.01)


def test_abandoned() -> None:
    """An abandoned wait does not complete, but the client still opens its connections."""
    simulation = RecordedCluster()
    token = simulation.inquire(BUCKET)
    simulation.abandon(token)
    simulation.live(1.0)

    assert token not in simulation.settled_at
    assert {"READY"} == {found.state for found in simulation.machine.statistics().connections}


def test_a_node_that_accepts_the_bucket_again() -> None:
    """A wait connects again to a node that earlier denied the bucket."""
    simulation = RecordedCluster(2)
    simulation.write()
    simulation.nodes[1].faults.always(Opcode.SELECT_BUCKET, status(Status.NO_ACCESS))
    simulation.lose(stream_to(simulation, 1))
    key = next(key for key in KEYS if simulation.nodes.owner_of(key) == 1)
    for _ in range(12):
        simulation.live(1.2)
        simulation.finish(get(key))
    simulation.nodes[1].faults.clear()
    # Node 0 accepts the client again, which clears the terminal state of the bucket.
    simulation.lose(stream_to(simulation, 0))
    simulation.live(0.1)

    assert settled(simulation, BUCKET)


@pytest.mark.parametrize("inquiry", [Ping("travel", "i"), BUCKET])
def test_a_token_is_used_once(inquiry: Inquiry) -> None:
    """If an event reuses the token of an open inquiry, the event is rejected and changes nothing."""
    simulation = Recorded()
    token = simulation.inquire(inquiry)
    for event in (InquirySubmitted(token, BUCKET), OperationSubmitted(token, Get(Keyspace("travel"), "k"))):
        with pytest.raises(InvalidEvent, match="names an open operation"):
            simulation.machine.handle(event, simulation.now)
    simulation.run()

    assert [token] == list(simulation.settled_at)


@pytest.mark.parametrize("inquiry", [None, "ping", Inquiry("travel")])
def test_invalid_inquiries(inquiry: Inquiry) -> None:
    """An object that is not an inquiry raises an error that names the parameter."""
    refused("inquiry", Recorded().machine.handle, InquirySubmitted(Token(1), inquiry), 0.0)


@pytest.mark.parametrize(
    "inquiry", [Ping("travel", "i"), BUCKET, WaitForNodes("travel")], ids=lambda inquiry: type(inquiry).__name__
)
def test_memcached_has_no_buckets(inquiry: Inquiry) -> None:
    """If a client of a plain memcached server submits an inquiry about a bucket, the submission is rejected."""
    simulation = Recorded(options=client_options("memcached://127.0.0.1:11210", authenticator=None))
    refused("bucket", simulation.inquire, inquiry)
