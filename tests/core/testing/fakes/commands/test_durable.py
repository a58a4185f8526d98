"""Durable writes in a cluster: when they become visible, which commands wait for them, and their results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from tests.core.testing.node_client import USUAL_FEATURES, NodeClient, ready_client, status_of
from tests.rows import rows
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.framing_extras import RequestFrameInfo, encode_framing_extras
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.commands.read_request import SECONDS_DEFAULT
from triclinium_core.testing.fakes.faults import drop_response, hang_up_after_applying
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE
from triclinium_core.testing.fakes.store.documents import vbucket_of

STORE = bytes(8)
ORDERED = tuple(feature for feature in USUAL_FEATURES if feature != HelloFeature.UNORDERED_EXECUTION)
LEVELS = [level for level in DurabilityLevel if level is not DurabilityLevel.NONE]
WRITES: dict[Opcode, dict[str, bytes]] = {
    Opcode.SET: {"extras": STORE, "value": b"2"},
    Opcode.REPLACE: {"extras": STORE, "value": b"2"},
    Opcode.DELETE: {},
    Opcode.APPEND: {"value": b"2"},
    Opcode.PREPEND: {"value": b"2"},
    Opcode.INCREMENT: {"extras": bytes(7) + b"\1" + bytes(12)},
    Opcode.DECREMENT: {"extras": bytes(7) + b"\1" + bytes(12)},
    Opcode.TOUCH: {"extras": bytes(4)},
    Opcode.GET_AND_TOUCH: {"extras": bytes(4)},
}
"""Writes to an existing document whose value is the number 1."""


def durable(level: DurabilityLevel = DurabilityLevel.MAJORITY, milliseconds: int | None = None) -> bytes:
    """Return the framing extras of a durable write."""
    timeout = b"" if milliseconds is None else milliseconds.to_bytes(2, "big")
    return encode_framing_extras({RequestFrameInfo.DURABILITY: bytes((level.value,)) + timeout})


class DurableCluster:
    """Cluster whose node 0 has the document ``key`` and whose next nodes have its replicas, with a client of node 0."""

    def __init__(self, replicas: int, nodes: int = 4, *, features: tuple[HelloFeature, ...] = USUAL_FEATURES) -> None:
        self.nodes = FakeNodes(FakeNodeOptions(replicas=replicas), nodes=nodes)
        self.features = features
        # Find a vbucket of node 0 whose replicas are on the next nodes; other vbuckets have other replicas.
        chain = [*range(min(nodes, replicas + 1)), *[NO_NODE] * (replicas + 1 - nodes)]
        self.place = next(vbucket for vbucket in range(1024) if self.nodes.map.chain(vbucket) == chain)
        self.key = next(f"key{n}" for n in itertools.count() if vbucket_of(f"key{n}".encode(), 1024) == self.place)
        self.numbers = itertools.count(1)
        self.client = self.connect()
        self.nodes.documents.put("default", self.key, b"1")

    def connect(self, node: int = 0) -> NodeClient:
        """Return another client. If the node was killed before, it first closes its old connections."""
        self.nodes[node].time_passed(self.nodes.now)
        return ready_client(self.nodes[node], connection=next(self.numbers), features=self.features)

    def write(self, client: NodeClient | None = None, opcode: Opcode = Opcode.SET, **parts: bytes) -> list[Frame]:
        """Return the immediate replies to a durable write."""
        client = client or self.client
        parts = {"framing_extras": durable(), **WRITES.get(opcode, {"extras": STORE}), **parts}
        return client.send(client.encode_of(opcode, self.key, **parts))

    def read(self, client: NodeClient | None = None) -> bytes | Status:
        """Return the value of the document, or the status of the read."""
        reply = (client or self.client).ask_of(Opcode.GET, self.key)
        return reply.value if reply.status == Status.SUCCESS else status_of(reply)

    def hold(self, *nodes: int) -> None:
        """Hold back replication to nodes."""
        for node in nodes:
            self.nodes.hold_replication(node)

    @property
    def is_pending(self) -> bool:
        """Whether a durable write is pending."""
        return self.nodes.documents.get_prepared("default", self.key) is not None


def statuses(replies: list[Frame]) -> list[Status]:
    """Return the statuses of the replies, as enum members."""
    return [status_of(reply) for reply in replies]


# -- Immediate results.


@rows("level", LEVELS)
@rows("opcode", WRITES)
def test_immediate_durable_write(opcode: Opcode, level: DurabilityLevel) -> None:
    """If all nodes are alive, a durable write of any level completes immediately with a normal write's result."""
    plain, cluster = DurableCluster(replicas=2), DurableCluster(replicas=2)
    (expected,) = plain.client.send(plain.client.encode_of(opcode, plain.key, **WRITES[opcode]))
    (reply,) = cluster.write(opcode=opcode, framing_extras=durable(level, 1000))

    assert Status.SUCCESS == status_of(reply)
    assert (expected.cas, expected.extras, expected.value) == (reply.cas, reply.extras, reply.value)
    assert plain.read() == cluster.read()
    assert not cluster.is_pending
    assert cluster.nodes[0].command_log[-2].applied


