"""Cluster of several nodes, which share one map."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.testing.node_client import NodeClient, as_json, ready_client, ready_clients, status_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.wire.constants import HelloFeature, Opcode, ServerOpcode
from triclinium_core.retry.couchbase import Service, Status
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes, NodePort
from triclinium_core.testing.fakes.cluster.outbox import HangUp
from triclinium_core.testing.fakes.faults import delay
from triclinium_core.testing.fakes.options import NODES_MAX, FakeNodeOptions
from triclinium_core.testing.fakes.store.documents import vbucket_of

BRIEF = (HelloFeature.DUPLEX, HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF)
ADA = vbucket_of(b"ada", 1024)
"""Vbucket of the document in most tests, which is on the first node initially."""


def config_at(client: NodeClient) -> dict[str, Any]:
    """Return the config that a node sends."""
    return dict(as_json(client.ask(Opcode.GET_CLUSTER_CONFIG).value))


def served_by(clients: list[NodeClient]) -> list[bool]:
    """Return for each node whether it serves the document. The document need not exist."""
    replies = [status_of(client.ask_of(Opcode.GET, "ada")) for client in clients]
    assert set(replies) <= {Status.SUCCESS, Status.KEY_NOT_FOUND, Status.NOT_MY_VBUCKET}
    return [reply != Status.NOT_MY_VBUCKET for reply in replies]


@pytest.fixture
def nodes() -> FakeNodes:
    """Return three nodes; the first has the vbucket ``ADA``."""
    cluster = FakeNodes()
    cluster.move([ADA], to=0)
    return cluster


# -- New clusters.


def test_vbuckets_are_spread_evenly() -> None:
    """Initially each vbucket has one node, and the vbuckets are spread evenly over all nodes."""
    nodes = FakeNodes(FakeNodeOptions(vbuckets=128, config_epoch=2, config_revision=5), nodes=3)
    shares = [nodes.vbuckets_of(index) for index in range(3)]

    assert [43, 43, 42] == [len(share) for share in shares]
    assert list(range(128)) == sorted(vbucket for share in shares for vbucket in share)
    assert ((2, 5), (0, 1, 2)) == (nodes.map.version, nodes.map.members)


def test_numbered_addresses() -> None:
    """Numbered nodes share one host. Their ports are two apart, so that a TLS port fits between two of them."""
    nodes = FakeNodes(FakeNodeOptions(host="h.test", port=12000, tls_port=12001), nodes=3)

    assert [(12000, 12001), (12002, 12003), (12004, 12005)] == [
        (node.options.port, node.options.tls_port) for node in nodes
    ]
    assert "couchbase://h.test:12000,h.test:12002,h.test:12004" == nodes.connection_string()
    assert "couchbases://h.test:12001,h.test:12003,h.test:12005" == nodes.connection_string(tls=True)
    assert "couchbase://127.0.0.1:12000,127.0.0.1:12002,127.0.0.1:12004" == nodes.connection_string(host="127.0.0.1")


def test_named_addresses() -> None:
    """Each named node has its own address; a node with the placeholder host is found under any host."""
    nodes = FakeNodes(nodes=(("a.test", 11210), ("::1", 11210), ("$HOST", 11211)))

    assert "couchbase://a.test:11210,[::1]:11210,127.0.0.1:11211" == nodes.connection_string()
    assert nodes.connection_string(tls=True) is None
    assert 3 == len(nodes)
    first, second, third = (NodePort(node, Service.KV) for node in nodes)

    assert [first, second, None] == [nodes.find(host, 11210) for host in ("a.test", "::1", "b.test")]
    assert third == nodes.find("anything", 11211)
    assert nodes.find("a.test", 11210, tls=True) is None


@rows(
    ("options", "number", "parameter"),
    [
        (5, 3, "options"),
        (None, 0, "nodes"),
        (None, NODES_MAX + 1, "nodes"),
        (None, True, "nodes"),
        (None, "ab", "nodes"),
        (None, (), "nodes"),
        (None, ["a:1"], "nodes"),
        (None, [("a", 1, 2)], "nodes"),
        (None, [("a", 1), ("a", 1)], "nodes"),
        (None, [("a", 0)], "port"),
        (FakeNodeOptions(port=12000, tls_port=12002), 2, "nodes"),
        (FakeNodeOptions(port=65535), 2, "port"),
    ],
)
def test_invalid_cluster_is_refused(options: Any, number: Any, parameter: str) -> None:
    """Invalid arguments raise InvalidArgumentException with the parameter's name."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        FakeNodes(options, number)

    assert parameter == caught.value.parameter


