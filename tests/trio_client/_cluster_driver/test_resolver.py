"""DNS lookups of cluster names: responses of a real name server, and their use by the client."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Sequence

import dns.rcode
import pytest
import trio
import trio.testing

import triclinium
from tests.live.waiting import PATIENT, until
from tests.trio_client.name_server import LOOKUP_SECONDS, open_name_server
from tests.trio_client.pair import OPTIONS
from triclinium import errors
from triclinium._cluster_driver.resolver import DnsResolver
from triclinium.abc import ConnectedStream
from triclinium.testing import FakeNodes, open_fake_cluster, open_tcp_cluster

AUTHENTICATOR = triclinium.PasswordAuthenticator("app", "secret")
SERVICE = "_couchbase._tcp.cluster.test"


async def test_lookup_returns_hosts_and_ports() -> None:
    """The records are returned as host and port, without the final dot."""
    async with open_name_server({SERVICE: [("a.cluster.test", 11210), ("b.cluster.test", 11999)]}) as server:
        found = await server.resolver().look_up(SERVICE)

    assert {("a.cluster.test", 11210), ("b.cluster.test", 11999)} == set(found)
    assert [SERVICE] == server.asked


@pytest.mark.parametrize("service", [SERVICE, "_couchbases._tcp.cluster.test"])
async def test_no_records(service: str) -> None:
    """A name without records and a name that does not exist both return an empty list."""
    async with open_name_server({SERVICE: []}) as server:
        assert [] == list(await server.resolver().look_up(service))


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
async def test_a_server_that_fails(rcode: dns.rcode.Rcode) -> None:
    """A failure of the name server raises OSError with the server's response code."""
    async with open_name_server({}) as server:
        server.rcode = rcode
        with pytest.raises(OSError, match=rcode.name):
            await server.resolver().look_up(SERVICE)


@pytest.mark.parametrize("name", ["_couchbase._tcp." + "a" * 64, "_couchbase._tcp.a..b"])
async def test_invalid_names_raise_oserror(name: str) -> None:
    """A name that cannot be encoded raises OSError, and nothing is sent."""
    async with open_name_server({}) as server:
        with pytest.raises(OSError, match="label"):
            await server.resolver().look_up(name)

    assert [] == server.asked


@pytest.mark.parametrize("search", [False, True])
async def test_search_domains_on_demand(search: bool) -> None:
    """A name without records is looked up in the search domains of the configuration only with ``search=True``."""
    async with open_name_server({f"{SERVICE}.lan.test": [("a.lan.test", 11210)]}) as server:
        found = await server.resolver("lan.test", search=search).look_up(SERVICE)

    assert ([("a.lan.test", 11210)] if search else []) == list(found)
    assert ({SERVICE, f"{SERVICE}.lan.test"} if search else {SERVICE}) == set(server.asked)


@pytest.mark.parametrize("search", [False, True])
async def test_an_absolute_name(search: bool) -> None:
    """A host with a final dot is never looked up in search domains, even with ``search=True``."""
    connector = Unreachable()
    async with (
        open_name_server({f"{SERVICE}.lan.test": [("evil.test", 11210)]}) as server,
        triclinium.open_cluster(
            "couchbase://cluster.test.",
            AUTHENTICATOR,
            connector=connector,
            resolver=server.resolver("lan.test", search=search),
        ) as cluster,
    ):
        await until(lambda: connector.tried)
        with pytest.raises(errors.UnambiguousTimeoutException), triclinium.fail_after(0.3):
            await cluster.bucket("travel").default_collection().get("ada")

        assert {SERVICE} == set(server.asked)


