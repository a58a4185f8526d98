"""Several fake nodes with one map: a cluster without a network.

Theory of operation. The nodes share documents, collections and the map, and each serves only the vbuckets that the map
assigns to it; it answers any other request on a document with NOT_MY_VBUCKET and its config. A change to the map
takes effect immediately and creates a config of the next revision. The clients that subscribed are notified when their
node is next driven: its ``wakeup`` is then ``-inf``. The alarm wakes a driver that sleeps. All nodes are driven by one
clock, and connection numbers are unique in the cluster.

Documents belong to the cluster: when a node takes over vbuckets, it gets their documents, regardless of the state of
the former node. So replicas are never behind, unless replication to their node is held back: then reads from them find
older documents, and if that node takes over in a failover, all later writes are lost. If a vbucket of a failed node has
no replica, no node has it until ``move``, ``rebalance`` or ``remove_node`` assigns it.

A durable write becomes visible and is acknowledged when the majority of the copies of its vbucket have it: immediately,
unless too many replicas are dead or held back. Once acknowledged, it survives the failover of one node.

A node is identified by its index, whether it is in the cluster or not.

Commands such as ``kill`` take effect immediately, or when ``after_requests`` and ``at_seconds`` are met; some end
``for_seconds`` later. The newest command that has started wins: it cancels the end of an earlier one that changed the
same property of the node. A command that is impossible when it is due has no effect; ``changes`` has the reason.

Example::

    nodes = FakeNodes(FakeNodeOptions(buckets=("travel",), replicas=1), nodes=3)
    nodes.move(range(64), to=2)
    nodes.restart(1, at_seconds=5, for_seconds=2)  # its clients lose their connections; it returns after two seconds
    nodes.kill(0)
    nodes.fail_over(0)  # the others have its vbuckets, and send a config without it
    nodes.rebalance()  # and all vbuckets have a replica again
    nodes[1].faults.next(Opcode.GET, drop_response())
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Unpack

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration, check_flag, check_integer, check_random, check_type
from triclinium_core.kv.address import Address
from triclinium_core.options import SECONDS_MAX
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import total_repr
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.fault_conditions import SpanConditions, StartConditions, check_conditions
from triclinium_core.testing.fakes.options import FakeNodeOptions, placed
from triclinium_core.testing.fakes.schedule import Change, LoggedChange, Schedule
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
    """All nodes of a cluster; ``nodes[0]`` is the first, ``len(nodes)`` their number.

    ``documents`` holds the stored documents, ``collections`` the scopes and collections of the initial buckets,
    ``script`` the scripted responses of services, ``plans`` the prepared statements, and ``indexes`` the query indexes.
    The methods raise InvalidArgumentException for an invalid node, vbucket or value; ``nodes[index]`` raises
    IndexError.

    Args:
        options: options of every node; the first node uses their host and ports. Default: ``FakeNodeOptions()``.
        nodes: number of nodes, whose KV ports are two apart, or the host and KV port of each. Default: 3.
        rng: source of randomness for faults with a probability. Default: None, which permits no such faults.

    Raises:
        InvalidArgumentException: an argument is invalid, or two nodes have the same address.
    """

    node_type: ClassVar[type[FakeNode]] = FakeNode
    """Class of the nodes; a subclass may use another."""

    def __init__(
        self,
        options: FakeNodeOptions | None = None,
        nodes: int | Sequence[tuple[str, int]] = 3,
        *,
        rng: Random | None = None,
    ) -> None:
        options = FakeNodeOptions() if options is None else options
        check_type(options, "options", FakeNodeOptions)
        places = placed(options, nodes)
        cluster = ClusterStore(places, None if rng is None else check_random(rng))
        self._begin(cluster, [self.node_type.in_cluster(cluster, index) for index in range(len(places))])

    @classmethod
    def around(cls, node: FakeNode) -> FakeNodes:
        """Return the cluster of a node that is the only node of its cluster.

        Raises:
            InvalidArgumentException: the node is one of several.
        """
        if len(node.cluster.nodes) != 1:
            raise errors.InvalidArgumentException("node belongs to a FakeNodes; pass that instead", parameter="node")
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

    # State of the cluster.

    @property
    def map(self) -> cluster_map.FakeMap:
        """Newest map: its version, the member nodes, and the nodes of each vbucket and its replicas."""
        return self._cluster.map

    @property
    def wakeup(self) -> float:
        """Earliest ``wakeup`` of a node."""
        return min(node.wakeup for node in self._nodes)

    def owner_of(self, key: str | bytes) -> int | None:
        """Return the node that has the vbucket of a key; None if no node has it."""
        owner = self.map.owners[self._vbucket_of(key)]
        return None if owner == cluster_map.NO_NODE else owner

    def vbuckets_of(self, index: int) -> tuple[int, ...]:
        """Return the active vbuckets of a node, without replicas."""
        self._check(index)
        return tuple(vbucket for vbucket, owner in enumerate(self.map.owners) if owner == index)

    def replica_holders_of(self, key: str | bytes) -> tuple[int, ...]:
        """Return the nodes that have a replica of the vbucket of a key, in replica order."""
        return self.map.replica_holders(self._vbucket_of(key))

    def find(self, host: str, port: int, *, tls: bool = False) -> NodePort | None:
        """Return the node and service that a client reaches at an address, or None if no node has the address."""
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
        """Return the connection string of all nodes; None if ``tls`` is set and a node has no port for TLS.

        Args:
            host: host at which all nodes are reached. Default: the host of each node, or 127.0.0.1 for ``$HOST``.
        """
        addresses = []
        for node in self._nodes:
            port = node.options.tls_port if tls else node.options.port
            if port is None:
                return None
            own = "127.0.0.1" if node.options.host == HOST_PLACEHOLDER else node.options.host
            addresses.append(str(Address(own if host is None else host, port)))
        return f"couchbase{'s' if tls else ''}://{','.join(addresses)}"

    # Changes to the map.

    def move(self, vbuckets: Iterable[int], to: int | None) -> None:
        """Assign vbuckets to a member node; None leaves them unassigned.

        If the target node had a replica of a vbucket, the former node gets that replica.
        """
        owner = cluster_map.NO_NODE if to is None else self._check_member(to, "to")
        last = len(self.map.owners) - 1
        checked = [check_integer(vbucket, "vbuckets", 0, last) for vbucket in vbuckets]
        self._publish(self.map.members, *cluster_map.moved(self.map, checked, owner))

    def rebalance(self, **when: Unpack[StartConditions]) -> None:
        """Spread the vbuckets evenly over the member nodes, and the replicas of each vbucket over the other members.

        Move no more vbuckets than necessary, and reassign the replicas.
        """
        self._perform(Change("rebalance", "map", None, self._rebalance), when)

    def _rebalance(self) -> None:
        self._publish_dealt(self.map.members, cluster_map.levelled(self.map.owners, self.map.members))

    def add_node(self, index: int, **when: Unpack[StartConditions]) -> None:
        """Add a node to the cluster. A later command, such as ``rebalance``, assigns vbuckets and replicas to it."""
        self._perform(Change("add_node", "map", self._check(index), lambda: self._add_node(index)), when)

    def _add_node(self, index: int) -> None:
        if index in self.map.members:
            raise errors.InvalidArgumentException(f"node {index} is already in the cluster", parameter="index")
        self._publish(sorted([*self.map.members, index]), self.map.owners, self.map.replicas)

    def remove_node(self, index: int, **when: Unpack[StartConditions]) -> None:
        """Remove a node. The other members get its vbuckets and the unassigned vbuckets. Replicas are reassigned.

        The removed node still runs, and answers every request on a document with NOT_MY_VBUCKET.
        """
        self._perform(Change("remove_node", "map", self._check(index), lambda: self._remove_node(index)), when)

    def _remove_node(self, index: int) -> None:
        members = self._others(index)
        self._publish_dealt(members, cluster_map.dealt(self.map.owners, members))

    def fail_over(self, index: int, **when: Unpack[StartConditions]) -> None:
        """Fail a node over, alive or not: the first replica of each of its vbuckets takes over.

        A vbucket without a replica becomes unassigned. A replica that replication reaches takes precedence over a
        held-back replica. If only held-back replicas exist, all writes since replication was held back are lost. Each
        of the vbuckets begins a new history, with a new UUID. No replacement replica is created until ``rebalance`` or
        ``remove_node``.
        """
        self._perform(Change("fail_over", "map", self._check(index), lambda: self._fail_over(index)), when)

    def _fail_over(self, index: int) -> None:
        members = self._others(index)
        self._publish(members, *self._promoted(index))

    def _promoted(self, index: int) -> tuple[list[int], list[list[int]]]:
        """Let replicas take over from a node. Return the owners and replicas of the next map."""
        held = self._cluster.held_replicas
        progress = {node: self.documents.progress_of(snapshot) for node, snapshot in held.items()}
        owners, replicas = failed_over(
            self.map, index, lambda node, vbucket: progress[node].get(vbucket, 0) if node in progress else math.inf
        )
        self._cluster.sync_writes.lose(index, owners)
        for heir, snapshot in held.items():
            inherited = {vbucket for vbucket in self.vbuckets_of(index) if owners[vbucket] == heir}
            self.documents.roll_back(snapshot, inherited)
        self.documents.histories.begin(set(self.vbuckets_of(index)))
        return owners, replicas

    def announce_move(self, vbuckets: Iterable[int], to: int) -> None:
        """Announce the target node of vbuckets, as configs do during a rebalance.

        The vbuckets stay where they are until ``move``; the next change to the map ends the announcement.
        """
        forward = list(self.map.owners)
        for vbucket in vbuckets:
            forward[check_integer(vbucket, "vbuckets", 0, len(forward) - 1)] = self._check_member(to, "to")
        present = self.map.followed_by(self.map.members, self.map.owners, self.map.replicas)
        self._cluster.take_map(replace(present, forward=tuple(forward)))

    def set_alternate_addresses(self, index: int, addresses: Mapping[str, tuple[str, int]]) -> None:
        """Replace the alternate addresses of a node in other networks, and publish a config with them."""
        self._cluster.nodes[index] = replace(self._nodes[self._check(index)].options, alternate_addresses=addresses)
        self._publish(self.map.members, self.map.owners, self.map.replicas)

    def set_config_revision(self, revision: int, *, epoch: int | None = None) -> None:
        """Set the version of all configs."""
        self._cluster.set_version(revision, epoch)

    # Credentials.

    def set_credentials(self, *, password: str | None = None, tokens: Sequence[str] | None = None) -> None:
        """Change the password of all nodes, the accepted tokens, or both; None keeps the current value.

        Authenticated connections stay authenticated.
        """
        changes: dict[str, Any] = {} if password is None else {"password": password}
        if tokens is not None:
            changes["tokens"] = tuple(tokens) if not isinstance(tokens, str) else tokens
        self._cluster.nodes[:] = [replace(options, **changes) for options in self._cluster.nodes]

    # Services.

    def set_services(self, index: int, services: Collection[Service]) -> None:
        """Offer exactly these services on a node, at its ports for them.

        Clients of removed services lose their connections and cannot reconnect.
        """
        self._nodes[self._check(index)].set_services(services)
        self._publish(self.map.members, self.map.owners, self.map.replicas)

    # Changes to one node.

    def kill(self, index: int, **when: Unpack[SpanConditions]) -> None:
        """Close all client connections of a node, which then accepts none; the map does not change.

        With ``for_seconds``, clients can connect again after that time.
        """
        node = self._nodes[self._check(index)]
        self._perform(Change("kill", "life", index, node.kill, node.revive), when)

    def revive(self, index: int, **when: Unpack[StartConditions]) -> None:
        """Let clients connect to a killed node again."""
        self._perform(Change("revive", "life", index, self._nodes[self._check(index)].revive), when)

    def restart(self, index: int, *, keep_data: bool = True, **when: Unpack[SpanConditions]) -> None:
        """Kill a node and revive it, immediately or, with ``for_seconds``, after that time.

        Its clients lose their connections, its range scans end, and its locks are released.

        Args:
            index: the node.
            keep_data: whether the node still has its data, as with a disk. Without its data, as in an ephemeral bucket,
                the first replica of each of its vbuckets takes over, and the node keeps none of these vbuckets; a
                vbucket without a replica is empty and stays on the node.
            when: ``after_requests``, ``at_seconds`` and ``for_seconds``.

        Source: kv_engine, the lock of a document is not stored on disk; ns_server src/auto_reprovision.erl.
        """
        node = self._nodes[self._check(index)]
        check_flag(keep_data, "keep_data")
        stays_down = "for_seconds" in when

        def begin() -> None:
            node.kill()
            self.documents.release_locks(set(self.vbuckets_of(index)))
            if not keep_data:
                self._lose_data(index)
            if not stays_down:
                node.revive()

        self._perform(Change("restart", "life", index, begin, node.revive), when)

    def _lose_data(self, index: int) -> None:
        own, known = set(self.vbuckets_of(index)), self.map
        owners, replicas = self._promoted(index)
        for vbucket in range(len(owners)):
            if vbucket in own:
                continue
            # The replicas on the node are copied again, which takes no time.
            owners[vbucket] = known.owners[vbucket]
            for row, holders in zip(replicas, known.replicas, strict=True):
                row[vbucket] = holders[vbucket]
        lost = {vbucket for vbucket in own if owners[vbucket] == cluster_map.NO_NODE}
        self.documents.roll_back({}, lost)
        for vbucket in lost:
            owners[vbucket] = index
        if index in self._cluster.held_replicas:
            self._cluster.held_replicas[index] = self.documents.snapshot()
        self._publish(known.members, owners, replicas)

    def hold_config(self, index: int, **when: Unpack[SpanConditions]) -> None:
        """Freeze the map of a node, which keeps sending its config and serving its vbuckets."""
        node = self._nodes[self._check(index)]
        self._perform(Change("hold_config", "config", index, node.hold_config, node.release_config), when)

    def release_config(self, index: int, **when: Unpack[StartConditions]) -> None:
        """Let a node use the newest map again."""
        self._perform(Change("release_config", "config", index, self._nodes[self._check(index)].release_config), when)

    def hold_replication(self, index: int, **when: Unpack[SpanConditions]) -> None:
        """Hold back later writes from the replicas on a node.

        Reads from a replica find the documents as of this call, or as of the time when the node got the replica, if
        that is later. While replication is held back, a further call leaves the replicas as they are.
        """
        self._check(index)

        def begin() -> None:
            self._cluster.held_replicas.setdefault(index, self.documents.snapshot())

        self._perform(
            Change("hold_replication", "replication", index, begin, lambda: self._release_replication(index)), when
        )

    def release_replication(self, index: int, **when: Unpack[StartConditions]) -> None:
        """Resume replication to a node: its replicas catch up immediately."""
        self._check(index)
        self._perform(
            Change("release_replication", "replication", index, lambda: self._release_replication(index)), when
        )

    def _release_replication(self, index: int) -> None:
        self._cluster.held_replicas.pop(index, None)
        self._cluster.ring()

    def cut_off(self, index: int, connections: Iterable[int] | None = None, **when: Unpack[SpanConditions]) -> None:
        """Freeze the connections between a node and its clients, without losing or refusing any, until it rejoins.

        Args:
            index: the node.
            connections: numbers of the connections to cut, as in the command log. Default: all.
            when: ``after_requests``, ``at_seconds`` and ``for_seconds``.
        """
        node, cut = self._nodes[self._check(index)], None if connections is None else tuple(connections)

        def begin() -> None:
            node.network.cut(cut)
            try:
                self._cluster.ring()
            except errors.InvalidArgumentException:
                # Cutting off a dead node opens its ports, which may be taken.
                self._rejoin(index)
                raise

        self._perform(Change("cut_off", "network", index, begin, lambda: self._rejoin(index)), when)

    def rejoin(self, index: int, **when: Unpack[StartConditions]) -> None:
        """Reconnect a node to its clients, which ends the cut; held-back bytes arrive now.

        The node is still a member of the cluster, unless it was failed over or removed: then use ``add_node``.
        """
        self._perform(Change("rejoin", "network", self._check(index), lambda: self._rejoin(index)), when)

    def _rejoin(self, index: int) -> None:
        self._nodes[index].network.heal()
        self._cluster.ring()

    def slow_down(self, index: int, seconds: Duration, **when: Unpack[SpanConditions]) -> None:
        """Delay every reply of a node by ``seconds``; 0 removes the delay, and so does the end of the command."""
        network = self._nodes[self._check(index)].network
        check_duration(seconds, "seconds", most=SECONDS_MAX)
        self._perform(
            Change("slow_down", "speed", index, lambda: network.slow_down(seconds), lambda: network.slow_down(0)), when
        )

    def learn_late(self, index: int, seconds: Duration, **when: Unpack[SpanConditions]) -> None:
        """Delay new buckets, and changes to scopes and collections, by ``seconds`` in the KV service of a node.

        The cluster manager and other nodes see the changes immediately. 0 removes the delay, also for pending changes,
        and so does the end of the command. This finds a client that considers a new bucket or collection usable because
        one node has it.
        """
        lateness, delay = self._cluster.buckets.lateness, check_duration(seconds, "seconds", most=SECONDS_MAX)
        self._check(index)
        self._perform(
            Change(
                "learn_late", "lateness", index, lambda: lateness.set(index, delay), lambda: lateness.set(index, 0.0)
            ),
            when,
        )

    # Faults, and the log and clock of commands.

    def clear_faults(self, index: int | None = None) -> None:
        """Remove the faults of a node and its commands that have not started; None means all nodes and the cluster.

        Commands that have started keep their effect, and their end.
        """
        for node in self._nodes if index is None else [self._nodes[self._check(index)]]:
            node.faults.clear()
        self._cluster.schedule.clear(index)

    @property
    def changes(self) -> Sequence[LoggedChange]:
        """Commands that have started, ended or failed, the oldest first."""
        return tuple(self._cluster.schedule.log)

    def set_change_listener(self, listener: Callable[[LoggedChange], None] | None) -> None:
        """Call ``listener`` with each entry of ``changes`` as soon as it is added; None removes the listener."""
        self._cluster.schedule.listener = listener

    @property
    def seconds(self) -> float:
        """Current time in seconds on the clock of ``at_seconds``."""
        clock = self._cluster.fault_clock
        clock.refresh()
        return clock.now - clock.zero

    def start_clock(self) -> None:
        """Make ``at_seconds`` count from now, instead of from the time at which the nodes were first served."""
        clock = self._cluster.fault_clock
        clock.refresh()
        clock.zero = clock.now
        self._cluster.schedule.reset_clock()
        self._wake()

    def _perform(self, change: Change, when: SpanConditions | StartConditions) -> None:
        self._cluster.schedule.perform(change, check_conditions(**when))
        self._wake()

    def _wake(self) -> None:
        """Let the driver look at ``wakeup`` again if a command waits."""
        if self._cluster.schedule.due < math.inf and self._cluster.alarm is not None:
            self._cluster.alarm()

    # Interface for drivers.

    @property
    def now(self) -> float:
        """Newest time that the nodes have seen: at an event, or when a command or a reader needed the time."""
        return self._cluster.fault_clock.now

    @property
    def schedule(self) -> Schedule:
        """Commands that wait for their start or end, and the log of commands."""
        return self._cluster.schedule

    def set_alarm(self, alarm: Callable[[], None] | None) -> None:
        """Call ``alarm`` when a node that is not being driven has something new to do, now or later; None removes it.

        If ``alarm`` raises InvalidArgumentException because it cannot open the ports of a node, the node stays killed.
        """
        self._cluster.alarm = alarm

    def set_clock(self, read: Callable[[], float] | None) -> None:
        """Call ``read`` for the current time when a command or a fault arrives between events; None removes it."""
        self._cluster.fault_clock.read = read

    # Helpers.

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
            raise errors.InvalidArgumentException(
                f"node {index} is not in the cluster; add it first", parameter=parameter
            )
        return index

    def _others(self, index: int) -> list[int]:
        others = [member for member in self.map.members if member != self._check_member(index, "index")]
        if not others:
            raise errors.InvalidArgumentException(
                f"node {index} is the only node in the cluster; add another first", parameter="index"
            )
        return others