def test_nodes_share_their_documents(nodes: FakeNodes) -> None:
    """Nodes share documents and collections; each has its own faults and log."""
    nodes.documents.put("default", "ada", b"1")
    first, second, _ = ready_clients(nodes)
    collection_id = nodes.collections.create("inventory", "people")

    assert b"1" == first.ask_of(Opcode.GET, "ada").value
    assert nodes[1].documents.get("default", "ada") is not None
    assert collection_id in nodes[2].collections
    nodes[0].faults.next(None, delay(1.0))
    assert (1, 0) == (nodes[0].faults.pending, nodes[1].faults.pending)
    assert [Opcode.GET, Opcode.SELECT_BUCKET] == [client.node.command_log[-1].opcode for client in (first, second)]


def test_lone_node_is_a_cluster_of_one() -> None:
    """The cluster around a lone node changes that node; one node of several is refused."""
    node = FakeNode()
    nodes = FakeNodes.around(node)
    client = ready_client(node)
    nodes.move([ADA], to=None)

    assert [node] == list(nodes)
    assert [False] == served_by([client])
    assert (1, 2) == node.config_version
    with pytest.raises(errors.InvalidArgumentException):
        FakeNodes.around(FakeNodes()[0])


# -- Owners of vbuckets.


def test_each_node_serves_its_own_vbuckets(nodes: FakeNodes) -> None:
    """A node refuses other nodes' vbuckets with NOT_MY_VBUCKET and the current config."""
    clients = ready_clients(nodes)
    refused = clients[1].ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"1")
    config = as_json(refused.value)

    assert [True, False, False] == served_by(clients)
    assert Status.NOT_MY_VBUCKET == status_of(refused)
    assert not nodes[1].command_log[-1].applied
    assert config == config_at(clients[1])
    assert nodes.documents.get("default", "ada") is None


# -- Changes to the map.


def test_move(nodes: FakeNodes) -> None:
    """After a move only the new node serves the documents; an unassigned vbucket is served by no node."""
    clients = ready_clients(nodes)
    clients[0].ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"1")
    nodes.move([ADA], to=2)

    assert [False, False, True] == served_by(clients)
    assert b"1" == clients[2].ask_of(Opcode.GET, "ada").value
    nodes.move([ADA], to=None)
    assert [False, False, False] == served_by(clients)
    assert -1 == config_at(clients[0])["vBucketServerMap"]["vBucketMap"][ADA][0]


def test_removed_and_added_nodes(nodes: FakeNodes) -> None:
    """Removing a node moves its vbuckets to the other nodes; an added node gets vbuckets in a rebalance."""
    clients = ready_clients(nodes)
    before = nodes.map
    nodes.remove_node(0)
    after, after_removal = nodes.map.members, config_at(clients[0])
    shares = [len(nodes.vbuckets_of(index)) for index in range(3)]

    assert (1, 2) == after
    assert [0, 512, 512] == shares
    assert all(new == old for new, old in zip(nodes.map.owners, before.owners, strict=True) if old)
    assert 1 == sum(served_by(clients))
    assert [11212, 11214] == [node["services"]["kv"] for node in after_removal["nodesExt"]]
    nodes.add_node(0)
    assert (0, 1, 2) == nodes.map.members
    assert () == nodes.vbuckets_of(0)
    nodes.rebalance()
    assert [341, 341, 342] == sorted(len(nodes.vbuckets_of(index)) for index in range(3))


