"""Seed nodes: the client looks up a single host name in DNS, and again when no node is reachable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.core.runtime.kv.simulated import TIMEOUT, TRAVEL, Recorded, client_options, get, node_options, upsert
from tests.core.runtime.kv.test_cluster import KEYS
from triclinium_core import errors
from triclinium_core.contract.couchbase import ServiceLookedUp
from triclinium_core.contract.neutral import ReportConnection, ReportLevel
from triclinium_core.kv.operation.document_operations import Noop
from triclinium_core.kv.operation.inquiries import WaitUntilReady
from triclinium_core.kv.topology.cluster_config import NODES_MAX
from triclinium_core.options import TimeoutOptions
from triclinium_core.runtime.kv.pool import seeds
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes

NAME = "cluster.example"
SERVICE = f"_couchbase._tcp.{NAME}"
NODES = [("a.cluster.example", 11210), ("b.cluster.example", 11999), ("c.cluster.example", 11210)]


class Listed(Recorded):
    """Simulation with one host name, under which DNS lists nodes; the name is not a host unless ``is_host``."""

    def __init__(
        self,
        listed: Sequence[tuple[str, int]] | None = NODES[:2],
        query: str = "",
        *,
        is_host: bool = False,
        scheme: str = "couchbase",
        **options: Any,
    ) -> None:
        nodes = [*NODES, (NAME, 11210)] if is_host else NODES
        super().__init__(FakeNodes(node_options(), nodes=nodes), client_options(f"{scheme}://{NAME}{query}", **options))
        self.services = None if listed is None else {f"_{scheme}._tcp.{NAME}": tuple(listed)}

    def warnings(self) -> list[ReportConnection]:
        """Return the warnings about lookups, which name no stream."""
        reports = [action for action in self.actions if isinstance(action, ReportConnection)]
        return [each for each in reports if each.level is ReportLevel.WARNING and each.stream == seeds.NO_STREAM]

    def hosts(self) -> list[str]:
        """Return the hosts in the order in which the client connected to them."""
        return [order.host for _, order in self.opened_at]


def test_the_nodes_that_dns_lists() -> None:
    """The client connects to the hosts and ports that DNS lists, and never to the name."""
    simulation = Listed()
    simulation.live(0.1)

    assert [SERVICE] == simulation.lookups
    assert ["a.cluster.example"] == simulation.hosts()
    assert f"0.000 {SERVICE} looked up: a.cluster.example:11210, b.cluster.example:11999" == simulation.log[0]

    for key in KEYS[:20]:
        simulation.result(upsert(key))

    assert {"a.cluster.example", "b.cluster.example", "c.cluster.example"} == set(simulation.hosts())
    assert [SERVICE] == simulation.lookups


def test_a_name_that_dns_does_not_list() -> None:
    """If DNS lists no records for the name, the client uses the name as host."""
    simulation = Listed(listed=(), is_host=True)
    simulation.result(upsert())

    assert [NAME] == simulation.hosts()[:1]
    assert f"0.000 {SERVICE} looked up: nothing" == simulation.log[0]


@pytest.mark.parametrize(
    "listed", [[(".", 11210)], [("a.cluster.example", 0)], [("", 5)], [("a.cluster.example", 65536)], [("a" * 256, 1)]]
)
def test_unusable_records(listed: Sequence[tuple[str, int]]) -> None:
    """The client ignores invalid records, and the target "." that means no service (RFC 2782)."""
    simulation = Listed(listed, is_host=True)
    simulation.live(0.1)

    assert [NAME] == simulation.hosts()


def test_a_name_server_that_does_not_answer() -> None:
    """If DNS does not respond, operations wait half a second longer and are not retried."""
    simulation = Listed(listed=None, is_host=True)
    token = simulation.submit(get())
    simulation.live(seeds.LOOKUP_SECONDS - 0.1)
    before = simulation.hosts()
    simulation.live(0.2)

    assert [] == before
    assert NAME == simulation.hosts()[0]
    assert token in simulation.settled_at
    assert {} == dict(simulation.machine.statistics().retries_by_reason)


def test_a_late_answer() -> None:
    """If the response of DNS is late, later connections use it."""
    simulation = Listed(listed=None)
    simulation.live(1.0)
    simulation.feed(ServiceLookedUp(SERVICE, (("a.cluster.example", 11210),)))
    simulation.live(1.5)

    assert NAME == simulation.hosts()[0]
    assert "a.cluster.example" == simulation.hosts()[-1]


def test_an_operation_that_times_out_during_lookup() -> None:
    """If an operation times out during the lookup, the error names the host that is looked up."""
    simulation = Listed(listed=None, query="?kv_timeout=100ms")
    error = simulation.failure(errors.UnambiguousTimeoutException, get())

    assert NAME in str(error)


def test_lookups_can_be_switched_off() -> None:
    """If the connection string disables lookups, the client does not query DNS."""
    simulation = Listed(query="?enable_dns_srv=false")
    simulation.live(0.1)

    assert ([], [NAME]) == (simulation.lookups, simulation.hosts()[:1])


def test_a_list_that_has_changed() -> None:
    """While no listed node is reachable, the client queries DNS again, at most every 2.5 s."""
    simulation = Listed([("gone.cluster.example", 1), ("lost.cluster.example", 1)])
    simulation.live(10.0)

    assert 4 <= len(simulation.lookups) <= 10.0 / seeds.LOOKUP_INTERVAL + 1

    simulation.services = {SERVICE: (("c.cluster.example", 11210),)}
    simulation.live(2 * seeds.LOOKUP_INTERVAL)
    simulation.result(upsert())

    assert {"gone.cluster.example", "lost.cluster.example"} == set(simulation.hosts()[:10])


def test_a_cluster_that_moved_under_its_name() -> None:
    """If all nodes of a cluster are replaced, the client finds the new nodes through DNS."""
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

    assert {"c.cluster.example:11210"} == {each.node for each in simulation.machine.statistics().connections}


def test_an_old_node_returns_before_the_response() -> None:
    """If an old node returns before DNS responds, the operation uses it; only the bucketless connection still opens."""
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
    # The only new connection is the one without a bucket, which waited for DNS too.
    assert 1 == len(simulation.opened_at) - opened
    assert 3 == sum(each.bucket == "travel" for each in simulation.machine.statistics().connections)


def test_unsolicited_dns_responses() -> None:
    """The client ignores responses for another name, and repeated responses."""
    simulation = Listed()
    simulation.live(0.1)
    for _ in range(2):
        simulation.feed(ServiceLookedUp("_couchbase._tcp.evil.example", (("evil.example", 1),)))
        simulation.feed(ServiceLookedUp(SERVICE, tuple(NODES[:2])))
    simulation.result(Noop(TRAVEL))

    assert ["a.cluster.example", *(host for host, _ in NODES)] == simulation.hosts()
    assert not any("evil" in line for line in simulation.log)


def test_too_many_hosts() -> None:
    """If DNS lists more hosts than a cluster can have, operations still succeed, and the log line is short."""
    simulation = Listed(
        [("a.cluster.example", 11210), *((f"h{number}.cluster.example", 1) for number in range(70_000))]
    )
    simulation.result(upsert())
    (client,) = simulation.clients

    assert f"0.000 {SERVICE} looked up: a.cluster.example:11210, " in simulation.log[0]
    assert 8 == simulation.log[0].count(".cluster.example:")
    assert NODES_MAX == len(client._connections.seeds._listed)


def test_hosts_that_forge_lines_of_the_log() -> None:
    """The client ignores a host with line breaks."""
    simulation = Listed([("a.cluster.example\nWARNING b", 11210), ("a.cluster.example", 11210)])
    simulation.result(upsert())

    assert all(map(str.isprintable, simulation.log))
    assert ["a.cluster.example", *(host for host, _ in NODES)] == simulation.hosts()


EVIL = ("evil.test", 11210)


@pytest.mark.parametrize("scheme", ["couchbase", "couchbases"])
def test_targets_elsewhere(scheme: str) -> None:
    """The client connects only to accepted targets; a WARNING names the refused target, the rule and the option."""
    simulation = Listed([EVIL, NODES[1]], scheme=scheme)
    simulation.live(5.0)
    (warning,) = simulation.warnings()

    assert {"b.cluster.example"} == set(simulation.hosts()[:1])
    assert EVIL[0] not in simulation.hosts()
    assert (f"_{scheme}._tcp.{NAME}", seeds.NO_STREAM) == (warning.node, warning.stream)
    assert [True] * 3 == [word in warning.text for word in ("evil.test:11210", NAME, "dns_srv_domains")]


def test_nothing_but_targets_elsewhere() -> None:
    """If all targets are refused, the client uses the name as host, and repeated lookups cause no further WARNING."""
    simulation = Listed([EVIL])
    simulation.live(10.0)

    assert {NAME} == set(simulation.hosts())
    assert len(simulation.lookups) > 2
    assert 1 == len(simulation.warnings())


def test_a_later_answer_is_held_to_the_rule() -> None:
    """If a later lookup lists only refused targets, the name replaces the targets that were accepted before."""
    simulation = Listed([("gone.cluster.example", 1)])
    simulation.live(1.0)
    simulation.services = {SERVICE: (EVIL,)}
    simulation.live(10.0)

    assert {"gone.cluster.example", NAME} == set(simulation.hosts())
    assert NAME == simulation.hosts()[-1]
    assert 1 == len(simulation.warnings())


def test_a_rule_that_finds_targets_again() -> None:
    """If a later response has an accepted target, the client uses it, and errors no longer name the refused targets."""
    simulation = Listed([EVIL])
    simulation.live(1.0)
    simulation.services = {SERVICE: (NODES[0], EVIL)}
    simulation.live(3.0)
    simulation.result(upsert())
    for place in range(3):
        simulation.nodes.kill(place)
    error = simulation.failure(errors.UnambiguousTimeoutException, get())

    assert EVIL[0] not in str(error)
    assert 1 == len(simulation.warnings())


@pytest.mark.parametrize("query", ["?dns_srv_domains=other.example,test", "?dns_srv_domains=evil.test"])
def test_an_option_accepts_other_domains(query: str) -> None:
    """The client accepts targets at or below a domain that the connection string names, without a WARNING."""
    simulation = Listed([EVIL], query)
    simulation.live(1.0)

    assert {"evil.test"} == set(simulation.hosts())
    assert [] == simulation.warnings()


def test_a_name_without_an_address() -> None:
    """If the name has no address, errors and the context of a wait name the refused target and the option."""
    simulation = Listed([EVIL])
    wait = simulation.inquire(WaitUntilReady(None))
    query = simulation.request(QueryRequest(statement="SELECT 1"))
    error = simulation.failure(errors.UnambiguousTimeoutException, get())
    waited = simulation.machine.error_context(wait, simulation.now)
    simulation.live(100.0)

    assert waited is not None
    for text in (str(error), str(simulation.errors[query]), "".join(waited.connections)):
        assert "evil.test:11210" in text
        assert "dns_srv_domains" in text
    assert not [line for line in simulation.log[2:] if EVIL[0] in line]


def test_a_request_that_waits_for_the_first_config() -> None:
    """If a request times out before the first config, its error names the refused target and the option."""
    simulation = Listed([EVIL], timeouts=TimeoutOptions(query=1.0))
    simulation.live(1.0)
    token = simulation.request(QueryRequest(statement="SELECT 1"))
    simulation.advance(1.0)
    error = simulation.errors[token]

    assert "evil.test:11210" in str(error)
    assert "dns_srv_domains" in str(error)


def test_a_name_that_is_still_being_connected_to() -> None:
    """If an operation times out while the client connects to the name, its error names the refused target too."""
    simulation = Listed([EVIL])
    token = simulation.submit(get())
    simulation.feed(ServiceLookedUp(SERVICE, (EVIL,)))
    simulation.advance(TIMEOUT)
    error = simulation.errors[token]

    assert "evil.test:11210" in str(error)
    assert "dns_srv_domains" in str(error)


def test_many_targets_elsewhere() -> None:
    """If DNS lists many refused targets, warning and error name a few and count the rest; few are remembered."""
    simulation = Listed([(f"{number}a.evil.test", 1) for number in range(70_000)])
    simulation.live(1.0)
    error = simulation.failure(errors.UnambiguousTimeoutException, get())
    for batch in range(1, 10):
        targets = tuple((f"{batch}-{number}.evil.test", 1) for number in range(NODES_MAX))
        simulation.feed(ServiceLookedUp(SERVICE, targets))

    assert 500 > max(len(warning.text) for warning in simulation.warnings())
    assert seeds.REFUSED_NAMED_MAX == str(error).count("evil.test:1,") + str(error).count("evil.test:1 and")
    assert f"{NODES_MAX - seeds.REFUSED_NAMED_MAX} more" in str(error)
    assert seeds.REFUSED_REMEMBERED_MAX // NODES_MAX == len(simulation.warnings())


@pytest.mark.parametrize(
    "targets",
    [("a.cluster.example",), (("a.cluster.example", "1"),), (("a.cluster.example", 1, 2),), ((b"a", 1),), [("a", 1)]],
)
def test_invalid_targets(targets: object) -> None:
    """Invalid targets raise in the constructor of the event."""
    with pytest.raises(errors.InvalidArgumentException):
        ServiceLookedUp(SERVICE, targets)  # type: ignore[arg-type]
