"""Buckets that a server refuses or has dropped: the client forgets them once they are unused (decision C7)."""

from __future__ import annotations

import weakref

import pytest

from tests.core.runtime.kv.simulated import HOTELS, TRAVEL, Recorded, get, ready, upsert
from tests.core.runtime.kv.test_cluster import KEYS, RecordedCluster, stream_to, written
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.couchbase import OperationAbandoned, PublishTopology, SubscribersChanged
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.operation.inquiries import WaitForNodes, WaitUntilReady
from triclinium_core.kv.topology.topology import TopologyChange
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import RetryReason, Service, Status
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.pool.connections import FORGOTTEN_MAX
from triclinium_core.services.views.view_request import ViewRequest
from triclinium_core.testing.fakes.faults import drop_response, refuse_connection, status

OTHER = Keyspace("other")
SETTLED = 5.0
"""Seconds after which each backoff has ended and the client has forgotten unused buckets."""


def machine_of(simulation: Recorded) -> ClientMachine:
    """Return the only client of a simulation."""
    machine = simulation.machine
    assert isinstance(machine, ClientMachine)
    return machine


def names(simulation: Recorded) -> set[str | None]:
    """Return the buckets to which the client has connections."""
    return {each.bucket for each in simulation.machine.statistics().connections}


def selections(simulation: Recorded) -> int:
    """Return the number of SELECT_BUCKET requests that the client has sent."""
    return len(simulation.commands(Opcode.SELECT_BUCKET))


def drop(simulation: Recorded, bucket: str = "travel") -> None:
    """Drop a bucket, whose node closes the connection and refuses the bucket from then on."""
    simulation.node.cluster.buckets.drop(bucket)
    simulation.flow()


def changes(simulation: Recorded) -> list[TopologyChange]:
    """Return the changes of the bucket's topology that the client has published."""
    return [
        action.change
        for action in simulation.actions
        if isinstance(action, PublishTopology) and action.change.bucket == "travel"
    ]


def test_a_name_that_is_no_bucket() -> None:
    """After its backoff, the client forgets a refused bucket and remembers only the number of its failures."""
    simulation = ready()
    for number in range(3):
        simulation.failure(errors.BucketAccessException, get("k", Keyspace(f"nowhere{number}")))
    before = names(simulation)
    simulation.live(SETTLED)
    machine = machine_of(simulation)

    assert {"nowhere0", "nowhere1", "nowhere2"} <= before
    assert {None, "travel"} == names(simulation)
    assert {None, "travel"} == set(machine._connections.routes._buckets)
    assert not machine._connections._terminal_states._inaccessible_buckets
    assert not machine._connections._idle_until


def test_a_dropped_bucket() -> None:
    """If a bucket in use is dropped, the client forgets it with its config, topology and collection ids."""
    simulation = ready()
    simulation.result(upsert("ada", HOTELS))
    drop(simulation)
    simulation.live(SETTLED)
    machine = machine_of(simulation)

    assert {None} == names(simulation)
    assert [None] == [topology.bucket for topology in machine.topologies]
    assert "travel" not in machine._configs
    dispatcher = machine._operations._dispatcher
    assert (0, {}, {}) == (machine.vbucket_count("travel"), dispatcher._maps, dispatcher._collections._collections)


def test_the_next_use_after_forgetting() -> None:
    """If a forgotten bucket is created again, it works immediately, and its first topology has no predecessor."""
    simulation = ready()
    drop(simulation)
    simulation.live(SETTLED)
    simulation.failure(errors.BucketAccessException, get())
    simulation.live(SETTLED)
    simulation.node.cluster.buckets.create("travel", {})
    began, before = simulation.now, len(changes(simulation))
    simulation.result(upsert())

    assert began == simulation.now
    assert [None] == [change.old for change in changes(simulation)[before:]]


