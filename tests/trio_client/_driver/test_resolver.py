"""Names of clusters in DNS: what a real name server answers, and what the client makes of it."""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence

import dns.rcode
import pytest
import trio
import trio.testing

import triclinium
from tests.trio_client.name_server import open_name_server
from tests.trio_client.pair import OPTIONS
from triclinium._driver.resolver import DnsResolver
from triclinium.errors import UnambiguousTimeoutException
from triclinium.testing import FakeNodes, open_fake_cluster, open_tcp_cluster

SERVICE = "_couchbase._tcp.cluster.test"


async def test_records() -> None:
    """Host and port of each, without the final dot."""
    async with open_name_server({SERVICE: [("a.test", 11210), ("b.test", 11999)]}) as server:
        found = await server.resolver().look_up(SERVICE)

    assert {("a.test", 11210), ("b.test", 11999)} == set(found)
    assert [SERVICE] == server.asked


@pytest.mark.parametrize("service", [SERVICE, "_couchbases._tcp.cluster.test"])
async def test_no_records(service: str) -> None:
    """A name that exists without any, and one that does not exist, are the same."""
    async with open_name_server({SERVICE: []}) as server:
        assert [] == list(await server.resolver().look_up(service))


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
async def test_a_server_that_fails(rcode: dns.rcode.Rcode) -> None:
    """It is as good as none, in its own words."""
    async with open_name_server({}) as server:
        server.rcode = rcode
        with pytest.raises(OSError, match=rcode.name):
            await server.resolver().look_up(SERVICE)


@pytest.mark.parametrize("name", ["_couchbase._tcp." + "a" * 64, "_couchbase._tcp.a..b"])
async def test_names_that_cannot_be_asked_for(name: str) -> None:
    """They raise what a resolver raises, and nothing else."""
    async with open_name_server({}) as server:
        with pytest.raises(OSError, match="label"):
            await server.resolver().look_up(name)

    assert [] == server.asked


async def test_a_lookup_can_be_cancelled() -> None:
    """The client that asked may close."""
    async with open_name_server({}) as server:
        server.is_mute = True
        with trio.move_on_after(0.05) as scope:
            await server.resolver().look_up(SERVICE)

    assert scope.cancelled_caught


async def test_a_whole_cluster_by_its_name() -> None:
    """Over UDP to a name server and over TCP to the nodes that it lists, on ports that nobody wrote down."""
    async with open_tcp_cluster(FakeNodes(OPTIONS, nodes=2)) as fake:
        targets = [("localhost", node.options.port) for node in fake.nodes]
        async with (
            open_name_server({SERVICE: targets}) as server,
            triclinium.open_cluster(
                "couchbase://cluster.test", fake.authenticator, resolver=server.resolver()
            ) as cluster,
        ):
            people = cluster.bucket("travel").default_collection()
            for number in range(10):
                await people.upsert(f"key-{number}", number)

        assert [SERVICE] == server.asked
        assert all(node.command_log for node in fake.nodes)


class Listing:
    """A resolver that has the answer, or an error."""

    def __init__(self, answer: Sequence[tuple[str, int]] | OSError) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def look_up(self, service: str) -> Sequence[tuple[str, int]]:
        """Return it."""
        self.asked.append(service)
        await trio.lowlevel.checkpoint()
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


async def test_a_resolver_of_ones_own(autojump_clock: trio.testing.MockClock) -> None:
    """It takes the place of DNS, with any connector."""
    async with open_fake_cluster(options=OPTIONS, nodes=[("a.test", 5), ("b.test", 6)]) as fake:
        resolver = Listing([("b.test", 6)])
        async with triclinium.open_cluster(
            "couchbase://cluster.test",
            fake.authenticator,
            connector=fake.connector,
            resolver=resolver,
        ) as cluster:
            await cluster.bucket("travel").default_collection().upsert("ada", 1)

            assert [SERVICE] == resolver.asked
            assert {"a.test:5", "b.test:6"} == {each.node for each in cluster.statistics().connections}


@pytest.mark.parametrize(
    ("answer", "words"),
    [([], "nothing"), (OSError(errno.ENETUNREACH, "no way out"), "no way out")],
    ids=["none", "error"],
)
async def test_a_name_that_is_a_host(
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
    answer: Sequence[tuple[str, int]] | OSError,
    words: str,
) -> None:
    """Without records, and without an answer, the name is used as it stands; the log says why."""
    caplog.set_level(logging.INFO, "triclinium")
    async with (
        open_fake_cluster(options=OPTIONS, nodes=[("cluster.test", 11210)]) as fake,
        triclinium.open_cluster(
            "couchbase://cluster.test", fake.authenticator, connector=fake.connector, resolver=Listing(answer)
        ) as cluster,
    ):
        await cluster.bucket("travel").default_collection().upsert("ada", 1)

    assert any(SERVICE in record.getMessage() and words in record.getMessage() for record in caplog.records)


async def test_no_lookup_where_it_is_switched_off(autojump_clock: trio.testing.MockClock) -> None:
    """The host is all that there is."""
    async with open_fake_cluster(options=OPTIONS, nodes=[("a.test", 5)]) as fake:
        resolver = Listing([("a.test", 5)])
        async with triclinium.open_cluster(
            "couchbase://cluster.test",
            fake.authenticator,
            connector=fake.connector,
            resolver=resolver,
            enable_dns_srv=False,
        ) as cluster:
            with pytest.raises(UnambiguousTimeoutException), triclinium.fail_after(0.5):
                await cluster.bucket("travel").default_collection().upsert("ada", 1)

    assert [] == resolver.asked


async def test_leaving_does_not_wait_for_dns() -> None:
    """A question that nobody answers ends with the block."""
    async with open_name_server({}) as server:
        server.is_mute = True
        with trio.fail_after(1.0):
            async with triclinium.open_cluster(
                "couchbase://cluster.test",
                triclinium.PasswordAuthenticator("app", "secret"),
                resolver=server.resolver(),
            ):
                await trio.testing.wait_all_tasks_blocked()


def test_the_default_asks_the_system() -> None:
    """Its configuration is read when a name is looked up, not before."""
    assert DnsResolver()._resolver is None