def test_search_is_a_flag() -> None:
    """The resolver refuses a ``search`` that is neither True nor False, and the error names the parameter."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        DnsResolver(search="yes")  # type: ignore[arg-type]

    assert "search" == caught.value.parameter


class Unreachable:
    """Connector to a network without hosts, which records the attempts to connect."""

    def __init__(self) -> None:
        self.tried: set[tuple[str, int]] = set()

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Record the attempt, and fail."""
        self.tried.add((host, port))
        await trio.lowlevel.checkpoint()
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.mark.parametrize("scheme", ["couchbase", "couchbases"])
async def test_a_forged_answer(scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    """The client does not connect to a forged target but logs one WARNING, and the error names target and option."""
    connector = Unreachable()
    async with (
        open_name_server({f"_{scheme}._tcp.db.corp.test": [("evil.test", 11210)]}) as server,
        triclinium.open_cluster(
            f"{scheme}://db.corp.test", AUTHENTICATOR, connector=connector, resolver=server.resolver()
        ) as cluster,
    ):
        await until(lambda: connector.tried)
        with pytest.raises(errors.UnambiguousTimeoutException) as caught, triclinium.fail_after(0.5):
            await cluster.bucket("travel").default_collection().get("ada")
    warned = [each.getMessage() for each in caplog.records if each.name == "triclinium.connection"]

    assert {"db.corp.test"} == {host for host, _ in connector.tried}
    assert 1 == sum("evil.test:11210" in text and "dns_srv_domains" in text for text in warned)
    assert 1 == sum("evil.test" in text for text in warned)
    assert "evil.test:11210" in str(caught.value)
    assert "dns_srv_domains" in str(caught.value)


SERVICE_OF_PODS = "_couchbase._tcp.cb.shop.svc.cluster.local"
PODS = [("cb-0.cb-nodes.shop.svc.cluster.local", 11210), ("cb-1.cb-nodes.shop.svc.cluster.local", 11210)]


@pytest.mark.parametrize(
    ("host", "nodes"), [("cb.shop.svc.cluster.local", PODS), ("cb", [("cb", 11210)])], ids=["full name", "short name"]
)
async def test_a_service_in_kubernetes(host: str, nodes: Sequence[tuple[str, int]]) -> None:
    """The client uses the pods that DNS lists for a full name; a short name, which has no SRV records, is a host."""
    async with (
        open_name_server({SERVICE_OF_PODS: PODS}) as server,
        open_fake_cluster(options=OPTIONS, nodes=nodes) as fake,
        triclinium.open_cluster(
            f"couchbase://{host}",
            fake.authenticator,
            connector=fake.connector,
            resolver=server.resolver("shop.svc.cluster.local", "svc.cluster.local", "cluster.local"),
        ) as cluster,
    ):
        await cluster.bucket("travel").default_collection().upsert("ada", 1)

        assert [f"_couchbase._tcp.{host}"] == server.asked
        assert {f"{name}:{port}" for name, port in nodes} == {each.node for each in cluster.statistics().connections}


async def test_a_lookup_can_be_cancelled() -> None:
    """A cancelled scope ends a lookup whose response has not arrived."""
    async with open_name_server({}) as server:
        server.is_mute = True
        with trio.move_on_after(0.05) as scope:
            await server.resolver().look_up(SERVICE)

    assert scope.cancelled_caught


async def test_a_cluster_found_through_dns() -> None:
    """The client finds all nodes through DNS over UDP and connects to them over TCP on the listed ports."""
    async with open_tcp_cluster(FakeNodes(OPTIONS, nodes=2)) as fake:
        targets = [("localhost", node.options.port) for node in fake.nodes]
        async with (
            open_name_server({SERVICE: targets}) as server,
            triclinium.open_cluster(
                "couchbase://cluster.test",
                fake.authenticator,
                resolver=server.resolver(),
                timeouts=PATIENT,
                dns_srv_domains=("localhost",),
            ) as cluster,
        ):
            people = cluster.bucket("travel").default_collection()
            for number in range(10):
                await people.upsert(f"key-{number}", number)

        assert [SERVICE] == server.asked
        assert all(node.command_log for node in fake.nodes)


class Listing:
    """Resolver with a fixed result or error."""

    def __init__(self, answer: Sequence[tuple[str, int]] | OSError) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def look_up(self, service: str) -> Sequence[tuple[str, int]]:
        """Return the result, or raise the error."""
        self.asked.append(service)
        await trio.lowlevel.checkpoint()
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


async def test_a_custom_resolver_replaces_dns(autojump_clock: trio.testing.MockClock) -> None:
    """A custom resolver replaces DNS, even with a custom connector."""
    async with open_fake_cluster(options=OPTIONS, nodes=[("a.cluster.test", 5), ("b.cluster.test", 6)]) as fake:
        resolver = Listing([("b.cluster.test", 6)])
        async with triclinium.open_cluster(
            "couchbase://cluster.test",
            fake.authenticator,
            connector=fake.connector,
            resolver=resolver,
        ) as cluster:
            await cluster.bucket("travel").default_collection().upsert("ada", 1)

            assert [SERVICE] == resolver.asked
            assert {"a.cluster.test:5", "b.cluster.test:6"} == {each.node for each in cluster.statistics().connections}


@pytest.mark.parametrize(
    ("answer", "words"),
    [([], "nothing"), (OSError(errno.ENETUNREACH, "no way out"), "no way out")],
    ids=["none", "error"],
)
async def test_a_name_without_records_is_a_host(
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
    answer: Sequence[tuple[str, int]] | OSError,
    words: str,
) -> None:
    """If the lookup finds no records or fails, the client connects to the name itself and logs the reason."""
    caplog.set_level(logging.INFO, "triclinium")
    async with (
        open_fake_cluster(options=OPTIONS, nodes=[("cluster.test", 11210)]) as fake,
        triclinium.open_cluster(
            "couchbase://cluster.test", fake.authenticator, connector=fake.connector, resolver=Listing(answer)
        ) as cluster,
    ):
        await cluster.bucket("travel").default_collection().upsert("ada", 1)

    assert any(SERVICE in record.getMessage() and words in record.getMessage() for record in caplog.records)


async def test_no_lookup_if_disabled(autojump_clock: trio.testing.MockClock) -> None:
    """With ``enable_dns_srv=False``, the host is used without a lookup."""
    async with open_fake_cluster(options=OPTIONS, nodes=[("a.cluster.test", 5)]) as fake:
        resolver = Listing([("a.cluster.test", 5)])
        async with triclinium.open_cluster(
            "couchbase://cluster.test",
            fake.authenticator,
            connector=fake.connector,
            resolver=resolver,
            enable_dns_srv=False,
        ) as cluster:
            with pytest.raises(errors.UnambiguousTimeoutException), triclinium.fail_after(0.5):
                await cluster.bucket("travel").default_collection().upsert("ada", 1)

    assert [] == resolver.asked


async def test_leaving_does_not_wait_for_dns() -> None:
    """A pending lookup is cancelled when the block ends."""
    async with open_name_server({}) as server:
        server.is_mute = True
        with trio.fail_after(LOOKUP_SECONDS / 2):
            async with triclinium.open_cluster(
                "couchbase://cluster.test",
                triclinium.PasswordAuthenticator("app", "secret"),
                resolver=server.resolver(),
            ):
                await trio.testing.wait_all_tasks_blocked()


def test_the_default_resolver_reads_configuration_lazily() -> None:
    """Creating the default resolver does not read the system's configuration."""
    assert DnsResolver()._resolver is None
