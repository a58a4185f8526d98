"""Cancellation of pings, waits and lists of scopes at every moment, which does not change the client's final state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest
import trio

from tests.trio_client.cancelling import Call, Ending, at_every_moment, live
from triclinium import AbandonedOperation, Cluster
from triclinium.testing import FakeCluster, FakeNodeOptions, Opcode, Service, delay, drop_response
from triclinium_core.testing import ErrorMapDocument

CALLS: Mapping[str, Call] = {
    "Cluster.ping": lambda cluster: cluster.ping(),
    "Cluster.wait_until_ready": lambda cluster: cluster.wait_until_ready(),
    "Bucket.ping": lambda cluster: cluster.bucket("travel").ping(),
    "Bucket.wait_until_ready": lambda cluster: cluster.bucket("travel").wait_until_ready(),
    "CollectionManager.get_all_scopes": lambda cluster: cluster.bucket("travel").collections().get_all_scopes(),
}
"""Public coroutines that request the state of the cluster or of a bucket."""

OUTCOMES = {"ping": "PingResult", "wait_until_ready": "NoneType", "get_all_scopes": "tuple"}
"""Type name of the result of each method."""

OPTIONS = FakeNodeOptions(
    buckets=("travel",),
    vbuckets=128,
    error_map=ErrorMapDocument(revision=1, rows=()),
    services=frozenset({Service.KV, Service.MANAGEMENT, Service.QUERY}),
)
"""Nodes with two HTTP services only, because the client pings all services alike, and each one adds moments."""


def slow(fake: FakeCluster, nursery: trio.Nursery) -> None:
    """Delay a node's responses to SASL_AUTH and NOOP, which pings and waits need."""
    fake.nodes[1].faults.always(Opcode.SASL_AUTH, delay(0.25))
    fake.nodes[1].faults.always(Opcode.NOOP, delay(0.25))


def silent(fake: FakeCluster, nursery: trio.Nursery) -> None:
    """Make a node ignore NOOPs and delay its bootstrap."""
    fake.nodes[1].faults.always(Opcode.NOOP, drop_response())
    fake.nodes[1].faults.always(Opcode.SASL_AUTH, delay(0.25))


def dead_for_a_second(fake: FakeCluster, nursery: trio.Nursery) -> None:
    """Kill a node, which revives after a second."""
    fake.nodes.kill(1)

    @nursery.start_soon
    async def revive() -> None:
        await trio.sleep(1.0)
        fake.nodes.revive(1)


TROUBLES = {"slow": slow, "silent": silent, "dead at first": dead_for_a_second}


async def wait_until_all_is_ready(cluster: Cluster) -> None:
    """Wait for the bucket and the cluster."""
    await cluster.bucket("travel").wait_until_ready()
    await cluster.wait_until_ready()


SHORT = {
    ("Cluster.ping", "dead at first"),
    ("Bucket.ping", "dead at first"),
    ("Bucket.wait_until_ready", "slow"),
    ("CollectionManager.get_all_scopes", "slow"),
}
"""Cases of a short run. The other cases differ in how long a call waits, which the core decides."""


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        pytest.param(name, trouble, marks=() if (name, trouble) in SHORT else pytest.mark.long)
        for name in CALLS
        for trouble in TROUBLES
    ],
)
def test_a_call_cancelled_at_every_moment(
    name: str, trouble: str, record_property: Callable[[str, object], None]
) -> None:
    """A call in a cancelled scope completes or raises Cancelled, and the client's state is the same in either case."""
    runs = at_every_moment(partial(live, OPTIONS, TROUBLES[trouble], CALLS[name], wait_until_all_is_ready))
    record_property("cancelled", (trouble, name, runs.moments, runs.checkpoints))
    called, undisturbed = name.partition(".")[2], runs.undisturbed

    assert Ending(OUTCOMES[called], was_caught=False) == undisturbed.ending
    assert (0, 4, []) == (undisturbed.open_operations, undisturbed.connections, undisturbed.broken_rules)
    assert Ending(None, was_caught=True, is_ambiguous=False) == runs.cancelled[0].ending
    assert undisturbed == runs.cancelled[-1]
    assert any(life.ending.abandoned for life in runs.cancelled)
    for life in runs.cancelled:
        assert life.ending.abandoned in ((), (AbandonedOperation(called, None, ambiguous=False),))
        assert (life.ending.outcome, life.ending.was_caught) in ((OUTCOMES[called], False), (None, True))
        assert undisturbed == replace(life, ending=undisturbed.ending)
