"""Cancellation of pings and waits for readiness at every moment, after which the client has the same state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pytest
import trio

from tests.trio_client.cancelling import Ending, Moments, at_every_moment, end_of
from tests.trio_client.recorded_telemetry import RecordingTracer
from triclinium import AbandonedOperation, Cluster
from triclinium.testing import FakeCluster, FakeNodeOptions, Opcode, Service, delay, drop_response, open_fake_cluster
from triclinium_core.testing import ErrorMapDocument

Record = Callable[[str, object], None]
Trouble = Callable[[FakeCluster], None]

CALLS: Mapping[str, Callable[[Cluster], Awaitable[object]]] = {
    "Cluster.ping": lambda cluster: cluster.ping(),
    "Cluster.wait_until_ready": lambda cluster: cluster.wait_until_ready(),
    "Bucket.ping": lambda cluster: cluster.bucket("travel").ping(),
    "Bucket.wait_until_ready": lambda cluster: cluster.bucket("travel").wait_until_ready(),
    "CollectionManager.get_all_scopes": lambda cluster: cluster.bucket("travel").collections().get_all_scopes(),
}
"""Public coroutines that request the state of the cluster."""

OPTIONS = FakeNodeOptions(
    buckets=("travel",),
    vbuckets=128,
    error_map=ErrorMapDocument(revision=1, rows=()),
    services=frozenset({Service.KV, Service.MANAGEMENT, Service.QUERY}),
)
"""Nodes with two HTTP services only: the client pings all services alike, and each further one doubles the moments."""
SETTLING_SECONDS = 6.0
"""Seconds until the client has settled: longer than any delay here, and shorter than the keep-alive interval."""


def slow(fake: FakeCluster) -> None:
    """Delay all responses of a node that a ping or a wait needs."""
    fake.nodes[1].faults.always(Opcode.SASL_AUTH, delay(0.25))
    fake.nodes[1].faults.always(Opcode.NOOP, delay(0.25))


def silent(fake: FakeCluster) -> None:
    """Make a node ignore NOOPs and delay its bootstrap."""
    fake.nodes[1].faults.always(Opcode.NOOP, drop_response())
    fake.nodes[1].faults.always(Opcode.SASL_AUTH, delay(0.25))


def dead_for_a_second(fake: FakeCluster) -> None:
    """Kill a node, which revives after a second."""
    fake.nodes.kill(1)


TROUBLES: Mapping[str, Trouble] = {"slow": slow, "silent": silent, "dead at first": dead_for_a_second}


@dataclass(frozen=True, slots=True)
class Life:
    """One call, and the state when no request is pending and a later call has succeeded."""

    ending: Ending
    open_operations: int
    connections: int
    tasks: Mapping[str, int]
    broken_rules: Sequence[str]


async def live(call: Callable[[Cluster], Awaitable[object]], trouble: Trouble, moments: Moments) -> Life:
    """Return the result of a call that ``moments`` may cancel."""
    tracer = RecordingTracer()
    async with open_fake_cluster(options=OPTIONS, nodes=2) as fake, fake.open_client(tracer=tracer) as cluster:
        trouble(fake)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(revive, fake)
            ending = await end_of(partial(call, cluster), moments)
        for node in fake.nodes:
            node.faults.clear()
        await trio.sleep(SETTLING_SECONDS)
        await cluster.bucket("travel").wait_until_ready()
        await cluster.wait_until_ready()
        await cluster.bucket("travel").default_collection().upsert("ada", 1)
        statistics = cluster.statistics()
        left = statistics.open_operations, len(statistics.connections)
        return Life(ending, *left, moments.tasks, tracer.broken_rules)


async def revive(fake: FakeCluster) -> None:
    """Revive the node after a second."""
    await trio.sleep(1.0)
    fake.nodes.revive(1)


SHORT = {
    ("Cluster.ping", "dead at first"),
    ("Bucket.ping", "dead at first"),
    ("Bucket.wait_until_ready", "slow"),
    ("CollectionManager.get_all_scopes", "slow"),
}
"""Cases of a short run: every kind of call at least once. The core decides how long a call waits."""


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        pytest.param(name, trouble, marks=() if (name, trouble) in SHORT else pytest.mark.long)
        for name in CALLS
        for trouble in TROUBLES
    ],
)
def test_a_call_cancelled_at_every_moment(name: str, trouble: str, record_property: Record) -> None:
    """A call in a cancelled scope completes or raises Cancelled, and the client's state is the same in either case."""
    runs = at_every_moment(partial(live, CALLS[name], TROUBLES[trouble]))
    record_property("cancelled", (trouble, name, runs.moments, runs.checkpoints))
    undisturbed, first = runs.undisturbed, runs.cancelled[0]

    assert not undisturbed.ending.was_caught
    assert (0, 4) == (undisturbed.open_operations, undisturbed.connections)
    assert Ending(None, was_caught=True, is_ambiguous=False) == first.ending
    assert undisturbed == runs.cancelled[-1]
    assert any(life.ending.abandoned for life in runs.cancelled)
    for life in runs.cancelled:
        called = name.partition(".")[2]
        given_up = AbandonedOperation(called, None, ambiguous=False)
        assert life.ending.abandoned in ((), (given_up,))
        assert life.ending.was_caught == (life.ending.outcome is None)
        assert [] == life.broken_rules
        assert undisturbed == Life(undisturbed.ending, life.open_operations, life.connections, life.tasks, [])
