"""Client of several nodes: each operation goes to the node of its document, even while the map changes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable

from tests.core.runtime.kv import simulated
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract.neutral import LossCause, StreamId, Token
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.wire.constants import HelloFeature, Opcode, ServerOpcode
from triclinium_core.kv.wire.frame import encode_server_request
from triclinium_core.retry.couchbase import FailFastRetryStrategy, RetryReason, Status
from triclinium_core.runtime.kv.collection_ids import QUESTION_SECONDS
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import delay, drop_response
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

KEYS = [f"k{number}" for number in range(60)]
NO_NODES = json.dumps(
    {
        "rev": 9,
        "revEpoch": 9,
        "name": "travel",
        "nodesExt": [],
        "vBucketServerMap": {"serverList": [], "vBucketMap": [[-1]] * 128},
    }
).encode()
"""Config whose vbuckets have no nodes."""

MUTE = IMPLEMENTED_FEATURES - {HelloFeature.CLUSTERMAP_NOTIFICATION, HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF}
"""Features of a node that does not announce new maps."""


def nodes_of(count: int, features: frozenset[HelloFeature] = IMPLEMENTED_FEATURES, *, replicas: int = 0) -> FakeNodes:
    """Return a cluster with one bucket."""
    return FakeNodes(simulated.node_options(replicas=replicas, features=features), nodes=count)


class RecordedCluster(simulated.Recorded):
    """Simulation of several nodes, of which the connection string names only the first."""

    def __init__(self, count: int = 3, features: frozenset[HelloFeature] = IMPLEMENTED_FEATURES) -> None:
        super().__init__(nodes_of(count, features), simulated.client_options(simulated.ADDRESS))

    def write(self, keys: Iterable[str] = KEYS, keyspace: Keyspace = simulated.TRAVEL) -> None:
        """Write documents, and check that all writes succeed."""
        tokens = [self.submit(simulated.upsert(key, keyspace)) for key in keys]
        self.run()
        assert set(tokens) <= set(self.results)

    def takers(self, key: str) -> list[int]:
        """Return the indices of the nodes that have applied a write of this key."""
        return [
            place
            for place, node in enumerate(self.nodes)
            for command in node.command_log
            if command.opcode == Opcode.SET and command.applied and command.key == key.encode()
        ]


def written(count: int = 3, features: frozenset[HelloFeature] = IMPLEMENTED_FEATURES) -> RecordedCluster:
    """Return a simulation whose client has written all documents, so that it is connected to all nodes."""
    simulation = RecordedCluster(count, features)
    simulation.write()
    return simulation


def clear_logs(simulation: simulated.Recorded) -> None:
    """Clear the logs of all nodes."""
    for node in simulation.nodes:
        node.command_log.clear()


def owner_of(simulation: RecordedCluster, key: str) -> int:
    """Return the index of the node that owns a key."""
    owner = simulation.nodes.owner_of(key)
    assert owner is not None
    return owner


def test_each_document_goes_to_its_node() -> None:
    """The first attempt of each write goes to the node of its document, without NOT_MY_VBUCKET."""
    simulation = written()

    assert {0, 1, 2} == {owner_of(simulation, key) for key in KEYS}
    assert [[owner_of(simulation, key)] for key in KEYS] == [simulation.takers(key) for key in KEYS]
    assert RetryReason.KV_NOT_MY_VBUCKET not in simulation.machine.statistics().retries_by_reason
    assert {"127.0.0.1:11210", "127.0.0.1:11212", "127.0.0.1:11214"} == simulation.addresses()


def test_a_vbucket_that_has_moved() -> None:
    """If a vbucket has moved, its old node responds with the new map, and only the new node applies the write."""
    simulation = written()
    moved = [key for key in KEYS if owner_of(simulation, key) == 0]
    simulation.nodes.move(simulation.nodes.vbuckets_of(0), to=1)
    clear_logs(simulation)
    simulation.write()

    assert moved
    assert [[1]] * len(moved) == [simulation.takers(key) for key in moved]
    assert simulation.machine.statistics().retries_by_reason[RetryReason.KV_NOT_MY_VBUCKET] >= 1


def test_a_node_that_was_removed() -> None:
    """After a node was removed from the map, the client closes its connections and does not reopen them."""
    simulation = written()
    simulation.nodes.remove_node(2)
    simulation.write()
    simulation.live(60.0)

    assert {"127.0.0.1:11210", "127.0.0.1:11212"} == simulation.addresses()
    assert "the node is not in the cluster map any more" in simulation.closings()


def stream_to(simulation: RecordedCluster, place: int) -> StreamId:
    """Return the stream of the bucket's connection to a node."""
    address = Address("127.0.0.1", 11210 + 2 * place)
    return next(
        name
        for name in simulation.links
        if (node := simulation.clients[0]._connections.streams.connection(name)) is not None
        and (node.bucket, node.address) == ("travel", address)
    )