def test_a_bucket_in_use_is_kept() -> None:
    """While an operation waits for a bucket, the client keeps the bucket; once it exists, the operation succeeds."""
    simulation = ready()
    simulation.node.faults.always(Opcode.SELECT_BUCKET, status(Status.KEY_NOT_FOUND))
    token = simulation.submit(get("k", OTHER))
    simulation.live(1.0)
    during = names(simulation)
    simulation.node.faults.clear()
    simulation.node.cluster.buckets.create("other", {})
    simulation.node.cluster.documents.put("other", "k", b"{}")
    simulation.live(1.4)

    assert "other" in during
    assert token in simulation.results
    assert "other" in names(simulation)


def test_a_bucket_without_waiters_is_forgotten() -> None:
    """If the only operation on a missing bucket has timed out, the client forgets the bucket."""
    simulation = ready()
    simulation.node.faults.always(Opcode.SELECT_BUCKET, status(Status.KEY_NOT_FOUND))
    simulation.failure(errors.UnambiguousTimeoutException, get("k", OTHER))
    simulation.live(SETTLED)
    attempts = selections(simulation)
    simulation.live(10 * SETTLED)

    assert {None, "travel"} == names(simulation)
    assert attempts == selections(simulation)


@rows("inquiry", [WaitUntilReady("other", service_types=frozenset({Service.KV})), WaitForNodes("other")])
def test_a_bucket_that_is_waited_for_is_kept(inquiry: WaitUntilReady | WaitForNodes) -> None:
    """While a wait for readiness or nodes is open, the client keeps its bucket, and forgets it afterwards."""
    simulation = ready()
    simulation.node.faults.always(Opcode.SELECT_BUCKET, status(Status.KEY_NOT_FOUND))
    token = simulation.inquire(inquiry)
    simulation.live(10 * SETTLED)
    during = names(simulation)
    simulation.abandon(token)
    simulation.live(SETTLED)

    assert "other" in during
    assert {None, "travel"} == names(simulation)


def test_a_subscriber_keeps_dropped_buckets() -> None:
    """While there are subscribers, the client keeps the topology of a dropped bucket, and forgets it once none is left."""
    simulation = ready()
    for count in (1, 2):
        simulation.feed(SubscribersChanged(count))
    drop(simulation)
    simulation.failure(errors.BucketAccessException, get("k", OTHER))
    simulation.live(10 * SETTLED)
    with_two = names(simulation)
    simulation.feed(SubscribersChanged(1))
    with_one = names(simulation)
    simulation.feed(SubscribersChanged(0))

    assert {None, "travel"} == with_two == with_one
    assert {None} == names(simulation)
    assert [None] == [topology.bucket for topology in machine_of(simulation).topologies]


def test_a_subscriber_sees_no_gap() -> None:
    """If there is a subscriber, the topologies of a recreated bucket continue from the last published version."""
    simulation = ready()
    simulation.feed(SubscribersChanged(1))
    drop(simulation)
    simulation.live(SETTLED)
    simulation.node.cluster.buckets.create("travel", {})
    simulation.nodes.set_config_revision(900)
    simulation.live(SETTLED)
    simulation.result(upsert())
    first, last = changes(simulation)

    assert last.old == first.new


@rows("count", [-1, 1.5, "1", None, True])
def test_an_invalid_number_of_subscribers(count: object) -> None:
    """An invalid number of subscribers is rejected and changes nothing."""
    simulation = ready()
    with pytest.raises(errors.InvalidArgumentException) as caught:
        simulation.feed(SubscribersChanged(count))  # type: ignore[arg-type]

    assert "count" == caught.value.parameter
    simulation.result(upsert())


def test_a_bucket_that_exists_is_kept() -> None:
    """If the node of a bucket is unreachable for a minute, the bucket is kept, and works when the node is back."""
    simulation = ready()
    simulation.node.faults.always(None, refuse_connection())
    for stream in list(simulation.links):
        simulation.lose(stream)
    simulation.live(60.0)
    during, topologies = names(simulation), len(machine_of(simulation).topologies)
    simulation.node.faults.clear()
    simulation.result(upsert())

    assert {None, "travel"} == during
    assert 2 == topologies
    assert all(change.old == changes(simulation)[0].new for change in changes(simulation)[1:])


