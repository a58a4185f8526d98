"""Where a client looks for its cluster: a lone name is looked up in DNS, and again when nobody is found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.core.kv.simulated import TRAVEL, Recorded, client_options, get, node_options, upsert
from tests.core.kv.test_cluster import KEYS
from triclinium_core.client.events import ServiceLookedUp
from triclinium_core.errors import InvalidArgumentException, UnambiguousTimeoutException
from triclinium_core.kv.operation.requests import Noop
from triclinium_core.kv.pool.seeds import LOOKUP_INTERVAL, LOOKUP_SECONDS
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes

NAME = "cluster.example"
SERVICE = f"_couchbase._tcp.{NAME}"
NODES = [("a.example", 11210), ("b.example", 11999), ("c.example", 11210)]


class Listed(Recorded):
    """A client that knows a name, and nodes that DNS lists under it; the name itself is no host."""

    def __init__(
        self, listed: Sequence[tuple[str, int]] | None = NODES[:2], query: str = "", *, is_host: bool = False
    ) -> None:
        nodes = [*NODES, (NAME, 11210)] if is_host else NODES
        super().__init__(FakeNodes(node_options(), nodes=nodes), client_options(f"couchbase://{NAME}{query}"))
        self.services = None if listed is None else {SERVICE: tuple(listed)}

    def hosts(self) -> list[str]:
        """Return the hosts that were connected to, in order."""
        return [order.host for _, order in self.opened_at]


def test_the_nodes_that_dns_lists() -> None:
    """Their hosts and ports take the place of the name, before anything is opened."""
    simulation = Listed()
    simulation.live(0.1)

    assert [SERVICE] == simulation.lookups
    assert ["a.example"] == simulation.hosts()
    assert f"0.000 {SERVICE} looked up: a.example:11210, b.example:11999" == simulation.log[0]

    for key in KEYS[:20]:
        simulation.result(upsert(key))

    assert {"a.example", "b.example", "c.example"} == set(simulation.hosts())
    assert [SERVICE] == simulation.lookups


def test_a_name_that_dns_does_not_list() -> None:
    """It is a host, and used as it stands."""
    simulation = Listed(listed=(), is_host=True)
    simulation.result(upsert())

    assert [NAME] == simulation.hosts()[:1]
    assert f"0.000 {SERVICE} looked up: nothing" == simulation.log[0]


@pytest.mark.parametrize(
    "listed", [[(".", 11210)], [("a.example", 0)], [("", 5)], [("a.example", 65536)], [("a" * 256, 1)]]
)
def test_records_that_name_nobody(listed: Sequence[tuple[str, int]]) -> None:
    """A service that is not offered, and nonsense, are no answer (RFC 2782: a target of ".")."""
    simulation = Listed(listed, is_host=True)
    simulation.live(0.1)

    assert [NAME] == simulation.hosts()


def test_a_name_server_that_does_not_answer() -> None:
    """What waits for a connection waits for half a second longer, and no operation fails for it."""
    simulation = Listed(listed=None, is_host=True)
    token = simulation.submit(get())
    simulation.live(LOOKUP_SECONDS - 0.1)
    before = simulation.hosts()
    simulation.live(0.2)

    assert [] == before
    assert NAME == simulation.hosts()[0]
    assert token in simulation.settled_at
    assert {} == dict(simulation.machine.statistics().retries_by_reason)


def test_a_late_answer() -> None:
    """It counts for the connections that are opened after it."""
    simulation = Listed(listed=None)
    simulation.live(1.0)
    simulation.feed(ServiceLookedUp(SERVICE, (("a.example", 11210),)))
    simulation.live(1.5)

    assert NAME == simulation.hosts()[0]
    assert "a.example" == simulation.hosts()[-1]


def test_an_operation_whose_time_is_over_before_the_answer() -> None:
    """It says what it was waiting for."""
    simulation = Listed(listed=None, query="?kv_timeout=100ms")
    error = simulation.failure(UnambiguousTimeoutException, get())

    assert NAME in str(error)


def test_lookups_can_be_switched_off() -> None:
    """In the connection string, and in the program."""
    simulation = Listed(query="?enable_dns_srv=false")
    simulation.live(0.1)

    assert ([], [NAME]) == (simulation.lookups, simulation.hosts()[:1])


def test_a_list_that_has_changed() -> None:
    """When nobody of it can be reached, DNS is asked again, and not more often than each 2.5 s."""
    simulation = Listed([("gone.example", 1), ("lost.example", 1)])
    simulation.live(10.0)

    assert 4 <= len(simulation.lookups) <= 10.0 / LOOKUP_INTERVAL + 1

    simulation.services = {SERVICE: (("c.example", 11210),)}
    simulation.live(2 * LOOKUP_INTERVAL)
    simulation.result(upsert())

    assert {"gone.example", "lost.example"} == set(simulation.hosts()[:10])


def test_a_cluster_that_moved_under_its_name() -> None:
    """All of its nodes are others now, and nobody of the old ones can tell: its name leads to them."""
    simulation = Listed([NODES[0]])
    simulation.nodes.remove_node(2)
    simulation.result(upsert())
    simulation.live(5.0)
    simulation.nodes.add_node(2)
    for place in (0, 1):
        simulation.nodes.hold_config(place)
        simulation.nodes.kill(place)
        simulation.nodes.remove_node(place)
    simulation.services = {SERVICE: (NODES[2],)}
    simulation.live(5.0)
    for key in KEYS[:20]:
        simulation.result(upsert(key))

    assert {"c.example:11210"} == {each.node for each in simulation.machine.statistics().connections}


def test_an_old_node_comes_back_before_the_answer() -> None:
    """The connection that waited for the answer is not needed any more, and what waited for it is sent elsewhere."""
    simulation = Listed([NODES[0]])
    simulation.result(upsert())
    simulation.live(5.0)
    for place in range(3):
        simulation.nodes.kill(place)
    simulation.services = None
    simulation.live(0.05)
    asked = len(simulation.lookups)
    token = simulation.submit(Noop(TRAVEL))
    for place in range(3):
        simulation.nodes.revive(place)
    simulation.live(0.4)
    opened = len(simulation.opened_at)
    simulation.live(5.0)

    assert 2 == asked
    assert token in simulation.results
    # The connection without a bucket, which waited too, and no other one.
    assert 1 == len(simulation.opened_at) - opened
    assert 3 == sum(each.bucket == "travel" for each in simulation.machine.statistics().connections)


def test_answers_that_nobody_asked_for() -> None:
    """Another name changes nothing; the same answer twice neither."""
    simulation = Listed()
    simulation.live(0.1)
    for _ in range(2):
        simulation.feed(ServiceLookedUp("_couchbase._tcp.evil.example", (("evil.example", 1),)))
        simulation.feed(ServiceLookedUp(SERVICE, tuple(NODES[:2])))
    simulation.result(Noop(TRAVEL))

    assert {"a.example", "b.example", "c.example"} >= set(simulation.hosts())


def test_hosts_without_end() -> None:
    """A list longer than any cluster is cut."""
    simulation = Listed([("a.example", 11210), *((f"h{number}.example", 1) for number in range(70_000))])
    simulation.result(upsert())

    assert 400 > len(simulation.log[0])


def test_hosts_that_forge_lines_of_the_log() -> None:
    """They are passed over."""
    simulation = Listed([("a.example\nWARNING b", 11210), ("a.example", 11210)])
    simulation.result(upsert())

    assert all(map(str.isprintable, simulation.log))
    assert {"a.example", "b.example", "c.example"} >= set(simulation.hosts())


@pytest.mark.parametrize(
    "targets", [("a.example",), (("a.example", "1"),), (("a.example", 1, 2),), ((b"a", 1),), [("a", 1)]]
)
def test_no_answer_at_all(targets: object) -> None:
    """A mistake of the driver is one: it raises where it is made."""
    with pytest.raises(InvalidArgumentException):
        ServiceLookedUp(SERVICE, targets)  # type: ignore[arg-type]