def leaving(key: str) -> tuple[RecordedCluster, StreamId, Token]:
    """Return a simulation with a write in flight to a node that has left the map, the stream and the write's token."""
    simulation = written()
    stream = stream_to(simulation, owner_of(simulation, key))
    token = simulation.submit(simulated.upsert(key))
    simulation.hand_over(stream)
    simulation.nodes.remove_node(owner_of(simulation, key))
    for other in [name for name in simulation.links if name != stream]:
        simulation.tick()
        while simulation.links[other].incoming or simulation.links[other].outgoing:
            simulation.hand_over(other)
            simulation.deliver(other)
    return simulation, stream, token


def test_a_removed_node_with_a_write_in_flight() -> None:
    """The connection to a removed node stays open until the write in flight gets its response."""
    simulation, stream, token = leaving(KEYS[0])
    before = (stream in simulation.links, token in simulation.settled_at)
    simulation.flow()

    assert (True, False) == before
    assert token in simulation.results
    assert stream not in simulation.links
    assert ["the node is not in the cluster map any more"] == simulation.closings()


def test_a_removed_node_that_never_responds() -> None:
    """If a removed node does not respond, the client closes its connection after the timeout of the operation."""
    simulation, stream, token = leaving(KEYS[0])
    simulation.links[stream].incoming.clear()
    simulation.live(10.0)

    assert "AmbiguousTimeoutException" == type(simulation.errors[token]).__name__
    assert stream not in simulation.links


def test_a_removed_node_with_a_durable_write() -> None:
    """If a durable write to a removed node is in flight, the connection stays open for up to its longer timeout."""
    simulation = written()
    owner = owner_of(simulation, KEYS[0])
    simulation.nodes[owner].faults.next(Opcode.SET, delay(8.0))
    token = simulation.submit(simulated.upsert(KEYS[0], durability=DurabilityLevel.MAJORITY))
    simulation.flow()
    simulation.nodes.remove_node(owner)
    simulation.live(8.0)

    assert token in simulation.results
    assert ["the node is not in the cluster map any more"] == simulation.closings()


def test_a_node_that_leaves_and_breaks_tls() -> None:
    """If TLS fails on a removed node, operations on the current nodes do not report that failure (C6)."""
    simulation, stream, _ = leaving(KEYS[0])
    simulation.lose(stream, LossCause.TLS)
    for place in range(3):
        simulation.nodes.kill(place)
    error = simulation.failure(errors.UnambiguousTimeoutException, simulated.get())

    assert "TLS_ERROR" not in error.context.retry_reasons


def test_a_map_of_new_and_dead_nodes() -> None:
    """The client keeps a new map even if it has no connection to any of its nodes yet."""
    simulation = RecordedCluster()
    simulation.nodes.remove_node(2)
    simulation.write()
    simulation.nodes.kill(1)
    simulation.live(1.0)
    simulation.nodes.add_node(2)
    opened = len(simulation.opened_at)
    simulation.nodes.remove_node(0)
    simulation.flow()

    assert [11214] == [order.port for _, order in simulation.opened_at[opened:]]


