"""Large clusters, most of whose nodes are unreachable: the cost of one event, in calls and actions.

The tests count calls of Python and C, which are the same on every machine.
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
"""Numbers of nodes that are compared; the tests of limits use the largest cluster."""
SLACK = 1.3
"""Permitted ratio of the costs in the two clusters, because heaps and tables grow with the number of nodes."""


def config(nodes: int, revision: int) -> bytes:
    """Return the config of a bucket with this many nodes, of which only the first exists."""
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
    """Client of a large cluster, with a record of the streams that it opens."""

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
        """Feed an event; count its calls if ``is_counting`` is set."""
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
        """Send the client a new config, and return the number of calls that it causes."""
        simulation = self._simulation
        _, request = simulation.submit_in_flight(get())
        with counted() as calls:
            simulation.inject(respond(request, Status.NOT_MY_VBUCKET, value=config(nodes, revision)), self.live)
        self.opened = [order.stream for _, order in simulation.opened_at]
        self.refused = 2
        return calls.total()

    def refuse(self, stream: StreamId) -> None:
        """Refuse a stream."""
        self.handle(StreamLost(stream, LossCause.REFUSED, "Connection refused", 0))

    def refuse_all(self, seconds: float) -> None:
        """Let time pass, and refuse each stream that the client opens."""
        until = self.now + seconds
        while self.now < until:
            while self.refused < len(self.opened):
                self.refuse(self.opened[self.refused])
                self.refused += 1
            self.now = max(self.now, self.machine.wakeup)
            self.handle(TimePassed())


def large(nodes: int, *, is_one_alive: bool) -> Large:
    """Return a client of a cluster of ``nodes`` nodes, of which all, or all but one, have refused a connection."""
    client = Large()
    client.follow(nodes, revision=2)
    if not is_one_alive:
        client.refuse(client.live)
    client.refuse_all(1.5 * nodes / PLACES_MAX * PLACE_SECONDS_MAX)
    client.is_counting = True
    return client


def test_the_cost_of_a_config_is_linear() -> None:
    """If a map is new, changed or much smaller, its cost grows linearly with the number of nodes."""
    costs = []
    for nodes in (FEW, MANY):
        client = Large()
        costs.append([client.follow(count, revision) for revision, count in ((2, nodes), (3, nodes), (4, 1))])
    growth = [many / few for few, many in zip(*costs, strict=True)]

    assert MANY / FEW * SLACK > max(growth)
    assert 100 * MANY > max(map(max, costs))


def test_streams_are_opened_a_few_at_a_time() -> None:
    """The client opens a limited number of streams at a time, and has tried all nodes after four seconds."""
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
    """The cost of a lost connection does not depend on the number of nodes, not even during an inquiry."""
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
    """The cost of a submission does not depend on the number of nodes."""
    costs = []
    for nodes in (FEW, MANY):
        client = large(nodes, is_one_alive=is_one_alive)
        client.handle(OperationSubmitted(Token(10**6), operation))
        costs.append(client.calls)

    assert SLACK > costs[1] / costs[0]


def test_all_that_are_lost_are_reported() -> None:
    """The result of a ping of a thousand nodes has a report on each node."""
    client = large(NODES_MAX, is_one_alive=True)
    client.handle(InquirySubmitted(Token(10**6), Ping("travel", "r")))
    client.now += 2.5
    (completed,) = (each for each in client.handle(TimePassed()) if isinstance(each, CompleteOperation))

    assert isinstance(completed.result, PingResult)
    assert [NODES_MAX] == [*map(len, completed.result.endpoints.values())]