@rows("make_lack", [FakeNodes.hold_replication, FakeNodes.kill])
@rows(
    ("replicas", "lacking", "done"),
    [
        (0, (), True),
        (1, (), True),
        (1, (1,), False),
        (2, (), True),
        (2, (1,), True),
        (2, (2,), True),
        (2, (1, 2), False),
        (2, (3,), True),
    ],
)
def test_a_majority_is_enough(
    replicas: int, lacking: tuple[int, ...], done: bool, make_lack: Callable[[FakeNodes, int], None]
) -> None:
    """A durable write needs its only copy, both of two or two of three; dead and held-back replicas do not count."""
    cluster = DurableCluster(replicas)
    for node in lacking:
        make_lack(cluster.nodes, node)

    assert ([Status.SUCCESS] if done else []) == statuses(cluster.write())
    assert (b"2" if done else b"1") == cluster.read()
    assert done is not cluster.is_pending


@pytest.mark.parametrize(
    ("opcode", "parts", "status"),
    [
        (Opcode.ADD, {"value": b"2"}, Status.KEY_EXISTS),
        (Opcode.REPLACE, {"cas": 5}, Status.KEY_EXISTS),
        (Opcode.INCREMENT, {"key": "nobody"}, Status.KEY_NOT_FOUND),
    ],
)
def test_failing_write_is_refused_immediately(opcode: Opcode, parts: dict[str, object], status: Status) -> None:
    """A durable write that cannot be applied is refused immediately, and no write stays pending."""
    cluster = DurableCluster(replicas=1)
    cluster.hold(1)
    if "key" in parts:
        cluster.nodes.documents.remove("default", cluster.key)
        parts = {"extras": bytes(16) + b"\xff" * 4}

    assert [status] == statuses(cluster.write(opcode=opcode, **parts))  # type: ignore[arg-type]
    assert not cluster.is_pending


# -- Impossible writes.


@pytest.mark.parametrize(
    ("replicas", "nodes", "possible"), [(0, 1, True), (1, 1, False), (2, 1, False), (2, 2, True), (3, 4, False)]
)
def test_there_have_to_be_enough_copies(replicas: int, nodes: int, possible: bool) -> None:
    """A durable write needs a majority of the configured copies, and is impossible with three replicas."""
    cluster = DurableCluster(replicas, nodes)

    assert [Status.SUCCESS if possible else Status.DURABILITY_IMPOSSIBLE] == statuses(cluster.write())
    assert (b"2" if possible else b"1") == cluster.read()


def test_a_failover_leaves_too_few_copies() -> None:
    """After a failover durable writes are impossible until a rebalance creates another replica."""
    cluster = DurableCluster(replicas=1)
    cluster.nodes.fail_over(1)
    refused = statuses(cluster.write())
    cluster.nodes.rebalance()
    owner = cluster.nodes.owner_of(cluster.key)
    assert owner is not None

    assert [Status.DURABILITY_IMPOSSIBLE] == refused
    assert [Status.SUCCESS] == statuses(cluster.write(cluster.connect(owner)))


def test_an_old_map_has_no_replicas() -> None:
    """A node with an old map refuses durable writes, because replicas copy from the vbucket's current node."""
    cluster = DurableCluster(replicas=1)
    cluster.nodes.hold_config(0)
    cluster.nodes.move([cluster.place], to=1)

    assert [Status.DURABILITY_IMPOSSIBLE] == statuses(cluster.write())
    assert b"1" == cluster.read()


# -- Pending writes.


def pending(replicas: int = 1, **options: tuple[HelloFeature, ...]) -> DurableCluster:
    """Return a cluster with a pending write that has a timeout of nine seconds."""
    cluster = DurableCluster(replicas, **options)  # type: ignore[arg-type]
    cluster.hold(*range(1, 1 + replicas))
    assert [] == cluster.write(framing_extras=durable(milliseconds=9000))
    return cluster


