"""Routes to nodes, and the state of each bucket's connections."""

from __future__ import annotations

from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.codec_parts import Dialect
from triclinium_core.retry.couchbase import CircuitBreakerOptions
from triclinium_core.runtime.kv.connection.address_cycle import AddressCycle
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.destinations import Destinations
from triclinium_core.runtime.kv.pool.routes import Routes

A, B, C = (Address("127.0.0.1", port) for port in (1, 2, 3))


def connection(bucket: str | None, address: Address = A) -> Connection:
    """Return a connection of this bucket to this address."""
    return Connection(
        bucket, AddressCycle((address,)), dialect=Dialect(), circuit_breaker=CircuitBreakerOptions(), sending=[]
    )


def routes_to(*addresses: Address) -> tuple[Routes, list[Connection]]:
    """Return routes to these addresses, with their connections."""
    routes, nodes = Routes(Destinations()), [connection("travel", address) for address in addresses]
    for address, each in zip(addresses, nodes, strict=True):
        routes.add(("travel", address), each)
    return routes, nodes


def move(routes: Routes, each: Connection, state: ConnectionState, failed_attempts: int = 0) -> None:
    """Change the state of a connection, and report it to the routes."""
    each.state, each.history.failures = state, failed_attempts
    routes.moved(each)


def test_a_node_that_has_a_connection_keeps_it() -> None:
    """If a node already has a connection, identifying a second one as this node changes nothing."""
    routes, (first,) = routes_to(A)
    second = connection("travel")
    routes.add(("travel", None), second)
    routes.identify(second, A)

    assert routes.get(("travel", A)) is first
    assert routes.get(("travel", None)) is second


def test_an_identified_node_keeps_its_position() -> None:
    """The connection of an identified node remains before the connections that were opened after it."""
    routes, seed = Routes(Destinations()), connection("travel")
    routes.add(("travel", None), seed)
    later = connection("travel", B)
    routes.add(("travel", B), later)
    routes.identify(seed, A)

    assert routes.get(("travel", A)) is seed
    assert routes.get(("travel", None)) is None
    assert [seed, later] == [*routes.all]


def test_nodes_that_left_the_map() -> None:
    """Connections of a bucket to removed nodes and unidentified seeds are dropped; those of other buckets stay."""
    routes, (kept, gone) = routes_to(A, B)
    other, seed = connection("hotels"), connection("travel")
    routes.add(("hotels", B), other)
    routes.add(("travel", None), seed)
    move(routes, gone, ConnectionState.READY)
    dropped = routes.drop_others("travel", [A, C])

    assert [gone, seed] == [*dropped]
    assert [kept, other] == [*routes.all]
    assert 0 == routes.ready_count("travel")


def test_a_node_that_has_left_changes_nothing() -> None:
    """The state of a removed node's connection is still reported, but does not count for its bucket."""
    routes, (kept, gone) = routes_to(A, B)
    routes.drop_others("travel", [A])
    gone.leave()
    routes.take_fresh()
    move(routes, kept, ConnectionState.LOST, failed_attempts=1)
    move(routes, gone, ConnectionState.READY)

    assert [kept, gone] == [*routes.take_fresh()]
    assert (0, True) == (routes.ready_count("travel"), routes.is_cut_off("travel"))


def test_ready_connections_take_turns() -> None:
    """The ready connections of a bucket take turns; the given connection is returned only if no other is ready."""
    routes, nodes = routes_to(A, B, C)
    none_ready = routes.ready_after(nodes[0])
    for each in nodes:
        move(routes, each, ConnectionState.READY)
    asked = [routes.ready_after(nodes[0]) for _ in range(3)]
    for each in nodes[1:]:
        move(routes, each, ConnectionState.LOST)

    assert none_ready is None
    assert [nodes[1], nodes[2], nodes[1]] == asked
    assert nodes[0] is routes.ready_after(nodes[0])
    assert nodes[0] is routes.ready_after(connection("travel"))
    assert routes.ready_after(connection("hotels")) is None


def test_cut_off() -> None:
    """A bucket is cut off once each connection has failed since it was last ready, even if one connects again."""
    routes, nodes = routes_to(A, B)
    is_new = routes.is_cut_off("travel")
    move(routes, nodes[0], ConnectionState.READY)
    move(routes, nodes[1], ConnectionState.LOST, failed_attempts=1)
    in_use = routes.is_cut_off("travel")
    move(routes, nodes[0], ConnectionState.LOST)
    just_lost = routes.is_cut_off("travel")
    move(routes, nodes[0], ConnectionState.LOST, failed_attempts=1)
    move(routes, nodes[1], ConnectionState.CONNECTING, failed_attempts=1)

    assert [False, False, False, True] == [is_new, in_use, just_lost, routes.is_cut_off("travel")]