def test_a_node_that_joins_without_the_bucket() -> None:
    """If a node without the bucket joins and leaves, the client keeps no timer and no connection of the node."""
    simulation = RecordedCluster()
    simulation.nodes.remove_node(2)
    simulation.write()
    simulation.live(SETTLED)
    machine = machine_of(simulation)
    before = len(machine._connections._timers), simulation.addresses()
    simulation.nodes[2].faults.always(Opcode.SELECT_BUCKET, status(Status.KEY_NOT_FOUND))
    simulation.nodes.add_node(2)
    simulation.live(SETTLED)
    (joined,) = (weakref.ref(each) for each in machine._connections.all if each.history.last_end.lacks_bucket)
    simulation.nodes.remove_node(2)
    simulation.flow()
    at_once = len(machine._connections._timers), simulation.addresses()
    simulation.live(SETTLED)

    assert before == at_once == (len(machine._connections._timers), simulation.addresses())
    assert joined() is None


def test_a_dropped_bucket_with_a_dead_node() -> None:
    """If a bucket is dropped and one of its nodes is dead, the client forgets the bucket and stops its attempts."""
    simulation = written()
    simulation.nodes.kill(2)
    simulation.live(2.0)
    simulation.node.cluster.buckets.drop("travel")
    simulation.live(2 * SETTLED)
    attempts = len(simulation.opened_at)
    simulation.live(2 * SETTLED)

    assert {None} == names(simulation)
    assert "travel" not in machine_of(simulation)._configs
    assert attempts == len(simulation.opened_at)


def test_a_dropped_bucket_with_a_silent_node() -> None:
    """If a bucket is dropped while one of its nodes is silent, the client forgets the bucket within five minutes."""
    simulation = written()
    simulation.nodes.cut_off(2)
    simulation.live(30.0)
    simulation.node.cluster.buckets.drop("travel")
    simulation.live(300.0)

    assert {None} == names(simulation)
    assert "travel" not in machine_of(simulation)._configs


@pytest.mark.parametrize("refusal", [Status.KEY_NOT_FOUND, Status.NO_ACCESS])
def test_a_bucket_on_one_of_three_nodes(refusal: Status) -> None:
    """While one node serves a bucket, the client keeps it, even if a second node lacks it and a third is dead."""
    simulation = written()
    topologies, addresses = len(machine_of(simulation).topologies), simulation.addresses()
    simulation.nodes[1].faults.always(Opcode.SELECT_BUCKET, status(refusal))
    simulation.lose(stream_to(simulation, 1))
    simulation.nodes.kill(2)
    simulation.live(4 * SETTLED)
    states = [each.state for each in machine_of(simulation)._connections.all if each.bucket == "travel"]

    assert addresses == simulation.addresses()
    assert topologies == len(machine_of(simulation).topologies)
    assert 1 == states.count(ConnectionState.READY)
    simulation.write(key for key in KEYS if simulation.nodes.owner_of(key) == 0)


def test_the_routes_of_a_forgotten_bucket() -> None:
    """A lookup of the routes of a forgotten bucket finds none and adds no entry."""
    simulation = ready()
    token = simulation.submit(upsert("a", HOTELS))
    simulation.node.cluster.buckets.drop("travel")
    simulation.live(2 * SETTLED)
    routes = machine_of(simulation)._connections.routes
    known = set(routes._buckets)

    simulation.error(errors.BucketAccessException, token)
    assert {None} == known
    assert (None, None, 0, False) == (
        routes.get(("travel", None)),
        routes.any_of("travel"),
        routes.ready_count("travel"),
        routes.is_cut_off("travel"),
    )
    assert not routes.all_of("travel")
    assert not routes.drop_others("travel", [])
    assert known == set(routes._buckets)


def attempts_while_asking(simulation: Recorded, seconds: float, pause: float) -> int:
    """Repeat an operation on a bucket for ``seconds``, and return how often the client selected the bucket."""
    before, end = selections(simulation), simulation.now + seconds
    while simulation.now < end:
        simulation.failure(errors.BucketAccessException, get("k", OTHER))
        simulation.live(pause)
    return selections(simulation) - before