def test_a_node_that_leaves_and_hangs_up() -> None:
    """If a removed node closes its connection, the client does not reconnect."""
    simulation, stream, token = leaving(KEYS[0])
    simulation.lose(stream)
    opened = len(simulation.opened_at)
    simulation.live(60.0)

    assert "RequestCanceledException" == type(simulation.errors[token]).__name__
    assert opened == len(simulation.opened_at)


def test_a_removed_node_that_returns() -> None:
    """If a removed node returns, the old connection still closes; a new one opens, and another after a loss."""
    simulation, stream, token = leaving(KEYS[0])
    place = [f"127.0.0.1:{11210 + 2 * number}" for number in range(3)]
    gone = place.index(next(iter(set(place) - simulation.addresses())))
    simulation.nodes.add_node(gone)
    simulation.nodes.rebalance()
    simulation.flow()
    simulation.live(3.0)

    assert token in simulation.results
    assert stream not in simulation.links

    simulation.lose(stream_to(simulation, gone))
    simulation.live(3.0)
    simulation.write()

    assert set(place) == simulation.addresses()
    assert 4 == len(simulation.links)


def test_a_map_without_nodes() -> None:
    """If a map has no nodes, the client keeps its connections, so that it can receive the next map."""
    simulation = written(1)
    _, request = simulation.submit_in_flight(simulated.get())
    simulation.inject(simulated.respond(request, Status.NOT_MY_VBUCKET, value=NO_NODES), stream_to(simulation, 0))
    error = simulation.failure(errors.UnambiguousTimeoutException, simulated.upsert("late"))
    simulation.nodes.set_config_revision(1, epoch=10)
    simulation.live(1.0)

    assert "has no active node" in str(error)

    simulation.write()


def test_a_node_that_was_added() -> None:
    """As soon as a map lists a new node, the client connects to it and writes documents there."""
    simulation = RecordedCluster()
    simulation.nodes.remove_node(2)
    simulation.write()
    before = simulation.addresses()
    simulation.nodes.add_node(2)
    simulation.nodes.rebalance()
    simulation.write()
    simulation.write()

    assert [2, 3] == [len(before), len(simulation.addresses())]
    assert {2} <= {place for key in KEYS for place in simulation.takers(key)}


def test_a_dead_node_until_its_failover() -> None:
    """While a node is dead, only its documents are unavailable; once it is removed, all documents can be written."""
    simulation = written()
    dead = next(key for key in KEYS if owner_of(simulation, key) == 2)
    alive = next(key for key in KEYS if owner_of(simulation, key) == 1)
    simulation.nodes.kill(2)
    simulation.flow()
    simulation.result(simulated.upsert(alive))
    error = simulation.failure(errors.UnambiguousTimeoutException, simulated.upsert(dead))

    assert {"SOCKET_NOT_AVAILABLE", "NODE_NOT_AVAILABLE"} >= set(error.context.retry_reasons)

    simulation.nodes.remove_node(2)
    simulation.live(0.1)
    simulation.write()


def test_an_announced_map() -> None:
    """If the nodes announce a new map, the client requests it before an operation gets NOT_MY_VBUCKET."""
    simulation = written()
    simulation.nodes.move(simulation.nodes.vbuckets_of(0), to=1)
    simulation.live(0.1)
    clear_logs(simulation)
    simulation.write()

    assert (1, 2) == simulation.nodes.map.version == simulation.machine.statistics().connections[-1].config_revision
    assert RetryReason.KV_NOT_MY_VBUCKET not in simulation.machine.statistics().retries_by_reason


def test_nodes_that_announce_nothing() -> None:
    """If nodes do not announce maps, the client polls them every 2.5 s and thus notices a removed node."""
    simulation = written(features=MUTE)
    simulation.nodes.kill(2)
    simulation.nodes.remove_node(2)
    unnoticed = simulation.addresses()
    simulation.live(2.6)
    simulation.write()

    assert [3, 2] == [len(unnoticed), len(simulation.addresses())]


