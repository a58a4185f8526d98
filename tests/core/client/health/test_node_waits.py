"""Waits until every key-value node of a bucket serves it and, if the wait names a manifest, has this or a newer one."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.simulated import Recorded, client_options, ready
from tests.core.runtime.kv.test_cluster import RecordedCluster
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportAnswer, ReportDispatch
from triclinium_core.contract.neutral import Token
from triclinium_core.kv.operation.inquiries import WaitForNodes
from triclinium_core.kv.operation.reports import NodesServe
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.options import PasswordAuthenticator, TimeoutOptions
from triclinium_core.retry.backoff import CONTROLLED_DELAY_MAX
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.faults import delay
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

QUESTION = Opcode.GET_COLLECTIONS_MANIFEST
NODES = ("127.0.0.1:11210", "127.0.0.1:11212", "127.0.0.1:11214")


def changed(simulation: Recorded, collection: str = "airline") -> WaitForNodes:
    """Create a collection, and return a wait for the manifest that contains it."""
    simulation.nodes.collections.create("inventory", collection)
    return WaitForNodes("travel", simulation.nodes.collections.uid)


def asked(simulation: Recorded, node: int) -> int:
    """Return the number of manifest requests that a node has received."""
    return sum(command.opcode == QUESTION for command in simulation.nodes[node].command_log)


def served(simulation: Recorded, token: Token) -> set[str]:
    """Return the nodes that the result of a wait lists."""
    result = simulation.results[token]
    assert isinstance(result, NodesServe)
    return set(result.nodes)


def reported(simulation: Recorded) -> tuple[int, int]:
    """Return the number of requests whose start was reported to a tracer, and the number whose end was."""
    begun = [action for action in simulation.actions if isinstance(action, ReportDispatch)]
    ended = [action for action in simulation.actions if isinstance(action, ReportAnswer)]
    return len(begun), len(ended)


def test_every_node_gets_a_request() -> None:
    """The wait opens a connection to each node and sends it one manifest request."""
    simulation = RecordedCluster()
    token = simulation.inquire(changed(simulation))
    simulation.run()

    assert set(NODES) == served(simulation, token)
    assert 0 == simulation.settled_at[token]
    assert [1, 1, 1] == [asked(simulation, node) for node in range(3)]


def test_a_later_manifest_ends_the_wait() -> None:
    """A manifest that is newer than the requested one ends the wait, because it includes the change."""
    simulation = RecordedCluster()
    wait = changed(simulation)
    simulation.nodes.collections.create("inventory", "airport")
    token = simulation.inquire(wait)
    simulation.run()

    assert set(NODES) == served(simulation, token)


def test_a_node_that_is_late() -> None:
    """Only a node that lacks the manifest gets more requests, at growing intervals; its manifest ends the wait."""
    simulation = RecordedCluster()
    simulation.write()
    simulation.nodes.learn_late(1, 20.0)
    began_at = simulation.now
    token = simulation.inquire(changed(simulation))
    simulation.run(60.0)

    assert 20.0 <= simulation.settled_at[token] - began_at <= 20.0 + CONTROLLED_DELAY_MAX
    assert [1, 1] == [asked(simulation, node) for node in (0, 2)]
    assert 20 <= asked(simulation, 1) <= 30


@rows(
    "fault",
    [
        faults.temporary_failure(),
        faults.status(Status.SUCCESS, b"{}"),
        faults.status(Status.SUCCESS, b"no manifest"),
        faults.drop_response(),
        faults.hang_up(),
        faults.hang_up_mid_reply(),
        delay(4.0),
    ],
)
def test_a_useless_manifest_response(fault: faults.Fault) -> None:
    """If a manifest request gets no usable response, the client repeats it, and reports both requests to a tracer."""
    simulation = RecordedCluster()
    simulation.write()
    # Tracing lets the simulation check the attempts of each operation.
    simulation.is_traced = True
    simulation.nodes[2].faults.next(QUESTION, fault)
    token = simulation.inquire(changed(simulation))
    simulation.run(10.0)

    assert set(NODES) == served(simulation, token)
    assert 0 == simulation.open_operations
    assert (4, 4) == reported(simulation)
    simulation.live(10.0)
    assert 2 == asked(simulation, 2)


@rows("trouble", ["late", "silent", "dead"])
def test_a_node_that_leaves_the_map(trouble: str) -> None:
    """A node that leaves the map does not delay the wait, and no request to it remains open for a tracer."""
    simulation = RecordedCluster()
    simulation.write()
    simulation.is_traced = True
    simulation.nodes.learn_late(1, 60.0)
    if trouble == "silent":
        simulation.nodes[1].faults.always(QUESTION, faults.drop_response())
    token = simulation.inquire(changed(simulation))
    if trouble == "dead":
        simulation.nodes.kill(1)
    simulation.live(3.0)
    assert token not in simulation.settled_at

    simulation.nodes.fail_over(1)
    simulation.live(1.0)
    begun, ended = reported(simulation)
    assert {NODES[0], NODES[2]} == served(simulation, token)
    assert begun == ended


def test_a_node_that_joins() -> None:
    """If a node joins during a wait, the wait also requires the manifest of that node."""
    simulation = RecordedCluster()
    simulation.nodes.remove_node(2)
    simulation.write()
    simulation.nodes.learn_late(1, 2.0)
    simulation.nodes.learn_late(2, 5.0)
    began_at = simulation.now
    token = simulation.inquire(changed(simulation))
    simulation.live(1.0)
    simulation.nodes.add_node(2)
    simulation.run()

    assert set(NODES) == served(simulation, token)
    assert 5.0 <= simulation.settled_at[token] - began_at <= 5.0 + CONTROLLED_DELAY_MAX


def test_a_node_that_is_down() -> None:
    """At its deadline the wait fails; the error names the unreachable node, and the late node with its old manifest."""
    simulation = RecordedCluster()
    simulation.write()
    simulation.nodes.kill(0)
    simulation.nodes.learn_late(2, 600.0)
    began_at = simulation.now
    wait = changed(simulation)
    token = simulation.inquire(wait)
    simulation.run(100.0)
    error = simulation.error(errors.AmbiguousTimeoutException, token)

    assert 75.0 == simulation.settled_at[token] - began_at == error.context.timeout
    assert ("wait_for_nodes", "travel", False) == (
        error.context.operation,
        error.context.bucket,
        error.context.idempotent,
    )
    down, behind = error.context.connections
    assert NODES[0] in down
    assert behind.startswith(f"{NODES[2]}: has manifest {(wait.manifest_uid or 0) - 1}, ")
    assert down in error.message
    assert behind in error.message


def test_the_deadline_is_that_of_management() -> None:
    """A wait that reaches no node ends with the management timeout."""
    options = client_options(timeouts=TimeoutOptions(management=3.0))
    simulation = Recorded(options=options)
    simulation.nodes.kill(0)
    token = simulation.inquire(WaitForNodes("travel", 1))
    simulation.run(10.0)

    assert "127.0.0.1:11210" in simulation.error(errors.AmbiguousTimeoutException, token).context.connections[0]
    assert 3.0 == simulation.settled_at[token]


def test_abandoning_a_wait() -> None:
    """An open wait is ambiguous; after it is abandoned, it sends no request, and a late response is an orphan."""
    simulation = RecordedCluster()
    simulation.write()
    simulation.nodes.learn_late(1, 60.0)
    simulation.nodes[2].faults.next(QUESTION, delay(5.0))
    token = simulation.inquire(changed(simulation))
    simulation.live(2.0)
    context = simulation.machine.error_context(token, simulation.now)

    assert simulation.machine.is_ambiguous(token)
    assert context is not None
    assert [NODES[1], NODES[2]] == [text.partition(": ")[0] for text in context.connections]

    count = asked(simulation, 1)
    simulation.abandon(token)
    simulation.live(60.0)

    assert count == asked(simulation, 1)
    assert 1 == simulation.machine.statistics().orphans
    assert not simulation.machine.is_ambiguous(token)
    assert token not in simulation.settled_at


def test_several_waits() -> None:
    """Of two waits for different manifests, each ends when the late node has its manifest."""
    simulation = RecordedCluster()
    simulation.write()
    simulation.nodes.learn_late(1, 4.0)
    began_at = simulation.now
    first = simulation.inquire(changed(simulation))
    simulation.live(2.0)
    second = simulation.inquire(changed(simulation, "airport"))
    simulation.run()

    for token, known_at in ((first, began_at + 4.0), (second, began_at + 6.0)):
        assert known_at <= simulation.settled_at[token] <= known_at + CONTROLLED_DELAY_MAX
        assert set(NODES) == served(simulation, token)


def test_a_bucket_that_is_new_on_a_node() -> None:
    """A wait without a manifest uid requests no manifest and ends once the client can select the bucket everywhere."""
    simulation = RecordedCluster()
    simulation.nodes.learn_late(1, 5.0)
    simulation.write()
    simulation.nodes[0].cluster.buckets.create("new", {})
    began_at = simulation.nodes.now
    token = simulation.inquire(WaitForNodes("new"))
    simulation.run()

    assert set(NODES) == served(simulation, token)
    assert 5.0 <= simulation.settled_at[token] - began_at <= 7.0
    assert [0, 0, 0] == [asked(simulation, node) for node in range(3)]


def test_a_bucket_that_no_node_opens() -> None:
    """If all nodes refuse the bucket, the wait fails; if one node refuses it, the wait retries that node."""
    simulation = RecordedCluster()
    token = simulation.inquire(WaitForNodes("secret"))
    simulation.run()
    error = simulation.error(errors.BucketAccessException, token)

    assert ("wait_for_nodes", "BUCKET_ACCESS_ERROR") == (error.context.operation, error.context.refused_reason)

    simulation.nodes[1].faults.next(Opcode.SELECT_BUCKET, faults.status(Status.NO_ACCESS), times=3)
    waiting = simulation.inquire(WaitForNodes("travel"))
    simulation.run()

    assert set(NODES) == served(simulation, waiting)


@pytest.mark.parametrize(
    ("opcode", "fault", "password", "error"),
    [
        (None, None, "wrong", errors.AuthenticationFailureException),
        (
            Opcode.SASL_STEP,
            faults.status(Status.SUCCESS, body=b"v=QQ=="),
            "password",
            errors.AuthenticationFailureException,
        ),
        (Opcode.HELLO, faults.status(0x81), "password", errors.UnsupportedOperationException),
    ],
    ids=["refused", "no server signature", "another protocol"],
)
def test_a_bootstrap_that_cannot_succeed(
    opcode: Opcode | None, fault: faults.Fault | None, password: str, error: type[errors.CouchbaseException]
) -> None:
    """If a side refuses the other's credentials, or the server speaks another protocol, a wait fails immediately."""
    simulation = Recorded(options=client_options(authenticator=PasswordAuthenticator("Administrator", password)))
    if fault is not None:
        simulation.node.faults.always(opcode, fault)
    token = simulation.inquire(WaitForNodes("travel", 1))
    simulation.flow()

    advises_memcached = "memcached://" in str(simulation.error(error, token))
    assert advises_memcached is (error is errors.UnsupportedOperationException)


def test_a_server_without_collections() -> None:
    """If the server supports no collections, the wait fails without a manifest request."""
    simulation = ready(features=IMPLEMENTED_FEATURES - {HelloFeature.COLLECTIONS})
    token = simulation.inquire(WaitForNodes("travel", 1))
    simulation.run()

    simulation.error(errors.FeatureNotAvailableException, token)
    assert [] == simulation.commands(QUESTION)