def test_pending_write_is_invisible() -> None:
    """Readers, even of a replica, find the earlier version; the node's wakeup is the timeout of the write."""
    cluster = pending()
    replica = cluster.connect(1).ask_of(Opcode.GET_REPLICA, cluster.key)
    prepared = cluster.nodes.documents.get_prepared("default", cluster.key)

    assert b"1" == cluster.read()
    assert b"1" == replica.value
    assert prepared is not None
    assert b"2" == prepared.value
    assert [9.0, math.inf] == [node.wakeup for node in cluster.nodes][:2]


def test_committed_when_a_majority_has_it() -> None:
    """Resumed replication commits the write with its prepared CAS, and the client gets its reply."""
    cluster = pending()
    prepared = cluster.nodes.documents.get_prepared("default", cluster.key)
    before = list(cluster.nodes[0].command_log)
    cluster.nodes.release_replication(1)
    woken = cluster.nodes.wakeup
    (reply,) = cluster.client.wait(3.0)
    (logged,) = cluster.nodes[0].command_log[len(before) :]

    assert prepared is not None
    assert (Status.SUCCESS, prepared.cas) == (status_of(reply), reply.cas)
    assert -math.inf == woken
    assert math.inf == cluster.nodes.wakeup
    assert (Opcode.SET, 0.0, Status.SUCCESS, True) == (logged.opcode, logged.now, logged.status, logged.applied)
    assert Opcode.SET not in {command.opcode for command in before}
    assert b"2" == cluster.read()


def test_revived_replica_completes_the_write() -> None:
    """A write that waits for a dead replica is committed when that node is revived."""
    cluster = DurableCluster(replicas=1)
    cluster.nodes.kill(1)
    cluster.write()
    cluster.nodes.revive(1)

    assert [Status.SUCCESS] == statuses(cluster.client.wait(0.0))
    assert b"2" == cluster.read()


@pytest.mark.parametrize(("milliseconds", "due"), [(9000, 9.0), (1, 0.001), (None, SECONDS_DEFAULT)])
def test_ambiguous_when_it_takes_too_long(milliseconds: int | None, due: float) -> None:
    """A write that times out is aborted, and its client gets an ambiguous status."""
    cluster = DurableCluster(replicas=1)
    cluster.hold(1)
    cluster.write(framing_extras=durable(milliseconds=milliseconds))
    early = cluster.client.wait(math.nextafter(due, 0))
    late = statuses(cluster.client.wait(due))
    cluster.nodes.release_replication(1)

    assert ([], [Status.SYNC_WRITE_AMBIGUOUS]) == (early, late)
    assert b"1" == cluster.read()
    assert not cluster.is_pending
    assert not cluster.nodes[0].command_log[-2].applied
    assert [Status.SUCCESS] == statuses(cluster.write())


@rows("opcode", [*WRITES, Opcode.ADD])
@rows("framing_extras", [b"", durable()])
def test_no_other_write_meanwhile(opcode: Opcode, framing_extras: bytes) -> None:
    """During a pending durable write, the document refuses other writes and locks; other documents accept them."""
    cluster = pending()
    other = next(f"other{n}" for n in itertools.count() if vbucket_of(f"other{n}".encode(), 1024) == cluster.place)

    assert [Status.SYNC_WRITE_IN_PROGRESS] == statuses(cluster.write(opcode=opcode, framing_extras=framing_extras))
    for lock, cas in ((Opcode.GET_AND_LOCK, 0), (Opcode.UNLOCK, 5)):
        assert Status.SYNC_WRITE_IN_PROGRESS == status_of(cluster.client.ask_of(lock, cluster.key, cas=cas))
    assert b"1" == cluster.read()
    assert Status.SUCCESS == status_of(cluster.client.ask_of(Opcode.SET, other, extras=STORE))


def test_without_unordered_execution_everything_waits_behind_it() -> None:
    """With ordered execution, each command waits until the durable write before it is settled."""
    cluster = pending(features=ORDERED)
    client = cluster.client
    unanswered = client.send(client.encode_of(Opcode.GET, cluster.key))
    unanswered += cluster.write(value=b"3", framing_extras=durable(milliseconds=5000))
    unanswered += client.send(client.encode(Opcode.NOOP))
    waiting = cluster.is_pending
    replies = [(reply.opcode, status_of(reply), reply.value) for reply in client.wait(9.0)]
    rest = [(reply.opcode, status_of(reply)) for reply in client.wait(14.0)]

    assert [] == unanswered
    assert waiting
    assert [(Opcode.SET, Status.SYNC_WRITE_AMBIGUOUS), (Opcode.GET, Status.SUCCESS)] == [
        (opcode, status) for opcode, status, _ in replies
    ]
    assert b"1" == replies[1][2]
    assert [(Opcode.SET, Status.SYNC_WRITE_AMBIGUOUS), (Opcode.NOOP, Status.SUCCESS)] == rest