def test_polls_end_with_their_connection() -> None:
    """The client polls each connection once per 2.5 s, even after a reconnect."""
    simulation = written(1, MUTE)
    simulation.lose(stream_to(simulation, 0))
    simulation.live(1.0)
    before = len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    simulation.live(25.0)

    assert 2 * 10 == len(simulation.commands(Opcode.GET_CLUSTER_CONFIG)) - before


def test_a_false_announcement() -> None:
    """If a node announces a config that it does not have, the client requests the config only twice."""
    simulation = written(1)
    before = len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    announcement = encode_server_request(
        ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION, opaque=1, extras=struct.pack(">qq", 9, 9), key=b"travel"
    )
    simulation.inject(announcement)
    simulation.live(10.0)

    assert 2 == len(simulation.commands(Opcode.GET_CLUSTER_CONFIG)) - before
    assert [] == simulation.closings()


@rows("extras", [b"", b"123", b"x" * 17])
@rows("opcode", [0x01, 0x02, 0x7F])
def test_unknown_server_requests(opcode: int, extras: bytes) -> None:
    """The client ignores an unknown or malformed server request."""
    simulation = written(1)
    before = len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    simulation.inject(encode_server_request(opcode, opaque=1, extras=extras, key=b"travel"))
    simulation.live(10.0)

    assert before == len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    assert [] == simulation.closings()


def test_collections_of_several_nodes() -> None:
    """The client requests a collection id from one node, and uses it for all nodes."""
    simulation = RecordedCluster()
    simulation.write(keyspace=simulated.HOTELS)

    assert {0, 1, 2} == {place for key in KEYS for place in simulation.takers(key)}
    assert 1 == sum(
        command.opcode == Opcode.GET_COLLECTION_ID for node in simulation.nodes for command in node.command_log
    )


# Collection ids.


def key_of(simulation: RecordedCluster, place: int) -> str:
    """Return a key that this node owns."""
    return next(key for key in KEYS if owner_of(simulation, key) == place)


def test_a_question_outlives_other_connections() -> None:
    """If the connection to another node is lost, a pending id request continues."""
    simulation = written()
    token = simulation.submit(simulated.upsert(key_of(simulation, 0), simulated.HOTELS))
    simulation.lose(stream_to(simulation, 1))
    simulation.flow()

    assert token in simulation.results
    assert [] == simulation.retries


def test_a_lost_id_request_moves_to_another_node() -> None:
    """If the connection of an id request is lost, another node gets the request, and operations on that node go on."""
    simulation = written()
    asker, other = (
        simulation.submit(simulated.upsert(key_of(simulation, place), simulated.HOTELS)) for place in (0, 1)
    )
    simulation.lose(stream_to(simulation, 0))
    simulation.flow()

    assert other in simulation.results
    assert [asker] == [retry.token for retry in simulation.retries]


def test_an_unanswered_id_request_goes_elsewhere() -> None:
    """If a node does not respond to an id request, the client sends the request to the next node."""
    simulation = written()
    simulation.nodes[0].faults.always(Opcode.GET_COLLECTION_ID, drop_response())
    tokens = [simulation.submit(simulated.upsert(key_of(simulation, place), simulated.HOTELS)) for place in (0, 1)]
    simulation.live(QUESTION_SECONDS)

    assert set(tokens) == set(simulation.results) & set(tokens)
    assert [] == simulation.retries


# Seed nodes that have left the cluster.


def test_operations_queued_for_a_removed_node() -> None:
    """If a seed node is not in the map, operations queued for it go to their nodes without consulting the strategy."""
    simulation = RecordedCluster()
    simulation.nodes.remove_node(0)
    simulation.tick()
    simulation.flow()
    operations = [simulated.upsert("k1"), simulated.upsert("k2", simulated.HOTELS), simulated.get("k3")]
    tokens = [simulation.submit(operation, retry_strategy=FailFastRetryStrategy()) for operation in operations]
    simulation.flow()

    assert set(tokens[:2]) == set(simulation.results)
    assert {tokens[2]: errors.DocumentNotFoundException} == {
        token: type(error) for token, error in simulation.errors.items()
    }
    assert [] == simulation.retries
