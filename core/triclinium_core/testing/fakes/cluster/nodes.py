"""Several fake nodes with one map: a cluster without a network.

Theory of operation. The nodes share documents, collections and the map, and each answers only for the vbuckets that
the map gives it; to any other request on a document it says that the vbucket is not its own, with the newest config.
A change of the map takes effect at once, and makes a config of the next revision. The clients that asked for it are
notified when their node is driven next: its ``wakeup`` says that it is due. A driver that sleeps is woken by the alarm
that it has set. All nodes are driven by one clock, and the numbers of connections are unique in the cluster.

Documents belong to the cluster: whatever becomes of a node, the vbuckets that another one takes over bring theirs
along. So replicas are never behind, unless replication to their node is held back; readers there find what was
written before. If that node then takes over from one that is failed over, what was written since is lost. The vbuckets
of a node that fails have no node where they have no replica, until the cluster is rebalanced.

A durable write is seen and acknowledged when most copies of its vbucket have it: at once, unless replicas are dead or
replication to them is held back. What was acknowledged outlives the failover of any one node.

A node is named by its place, whether it is in the cluster or not.

Example::

    nodes = FakeNodes(FakeNodeOptions(buckets=("travel",), replicas=1), nodes=3)
    nodes.move(range(64), to=2)
    nodes.kill(0)  # its clients lose their connections
    nodes.fail_over(0)  # the others have its vbuckets, and answer a config without it
    nodes.rebalance()  # and all vbuckets have a replica again
    nodes[1].faults.next(Opcode.GET, drop_response())
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration, check_integer, check_type
from triclinium_core.kv.address import Address
from triclinium_core.options import SECONDS_MAX
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import total_repr
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.options import FakeNodeOptions, placed
from triclinium_core.testing.fakes.services.script import FakeScript
from triclinium_core.testing.fakes.services.statements.indexes import FakeIndexes
from triclinium_core.testing.fakes.services.statements.plans import FakePlans
from triclinium_core.testing.fakes.store import cluster_map
from triclinium_core.testing.fakes.store.cluster_map import failed_over
from triclinium_core.testing.fakes.store.collections import FakeCollections
from triclinium_core.testing.fakes.store.config import HOST_PLACEHOLDER
from triclinium_core.testing.fakes.store.documents import FakeDocuments, vbucket_of
from triclinium_core.testing.fakes.store.state import ClusterStore


class NodePort(NamedTuple):
    """One port of a cluster."""

    node: FakeNode
    service: Service


class FakeNodes:
    """All nodes of a cluster; ``nodes[0]`` is the first, ``len(nodes)`` how many there are.

    ``documents`` is what they store, in ``collections``; ``script`` has what services answer because a test says so, and
    ``plans`` the statements that were prepared, ``indexes`` those for queries. Every method raises InvalidArgumentException for a node, a vbucket
    or a value that it cannot take.

    Args:
        options: of every node; the first stands under their host and ports.
        nodes: how many there are, with the ports of the others two apart; or host and port of each.

    Raises:
        InvalidArgumentException: a number or an address that no node can have, or one that two would have.
    """

    node_type: ClassVar[type[FakeNode]] = FakeNode
    """What its nodes are: a derived cluster may have others."""

    def __init__(self, options: FakeNodeOptions | None = None, nodes: int | Sequence[tuple[str, int]] = 3) -> None:
        options = FakeNodeOptions() if options is None else options
        check_type(options, "options", FakeNodeOptions)
        places = placed(options, nodes)
        cluster = ClusterStore(places)
        self._begin(cluster, [self.node_type.in_cluster(cluster, index) for index in range(len(places))])

    @classmethod
    def around(cls, node: FakeNode) -> FakeNodes:
        """Return the cluster of a node that is alone in it.

        Raises:
            InvalidArgumentException: it is one of several.
        """
        if len(node.cluster.nodes) != 1:
            raise errors.InvalidArgumentException(
                "node is one of several; give its FakeNodes instead", parameter="node"
            )
        nodes = cls.__new__(cls)
        nodes._begin(node.cluster, [node])
        return nodes

    def _begin(self, cluster: ClusterStore, nodes: Sequence[FakeNode]) -> None:
        self._cluster = cluster
        self._nodes = tuple(nodes)
        self.documents: FakeDocuments = cluster.documents
        self.collections: FakeCollections = cluster.collections
        self.script: FakeScript = cluster.services.script
        self.plans: FakePlans = cluster.services.plans
        self.indexes: FakeIndexes = cluster.services.indexes

    @total_repr
    def __repr__(self) -> str:
        return f"<FakeNodes {', '.join(map(repr, self._nodes))}>"

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, index: int) -> FakeNode:
        return self._nodes[index]

    def __iter__(self) -> Iterator[FakeNode]:
        return iter(self._nodes)

    # How things are.

    @property
    def map(self) -> cluster_map.FakeMap:
        """The newest map: its version, the nodes that are in, and the nodes of each vbucket and of its replicas."""
        return self._cluster.map

    @property
    def wakeup(self) -> float:
        """When the first of the nodes has something to do."""
        return min(node.wakeup for node in self._nodes)

    def owner_of(self, key: str | bytes) -> int | None:
        """Return the node that has the vbucket of a key; None where no node has it."""
        owner = self.map.owners[self._vbucket_of(key)]
        return None if owner == cluster_map.NO_NODE else owner

    def vbuckets_of(self, index: int) -> tuple[int, ...]:
        """Return the vbuckets that a node has; its replicas of others do not count."""
        self._check(index)
        return tuple(vbucket for vbucket, owner in enumerate(self.map.owners) if owner == index)

    def replica_holders_of(self, key: str | bytes) -> tuple[int, ...]:
        """Return the nodes that have a replica of the vbucket of a key, the first replica's first."""
        return self.map.replica_holders(self._vbucket_of(key))

    def find(self, host: str, port: int, *, tls: bool = False) -> NodePort | None:
        """Return which node, and which service of it, a client reaches at an address; None where there is none."""
        for node in self._nodes:
            options = node.options
            service = options.service_at(port, tls=tls)
            if service is not None and options.host in (host, HOST_PLACEHOLDER):
                return NodePort(node, service)
            if (host, port) in options.alternate_addresses.values():
                return NodePort(node, Service.KV)
            if host in [other for other, _ in options.alternate_addresses.values()] and service not in (
                None,
                Service.KV,
            ):
                return NodePort(node, service)
        return None

    def connection_string(self, *, host: str | None = None, tls: bool = False) -> str | None:
        """Return how a client finds all nodes; None for TLS without a port for it.

        Args:
            host: at which all of them are reached; their own unless given.
        """
        addresses = []
        for node in self._nodes:
            port = node.options.tls_port if tls else node.options.port
            if port is None:
                return None
            own = "127.0.0.1" if node.options.host == HOST_PLACEHOLDER else node.options.host
            addresses.append(str(Address(own if host is None else host, port)))
        return f"couchbase{'s' if tls else ''}://{','.join(addresses)}"

    # What changes the map.

    def move(self, vbuckets: Iterable[int], to: int | None) -> None:
        """Give vbuckets to a node that is in; None leaves them without.

        Where that node had a replica, the former node has it instead.
        """
        owner = cluster_map.NO_NODE if to is None else self._check_member(to, "to")
        last = len(self.map.owners) - 1
        checked = [check_integer(vbucket, "vbuckets", 0, last) for vbucket in vbuckets]
        self._publish(self.map.members, *cluster_map.moved(self.map, checked, owner))

    def rebalance(self) -> None:
        """Spread the vbuckets evenly over the nodes that are in, and their replicas over the others.

        No more vbuckets move than have to; the replicas are dealt anew.
        """
        self._publish_dealt(self.map.members, cluster_map.levelled(self.map.owners, self.map.members))

    def add_node(self, index: int) -> None:
        """Take a node in; it has no vbucket before some are moved to it, and no replica before a rebalance."""
        if self._check(index) in self.map.members:
            raise errors.InvalidArgumentException(f"node {index} is in already", parameter="index")
        self._publish(sorted([*self.map.members, index]), self.map.owners, self.map.replicas)

    def remove_node(self, index: int) -> None:
        """Take a node out; the others get its vbuckets, and those that have no node. Replicas are dealt anew.

        It goes on answering that no vbucket is its own.
        """
        members = self._others(index)
        self._publish_dealt(members, cluster_map.dealt(self.map.owners, members))

    def fail_over(self, index: int) -> None:
        """Take a node out, alive or not: the first replica of each of its vbuckets takes over.

        Without a replica a vbucket has no node then. A replica that replication reaches goes before one that it does
        not; if there is none, all that was written since replication was held back is lost. No replica is made instead
        before a rebalance.
        """
        members = self._others(index)
        held = self._cluster.held_replicas
        progress = {node: self.documents.progress_of(snapshot) for node, snapshot in held.items()}
        owners, replicas = failed_over(
            self.map, index, lambda node, vbucket: progress[node].get(vbucket, 0) if node in progress else math.inf
        )
        self._cluster.sync_writes.lose(index, owners)
        for heir, snapshot in held.items():
            inherited = {vbucket for vbucket in self.vbuckets_of(index) if owners[vbucket] == heir}
            self.documents.roll_back(snapshot, inherited)
        self._publish(members, owners, replicas)

    def announce_move(self, vbuckets: Iterable[int], to: int) -> None:
        """Name a node that vbuckets are to be moved to, as configs do while a rebalance is under way.

        They stay where they are until ``move``; with the next change of the map the announcement is over.
        """
        forward = list(self.map.owners)
        for vbucket in vbuckets:
            forward[check_integer(vbucket, "vbuckets", 0, len(forward) - 1)] = self._check_member(to, "to")
        present = self.map.followed_by(self.map.members, self.map.owners, self.map.replicas)
        self._cluster.take_map(replace(present, forward=tuple(forward)))

    def set_alternate_addresses(self, index: int, addresses: Mapping[str, tuple[str, int]]) -> None:
        """Have a node stand in configs with these addresses in other networks, instead of those that it had."""
        self._cluster.nodes[index] = replace(self._nodes[self._check(index)].options, alternate_addresses=addresses)
        self._publish(self.map.members, self.map.owners, self.map.replicas)

    def set_config_revision(self, revision: int, *, epoch: int | None = None) -> None:
        """Give all configs another version."""
        self._cluster.set_version(revision, epoch)

    # Credentials.

    def set_credentials(self, *, password: str | None = None, tokens: Sequence[str] | None = None) -> None:
        """Have all nodes know another password, or accept other tokens; None leaves them as they are.

        Connections that are authenticated stay so.
        """
        changes: dict[str, Any] = {} if password is None else {"password": password}
        if tokens is not None:
            changes["tokens"] = tuple(tokens) if not isinstance(tokens, str) else tokens
        self._cluster.nodes[:] = [replace(options, **changes) for options in self._cluster.nodes]

    # Services.

    def set_services(self, index: int, services: Collection[Service]) -> None:
        """Have a node offer these services, on the ports that it has for them, and no others.

        Clients of those that it had lose their connections, and no new ones are made.
        """
        self._nodes[self._check(index)].set_services(services)
        self._publish(self.map.members, self.map.owners, self.map.replicas)

    # What happens to one node.

    def kill(self, index: int) -> None:
        """Have a node hang up on all clients and let nobody connect; the map does not change by itself."""
        self._nodes[self._check(index)].kill()

    def revive(self, index: int) -> None:
        """Have a node that was killed let clients connect again."""
        self._nodes[self._check(index)].revive()

    def hold_config(self, index: int) -> None:
        """Have a node keep to the map as it is: it answers that config and for those vbuckets."""
        self._nodes[self._check(index)].hold_config()

    def release_config(self, index: int) -> None:
        """Have a node follow the newest map again."""
        self._nodes[self._check(index)].release_config()

    def hold_replication(self, index: int) -> None:
        """Keep what is written from now on out of the replicas that a node has.

        Readers find the documents as they were now, or when the node got the replica, if that is later. What is
        held back already stays as it is.
        """
        self._cluster.held_replicas.setdefault(self._check(index), self.documents.snapshot())

    def release_replication(self, index: int) -> None:
        """Have the replicas that a node has catch up at once, and follow what is written."""
        self._cluster.held_replicas.pop(self._check(index), None)
        self._cluster.ring()

    def partition(self, index: int, connections: Iterable[int] | None = None) -> None:
        """Have nothing move between a node and its clients, until ``heal``: nothing is lost, nothing is refused.

        Args:
            connections: the numbers of those that are cut, as the command log has them; all unless given.
        """
        self._nodes[self._check(index)].network.cut(connections)

    def heal(self, index: int) -> None:
        """Have clients reach a node again; what was held back arrives now."""
        self._nodes[self._check(index)].network.heal()
        self._cluster.ring()

    def slow_down(self, index: int, seconds: Duration) -> None:
        """Have a node send every reply so much later; 0 for as fast as ever."""
        self._nodes[self._check(index)].network.slow_down(seconds)

    def learn_late(self, index: int, seconds: Duration) -> None:
        """Have key-value on a node hear of new buckets, and of changes of scopes and collections, so much later.

        The cluster manager and the other nodes know of them at once. 0 is for as soon as ever, also of what is late
        already. Finds a client that takes what was made for usable because one node knows it.
        """
        self._cluster.buckets.lateness.set(self._check(index), check_duration(seconds, "seconds", most=SECONDS_MAX))

    # What a driver needs.

    @property
    def now(self) -> float:
        """The time of the last event."""
        return self.documents.now

    def set_alarm(self, alarm: Callable[[], None] | None) -> None:
        """Have ``alarm`` called when a node has something to do at once and nobody is driving it; None for no more."""
        self._cluster.alarm = alarm

    def _vbucket_of(self, key: str | bytes) -> int:
        return vbucket_of(key.encode() if isinstance(key, str) else key, len(self.map.owners))

    def _publish(self, members: Sequence[int], owners: Sequence[int], replicas: Sequence[Sequence[int]]) -> None:
        self._cluster.take_map(self.map.followed_by(members, owners, replicas))

    def _publish_dealt(self, members: Sequence[int], owners: Sequence[int]) -> None:
        self._publish(members, owners, cluster_map.dealt_replicas(owners, members, len(self.map.replicas)))

    def _check(self, index: int) -> int:
        return check_integer(index, "index", 0, len(self._nodes) - 1)

    def _check_member(self, index: int, parameter: str) -> int:
        if check_integer(index, parameter, 0, len(self._nodes) - 1) not in self.map.members:
            raise errors.InvalidArgumentException(f"node {index} is not in; add it first", parameter=parameter)
        return index

    def _others(self, index: int) -> list[int]:
        others = [member for member in self.map.members if member != self._check_member(index, "index")]
        if not others:
            raise errors.InvalidArgumentException(f"node {index} is the only one that is in", parameter="index")
        return others