@pytest.mark.parametrize("opcode", [Opcode.HELLO, Opcode.NOOP])
def test_pending_write_precedes_a_command_in_order(opcode: Opcode) -> None:
    """HELLO and NOOP wait for a pending write even with unordered execution, and the first HELLO is refused."""
    cluster = pending()
    client = cluster.client
    unanswered = client.send(client.encode(opcode) * 2 + client.encode(Opcode.GET_CLUSTER_CONFIG))
    cluster.nodes.release_replication(1)
    replies = [(reply.opcode, status_of(reply)) for reply in client.wait(0.0)]
    first = Status.NOT_SUPPORTED if opcode == Opcode.HELLO else Status.SUCCESS

    assert [] == unanswered
    assert [
        (Opcode.SET, Status.SUCCESS),
        (opcode, first),
        (opcode, Status.SUCCESS),
        (Opcode.GET_CLUSTER_CONFIG, Status.SUCCESS),
    ] == replies


def test_pending_write_in_order_precedes_all_commands() -> None:
    """Behind a pending write with a barrier bit or ordered execution, even a read waits, and SELECT_BUCKET succeeds."""
    barrier = durable(milliseconds=9000) + encode_framing_extras({RequestFrameInfo.BARRIER: b""})
    unordered = DurableCluster(1)
    ordered = DurableCluster(1, features=ORDERED)
    replies = []
    for cluster, framing_extras in ((unordered, barrier), (ordered, durable())):
        client = cluster.client
        cluster.hold(1)
        read, select = client.encode_of(Opcode.GET, cluster.key), client.encode(Opcode.SELECT_BUCKET, key=b"default")
        assert [] == cluster.write(framing_extras=framing_extras) + client.send(read + select)
        cluster.nodes.release_replication(1)
        replies.append([(reply.opcode, status_of(reply)) for reply in client.wait(0.0)])

    success = [(opcode, Status.SUCCESS) for opcode in (Opcode.SET, Opcode.GET, Opcode.SELECT_BUCKET)]
    assert [success, success] == replies


# -- Lost clients, lost replies, and clients without XERROR.


def test_lost_client_keeps_its_pending_write() -> None:
    """A write whose client has left is still committed, and is logged without a reply."""
    cluster = pending()
    cluster.nodes[0].connection_lost(1, 0.0)
    cluster.nodes.release_replication(1)
    actions = cluster.nodes[0].time_passed(0.0)
    (logged,) = cluster.nodes[0].command_log[-1:]

    assert [] == list(actions)
    assert (Opcode.SET, None, True) == (logged.opcode, logged.status, logged.applied)
    assert b"2" == cluster.read(cluster.connect())


def test_fault_strikes_when_the_write_is_settled() -> None:
    """A fault that drops the reply or closes the connection strikes when the durable write completes."""
    silent, ending = DurableCluster(replicas=1), DurableCluster(replicas=1)
    silent.nodes[0].faults.next(Opcode.SET, drop_response())
    ending.nodes[0].faults.next(Opcode.SET, hang_up_after_applying())
    for cluster in (silent, ending):
        cluster.hold(1)
        cluster.write()
        cluster.nodes.release_replication(1)
        assert [] == cluster.client.wait(0.0)
        assert b"2" == cluster.read(cluster.connect())
        (struck,) = (command for command in cluster.nodes[0].command_log if command.fault is not None)
        assert (None, True) == (struck.status, struck.applied)

    assert (False, True) == (silent.client.is_hung_up, ending.client.is_hung_up)


def test_clients_without_xerror() -> None:
    """Without XERROR, a write during a pending one gets a temporary failure; other durability errors hang up."""
    cluster = pending()
    client = ready_client(cluster.nodes[0], connection=7, without=[HelloFeature.XERROR])
    reported = statuses(cluster.write(client))
    impossible = DurableCluster(replicas=3)
    other = ready_client(impossible.nodes[0], connection=7, without=[HelloFeature.XERROR])
    impossible.write(other)
    cluster.write(client, framing_extras=encode_framing_extras({RequestFrameInfo.DURABILITY: b"\7"}))

    assert [Status.TEMPORARY_FAILURE] == reported
    assert client.is_hung_up
    assert other.is_hung_up


