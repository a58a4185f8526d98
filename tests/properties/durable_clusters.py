"""Durable writes during faults: replication stops and continues, and sometimes one node fails.

The client's results must fit a history in which no acknowledged write is lost. The cluster really loses writes that
were not durable.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from triclinium_core import testing
from triclinium_core.kv.operation.document_operations import DocumentOperation, Get, Insert, Keyspace, Remove, Upsert
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.testing import delay
from triclinium_core.testing.simulation.checked import CheckedSimulation
from triclinium_core.transcoding.flags import JSON_FLAGS

STEPS = 120
SECONDS_TO_SETTLE = 40.0
KEYS = [f"k{number}" for number in range(4)]
PLACE = Keyspace("travel")
VBUCKETS = 128
FAULTS = (testing.drop_response(), testing.hang_up_after_applying(), testing.temporary_failure(), delay(0.2))
LEVELS = [level for level in DurabilityLevel if level is not DurabilityLevel.NONE]


class DurableHour:
    """One history: all writes are durable, and the cluster keeps every write that can survive the loss of one node."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        replicas = self._random.choice((1, 2))
        options = testing.FakeNodeOptions(buckets=("travel",), vbuckets=VBUCKETS, replicas=replicas)
        self.nodes = testing.FakeNodes(options, nodes=self._random.randint(replicas + 1, 4))
        client = ClientOptions(
            connection_string="couchbase://127.0.0.1:11210",
            authenticator=PasswordAuthenticator(options.username, options.password),
        )
        self.simulation = CheckedSimulation(self.nodes, client, {PLACE: 0})
        self.acknowledged = 0
        self._held: set[int] = set()
        self._events: Sequence[tuple[int, Callable[[], None]]] = (
            (50, self._ask),
            (14, self.simulation.flow),
            (10, self._pass_time),
            (10, self._hold_or_release),
            (4, self._set_fault),
            (3, self._restart),
            (4, self._lose_a_node),
            (3, self._move),
        )

    def run(self) -> None:
        """Run the history, and check that every operation has completed at the end."""
        self.simulation.tick()
        self.simulation.flow()
        weights, events = zip(*self._events, strict=True)
        for event in self._random.choices(events, weights, k=STEPS):
            event()
            # Writes wait for replicas and other operations wait for the writes, so there is an excuse for any delay.
            self._trouble()
        self._heal()
        self.acknowledged = len(self.simulation.results)
        tokens = [self.simulation.submit(self._write(Upsert, key)) for key in KEYS]
        self.simulation.flow_for(SECONDS_TO_SETTLE)
        self.simulation.check_frames()

        assert set(tokens) <= set(self.simulation.results)
        assert 0 == self.simulation.open_operations
        assert not any(self.nodes.documents.get_prepared("travel", key) for key in KEYS)

    def _trouble(self) -> None:
        self.simulation.excuses.withheld(self.simulation.links, self.simulation.model.instant())

    def _write(self, kind: type[Upsert | Insert], key: str) -> DocumentOperation:
        value = self.simulation.model.unique_values.fragment()
        return kind(PLACE, key, value, JSON_FLAGS, durability=self._random.choice(LEVELS))

    def _ask(self) -> None:
        key = self._random.choice(KEYS)
        operations: Sequence[Callable[[], DocumentOperation]] = (
            lambda: Get(PLACE, key),
            lambda: self._write(Upsert, key),
            lambda: Remove(PLACE, key, durability=self._random.choice(LEVELS)),
            lambda: self._write(Insert, key),
        )
        self.simulation.submit(self._random.choices(operations, (4, 4, 1, 1))[0]())

    def _pass_time(self) -> None:
        self.simulation.flow_for(self._random.choice((0.001, 0.01, 0.3, 3.0, 10.0)))

    def _hold_or_release(self) -> None:
        place = self._random.randrange(len(self.nodes))
        if place in self._held:
            self._held.discard(place)
            self.nodes.release_replication(place)
        else:
            self._held.add(place)
            self.nodes.hold_replication(place)

    def _set_fault(self) -> None:
        node = self.nodes[self._random.randrange(len(self.nodes))]
        node.faults.next(self._random.choice((Opcode.GET, Opcode.SET)), self._random.choice(FAULTS))

    def _restart(self) -> None:
        place = self._random.randrange(len(self.nodes))
        self.nodes.kill(place)
        self._trouble()
        self.simulation.flow_for(self._random.choice((0.0, 0.1, 11.0)))
        self.nodes.revive(place)

    def _lose_a_node(self) -> None:
        """Kill a node in any state of its replication, fail it over, and then heal the cluster."""
        if self._random.random() < 0.5:
            self._hold_or_release()
            for key in KEYS:
                self.simulation.submit(self._write(Upsert, key))
            self.simulation.flow()
        place = self._random.randrange(len(self.nodes))
        self.nodes.kill(place)
        self._trouble()
        self.simulation.flow_for(self._random.choice((0.0, 0.1, 2.0)))
        self.nodes.fail_over(place)
        self._trouble()
        self.simulation.flow_for(self._random.choice((0.0, 0.1, 2.0)))
        self.nodes.revive(place)
        self._heal()

    def _move(self) -> None:
        self.nodes.move(self._random.sample(range(VBUCKETS), 40), self._random.choice(self.nodes.map.members))

    def _heal(self) -> None:
        for place in self._held:
            self.nodes.release_replication(place)
        self._held.clear()
        for place, node in enumerate(self.nodes):
            node.faults.clear()
            if place not in self.nodes.map.members:
                self.nodes.add_node(place)
        self.nodes.rebalance()
        self._trouble()
        self.simulation.flow_for(SECONDS_TO_SETTLE)
