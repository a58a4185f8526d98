"""Faults of clusters: the client continues to work after each, or raises an error that names the fault."""

from __future__ import annotations

import json

import pytest

from tests.core.runtime.kv.simulated import TRAVEL, Recorded, client_options, get, node_options, upsert
from tests.core.runtime.kv.test_cluster import KEYS, NO_NODES, RecordedCluster, nodes_of, written
from triclinium_core import errors
from triclinium_core.contract.neutral import Token
from triclinium_core.kv.operation.document_operations import Noop
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.pool.connections import NO_CONFIG_SECONDS
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import status
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES, FakeNodeOptions

TWO_SEEDS = "couchbase://a.example:1,b.example:2"
MEMCACHED = json.dumps(
    {"rev": 1, "name": "travel", "nodeLocator": "ketama", "nodes": [{"hostname": "h:8091"}]}
).encode()
"""Config of a memcached bucket."""


def two_seeds() -> Recorded:
    """Return a simulation with two seeds, of which the first is not a Couchbase node."""
    nodes = FakeNodes(node_options(), nodes=[("a.example", 1), ("b.example", 2)])
    nodes.remove_node(0)
    nodes[0].faults.always(Opcode.HELLO, status(Status.UNKNOWN_COMMAND))
    return Recorded(nodes, client_options(TWO_SEEDS))


def test_a_seed_that_is_not_couchbase() -> None:
    """If one seed is not a Couchbase node, operations succeed through the other seed."""
    simulation = two_seeds()
    simulation.result(upsert())

    assert "b.example:2" in {each.node for each in simulation.machine.statistics().connections}
    assert any("does not know HELLO" in line for line in simulation.log)


def test_seeds_of_which_none_is_couchbase() -> None:
    """If no seed is a Couchbase node, operations fail immediately with advice, even while the client connects again."""
    simulation = two_seeds()
    simulation.nodes[1].faults.always(Opcode.HELLO, status(Status.UNKNOWN_COMMAND))
    early = simulation.failure(errors.UnsupportedOperationException, get())
    while simulation.connection().state != ConnectionState.CONNECTING.name:
        simulation.now = simulation.machine.wakeup
        simulation.tick()
    late = simulation.submit(get())
    simulation.flow()

    assert "memcached://" in str(early)
    assert "memcached://" in str(simulation.error(errors.UnsupportedOperationException, late))


def test_half_a_cluster_down_at_start() -> None:
    """If half of the nodes are down at the start, only their documents are unavailable until they are back."""
    simulation = Recorded(
        nodes_of(4, IMPLEMENTED_FEATURES), client_options("couchbase://127.0.0.1:11210,127.0.0.1:11216")
    )
    dead = (0, 1)
    for place in dead:
        simulation.nodes.kill(place)
    alive = [key for key in KEYS if simulation.nodes.owner_of(key) not in dead]
    lost = next(key for key in KEYS if simulation.nodes.owner_of(key) == 1)
    for key in alive:
        simulation.result(upsert(key))
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert(lost))

    assert "127.0.0.1:11212" in str(error)
    assert ["NODE_NOT_AVAILABLE"] == list(error.context.retry_reasons)

    for place in dead:
        simulation.nodes.revive(place)
    simulation.live(2.0)
    for key in KEYS:
        simulation.result(upsert(key))


def test_a_whole_cluster_down_at_start() -> None:
    """If all nodes are down at the start, the error has an attempt's reason; the client recovers with the nodes."""
    simulation = RecordedCluster()
    for place in range(3):
        simulation.nodes.kill(place)
    error = simulation.failure(errors.UnambiguousTimeoutException, get())

    assert "127.0.0.1:11210: connection refused" in str(error)

    for place in range(3):
        simulation.nodes.revive(place)
    simulation.live(2.0)
    simulation.write()


def test_a_first_map_with_zero_nodes() -> None:
    """If the first map has no nodes, operations time out and state the reason, until the next map arrives."""
    simulation = RecordedCluster(1)
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, NO_NODES), times=2)
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert())

    assert "has no active node now" in str(error)

    simulation.nodes.set_config_revision(1, epoch=10)
    simulation.live(1.0)
    simulation.write()


def test_a_map_with_zero_nodes_that_is_lost() -> None:
    """If the only node had a map without nodes and is lost, the client returns to its seeds and uses their map."""
    simulation = RecordedCluster(1)
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, NO_NODES), times=2)
    simulation.failure(errors.UnambiguousTimeoutException, upsert())
    simulation.nodes.kill(0)
    simulation.live(5.0)
    simulation.nodes.revive(0)
    simulation.live(3.0)
    simulation.write()


def test_a_memcached_bucket() -> None:
    """If the bucket is a memcached bucket, operations fail immediately with advice; the client stops its attempts."""
    simulation = Recorded()
    simulation.node.faults.always(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, MEMCACHED))
    error = simulation.failure(errors.UnsupportedOperationException, upsert())

    assert simulation.now < 0.1
    assert "'travel' is a memcached bucket" in str(error)
    assert "use a couchbase or ephemeral bucket" in str(error)

    opened = len(simulation.opened_at)
    simulation.live(30.0)

    assert opened == len(simulation.opened_at)

    simulation.failure(errors.UnsupportedOperationException, get())


