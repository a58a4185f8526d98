"""Which connection leads where."""

from __future__ import annotations

from triclinium_core.kv.address import Address
from triclinium_core.kv.node.node_machine import NodeMachine
from triclinium_core.kv.node.states import NodeState
from triclinium_core.kv.routes import Routes, ready_after
from triclinium_core.retry.circuit_breaker import CircuitBreakerOptions

A, B, C = (Address("127.0.0.1", port) for port in (1, 2, 3))


def node(bucket: str | None, address: Address = A) -> NodeMachine:
    """Return a connection."""
    return NodeMachine(bucket, (address,), bare=False, compression=True, circuit_breaker=CircuitBreakerOptions())


def test_nothing_leads_anywhere() -> None:
    """At first."""
    routes = Routes()

    assert (None, None, []) == (routes.get(("travel", A)), routes.any_of("travel"), [*routes.nodes])


def test_a_seed_is_identified() -> None:
    """The connection that brought a map becomes the one to its node."""
    routes, seed = Routes(), node("travel")
    routes.add(("travel", None), seed)
    routes.identify(seed, B)

    assert routes.get(("travel", B)) is seed
    assert routes.get(("travel", None)) is None
    assert [seed] == [*routes.nodes]


def test_a_node_that_has_a_connection_keeps_it() -> None:
    """Another one that claims to be the same changes nothing."""
    routes, first, second = Routes(), node("travel"), node("travel")
    routes.add(("travel", A), first)
    routes.add(("travel", None), second)
    routes.identify(second, A)

    assert routes.get(("travel", A)) is first
    assert routes.get(("travel", None)) is second


def test_nodes_that_left_the_map() -> None:
    """Those of the bucket, and of no other; a seed that is none of its nodes goes too."""
    routes = Routes()
    kept, gone, other, seed = node("travel"), node("travel"), node("hotels"), node("travel")
    for route, each in ((("travel", A), kept), (("travel", B), gone), (("hotels", B), other), (("travel", None), seed)):
        routes.add(route, each)
    dropped = routes.drop_others("travel", [A, C])

    assert [gone, seed] == dropped
    assert [kept, other] == [*routes.nodes]


def test_the_next_that_is_ready() -> None:
    """Of the same bucket and behind the one given, then from the beginning; that one itself where it is the only one."""
    routes, nodes, other = Routes(), [node("travel", address) for address in (A, B, C)], node("beer")
    for address, each in zip((A, B, C), nodes, strict=True):
        routes.add(("travel", address), each)
    routes.add(("beer", A), other)
    none_ready = ready_after(nodes[0], routes.nodes)
    for each in (nodes[0], nodes[2], other):
        each.state = NodeState.READY

    assert none_ready is None
    assert [nodes[2], nodes[2], nodes[0]] == [ready_after(each, routes.nodes) for each in nodes]
    assert nodes[0] is ready_after(node("travel"), routes.nodes)
    assert other is ready_after(other, routes.nodes)
