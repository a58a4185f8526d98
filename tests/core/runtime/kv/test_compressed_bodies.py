"""Feature Snappy Everywhere: the client inflates the body of any response before it reads it.

Source: kv_engine ``docs/BinaryProtocol.md``, HELLO feature ``SnappyEverywhere`` (0x13).
"""

from __future__ import annotations

import json

from tests.core.runtime.kv.simulated import HOTELS, Recorded, get, ready, respond, upsert
from triclinium_core import errors
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.kv.wire.compression import deflate
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.faults import status
from triclinium_core.testing.fakes.store.config import encode_config

COMPRESSED = Datatype.JSON | Datatype.SNAPPY
LONG = b'"' + b"x" * 1000 + b'"'
WORDS = ", ".join(4 * ["there is no such document"])


def squeezed(document: bytes) -> bytes:
    """Return a compressed body, as a server may send it after it has granted Snappy Everywhere."""
    deflated = deflate(document)
    assert deflated is not None
    return deflated


def test_words_of_an_error() -> None:
    """If the body of an error response is compressed, the error has its message and its reference."""
    simulation = ready()
    body = json.dumps({"error": {"context": WORDS, "ref": "7"}}).encode()
    token, request = simulation.submit_in_flight(get())
    simulation.inject(respond(request, Status.KEY_NOT_FOUND, value=squeezed(body), datatype=COMPRESSED))
    error = simulation.error(errors.DocumentNotFoundException, token)

    assert (WORDS, "7") == (error.context.server_context, error.context.server_ref)


def test_a_config_in_a_refusal() -> None:
    """If a NOT_MY_VBUCKET response has a compressed config, the client applies the config before the retry."""
    simulation = ready()
    cluster = simulation.node.cluster
    body = json.loads(encode_config(cluster.map, cluster.nodes, 0, cluster.buckets["travel"])) | {"rev": 77}
    token, request = simulation.submit_in_flight(upsert())
    value = squeezed(json.dumps(body).encode())
    simulation.inject(respond(request, Status.NOT_MY_VBUCKET, value=value, datatype=COMPRESSED))

    assert (1, 77) == simulation.connection().config_revision

    simulation.run()

    assert token in simulation.results


def test_a_refusal_that_cannot_be_inflated() -> None:
    """If the body of NOT_MY_VBUCKET cannot be inflated, the failure is logged; the retry does without the config."""
    simulation = ready()
    token, request = simulation.submit_in_flight(upsert())
    simulation.inject(respond(request, Status.NOT_MY_VBUCKET, value=b"\xff" * 40, datatype=COMPRESSED))
    simulation.run()

    assert token in simulation.results
    assert any("decompressed" in line for line in simulation.log)


def test_an_error_map_that_cannot_be_inflated() -> None:
    """If an error map cannot be inflated, the client ignores it (decision C18)."""
    simulation = Recorded()
    simulation.node.faults.always(Opcode.GET_ERROR_MAP, status(Status.SUCCESS, b"\xff" * 40, COMPRESSED))
    simulation.result(upsert())

    assert simulation.connection().error_map_version is None


def test_a_config_that_cannot_be_inflated() -> None:
    """If its first config cannot be inflated, a connection is closed with the reason, and the next one works."""
    simulation = Recorded()
    simulation.flow()
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, b"\xff" * 40, COMPRESSED))
    simulation.result(upsert())

    assert [True] == ["decompressed" in text for text in simulation.closings()]


def test_compressed_beside_plain() -> None:
    """On one connection the client decodes both a compressed document and an uncompressed collection id."""
    simulation = ready(vbuckets=1024)
    assert HelloFeature.SNAPPY_EVERYWHERE.name in simulation.connection().features
    simulation.result(upsert("k", HOTELS, LONG))
    found = simulation.result(get("k", HOTELS))

    assert isinstance(found, GetResult)
    assert LONG == found.data