def test_a_memcached_bucket_without_a_config() -> None:
    """If a memcached bucket has no config, operations fail after ``NO_CONFIG_SECONDS``; new ones cause new attempts."""
    simulation = Recorded(buckets=("beer",), memcached_buckets=("travel",))
    error = simulation.failure(errors.UnsupportedOperationException, upsert())
    opened = len(simulation.opened_at)
    simulation.live(30.0)
    asked_again_at = simulation.now
    again = simulation.finish(get())

    assert NO_CONFIG_SECONDS <= simulation.settled_at[Token(1)] < NO_CONFIG_SECONDS + 0.5
    assert "'travel'" in str(error)
    assert opened == sum(at < asked_again_at for at, _ in simulation.opened_at)
    simulation.error(errors.UnsupportedOperationException, again)
    assert NO_CONFIG_SECONDS <= simulation.settled_at[again] - asked_again_at < NO_CONFIG_SECONDS + 0.5


def test_a_memcached_bucket_after_a_long_outage() -> None:
    """Even after a long outage, a memcached bucket is rejected after ``NO_CONFIG_SECONDS``."""
    simulation = Recorded(buckets=(), memcached_buckets=("travel",))
    simulation.node.kill()
    simulation.submit(get())
    simulation.live(20.0)
    simulation.node.revive()
    simulation.live(1.2)
    simulation.failure(errors.UnsupportedOperationException, get())

    asked = [each.now for each in simulation.commands(Opcode.GET_CLUSTER_CONFIG) if each.bucket == "travel"]
    assert pytest.approx(NO_CONFIG_SECONDS, abs=0.02) == asked[-1] - asked[0]


def test_a_bucket_that_was_created_a_moment_ago() -> None:
    """If a new bucket gets its config in time, it is not rejected; a bucket that had a config never is."""
    simulation = Recorded()
    simulation.node.faults.always(Opcode.GET_CLUSTER_CONFIG, status(Status.KEY_NOT_FOUND))
    token = simulation.submit(upsert())
    simulation.live(NO_CONFIG_SECONDS - 0.01)
    simulation.node.faults.clear()
    simulation.run()

    assert token in simulation.results

    simulation.node.faults.always(Opcode.GET_CLUSTER_CONFIG, status(Status.KEY_NOT_FOUND))
    simulation.lose(simulation.newest)
    simulation.failure(errors.UnambiguousTimeoutException, upsert())


@pytest.mark.parametrize("vbuckets", [{"serverList": [], "vBucketMap": []}, None])
def test_a_first_config_without_vbuckets(vbuckets: object) -> None:
    """While a new bucket has no vbuckets, operations wait; the error of a timeout states the reason."""
    config = json.dumps({"rev": 1, "name": "travel", "nodeLocator": "vbucket", "vBucketServerMap": vbuckets}).encode()
    simulation = Recorded()
    simulation.node.faults.always(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, config))
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert())
    token = simulation.submit(upsert())
    simulation.live(NO_CONFIG_SECONDS)
    simulation.node.faults.clear()
    simulation.run()

    assert "bucket 'travel' has no vbuckets yet" in str(error)
    assert [] == simulation.commands(Opcode.SET)[1:]
    assert token in simulation.results


def test_a_later_config_without_vbuckets() -> None:
    """If a new stream receives a config without vbuckets, the client continues to use the map that it knows."""
    simulation = Recorded()
    simulation.result(upsert())
    config = status(Status.SUCCESS, json.dumps({"rev": 99, "revEpoch": 99, "name": "travel"}).encode())
    simulation.node.faults.always(Opcode.GET_CLUSTER_CONFIG, config)
    simulation.lose(simulation.newest)
    simulation.live(1.0)
    opened = len(simulation.opened_at)
    simulation.result(upsert())
    simulation.live(10.0)

    assert opened == len(simulation.opened_at)


@pytest.mark.parametrize("opcode", [Opcode.GET_CLUSTER_CONFIG, Opcode.SELECT_BUCKET])
def test_a_bucket_that_one_node_lacks(opcode: Opcode) -> None:
    """If one node has no config of the bucket and another responds differently, the bucket is not rejected."""
    simulation = two_seeds()
    simulation.nodes[0].faults.clear()
    simulation.nodes[0].faults.always(Opcode.GET_CLUSTER_CONFIG, status(Status.KEY_NOT_FOUND))
    answer = {Opcode.GET_CLUSTER_CONFIG: Status.TEMPORARY_FAILURE, Opcode.SELECT_BUCKET: Status.KEY_NOT_FOUND}
    simulation.nodes[1].faults.always(opcode, status(answer[opcode]))

    simulation.failure(errors.UnambiguousTimeoutException, upsert())


def test_a_bucket_beside_a_dead_node() -> None:
    """If one node is unreachable and the other has no config of the bucket, the bucket is rejected."""
    simulation = Recorded(
        FakeNodes(
            FakeNodeOptions(buckets=(), memcached_buckets=("travel",)), nodes=[("a.example", 1), ("b.example", 2)]
        ),
        client_options(TWO_SEEDS),
    )
    simulation.nodes.kill(1)

    simulation.failure(errors.UnsupportedOperationException, upsert())


def test_a_recreated_bucket() -> None:
    """If a rejected bucket is created again as a supported type, operations on it succeed."""
    simulation = Recorded()
    simulation.node.faults.always(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, MEMCACHED))
    simulation.failure(errors.UnsupportedOperationException, upsert())
    simulation.node.faults.clear()
    simulation.live(2.0)

    simulation.result(upsert())


@pytest.mark.parametrize("hours", [1.0, 24.0 * 365])
def test_a_clock_that_jumps_forward(hours: float) -> None:
    """If the clock jumps forward, open operations time out, and the client recovers."""
    simulation = written()
    token, _ = simulation.submit_in_flight(upsert(KEYS[0]))
    simulation.now += hours * 3600.0
    simulation.flow()

    assert isinstance(simulation.errors[token], errors.TimeoutException)

    simulation.live(5.0)
    simulation.write()
    simulation.finish(Noop(TRAVEL))
