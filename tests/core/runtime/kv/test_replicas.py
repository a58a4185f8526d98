"""Replica reads in a cluster of several nodes, while the map changes."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.simulated import ADDRESS, HOTELS, TRAVEL, Recorded, client_options, ready
from tests.core.runtime.kv.test_cluster import RecordedCluster, clear_logs, nodes_of
from triclinium_core import errors
from triclinium_core.kv.operation.document_operations import GetReplica
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.results import GetReplicaResult, LookupInReplicaResult
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.retry.couchbase import RetryReason, Status
from triclinium_core.testing.fakes.faults import drop_response, temporary_failure
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES


class Replicated(RecordedCluster):
    """Simulation of three nodes, by default with two replicas of each vbucket."""

    def __init__(self, replicas: int = 2) -> None:
        Recorded.__init__(self, nodes_of(3, replicas=replicas), client_options(ADDRESS))

    def readers(self) -> list[int]:
        """Return the index of the node for each successful replica read, and clear the logs."""
        places = [
            place
            for place, node in enumerate(self.nodes)
            for command in node.command_log
            if (command.opcode, command.status) == (Opcode.GET_REPLICA, Status.SUCCESS)
        ]
        clear_logs(self)
        return places

    def read(self, replica: int) -> GetReplicaResult:
        """Read one replica of the document, and return the result."""
        result = self.result(GetReplica(TRAVEL, "ada", replica))
        assert isinstance(result, GetReplicaResult)
        return result


@pytest.fixture
def simulation() -> Replicated:
    """Return a simulation whose client has written the document."""
    simulation = Replicated()
    simulation.write(["ada"])
    return simulation


def test_each_replica_is_read_at_its_node(simulation: Replicated) -> None:
    """The first attempt to read a replica goes to its node, and the result has ``is_replica``."""
    for replica in (1, 2):
        found = simulation.read(replica)

        assert ({}, True) == (found.content, found.is_replica)
        assert [simulation.nodes.replica_holders_of("ada")[replica - 1]] == simulation.readers()
    assert {} == simulation.machine.statistics().retries_by_reason


def test_in_a_collection() -> None:
    """If the document is in a collection, a replica read sends the id of the collection."""
    simulation = Replicated()
    simulation.write(["ada"], HOTELS)

    assert isinstance(simulation.result(GetReplica(HOTELS, "ada")), GetReplicaResult)
    simulation.failure(errors.DocumentNotFoundException, GetReplica(TRAVEL, "ada"))


def test_a_replica_may_be_behind(simulation: Replicated) -> None:
    """If a replica is stale, the result has its stale value."""
    first, _ = simulation.nodes.replica_holders_of("ada")
    simulation.nodes.hold_replication(first)
    simulation.nodes.documents.put("travel", "ada", b"2")

    assert [{}, 2] == [simulation.read(replica).content for replica in (1, 2)]


@pytest.mark.parametrize("replicas", [0, 1, 2])
def test_a_missing_replica(replicas: int) -> None:
    """If the bucket has fewer replicas than the requested number, the read fails immediately and unsent."""
    simulation = Replicated(replicas)
    simulation.write(["ada"])
    began = simulation.now
    error = simulation.failure(errors.DocumentUnretrievableException, GetReplica(TRAVEL, "ada", 3))

    assert f"there is no replica 3: the bucket keeps {replicas} of each document" in str(error)
    assert replicas == simulation.clients[0].replica_count("travel")
    assert began == simulation.now
    assert [] == simulation.commands(Opcode.GET_REPLICA)


def test_a_replica_that_the_map_has_lost(simulation: Replicated) -> None:
    """After a failover of the first replica, the second is replica 1, and a read of replica 2 fails."""
    simulation.nodes.fail_over(simulation.nodes.replica_holders_of("ada")[0])
    simulation.flow()

    assert {} == simulation.read(1).content
    error = simulation.failure(errors.DocumentUnretrievableException, GetReplica(TRAVEL, "ada", 2))
    assert "no replica 2" in str(error)


def test_the_replica_count_before_a_map() -> None:
    """Before the first map arrives, the client does not know the number of replicas."""
    assert Replicated().clients[0].replica_count("travel") is None
    assert Replicated().clients[0].replica_count(None) is None


def test_a_replica_that_has_moved(simulation: Replicated) -> None:
    """If a replica has moved, the old node sends the new map, and the client retries the read at the new node."""
    owner, first, second = simulation.nodes.map.chain(vbucket := simulation.nodes.documents.address("t", "ada").vbucket)
    del owner
    token = simulation.submit(GetReplica(TRAVEL, "ada"))
    simulation.nodes.move([vbucket], to=first)
    simulation.nodes.hold_config(second)
    simulation.run()

    assert token in simulation.results
    assert simulation.machine.statistics().retries_by_reason[RetryReason.KV_NOT_MY_VBUCKET] >= 1


def test_a_dead_node(simulation: Replicated) -> None:
    """If the node of one replica is dead, this replica is unavailable, and the other one is not."""
    first, _ = simulation.nodes.replica_holders_of("ada")
    simulation.nodes.kill(first)
    simulation.live(0.1)
    token = simulation.submit(GetReplica(TRAVEL, "ada", 1))

    assert {} == simulation.read(2).content
    simulation.run()
    error = simulation.error(errors.UnambiguousTimeoutException, token)
    assert {RetryReason.SOCKET_NOT_AVAILABLE} == set(error.context.retry_reasons)


def test_reading_a_replica_is_idempotent(simulation: Replicated) -> None:
    """A replica read is retried after a temporary failure or a lost connection, because it is idempotent."""
    first, _ = simulation.nodes.replica_holders_of("ada")
    simulation.nodes[first].faults.next(Opcode.GET_REPLICA, temporary_failure())
    simulation.nodes[first].faults.next(Opcode.GET_REPLICA, drop_response())
    token = simulation.submit(GetReplica(TRAVEL, "ada"))
    simulation.live(0.1)
    simulation.nodes.kill(first)
    simulation.live(0.1)
    simulation.nodes.revive(first)
    simulation.run()

    assert token in simulation.results
    assert simulation.machine.statistics().retries_by_reason[RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT]


def test_parts_of_a_replica(simulation: Replicated) -> None:
    """A sub-document lookup reads a replica, fresh or stale, at its node; the result has ``is_replica``."""
    ask = (LookupInSpec.get("a"), LookupInSpec.exists("b"))
    simulation.nodes.documents.put("travel", "ada", b'{"a":1}')
    first, second = simulation.nodes.replica_holders_of("ada")
    simulation.nodes.hold_replication(first)
    simulation.nodes.documents.put("travel", "ada", b'{"a":2,"b":0}')
    found = [simulation.result(LookupInReplica(TRAVEL, "ada", ask, replica=replica)) for replica in (1, 2)]

    assert [(1, False, True), (2, True, True)] == [
        (parts.content_as(int, 0), parts.exists(1), parts.is_replica)
        for parts in found
        if isinstance(parts, LookupInReplicaResult)
    ]
    assert all(Opcode.SUBDOC_MULTI_LOOKUP == simulation.nodes[node].command_log[-1].opcode for node in (first, second))


def test_lookup_in_a_deleted_replica(simulation: Replicated) -> None:
    """If a replica is deleted, a lookup fails; with ``access_deleted`` it reads the tombstone."""
    ask = (LookupInSpec.exists("a"),)
    simulation.nodes.documents.remove("travel", "ada")

    simulation.failure(errors.DocumentNotFoundException, LookupInReplica(TRAVEL, "ada", ask))
    for _ in range(2):
        left = simulation.result(LookupInReplica(TRAVEL, "ada", ask, access_deleted=True))
        assert isinstance(left, LookupInReplicaResult)
        assert left.is_deleted
        simulation.nodes.hold_replication(simulation.nodes.replica_holders_of("ada")[0])


def test_a_bucket_that_cannot_read_parts_of_replicas() -> None:
    """Without the capability, a lookup in a replica fails unsent, but a read of the complete replica succeeds."""
    simulation = ready(replicas=1, features=IMPLEMENTED_FEATURES - {HelloFeature.SUBDOC_REPLICA_READ})
    error = simulation.failure(
        errors.FeatureNotAvailableException, LookupInReplica(TRAVEL, "ada", (LookupInSpec.get("a"),))
    )

    assert "lookup_in_replica needs the capability subdoc.ReplicaRead" in str(error)
    assert [] == simulation.commands(Opcode.SUBDOC_MULTI_LOOKUP)
    simulation.failure(errors.DocumentNotFoundException, GetReplica(TRAVEL, "ada"))
