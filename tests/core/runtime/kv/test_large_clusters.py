"""A cluster of a thousand nodes of which hardly any is there: what one event may cost, in calls and orders.

Calls are counted, of Python and of C, for they are the same on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.core.runtime.kv.counting import counted
from tests.core.runtime.kv.simulated import HOTELS, TRAVEL, Recorded, get, ready, respond
from tests.rows import rows
from triclinium_core.contract.couchbase import Action, CompleteOperation, Event, InquirySubmitted, OperationSubmitted
from triclinium_core.contract.neutral import LossCause, OpenStream, StreamId, StreamLost, TimePassed, Token
from triclinium_core.kv.operation.document_operations import Noop, Operation
from triclinium_core.kv.operation.inquiries import Inquiry, Ping, WaitForNodes, WaitUntilReady
from triclinium_core.kv.operation.reports import PingResult
from triclinium_core.kv.topology.cluster_config import NODES_MAX
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.pool.openings import PLACE_SECONDS_MAX, PLACES_MAX

FEW, MANY = 40, 200
"""Enough to tell what grows; the largest cluster is taken where a bound is at stake."""
SLACK = 1.3
"""By how much the count may differ between clusters of different size: heaps and tables grow."""


def config(nodes: int, revision: int) -> bytes:
    """Return the config of a bucket whose first node is there."""
    servers = ["127.0.0.1:11210", *(f"n{number}.example:11210" for number in range(1, nodes))]
    entries = [
        {"hostname": server.split(":")[0], "services": {"kv": 11210}, "thisNode": not number}
        for number, server in enumerate(servers)
    ]
    vbuckets = {"serverList": servers, "vBucketMap": [[0]] * 64}
    return json.dumps(
        {"rev": revision, "revEpoch": 9, "name": "travel", "nodesExt": entries, "vBucketServerMap": vbuckets}
    ).encode()


class Large:
    """A client of such a cluster, and what its machine orders; nobody carries it out."""

    def __init__(self) -> None:
        self._simulation: Recorded = ready()
        self.machine = self._simulation.machine
        self.now = self._simulation.now
        self.calls = 0
        self.is_counting = False
        self.live = self._simulation.newest
        self.opened: list[StreamId] = []
        self.opened_at_once_max = 0

    def handle(self, event: Event) -> Sequence[Action]:
        """Feed an event, and count what it costs where that is to be known."""
        if self.is_counting:
            with counted() as calls:
                actions = self.machine.handle(event, self.now)
            self.calls += calls.total()
        else:
            actions = self.machine.handle(event, self.now)
        orders = [action.stream for action in actions if isinstance(action, OpenStream)]
        self.opened += orders
        self.opened_at_once_max = max(self.opened_at_once_max, len(orders))
        return actions

    def follow(self, nodes: int, revision: int) -> int:
        """Give the client a new config, and return what it costs."""
        simulation = self._simulation
        _, request = simulation.submit_in_flight(get())
        with counted() as calls:
            simulation.inject(respond(request, Status.NOT_MY_VBUCKET, value=config(nodes, revision)), self.live)
        self.opened = [order.stream for _, order in simulation.opened_at]
        self.refused = 2
        return calls.total()

    def refuse(self, stream: StreamId) -> None:
        """Let a stream not be opened."""
        self.handle(StreamLost(stream, LossCause.REFUSED, "Connection refused", 0))

    def refuse_all(self, seconds: float) -> None:
        """Let time pass, and no stream be opened."""
        until = self.now + seconds
        while self.now < until:
            while self.refused < len(self.opened):
                self.refuse(self.opened[self.refused])
                self.refused += 1
            self.now = max(self.now, self.machine.wakeup)
            self.handle(TimePassed())


def large(nodes: int, *, is_one_alive: bool) -> Large:
    """Return a client that follows a cluster of so many nodes, and has seen each of them refuse, or all but one."""
    client = Large()
    client.follow(nodes, revision=2)
    if not is_one_alive:
        client.refuse(client.live)
    client.refuse_all(1.5 * nodes / PLACES_MAX * PLACE_SECONDS_MAX)
    client.is_counting = True
    return client


def test_a_config_costs_so_much_for_each_node() -> None:
    """A map with ten times the nodes costs ten times as much, when it comes, when it changes, and when it shrinks."""
    costs = []
    for nodes in (FEW, MANY):
        client = Large()
        costs.append([client.follow(count, revision) for revision, count in ((2, nodes), (3, nodes), (4, 1))])
    growth = [many / few for few, many in zip(*costs, strict=True)]

    assert MANY / FEW * SLACK > max(growth)
    assert 100 * MANY > max(map(max, costs))


def test_streams_are_opened_a_few_at_a_time() -> None:
    """So many for one event, and for one moment; and yet every node has its turn within four seconds."""
    client = Large()
    client.follow(NODES_MAX, revision=2)

    assert PLACES_MAX >= len(client.opened) - 2

    client.refuse_all(4.0)

    assert PLACES_MAX == client.opened_at_once_max
    assert PLACES_MAX * (4.0 / PLACE_SECONDS_MAX + 2) >= len(client.opened) >= NODES_MAX
    assert NODES_MAX - 1 == sum(each.last_error is not None for each in client.machine.statistics().connections)


@rows("is_one_alive", [True, False])
@rows("inquiry", [None, Ping("travel", "r"), WaitUntilReady("travel"), WaitForNodes("travel", 1)])
def test_a_loss_costs_the_same_in_every_cluster(inquiry: Inquiry | None, *, is_one_alive: bool) -> None:
    """Whoever is lost, and whoever asks how the connections stand."""
    costs = []
    for nodes in (FEW, MANY):
        client = large(nodes, is_one_alive=is_one_alive)
        if inquiry is not None:
            client.handle(InquirySubmitted(Token(10**6), inquiry))
        client.calls, refused = 0, client.refused
        client.refuse_all(1.0)
        costs.append(client.calls / (client.refused - refused))

    assert SLACK > costs[1] / costs[0]


@rows("is_one_alive", [True, False])
@rows("operation", [get(), get(keyspace=HOTELS), Noop(TRAVEL)])
def test_an_operation_costs_the_same_in_every_cluster(operation: Operation, *, is_one_alive: bool) -> None:
    """On a document, in a collection whose id has to be asked for, and on whichever node there is."""
    costs = []
    for nodes in (FEW, MANY):
        client = large(nodes, is_one_alive=is_one_alive)
        client.handle(OperationSubmitted(Token(10**6), operation))
        costs.append(client.calls)

    assert SLACK > costs[1] / costs[0]


def test_all_that_are_lost_are_reported() -> None:
    """A ping of a thousand nodes tells of each."""
    client = large(NODES_MAX, is_one_alive=True)
    client.handle(InquirySubmitted(Token(10**6), Ping("travel", "r")))
    client.now += 2.5
    (completed,) = (each for each in client.handle(TimePassed()) if isinstance(each, CompleteOperation))

    assert isinstance(completed.result, PingResult)
    assert [NODES_MAX] == [*map(len, completed.result.endpoints.values())]
