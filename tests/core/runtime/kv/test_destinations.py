"""Cache of routes: each route in it equals the result of a search."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

from tests.core.runtime.kv.counting import counted
from tests.core.runtime.kv.simulated import HOTELS, TRAVEL, Recorded, get, ready
from tests.core.runtime.kv.test_forgotten_buckets import drop
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.couchbase import Action, Event
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.kv.topology.bucket_map import BucketMap
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.destinations import Destination, Destinations, vbucket_of
from triclinium_core.testing.fakes.faults import status
from triclinium_core.testing.simulation.history import play


def destinations_of(client: ClientMachine) -> Destinations:
    """Return the route cache of a client."""
    return client._operations._dispatcher._destinations


def remembered(client: ClientMachine) -> Sequence[tuple[str | None, Destination]]:
    """Return each cached route of a client, with its bucket."""
    buckets = destinations_of(client)._buckets
    return [(bucket, found) for bucket, known in buckets.items() for found in known.destinations.values()]


def found_afresh(client: ClientMachine, bucket: str | None, vbucket: int) -> tuple[BucketMap | None, Connection]:
    """Return the map and the connection that a search finds without the cache."""
    dispatcher, routes = client._operations._dispatcher, client._connections.routes
    known = dispatcher._maps.get(bucket)
    if known is None:
        node = routes.any_of(bucket)
    else:
        address = known.holder(vbucket, 0)
        assert address is not None
        node = routes.get((bucket, address))
    assert node is not None
    return known, node


@pytest.mark.history
@settings(max_examples=8)
@given(st.integers(0, 999_999_999))
def test_cached_routes_equal_a_search(seed: int) -> None:
    """After each of the thousands of events of a random history, all cached routes equal the result of a search."""
    compared = 0
    handle = ClientMachine.handle

    def checked(client: ClientMachine, event: Event, now: float) -> Sequence[Action]:
        nonlocal compared
        actions = handle(client, event, now)
        collections = client._operations._dispatcher._collections
        for bucket, known in destinations_of(client)._buckets.items():
            assert known.vbucket_count == client.vbucket_count(bucket)
        for bucket, route in remembered(client):
            compared += 1
            assert found_afresh(client, bucket, route.vbucket) == (route.map, route.connection)
            assert collections.prefixes(route.connection) is route.prefixes
        return actions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientMachine, "handle", checked)
        outcome = play(seed)

    assert outcome.law is None
    assert compared > 0


def searches(simulation: Recorded, *operations: Get) -> int:
    """Run operations one after the other, and return the number of searches for a route or a prefix."""
    with counted() as calls:
        for operation in operations:
            simulation.finish(operation)
    return calls["_search"] + calls["prefix"]


@pytest.mark.parametrize("keyspace", [TRAVEL, HOTELS])
def test_a_route_is_searched_once(keyspace: Keyspace) -> None:
    """A second operation on a document searches neither the map, nor the connection, nor the prefix."""
    simulation = ready()

    assert searches(simulation, get("k", keyspace)) > 0
    assert 0 == searches(simulation, get("k", keyspace))


def test_collections_share_the_routes_of_a_bucket() -> None:
    """All collections of a bucket share its routes, so repeated operations need no search for a route or a prefix."""
    names = {f"room{number}": 9 + number for number in range(20)}
    simulation = ready(collections={"_default": {"_default": 0}, "inventory": names})
    walk = [get(f"k{number}", Keyspace("travel", "inventory", name)) for name in names for number in range(20)]

    assert searches(simulation, *walk) > 0
    assert 0 == searches(simulation, *walk)
    assert 20 == len(remembered(simulation.clients[0]))


def test_a_dropped_collection_keeps_the_routes() -> None:
    """If a collection id is new or outdated, the client requests it and keeps the routes of other collections."""
    simulation = ready()
    simulation.finish(get())
    simulation.finish(get("k", HOTELS))
    simulation.node.faults.next(Opcode.GET, status(Status.UNKNOWN_COLLECTION))
    simulation.finish(get("k", HOTELS))

    assert 2 == len(simulation.commands(Opcode.GET_COLLECTION_ID))
    assert 0 == searches(simulation, get())


def test_another_bucket_keeps_its_routes() -> None:
    """If a bucket is dropped, only the routes of this bucket are dropped."""
    simulation = ready(buckets=("travel", "other"))
    (client,) = simulation.clients
    simulation.finish(get())
    simulation.finish(get("k", Keyspace("other")))

    assert ["travel", "other"] == [bucket for bucket, _ in remembered(client)]

    drop(simulation, "other")

    assert ["travel"] == [bucket for bucket, _ in remembered(client)]


def crc32(data: bytes) -> int:
    """Return the IEEE checksum of a key, computed bit by bit."""
    register = 0xFFFF_FFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB8_8320 if register & 1 else 0)
    return register ^ 0xFFFF_FFFF


@pytest.mark.parametrize(
    ("key", "count", "expected"),
    [
        # The definition of the checksum gives CBF43926 as the check value of these nine digits.
        (b"123456789", 1024, 0xCBF4 & 0x7FFF & 1023),
        (b"123456789", 128, 0xCBF4 & 0x7FFF & 127),
        (b"123456789", 0x10000, 0x4BF4),
        (b"", 1024, 0),
        (b"a", 1, 0),
    ],
)
def test_known_answers(key: bytes, count: int, expected: int) -> None:
    """The vbucket is a remainder: 15 bits from the upper half of the checksum, modulo the number of vbuckets."""
    assert expected == vbucket_of(key, count)


@given(st.binary(max_size=60), st.sampled_from([1, 2, 3, 64, 128, 1000, 1024, 0x8000, 0x10000]))
def test_against_the_definition(key: bytes, count: int) -> None:
    """For any key and any number of vbuckets, the vbucket follows the definition."""
    assert (crc32(key) >> 16 & 0x7FFF) % count == vbucket_of(key, count)