def test_failover(nodes: FakeNodes) -> None:
    """After a failover the vbuckets have no node until a rebalance, and their documents are kept."""
    clients = ready_clients(nodes)
    nodes.documents.put("default", "ada", b"1")
    lost = len(nodes.vbuckets_of(0))
    nodes.fail_over(0)

    assert [False, False, False] == served_by(clients)
    assert (1, 2) == nodes.map.members
    assert lost == sum(holders == [-1] for holders in config_at(clients[1])["vBucketServerMap"]["vBucketMap"])
    nodes.rebalance()
    assert -1 not in nodes.map.owners
    owner = nodes.owner_of("ada")
    assert owner is not None
    assert b"1" == clients[owner].ask_of(Opcode.GET, "ada").value


CHANGES: dict[str, Callable[[FakeNodes], None]] = {
    "move": lambda nodes: nodes.move([1, 2], to=1),
    "move nothing": lambda nodes: nodes.move([], to=1),
    "rebalance": lambda nodes: nodes.rebalance(),
    "remove_node": lambda nodes: nodes.remove_node(2),
    "fail_over": lambda nodes: nodes.fail_over(2),
    "set_config_revision": lambda nodes: nodes.set_config_revision(nodes.map.version.revision + 1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_each_change_makes_a_revision(nodes: FakeNodes, change: Callable[[FakeNodes], None]) -> None:
    """A change gives all nodes a config with the next revision, and each node notifies its subscribed clients."""
    clients = ready_clients(nodes, *BRIEF)
    epoch, revision = nodes.map.version
    before = nodes.wakeup
    change(nodes)
    due = nodes.wakeup
    notified = [client.take(client.node.time_passed(0.0)) for client in clients]

    assert (math.inf, -math.inf, math.inf) == (before, due, nodes.wakeup)
    assert (epoch, revision + 1) == nodes.map.version
    assert [[ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION]] * 3 == [
        [frame.opcode for frame in frames] for frames in notified
    ]
    assert {revision + 1} == {config_at(client)["rev"] for client in clients}


def test_several_changes_give_one_notification(nodes: FakeNodes) -> None:
    """After several changes, a client that is notified late gets only the newest config."""
    client = ready_clients(nodes, *BRIEF)[0]
    nodes.rebalance()
    nodes.rebalance()

    assert 1 == len(client.wait(1.0))
    assert [] == client.wait(2.0)


def test_one_node_may_change_all_versions(nodes: FakeNodes) -> None:
    """A version that is set at one node applies to all; clients of this node are notified immediately, others later."""
    first, second, _ = ready_clients(nodes, *BRIEF)
    notified = first.take(nodes[0].set_config_revision(9, 0.0, epoch=4))

    assert 1 == len(notified)
    assert (4, 9) == nodes.map.version == nodes[1].config_version
    assert 1 == len(second.wait(0.0))


@rows(
    ("change", "parameter"),
    [
        (lambda nodes: nodes.move([1024], to=1), "vbuckets"),
        (lambda nodes: nodes.move([-1], to=1), "vbuckets"),
        (lambda nodes: nodes.move([1], to=3), "to"),
        (lambda nodes: nodes.move([1], to=2), "to"),
        (lambda nodes: nodes.add_node(0), "index"),
        (lambda nodes: nodes.add_node(3), "index"),
        (lambda nodes: nodes.remove_node(2), "index"),
        (lambda nodes: nodes.remove_node(-1), "index"),
        (lambda nodes: nodes.fail_over(2), "index"),
        (lambda nodes: nodes.kill(3), "index"),
        (lambda nodes: nodes.revive(3), "index"),
        (lambda nodes: nodes.hold_config(3), "index"),
        (lambda nodes: nodes.release_config(3), "index"),
        (lambda nodes: nodes.vbuckets_of(3), "index"),
        (lambda nodes: nodes.cut_off(3), "index"),
        (lambda nodes: nodes.rejoin(3), "index"),
        (lambda nodes: nodes.slow_down(3, 0.1), "index"),
        (lambda nodes: nodes.learn_late(3, 0.1), "index"),
        (lambda nodes: nodes.learn_late(1, -1.0), "seconds"),
        (lambda nodes: nodes.hold_replication(3), "index"),
        (lambda nodes: nodes.release_replication(3), "index"),
        (lambda nodes: nodes.announce_move([1024], to=1), "vbuckets"),
        (lambda nodes: nodes.announce_move([1], to=2), "to"),
        (lambda nodes: nodes.set_credentials(password=7), "password"),
        (lambda nodes: nodes.set_credentials(tokens="a.b.c"), "tokens"),
        (lambda nodes: nodes.set_credentials(tokens=["no token"]), "tokens"),
        (lambda nodes: nodes.set_config_revision(0), "revision"),
        (lambda nodes: nodes.set_config_revision(1, epoch=0), "epoch"),
    ],
)
def test_invalid_change_is_refused(change: Callable[[FakeNodes], object], parameter: str) -> None:
    """An invalid change raises InvalidArgumentException with the parameter's name and changes nothing."""
    nodes = FakeNodes(FakeNodeOptions(vbuckets=128))
    nodes.remove_node(2)
    before = nodes.map, [node.options for node in nodes]

    with pytest.raises(errors.InvalidArgumentException) as caught:
        change(nodes)

    assert parameter == caught.value.parameter
    assert before == (nodes.map, [node.options for node in nodes])


@pytest.mark.parametrize("leave", [FakeNodes.remove_node, FakeNodes.fail_over])
def test_the_last_node_stays(leave: Callable[[FakeNodes, int], None]) -> None:
    """Removing or failing over the last node of a cluster raises InvalidArgumentException."""
    nodes = FakeNodes(nodes=2)
    leave(nodes, 0)

    with pytest.raises(errors.InvalidArgumentException, match="node 1 "):
        leave(nodes, 1)


# -- Changes to one node.


def test_killed_node(nodes: FakeNodes) -> None:
    """A killed node closes its connections without pending replies and refuses new ones; the map stays."""
    clients = ready_clients(nodes)
    before = nodes.map
    nodes[0].faults.next(Opcode.GET, delay(5.0))
    clients[0].send(clients[0].encode_of(Opcode.GET, "ada"))
    nodes.kill(0)

    assert -math.inf == nodes[0].wakeup
    assert [HangUp(1)] == list(nodes[0].time_passed(1.0))
    assert math.inf == nodes[0].wakeup
    assert [0, 1, 1] == [node.connections for node in nodes]
    assert [False, True, True] == [node.accepts(1.0) for node in nodes]
    assert before is nodes.map
    assert [] == list(nodes[0].bytes_received(1, clients[0].encode_of(Opcode.GET, "ada"), 1.0))
    nodes.revive(0)
    assert nodes[0].accepts(1.0)


def test_connections_of_a_killed_node(nodes: FakeNodes) -> None:
    """A killed node closes connections that are opened later. A revived node also closes those from before."""
    ready_clients(nodes)
    for node in (0, 1, 2):
        nodes.kill(node)
    nodes[0].connection_lost(1, 0.0)
    nodes.revive(2)

    assert (math.inf, []) == (nodes[0].wakeup, list(nodes[0].time_passed(0.0)))
    assert [HangUp(2), HangUp(9)] == [*nodes[1].time_passed(0.0), *nodes[1].connection_opened(9, 0.0)]
    assert [] == list(nodes[1].bytes_received(9, b"\x80", 0.0))
    assert [HangUp(3)] == list(nodes[2].bytes_received(3, b"\x80", 0.0))


def test_node_with_a_stale_map(nodes: FakeNodes) -> None:
    """A node with a frozen map sends the old config, serves its old vbuckets and notifies no client until released."""
    clients = ready_clients(nodes, *BRIEF)
    old = nodes.map.version
    nodes.hold_config(0)
    nodes.move([ADA], to=2)
    notified = [len(client.wait(0.0)) for client in clients]

    assert [0, 1, 1] == notified
    assert [True, False, True] == served_by(clients)
    assert (old.revision, old) == (config_at(clients[0])["rev"], nodes[0].config_version)
    nodes.release_config(0)
    assert 1 == len(clients[0].wait(0.0))
    assert [False, False, True] == served_by(clients)
    nodes.release_config(0)
    assert math.inf == nodes.wakeup


# -- Interface for a driver.


def test_alarm(nodes: FakeNodes) -> None:
    """Until the alarm is removed, the nodes call it for each change that a test makes between the driver's calls."""
    rung: list[float] = []
    ready_clients(nodes)
    nodes.set_alarm(lambda: rung.append(nodes.wakeup))
    nodes.rebalance()
    for node in nodes:
        node.time_passed(0.0)
    nodes.kill(1)
    nodes[1].time_passed(0.0)
    nodes.hold_config(2)
    nodes.rebalance()
    for node in nodes:
        node.time_passed(0.0)
    nodes.release_config(2)
    nodes.set_alarm(None)
    nodes.rebalance()

    assert [-math.inf] * 4 == rung


# -- Addresses, announced moves and credentials.


@pytest.mark.parametrize("named", [2, [("a.example", 1), ("b.example", 1)]], ids=["numbered", "named"])
def test_alternate_addresses(named: Any) -> None:
    """Each node is found by its own alternate address; a change of addresses makes a config with the next revision."""
    nodes = FakeNodes(FakeNodeOptions(alternate_addresses={"external": ("ext.example", 31210)}), nodes=named)

    first, second = (NodePort(node, Service.KV) for node in nodes)

    assert [first, second, None] == [nodes.find("ext.example", port) for port in (31210, 31212, 31214)]
    assert NodePort(nodes[1], Service.QUERY) == nodes.find("ext.example", nodes[1].options.service_ports[Service.QUERY])

    nodes.set_alternate_addresses(1, {})

    assert nodes.find("ext.example", 31212) is None
    assert 2 == nodes.map.version.revision


def test_duplicate_alternate_addresses() -> None:
    """An alternate address that equals a node's own is rejected, because a client could not identify the node."""
    options = FakeNodeOptions(port=11210, alternate_addresses={"external": ("127.0.0.1", 11210)})
    with pytest.raises(errors.InvalidArgumentException, match="port 11210 of 127.0.0.1"):
        FakeNodes(options, nodes=1)


def test_announced_move() -> None:
    """Configs list the next nodes until the map changes; the current nodes of the vbuckets stay."""
    nodes = FakeNodes(nodes=2)
    nodes.announce_move([0, 2], to=1)

    assert (1, 1, 1, 1, 0) == nodes.map.forward[:5]
    assert (0, 1, 0, 1, 0) == nodes.map.owners[:5]
    assert 2 == nodes.map.version.revision

    nodes.move([0, 2], to=1)

    assert () == nodes.map.forward


def test_credentials_change_for_all_nodes() -> None:
    """A new password or new tokens apply to all nodes, and the other setting stays."""
    nodes = FakeNodes(FakeNodeOptions(password="old", tokens=("a.b.c",)), 2)
    nodes.set_credentials(password="new")

    assert [("new", ("a.b.c",))] * 2 == [(node.options.password, node.options.tokens) for node in nodes]

    nodes.set_credentials(tokens=["d.e.f"])

    assert [("new", ("d.e.f",))] * 2 == [(node.options.password, node.options.tokens) for node in nodes]
