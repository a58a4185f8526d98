"""Config polls: their interval, the known version in each request, and responses without a config."""

from __future__ import annotations

import struct

import pytest

from tests.core.runtime.kv.simulated import TRAVEL, Recorded, client_options, get, ready, respond, upsert
from tests.core.runtime.kv.test_cluster import KEYS, MUTE, owner_of, stream_to, written
from triclinium_core.kv.operation.document_operations import Noop
from triclinium_core.kv.wire.config_version import CONFIG_VERSION
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import RetryReason, Status
from triclinium_core.testing.fakes.faults import not_my_vbucket
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

KNOWN_VERSION = HelloFeature.GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION
DEDUPE = HelloFeature.DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP


def questions(simulation: Recorded) -> list[bytes]:
    """Return the known version in each config request, by stream in order of opening."""
    return [
        request.extras
        for stream in sorted(simulation.requests)
        for request in simulation.requests[stream]
        if request.opcode == Opcode.GET_CLUSTER_CONFIG
    ]


def polled(interval: float, features: frozenset[HelloFeature] = MUTE) -> Recorded:
    """Return a ready simulation whose node does not announce configs, so that the client polls it."""
    options = client_options(timeouts=TimeoutOptions(config_poll_interval=interval))
    return ready(options=options, features=features)


def test_polls_send_the_known_version() -> None:
    """A poll sends the version that the client knows; the node responds with a config only if it has a newer one."""
    simulation = polled(2.5)
    simulation.live(2.6)
    version = CONFIG_VERSION.pack(1, 1)

    assert [b"", version, b"", version] == questions(simulation)

    simulation.node.set_config_revision(7, simulation.now)
    simulation.live(2.5)

    assert (1, 7) == simulation.connection().config_revision

    simulation.live(2.5)

    assert CONFIG_VERSION.pack(1, 7) == questions(simulation)[-1]


def test_a_node_that_knows_no_versions() -> None:
    """If a node does not support known versions, polls send none, and the node responds with the complete config."""
    simulation = polled(2.5, MUTE - {KNOWN_VERSION})
    simulation.live(2.6)

    assert [b""] * 4 == questions(simulation)
    assert [] == simulation.closings()


def test_a_connection_after_the_first() -> None:
    """A later connection sends the known version in its bootstrap, so that the node sends a large map only once."""
    simulation = written(3)
    version = CONFIG_VERSION.pack(1, 1)

    assert [b"", b"", version, version] == questions(simulation)

    simulation.lose(stream_to(simulation, 1))
    simulation.write()
    simulation.live(1.0)

    assert [b"", b"", version, version, version] == questions(simulation)
    assert 4 == len(simulation.links)


@pytest.mark.parametrize(("interval", "polls"), [(0.5, 20), (2.5, 4), (10.0, 1)])
def test_interval(interval: float, polls: int) -> None:
    """The client polls each of its two connections at the configured interval."""
    simulation = polled(interval)
    before = len(questions(simulation))
    simulation.live(10.1)

    assert 2 * polls == len(questions(simulation)) - before


def test_floor() -> None:
    """Many NOT_MY_VBUCKET responses cause at most one config request per connection in 50 ms."""
    simulation = written(1, MUTE - {KNOWN_VERSION, DEDUPE})
    simulation.node.faults.always(Opcode.GET, not_my_vbucket(with_config=False))
    before = len(questions(simulation))
    for key in KEYS:
        simulation.submit(get(key))
    simulation.live(1.0)
    asked = len(questions(simulation)) - before

    assert 100 < simulation.machine.statistics().retries_by_reason[RetryReason.KV_NOT_MY_VBUCKET]
    assert 5 <= asked <= 1.0 / TimeoutOptions().config_poll_floor + 1


def test_refusals_without_a_config_that_is_known() -> None:
    """If a node refuses an operation without a config, the client retries until the nodes agree on the map."""
    simulation = written(2, MUTE)
    key = next(key for key in KEYS if owner_of(simulation, key) == 0)
    simulation.nodes.hold_config(1)
    simulation.nodes.move(simulation.nodes.vbuckets_of(0), to=1)
    token = simulation.submit(upsert(key))
    simulation.live(0.3)
    answers = [command.status for command in simulation.nodes[1].command_log if command.opcode == Opcode.SET]
    simulation.nodes.release_config(1)
    simulation.run()

    assert DEDUPE.name in simulation.machine.statistics().connections[-1].features
    assert Status.NOT_MY_VBUCKET == answers[-1]
    assert token in simulation.results


def test_a_revision_out_of_range() -> None:
    """The client rejects a config with a revision above 63 bits, and its next request has the previous version."""
    simulation = ready(features=IMPLEMENTED_FEATURES)
    _, request = simulation.submit_in_flight(get())
    config = b'{"revEpoch":2,"rev":9223372036854775808,"name":"travel","vBucketServerMap":{"serverList":[],"vBucketMap":[[-1]]}}'
    simulation.inject(respond(request, Status.NOT_MY_VBUCKET, value=config))
    before = len(questions(simulation))
    simulation.lose(simulation.newest)
    simulation.finish(Noop(TRAVEL))

    assert [struct.pack(">qq", 1, 1)] == questions(simulation)[before:]
