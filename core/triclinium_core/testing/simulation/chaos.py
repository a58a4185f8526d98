"""Disruptions of a cluster during a history, one row each, with a weight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import refuse_connection
from triclinium_core.testing.fault_catalogue import TARGETS, TIMES
from triclinium_core.testing.simulation.chance import Chance
from triclinium_core.testing.simulation.logged import LoggedSimulation

SLOWNESSES = (0.05, 0.4, 1.5, 4.0)
"""Delays in seconds: within all limits, within the caller's limit, or longer."""

LATENESSES = (0.05, 0.6, 3.0, 10.0)
"""Seconds until a node learns of a new collection: soon, within the time of an operation, or later."""
LATE_SHARE = 0.5
"""Probability that a history has late nodes; if so, that a new collection has some; and if so, that a node is one."""
LATE_SALT = 104
"""Salt of the seed for the draws of late nodes.

With this salt, the regressions of ``simulation_command`` have no late nodes, as when they were found.
"""


def late_chance(seed: int) -> Chance | None:
    """Return the source of draws for late nodes, which leaves all other draws unchanged; None if no node is late."""
    chance = Chance(seed ^ LATE_SALT)
    return chance if chance.happens(LATE_SHARE) else None


Disruption = Callable[[], str | None]
"""Function that disrupts the cluster and returns a description, or None if the disruption is impossible now."""


