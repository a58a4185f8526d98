"""Warning of a client that sends credentials over plain HTTP."""

from __future__ import annotations

import pytest

from tests.core.services.asking import ADMINISTRATOR, Asking, asking
from triclinium_core.client.actions import ReportConnection, ReportLevel
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.options import Authenticator, JwtAuthenticator


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
