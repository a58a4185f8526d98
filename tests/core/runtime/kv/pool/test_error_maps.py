"""Error maps of nodes: how long the client keeps them, and how often it reports problems with them."""

from __future__ import annotations

from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.codec_parts import Dialect
from triclinium_core.retry.couchbase import CircuitBreakerOptions, ErrorMap, ErrorMapEntry, ErrorMapStore
from triclinium_core.runtime.kv.connection.address_cycle import AddressCycle
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.pool.error_maps import NegotiatedErrorMaps

A, B = Address("a", 11210), Address("b", 11210)
UNKNOWN = 0x7FF0


def connection(*addresses: Address, problem: str | None = None) -> Connection:
    """Return a connection that has an error map and tries these addresses in turn."""
    made = Connection(
        "travel", AddressCycle(addresses), dialect=Dialect(), circuit_breaker=CircuitBreakerOptions(), sending=[]
    )
    made.choose()
    made.negotiated.error_map = ErrorMap(2, 1, {UNKNOWN: ErrorMapEntry("NEW", "", frozenset())})
    made.negotiated.error_map_problem = problem
    return made


def knows(store: ErrorMapStore, address: Address) -> bool:
    """Return whether the store has the error map of a node."""
    return store.entry(str(address), UNKNOWN) is not None


def test_a_map_ends_with_the_last_connection() -> None:
    """The map of a node is kept until its last connection ends, even if a connection becomes ready more than once."""
    store = ErrorMapStore()
    maps, first, second = NegotiatedErrorMaps(store), connection(A), connection(A)
    for each in (first, second, first):
        maps.ready(each)
    maps.forget(first)
    with_one_left = knows(store, A)
    maps.forget(second)
    maps.forget(second)

    assert (True, False) == (with_one_left, knows(store, A))


def test_a_connection_that_finds_another_node() -> None:
    """If a connection moves to another node, the map of the new node is kept and that of the old node is dropped."""
    store = ErrorMapStore()
    maps, seeking = NegotiatedErrorMaps(store), connection(A, B)
    maps.ready(seeking)
    seeking.choose()
    maps.ready(seeking)

    assert (False, True) == (knows(store, A), knows(store, B))


def test_a_problem_is_reported_once_per_node() -> None:
    """A problem is reported once while a node has connections, and again after the last of them has ended."""
    maps, first, second = (
        NegotiatedErrorMaps(ErrorMapStore()),
        connection(A, problem="odd"),
        connection(A, problem="odd"),
    )
    reported = [maps.ready(each) for each in (first, second, first)]
    for each in (first, second):
        maps.forget(each)

    assert (["odd", None, None], "odd") == (reported, maps.ready(second))


def test_equal_maps_are_shared() -> None:
    """Connections with equal maps share one object, whatever their nodes are; different maps stay separate."""
    maps, first, second, other = NegotiatedErrorMaps(ErrorMapStore()), connection(A), connection(B), connection(A)
    other.negotiated.error_map = ErrorMap(2, 1, {})
    assert first.negotiated.error_map is not second.negotiated.error_map
    for each in (first, second):
        maps.ready(each)
    maps.share(other)

    assert first.negotiated.error_map is second.negotiated.error_map
    assert ErrorMap(2, 1, {}) == other.negotiated.error_map


def test_a_refused_connection_shares_its_map() -> None:
    """If the bucket of a connection is refused, the connection shares the map of the node's other connection."""
    maps, used, refused = NegotiatedErrorMaps(ErrorMapStore()), connection(A), connection(A)
    maps.ready(used)
    maps.share(refused)
    without = connection(B)
    without.negotiated.error_map = None
    maps.share(without)

    assert used.negotiated.error_map is refused.negotiated.error_map
    assert without.negotiated.error_map is None