class Chaos:
    """Disruptions of the nodes of one simulation, and of the collection that is dropped and created.

    Args:
        simulation: simulation of the nodes.
        chance: source of the disruptions.
        collection: collection to drop and create.
        late: source of draws for nodes that learn late of the collection; None if no node is late.
    """

    def __init__(
        self, simulation: LoggedSimulation, chance: Chance, collection: Keyspace, late: Chance | None = None
    ) -> None:
        self._simulation = simulation
        self._changes, self._faults = simulation.figures.changes, simulation.figures.faults
        self._nodes: FakeNodes = simulation.nodes
        self._chance = chance
        self._collection = collection
        self._late = late
        self._is_dropped = False
        self._peaceful: Sequence[tuple[int, Disruption]] = (
            (4, self._move),
            (2, self._rebalance),
            (1, self._add),
            (1, partial(self._take_out, self._nodes.remove_node, "nodes removed", "is removed")),
        )
        self._stormy: Sequence[tuple[int, Disruption]] = (
            *self._peaceful,
            (1, partial(self._take_out, self._nodes.fail_over, "failovers", "is failed over")),
            (10, self._set_fault),
            (1, self._refuse),
            (3, self._kill_or_revive),
            (3, self._cut_or_heal),
            (2, self._slow_down),
            (2, self._hold_config),
            (1, self._drop_or_create),
            (2, self._break_stream),
        )

    def strike(self) -> None:
        """Apply a random disruption."""
        self._happen(self._chance.weigh(self._stormy))

    def rearrange(self) -> None:
        """Change the map as an administrator would, so that no operation fails."""
        self._happen(self._chance.weigh(self._peaceful))

    def calm_down(self) -> None:
        """End all disruptions: every node responds and has the newest map, and every vbucket has a node."""
        for index, node in enumerate(self._nodes):
            node.faults.clear()
            self._nodes.revive(index)
            self._nodes.rejoin(index)
            self._nodes.slow_down(index, 0)
            self._nodes.release_config(index)
        self._simulation.learn_at_once()
        if self._is_dropped:
            self._happen(self._create)
        self._nodes.rebalance()
        self._simulation.note("all disruptions are over")
        self._simulation.look_around()

    def _happen(self, disruption: Disruption) -> None:
        what = disruption()
        if what is not None:
            self._simulation.note(f"-- {what}")
        self._simulation.look_around()

    # Changes to the map and to collections.

    def _changed(self, kind: str, what: str) -> str:
        self._changes[kind] += 1
        return f"{what}: revision {self._nodes.map.version.revision}"

    def _move(self) -> str:
        vbuckets = range(len(self._nodes.map.owners))
        to = self._chance.choose(self._nodes.map.members)
        self._nodes.move(self._chance.sample(vbuckets, self._chance.between(1, len(vbuckets) // 2)), to)
        return self._changed("moves of vbuckets", f"vbuckets move to node {to}")

    def _rebalance(self) -> str:
        self._nodes.rebalance()
        return self._changed("rebalances", "rebalance")

    def _add(self) -> str | None:
        outsiders = [index for index in range(len(self._nodes)) if index not in self._nodes.map.members]
        if not outsiders:
            return None
        index = self._chance.choose(outsiders)
        self._nodes.add_node(index)
        self._nodes.rebalance()
        return self._changed("nodes added", f"node {index} is added")

    def _take_out(self, how: Callable[[int], None], kind: str, what: str) -> str | None:
        if len(self._nodes.map.members) == 1:
            return None
        index = self._chance.choose(self._nodes.map.members)
        how(index)
        return self._changed(kind, f"node {index} {what}")

    def _drop_or_create(self) -> str:
        return self._create(self._draw_late()) if self._is_dropped else self._drop()

    def _drop(self) -> str:
        # No node may be late here: a late node accepts a write to the dropped collection, and rightly loses it.
        self._simulation.learn_at_once()
        self._simulation.drop_collection(self._collection)
        self._is_dropped = True
        self._changes["collections dropped"] += 1
        return f"collection {self._path} is dropped"

    def _create(self, late: Mapping[int, float] = MappingProxyType({})) -> str:
        self._simulation.create_collection(self._collection, late)
        self._is_dropped = False
        self._changes["collections created"] += 1
        self._faults["nodes that learn late"] += len(late)
        words = "".join(f", node {index} learns of it {seconds:g} s late" for index, seconds in late.items())
        return f"collection {self._path} is created{words}"

    def _draw_late(self) -> Mapping[int, float]:
        """Return the nodes that learn late of a new collection, each with its delay in seconds."""
        late = self._late
        if late is None or not late.happens(LATE_SHARE):
            return {}
        indexes = [index for index in range(len(self._nodes)) if late.happens(LATE_SHARE)]
        return {index: late.choose(LATENESSES) for index in indexes}

    @property
    def _path(self) -> str:
        return f"{self._collection.scope}.{self._collection.collection}"

    # Disruptions of nodes.

    def _any(self) -> int:
        return self._chance.between(0, len(self._nodes) - 1)

    def _kill_or_revive(self) -> str | None:
        index = self._any()
        if not self._nodes[index].is_alive:
            self._nodes.revive(index)
            return f"node {index} is alive again"
        if sum(node.is_alive for node in self._nodes) == 1:
            return None
        self._nodes.kill(index)
        self._faults["deaths of nodes"] += 1
        return f"node {index} dies"

    def _cut_or_heal(self) -> str:
        index = self._any()
        if self._nodes[index].network.cuts_some:
            self._nodes.rejoin(index)
            return f"node {index} is reachable again"
        self._faults["partitions"] += 1
        if self._chance.happens(0.5):
            self._nodes.cut_off(index)
            return f"node {index} is cut off from all clients"
        clients = len(self._simulation.clients)
        client = self._chance.between(0, clients - 1)
        streams = [stream for stream in self._simulation.links if stream % clients == client]
        self._nodes.cut_off(index, streams)
        return f"node {index} is cut off from client {client}"

    def _slow_down(self) -> str:
        index = self._any()
        seconds = 0.0 if self._nodes[index].network.slowness else self._chance.choose(SLOWNESSES)
        self._nodes.slow_down(index, seconds)
        self._faults["slow nodes"] += bool(seconds)
        return f"node {index} responds {seconds:g} s late"

    def _hold_config(self) -> str:
        index = self._any()
        if self._nodes[index].config_version != self._nodes.map.version:
            self._nodes.release_config(index)
            return f"node {index} learns the newest map"
        self._nodes.hold_config(index)
        self._faults["stale maps"] += 1
        return f"node {index} keeps its map of revision {self._nodes[index].config_version.revision}"

    def _set_fault(self) -> str:
        index, times = self._any(), self._chance.choose(TIMES)
        opcodes, kinds = self._chance.weigh(TARGETS)
        opcode, fault = self._chance.choose(opcodes), self._chance.choose(self._chance.choose(kinds))
        self._nodes[index].faults.next(opcode, fault, times)
        name = "any command on a document" if opcode is None else Opcode(opcode).name
        often = "once" if times == 1 else f"{times} times"
        return f"node {index} will apply {fault} to {name}, {often}"

    def _refuse(self) -> str:
        index = self._any()
        self._nodes[index].faults.next(None, refuse_connection(), self._chance.between(1, 3))
        return f"node {index} will refuse connections"

    def _break_stream(self) -> str | None:
        streams = list(self._simulation.links)
        if not streams:
            return None
        stream = self._chance.choose(streams)
        self._simulation.lose(stream)
        self._faults["broken streams"] += 1
        return f"stream {stream} is broken"
