"""Forged revisions of configs, which keep out the genuine config only for a while."""

from __future__ import annotations

import json

import pytest

from tests.core.runtime.kv.simulated import Recorded, client_options, get, ready, respond, upsert
from tests.core.runtime.kv.test_cluster import KEYS, MUTE, nodes_of, written
from triclinium_core.kv.wire.config_version import COUNTER_MAX
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.known_configs import OLDER_CONFIGS_MAX
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

FORGED = (COUNTER_MAX, COUNTER_MAX)
INTERVAL = TimeoutOptions().config_poll_interval
OLD = MUTE - {HelloFeature.GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION}
"""Features of a node that the client polls and that sends its config in response to each poll."""


def forged(servers: list[str], holders: list[list[int]]) -> bytes:
    """Return a config whose revision is the highest possible."""
    epoch, revision = FORGED
    vbuckets = {"serverList": servers, "vBucketMap": holders}
    return json.dumps({"revEpoch": epoch, "rev": revision, "name": "travel", "vBucketServerMap": vbuckets}).encode()


def deceive(simulation: Recorded, config: bytes) -> None:
    """Make the client accept this config in the response to a read."""
    simulation.result(upsert())
    token, request = simulation.submit_in_flight(get())
    simulation.inject(respond(request, Status.NOT_MY_VBUCKET, value=config))
    simulation.abandon(token)


def revisions(simulation: Recorded) -> set[tuple[int, int] | None]:
    """Return the revisions that the connections of the bucket have."""
    connections = simulation.machine.statistics().connections
    return {each.config_revision for each in connections if each.bucket == "travel"}


def test_polls_end_a_forged_revision() -> None:
    """After a node sent a forged revision, polls return the genuine config, and the client accepts it after a limit."""
    simulation = ready(features=OLD)
    genuine = revisions(simulation)
    deceive(simulation, forged(["127.0.0.1:11210", "127.0.0.1:1"], [[1]] * 128))
    simulation.live((OLDER_CONFIGS_MAX - 2) * INTERVAL)
    before = revisions(simulation)
    simulation.live(4 * INTERVAL)

    assert {FORGED} == before
    assert genuine == revisions(simulation)
    simulation.result(get())


def test_refusals_end_a_forged_revision() -> None:
    """If nodes are not polled, their refusals without a config end a forged revision after a limit."""
    simulation = written(2, IMPLEMENTED_FEATURES)
    (genuine,) = revisions(simulation)
    owners = [simulation.nodes.owner_of(key) for key in KEYS]
    swapped = [[1 - node] for node in simulation.nodes[0].cluster.map.owners]
    deceive(simulation, forged(["127.0.0.1:11210", "127.0.0.1:11212"], swapped))
    for key in KEYS * 20:
        simulation.finish(get(key))

    assert {0, 1} == set(owners)
    assert {genuine} == revisions(simulation)
    simulation.result(get(KEYS[0]))


@pytest.mark.parametrize("seeds", ["127.0.0.1:11210,127.0.0.1:11212", "127.0.0.1:11210"])
def test_a_node_that_is_behind(seeds: str) -> None:
    """If one of several nodes is behind with its config, the client never returns to the older config of that node."""
    simulation = Recorded(nodes_of(2, OLD), client_options(f"couchbase://{seeds}"))
    simulation.result(upsert())
    late = 0 if "," in seeds else 1
    simulation.nodes.hold_config(late)
    simulation.nodes.move(simulation.nodes.vbuckets_of(0)[:1], to=1)
    simulation.live(2 * INTERVAL)
    newest = max(each for each in revisions(simulation) if each is not None)
    for _ in range(3 * OLDER_CONFIGS_MAX):
        simulation.live(INTERVAL)

        assert {newest} == revisions(simulation)
