"""A client of several nodes in an eventful hour: one seed, one history, the same every time.

Operations are submitted, bytes move in pieces, streams break, faults strike, vbuckets move, nodes leave, come back, die
and are revived; every law of ``WatchedSimulation`` holds all the while. In the end nothing is wrong any more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from triclinium_core.kv.events import Token
from triclinium_core.kv.operation.requests import DocumentOperation, Get, Insert, Keyspace, Remove, Upsert
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.strategy import BestEffortRetryStrategy
from triclinium_core.testing import (
    FakeNodeOptions,
    FakeNodes,
    delay,
    drop_response,
    hang_up,
    hang_up_after_applying,
    not_my_vbucket,
    temporary_failure,
)
from triclinium_core.testing.watched_simulation import WatchedSimulation
from triclinium_core.transcoding.flags import JSON_FLAGS

STEPS = 120
SECONDS_TO_SETTLE = 30.0
KEYS = [f"k{number}" for number in range(6)]
DEFAULT, NAMED = Keyspace("travel"), Keyspace("travel", "inventory", "hotel")
VBUCKETS = 128
FAULTS = (
    drop_response(),
    hang_up(),
    hang_up_after_applying(),
    temporary_failure(),
    not_my_vbucket(),
    not_my_vbucket(with_config=False),
    delay(0.2),
)
STRUCK = (Opcode.GET, Opcode.SET, Opcode.GET_CLUSTER_CONFIG, Opcode.GET_COLLECTION_ID)
PIECES = (None, 1, 30)
"""Bytes that move at once; None for all."""


class EventfulHour:
    """One history."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        options = FakeNodeOptions(
            buckets=("travel",), collections={"_default": {"_default": 0}, "inventory": {"hotel": 8}}, vbuckets=VBUCKETS
        )
        self.nodes = FakeNodes(options, nodes=self._random.randint(2, 4))
        client = ClientOptions(
            connection_string="couchbase://127.0.0.1:11210",
            authenticator=PasswordAuthenticator(options.username, options.password),
        )
        self.simulation = WatchedSimulation(self.nodes, client, {DEFAULT: 0, NAMED: 8})
        self._dead: set[int] = set()
        self._events: Sequence[tuple[int, Callable[[], None]]] = (
            (50, self._ask),
            (12, self.simulation.flow),
            (10, self._pass_time),
            (8, self._move_bytes),
            (4, self._break_stream),
            (4, self._set_fault),
            (8, self._change_map),
            (4, self._kill_or_revive),
        )

    def run(self) -> None:
        """Live through it, and see everything served in the end."""
        self.simulation.tick()
        self.simulation.flow()
        weights, events = zip(*self._events, strict=True)
        for event in self._random.choices(events, weights, k=STEPS):
            event()
            self._excuse()
        self._calm_down()
        fragment = self.simulation.model.marks.fragment
        tokens = [self._submit(Upsert(DEFAULT, key, fragment(), JSON_FLAGS)) for key in KEYS]
        self.simulation.flow_for(SECONDS_TO_SETTLE)
        self.simulation.check_frames()

        assert set(tokens) <= set(self.simulation.results)
        assert 0 == self.simulation.open_operations
        assert len(self.nodes) + 1 == len(self.simulation.links)

    def _excuse(self) -> None:
        """Let nobody be blamed while a vbucket has no living node; and a node that leaves may lose its streams."""
        owners = set(self.nodes.map.owners)
        if self._dead & owners or not owners <= set(self.nodes.map.members):
            self._trouble()

    def _trouble(self) -> None:
        self.simulation.troubles.withheld(self.simulation.links, self.simulation.model.instant())

    def _ask(self) -> None:
        keyspace, key = self._random.choice((DEFAULT, DEFAULT, NAMED)), self._random.choice(KEYS)
        value = self.simulation.model.marks.fragment()
        operations: Sequence[DocumentOperation] = (
            Get(keyspace, key),
            Upsert(keyspace, key, value, JSON_FLAGS),
            Remove(keyspace, key),
            Insert(keyspace, key, value, JSON_FLAGS),
        )
        self._submit(self._random.choices(operations, (4, 4, 1, 1))[0])

    def _submit(self, operation: DocumentOperation) -> Token:
        strategy = BestEffortRetryStrategy() if self._random.random() < 0.3 else None
        return self.simulation.submit(operation, retry_strategy=strategy)

    def _pass_time(self) -> None:
        self.simulation.flow_for(self._random.choice((0.001, 0.01, 0.3, 3.0)))

    def _move_bytes(self) -> None:
        streams = [stream for stream, link in self.simulation.links.items() if link.is_open]
        if streams:
            move = self._random.choice((self.simulation.hand_over, self.simulation.deliver))
            move(self._random.choice(streams), self._random.choice(PIECES))

    def _break_stream(self) -> None:
        if self.simulation.links:
            self.simulation.lose(self._random.choice(list(self.simulation.links)))

    def _set_fault(self) -> None:
        node = self.nodes[self._random.randrange(len(self.nodes))]
        node.faults.next(self._random.choice(STRUCK), self._random.choice(FAULTS))

    def _change_map(self) -> None:
        members = self.nodes.map.members
        outsiders = [place for place in range(len(self.nodes)) if place not in members]
        what = self._random.choice(("move", "remove", "fail over", "add", "rebalance"))
        if what == "move":
            self.nodes.move(self._random.sample(range(VBUCKETS), 40), self._random.choice(members))
        elif what == "remove" and len(members) > 1:
            self.nodes.remove_node(self._random.choice(members))
        elif what == "fail over" and len(members) > 1:
            self.nodes.fail_over(self._random.choice(members))
        elif what == "add" and outsiders:
            self.nodes.add_node(self._random.choice(outsiders))
        else:
            self.nodes.rebalance()
        self._trouble()

    def _kill_or_revive(self) -> None:
        place = self._random.randrange(len(self.nodes))
        if place in self._dead:
            self._dead.discard(place)
            self.nodes.revive(place)
        elif len(self._dead) < len(self.nodes) - 1:
            self._dead.add(place)
            self.nodes.kill(place)
        self._trouble()

    def _calm_down(self) -> None:
        for place in self._dead:
            self.nodes.revive(place)
        for place, node in enumerate(self.nodes):
            node.faults.clear()
            if place not in self.nodes.map.members:
                self.nodes.add_node(place)
        self.nodes.rebalance()
        self._trouble()
        self.simulation.flow_for(SECONDS_TO_SETTLE)
