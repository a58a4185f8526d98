"""What is remembered of the way to a document is what would be found if it were searched again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

from tests.core.runtime.kv.counting import counted
from tests.core.runtime.kv.simulated import HOTELS, TRAVEL, get, ready, upsert
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.couchbase import Action, Event
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.runtime.kv.destinations import Destination, Destinations, vbucket_of
from triclinium_core.testing.simulation.history import play


def destinations_of(client: ClientMachine) -> Destinations:
    """Return what a client remembers."""
    return client._operations._dispatcher._destinations


def remembered(client: ClientMachine) -> Sequence[tuple[Keyspace, Destination]]:
    """Return all ways that a client remembers."""
    keyspaces = destinations_of(client)._keyspaces
    return [(keyspace, found) for keyspace, known in keyspaces.items() for found in known.destinations.values()]


def found_afresh(client: ClientMachine, keyspace: Keyspace, vbucket: int) -> Destination:
    """Return where a search leads now."""
    dispatcher, routes = client._operations._dispatcher, client._connections.routes
    known = dispatcher._maps.get(keyspace.bucket)
    if known is None:
        node = routes.any_of(keyspace.bucket)
    else:
        address = known.holder(vbucket, 0)
        assert address is not None
        node = routes.get((keyspace.bucket, address))
    assert node is not None
    return Destination(known, vbucket, node, dispatcher._collections.prefix(node, Get(keyspace, "k")))


@pytest.mark.history
@settings(max_examples=8)
@given(st.integers(0, 999_999_999))
def test_remembered_is_found_afresh(seed: int) -> None:
    """After every event of an eventful hour: rebalances, failovers, losses, dropped collections, other credentials."""
    compared = 0
    handle = ClientMachine.handle

    def checked(client: ClientMachine, event: Event, now: float) -> Sequence[Action]:
        nonlocal compared
        actions = handle(client, event, now)
        for keyspace, known in destinations_of(client)._keyspaces.items():
            assert known.vbucket_count == client.vbucket_count(keyspace.bucket)
        for keyspace, way in remembered(client):
            compared += 1
            fresh = found_afresh(client, keyspace, way.vbucket)
            assert (fresh.map, fresh.connection, fresh.prefix) == (way.map, way.connection, way.prefix)
        return actions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientMachine, "handle", checked)
        outcome = play(seed)

    assert outcome.law is None
    assert compared > 0


@pytest.mark.parametrize("keyspace", [TRAVEL, HOTELS])
def test_a_way_is_searched_once(keyspace: Keyspace) -> None:
    """The second operation on a document does not ask for map, connection and collection again."""
    simulation = ready()
    simulation.finish(get("k", keyspace))
    with counted() as again:
        simulation.finish(get("k", keyspace))

    assert 0 == again["_search"] + again["prefix"]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound all is forgotten, and nothing else changes."""
    monkeypatch.setattr("triclinium_core.runtime.kv.destinations.REMEMBERED_MAX", 4)
    simulation = ready()
    (client,) = simulation.clients
    found = list[int]()
    for number in range(10):
        simulation.result(upsert(str(number)))
        found.append(len(remembered(client)))

    assert [1, 2, 3, 4, 1] == found[:5]


def crc32(data: bytes) -> int:
    """Return the IEEE checksum, computed bit by bit."""
    register = 0xFFFF_FFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB8_8320 if register & 1 else 0)
    return register ^ 0xFFFF_FFFF


@pytest.mark.parametrize(
    ("key", "count", "expected"),
    [
        # The check value of the checksum's own definition: CBF43926 for these nine digits.
        (b"123456789", 1024, 0xCBF4 & 0x7FFF & 1023),
        (b"123456789", 128, 0xCBF4 & 0x7FFF & 127),
        (b"123456789", 0x10000, 0x4BF4),
        (b"", 1024, 0),
        (b"a", 1, 0),
    ],
)
def test_known_answers(key: bytes, count: int, expected: int) -> None:
    """The vbucket is the remainder of 15 bits from the upper half of the checksum."""
    assert expected == vbucket_of(key, count)


@given(st.binary(max_size=60), st.sampled_from([1, 2, 3, 64, 128, 1000, 1024, 0x8000, 0x10000]))
def test_against_the_definition(key: bytes, count: int) -> None:
    """The vbucket of any key follows the definition for any number of vbuckets."""
    assert (crc32(key) >> 16 & 0x7FFF) % count == vbucket_of(key, count)
