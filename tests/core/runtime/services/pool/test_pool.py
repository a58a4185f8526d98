"""Warning of a client that sends credentials over plain HTTP, and endpoints of nodes that left."""

from __future__ import annotations

import pytest

from tests.core.runtime.services.asking import ADMINISTRATOR, Asking, asking
from triclinium_core.contract.couchbase import Action
from triclinium_core.contract.neutral import ReportConnection, ReportLevel
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.kv.topology.topology import Topology, TopologyNode
from triclinium_core.options import Authenticator, ClientOptions, JwtAuthenticator
from triclinium_core.retry.couchbase.circuit_breaker import BreakerEvent
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.runtime.services.pool.pool import Pool
from triclinium_core.runtime.toolkit import toolkit_of
from triclinium_core.testing.simulation import MIDPOINT


def warnings(simulation: Asking) -> list[str]:
    """Return the node of each warning that gives the solution."""
    return [
        action.node
        for action in simulation.actions
        if isinstance(action, ReportConnection)
        and action.level is ReportLevel.WARNING
        and "couchbases://" in action.text
    ]


@pytest.mark.parametrize(
    "authenticator",
    [ADMINISTRATOR, JwtAuthenticator("a.b.c", allow_unencrypted=True)],
    ids=["basic", "bearer"],
)
def test_credentials_over_plain_http(authenticator: Authenticator) -> None:
    """A single warning names the first node that receives credentials, for any number of requests and nodes."""
    simulation = Asking(hosts=["a.example", "b.example"], tokens=("a.b.c",), authenticator=authenticator)
    for _ in range(10):
        simulation.request(asking())
    simulation.run()
    simulation.finish(asking())

    (node,) = warnings(simulation)
    assert node in {each.node for each in simulation.machine.statistics().endpoints}


def test_pings_alone_cause_no_warning() -> None:
    """A key-value program that pings all services sends no credentials over HTTP and gets no warning."""
    simulation = Asking(hosts=["a.example"])
    simulation.inquire(Ping(None, "i"))
    simulation.run()

    assert [] == warnings(simulation)
    assert simulation.asked


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "LocalHost."])
def test_credentials_on_loopback(host: str) -> None:
    """Credentials that stay on this machine cause no warning."""
    simulation = Asking(hosts=[host])
    simulation.finish(asking())

    assert [] == warnings(simulation)


@pytest.mark.parametrize("host", ["10.0.0.5", "fd00::1", "127.evil.example", "localhost.evil.example", "128.0.0.1"])
def test_hosts_that_are_not_loopback(host: str) -> None:
    """Names and addresses that only resemble loopback cause the warning."""
    simulation = Asking(hosts=[host])
    simulation.finish(asking())

    assert 1 == len(warnings(simulation))


class Changing:
    """A pool of a cluster with one node, whose address changes."""

    def __init__(self) -> None:
        options = ClientOptions(connection_string="couchbase://a.example", authenticator=ADMINISTRATOR)
        tools = toolkit_of(options, rng=MIDPOINT, emit=list[Action]().append)
        self.timers = tools.timers
        self.topologies: dict[str | None, Topology] = {None: self._topology(0)}
        self.pool = Pool(self.topologies, tools, tls=False)

    def move(self, number: int) -> None:
        """Have another node in the place of the one before."""
        self.topologies[None] = self._topology(number)

    def _topology(self, number: int) -> Topology:
        return Topology(None, (1, number + 1), (TopologyNode("a.example", {"n1ql": 1000 + number}),))


def test_endpoints_of_nodes_that_left_are_forgotten() -> None:
    """A client that is never idle keeps the endpoints of present nodes only."""
    changing = Changing()
    (endpoint,) = changing.pool.endpoints_of(Service.QUERY)
    for number in range(1, 100):
        changing.move(number)
        (endpoint,) = changing.pool.endpoints_of(Service.QUERY)
        for _ in range(100):
            changing.pool.feed_breaker(endpoint, BreakerEvent.OPERATION_TIMED_OUT, 0.0)

    assert [endpoint] == list(changing.pool.endpoints)
    assert 1 == len(changing.timers)


def test_an_endpoint_in_use_is_kept() -> None:
    """An endpoint for which a request waits outlives its node, until the request has left."""
    changing = Changing()
    (used,) = changing.pool.endpoints_of(Service.QUERY)
    used.waiting[1] = None
    changing.move(1)
    (second,) = changing.pool.endpoints_of(Service.QUERY)
    during = list(changing.pool.endpoints)
    used.waiting.clear()
    changing.move(2)
    (third,) = changing.pool.endpoints_of(Service.QUERY)

    assert [used, second] == during
    assert [third] == list(changing.pool.endpoints)