@rows("pause", [0.005, 0.05, 0.3])
def test_frequent_operations_on_a_refused_bucket(pause: float) -> None:
    """If a program repeats operations on a refused bucket, attempts slow down to one per longest backoff."""
    simulation = ready()
    at_first = attempts_while_asking(simulation, 2.0, pause)
    later = attempts_while_asking(simulation, 5.0, pause)

    assert at_first <= 9
    assert 3 <= later <= 6


def test_rare_operations_on_a_refused_bucket() -> None:
    """If operations on a refused bucket are far apart, each causes one attempt, and the client forgets the bucket."""
    simulation = ready()
    kept = set[str | None]()
    for _ in range(20):
        before = selections(simulation)
        simulation.failure(errors.BucketAccessException, get("k", OTHER))
        simulation.live(SETTLED)
        kept |= names(simulation)
        assert 1 == selections(simulation) - before

    assert {None, "travel"} == kept


def test_the_backoff_after_success() -> None:
    """Once a bucket that was refused has worked, its backoff starts again from the shortest."""
    simulation = ready()
    attempts_while_asking(simulation, 5.0, 0.05)
    simulation.live(SETTLED)
    simulation.node.cluster.buckets.create("other", {})
    simulation.result(upsert("k", OTHER))
    drop(simulation, "other")
    simulation.live(SETTLED)

    assert 4 <= attempts_while_asking(simulation, 1.0, 0.01)


def test_numbers_of_failures_are_bounded() -> None:
    """The client remembers the number of failures of a limited number of refused buckets."""
    simulation = ready()
    for number in range(2 * FORGOTTEN_MAX):
        simulation.failure(errors.BucketAccessException, get("k", Keyspace(f"nowhere{number}")))
    simulation.live(SETTLED)

    assert FORGOTTEN_MAX == len(machine_of(simulation)._connections._failures)


def test_the_reasons_of_a_forgotten_bucket() -> None:
    """When the client forgets a bucket, it drops the terminal reasons of this bucket and keeps those of others."""
    simulation = ready(buckets=("travel", "other"))
    for bucket in ("travel", "other"):
        simulation.finish(get("k", Keyspace(bucket, "inventory", "nowhere")))
        simulation.finish(get("k", Keyspace(bucket, "nowhere", "hotel")))
    drop(simulation)
    simulation.live(SETTLED)
    states = machine_of(simulation)._connections._terminal_states

    assert [None, None] == [
        states.reason_for(Service.KV, bucket="travel", scope=scope, collection="nowhere")
        for scope in ("inventory", "nowhere")
    ]
    assert [RetryReason.COLLECTION_NOT_FOUND, RetryReason.SCOPE_NOT_FOUND] == [
        states.reason_for(Service.KV, bucket="other", scope=scope, collection="nowhere")
        for scope in ("inventory", "nowhere")
    ]


def test_a_view_request_keeps_its_bucket() -> None:
    """The client keeps the bucket of a view request until the request ends."""
    simulation = ready(services=frozenset(Service))
    simulation.node.faults.always(Service.VIEWS, drop_response())
    token = simulation.request(ViewRequest(bucket_name="travel", design_document="hotels", view_name="by_name"))
    simulation.flow()
    drop(simulation)
    simulation.live(SETTLED)
    during = names(simulation)
    simulation.feed(OperationAbandoned(token))
    simulation.live(SETTLED)

    assert {None, "travel"} == during
    assert {None} == names(simulation)


def test_the_only_topology_is_kept() -> None:
    """Without a global config, the client keeps its last bucket, because only this topology lists the services."""
    simulation = Recorded(buckets=("travel", "other"))
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.NO_BUCKET))
    simulation.flow()
    for keyspace in (TRAVEL, OTHER):
        simulation.result(upsert("k", keyspace))
    drop(simulation, "other")
    drop(simulation, "travel")
    simulation.live(SETTLED)

    assert 1 == len(machine_of(simulation).topologies)
    assert 1 == len(names(simulation) - {None})
