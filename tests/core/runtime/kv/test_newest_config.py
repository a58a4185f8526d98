"""Configs from each source: the client keeps the newest, and an older one changes nothing.

Source: SDK-RFC 0024 "General Design"; decision C10.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.core.runtime.kv.simulated import Recorded, get, ready, respond, upsert
from tests.core.runtime.kv.test_cluster import MUTE
from tests.rows import rows
from triclinium_core.kv.wire.constants import HelloFeature, Opcode, ServerOpcode
from triclinium_core.kv.wire.frame import encode_server_request
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.faults import status
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES
from triclinium_core.testing.fakes.store.config import encode_config

KNOWN = (7, 5)
VERSIONS = {"an older epoch": (6, 99), "an older revision": (7, 4), "the same": KNOWN}


def config(version: tuple[int, int]) -> bytes:
    """Return a config whose vbuckets have no nodes, so that a test sees whether the client applied it."""
    epoch, revision = version
    vbuckets = {"serverList": [], "vBucketMap": [[-1]] * 128}
    body = {"rev": revision, "revEpoch": epoch, "name": "travel", "nodesExt": [], "vBucketServerMap": vbuckets}
    return json.dumps(body).encode()


def by_refusal(simulation: Recorded, document: bytes) -> None:
    """Send the client a config in a NOT_MY_VBUCKET response."""
    _, request = simulation.submit_in_flight(get())
    simulation.inject(respond(request, Status.NOT_MY_VBUCKET, value=document))


def by_poll(simulation: Recorded, document: bytes) -> None:
    """Send the client a config in the response to its next poll."""
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, document), times=2)
    simulation.live(3.0)


def by_bootstrap(simulation: Recorded, document: bytes) -> None:
    """Send the client a config in the bootstrap of a new stream."""
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, document))
    simulation.lose(simulation.newest)
    simulation.live(1.0)


def by_announcement(simulation: Recorded, document: bytes) -> None:
    """Announce a newer config, and send ``document`` when the client requests the announced one."""
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, document), times=2)
    extras = (99).to_bytes(8, "big") + (99).to_bytes(8, "big")
    simulation.inject(encode_server_request(ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION, opaque=1, extras=extras))
    simulation.live(1.0)


SOURCES = (by_refusal, by_poll, by_bootstrap, by_announcement)
each_source = rows("bring", SOURCES)


def client(bring: Callable[[Recorded, bytes], None]) -> Recorded:
    """Return a simulation whose client knows a config of version ``KNOWN``, and polls if ``bring`` needs this."""
    features = MUTE if bring is by_poll else IMPLEMENTED_FEATURES
    simulation = ready(features=features - {HelloFeature.GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION})
    by_refusal(simulation, config_of(simulation, KNOWN))
    simulation.run()
    assert simulation.connection().config_revision == KNOWN
    return simulation


def config_of(simulation: Recorded, version: tuple[int, int]) -> bytes:
    """Return the config of the node, with its version replaced."""
    cluster = simulation.node.cluster
    body = json.loads(encode_config(cluster.map, cluster.nodes, 0, cluster.buckets["travel"]))
    body["revEpoch"], body["rev"] = version
    return json.dumps(body).encode()


@each_source
@rows("version", VERSIONS.values())
def test_an_older_config(bring: Callable[[Recorded, bytes], None], version: tuple[int, int]) -> None:
    """The client does not apply a config that is older than or as new as its own, from any source."""
    simulation = client(bring)
    bring(simulation, config(version))
    simulation.run()

    assert simulation.connection().config_revision == KNOWN

    simulation.result(upsert())


@each_source
@rows("version", [(7, 6), (8, 1)])
def test_a_newer_config(bring: Callable[[Recorded, bytes], None], version: tuple[int, int]) -> None:
    """A newer config from any source replaces the one that the client knows."""
    simulation = client(bring)
    bring(simulation, config(version))

    assert version == simulation.connection().config_revision