# -- Failovers, killed nodes and moved vbuckets.


def test_failover_aborts_the_dead_nodes_write() -> None:
    """If only the failed-over node has a pending write, the failover aborts the write and leaves no trace of it."""
    cluster = pending()
    cluster.nodes.kill(0)
    cluster.nodes.fail_over(0)
    client = cluster.connect(1)

    assert b"1" == cluster.read(client)
    assert not cluster.is_pending


@pytest.mark.parametrize("is_released_first", [True, False])
def test_revived_node_commits_its_write(is_released_first: bool) -> None:
    """A revived node commits its pending write; until then reads and writes of the document are refused."""
    cluster = pending()
    cluster.nodes.kill(0)
    if is_released_first:
        cluster.nodes.release_replication(1)
        assert cluster.is_pending
    cluster.nodes.revive(0)
    client = cluster.connect()
    if not is_released_first:
        meanwhile = [cluster.read(client), *statuses(cluster.write(client))]
        client.wait(100.0)
        assert [Status.SYNC_WRITE_RE_COMMIT_IN_PROGRESS] * 3 == [*meanwhile, cluster.read(client)]
        cluster.nodes.release_replication(1)

    assert b"2" == cluster.read(client)


def test_moved_vbucket_keeps_its_pending_write() -> None:
    """If the vbucket moves, the client gets an ambiguous status, and the new node commits the write."""
    cluster = pending()
    cluster.nodes.move([cluster.place], to=1)
    reported = statuses(cluster.client.wait(0.0))

    assert [Status.SYNC_WRITE_AMBIGUOUS] == reported
    assert b"2" == cluster.read(cluster.connect(1))


def test_moved_vbucket_may_wait_again() -> None:
    """If the vbucket moves while replicas lack the pending write, the new node must wait for them, too."""
    cluster = pending(replicas=2)
    cluster.nodes.move([cluster.place], to=3)
    client = cluster.connect(3)
    meanwhile = cluster.read(client)
    cluster.nodes.release_replication(1)

    assert Status.SYNC_WRITE_RE_COMMIT_IN_PROGRESS == meanwhile
    assert b"2" == cluster.read(client)


def test_a_vbucket_without_a_node_commits_nothing() -> None:
    """A pending write of an unassigned vbucket is committed once a node has the vbucket again."""
    cluster = pending()
    cluster.nodes.release_replication(1)
    cluster.client.wait(0.0)
    cluster.hold(1)
    cluster.write(value=b"3")
    cluster.nodes.move([cluster.place], to=None)
    cluster.nodes.release_replication(1)
    meanwhile = cluster.is_pending
    cluster.nodes.move([cluster.place], to=2)

    assert meanwhile
    assert b"3" == cluster.read(cluster.connect(2))


def test_aborted_when_it_can_never_be_done() -> None:
    """If a failover leaves no majority, the pending write is immediately aborted, with an ambiguous status."""
    cluster = pending()
    cluster.nodes.fail_over(1)

    assert [Status.SYNC_WRITE_AMBIGUOUS] == statuses(cluster.client.wait(0.0))
    assert b"1" == cluster.read()


def test_acknowledged_write_survives_moves_and_a_failover() -> None:
    """A node that had the vbucket keeps the writes of that time, even if replication to it is held back."""
    cluster = DurableCluster(replicas=1)
    cluster.hold(1)
    cluster.nodes.move([cluster.place], to=1)
    acknowledged = statuses(cluster.write(cluster.connect(1)))
    cluster.nodes.move([cluster.place], to=0)
    cluster.nodes.kill(0)
    cluster.nodes.fail_over(0)

    assert [Status.SUCCESS] == acknowledged
    assert b"2" == cluster.read(cluster.connect(1))


@pytest.mark.parametrize("change", [lambda nodes: nodes.hold_replication(1), lambda nodes: nodes.kill(1)])
def test_acknowledged_write_survives_a_failover(change: Callable[[FakeNodes], None]) -> None:
    """In a failover, the replica with the acknowledged write takes over if the other is held back or dead."""
    cluster = DurableCluster(replicas=2)
    change(cluster.nodes)
    acknowledged = statuses(cluster.write())
    cluster.nodes.kill(0)
    cluster.nodes.fail_over(0)
    owner = cluster.nodes.owner_of(cluster.key)
    assert owner is not None
    cluster.nodes.revive(owner)

    assert [Status.SUCCESS] == acknowledged
    assert b"2" == cluster.read(cluster.connect(owner))
