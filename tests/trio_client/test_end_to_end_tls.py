"""TLS between clients and nodes, over real connections; by default, its errors are immediate and specific."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

import triclinium
from triclinium import errors
from triclinium._driver.connector import TcpConnector
from triclinium.testing import FakeCluster, FakeNodeOptions, FakeNodes, Opcode, hang_up_mid_reply, open_tcp_cluster
from triclinium_core.runtime.kv.connection.sasl import PLAIN_ONLY
from triclinium_core.testing import FakeNode

PATIENT = triclinium.TimeoutOptions(kv=60.0)
"""Timeout for which no test waits, because errors are immediate."""
NOW = datetime.now(UTC)
ADDRESS = "127.0.0.1"


class Authority:
    """Authority that signs the certificates of a test, and another that is not trusted."""

    def __init__(self, folder: Path) -> None:
        self.known = trustme.CA()
        self.unknown = trustme.CA()
        self._folder = folder

    def trusting(self) -> ssl.SSLContext:
        """Return the context of a client that trusts the first authority."""
        context = ssl.create_default_context()
        self.known.configure_trust(context)
        return context

    def server(
        self,
        *names: str,
        issuer: trustme.CA | None = None,
        not_after: datetime | None = None,
        demands: bool = False,
        newest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
    ) -> ssl.SSLContext:
        """Return a context for nodes, by default with a valid certificate and without requiring one from clients."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = newest
        certificate = (issuer or self.known).issue_cert(*(names or (ADDRESS,)), not_after=not_after)
        certificate.configure_cert(context)
        if demands:
            self.known.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(self, issuer: trustme.CA | None = None) -> triclinium.CertificateAuthenticator:
        """Return an authenticator with a client certificate."""
        path = self._folder / "client.pem"
        (issuer or self.known).issue_cert("ada@example.org").private_key_and_cert_chain_pem.write_to_path(path)
        return triclinium.CertificateAuthenticator(str(path))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authorities."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def nodes_with(context: ssl.SSLContext, host: str = ADDRESS) -> AsyncIterator[FakeCluster]:
    """Yield a fake cluster of three nodes with TLS."""
    with trio.fail_after(60):
        async with open_tcp_cluster(nodes=3, host=host, ssl_context=context) as fake:
            yield fake


def tls(fake: FakeCluster) -> str:
    """Return the connection string for TLS."""
    assert fake.tls_connection_string is not None
    return fake.tls_connection_string


async def upsert(
    connection_string: str, authenticator: triclinium.Authenticator, context: ssl.SSLContext | None, **options: object
) -> None:
    """Write a document through a new client."""
    async with triclinium.open_cluster(
        connection_string,
        authenticator,
        timeouts=PATIENT,
        ssl_context=context,
        **options,  # type: ignore[arg-type]
    ) as cluster:
        await cluster.bucket("default").default_collection().upsert("ada", 1)


async def refusal(
    connection_string: str, authenticator: triclinium.Authenticator, context: ssl.SSLContext | None
) -> str:
    """Return the error message of a client that fails with TLS_ERROR."""
    with pytest.raises(errors.TlsException) as caught:
        await upsert(connection_string, authenticator, context)

    assert "TLS_ERROR" == caught.value.context.refused_reason
    assert not isinstance(caught.value, errors.TimeoutException)
    return str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda known: known.server(issuer=known.unknown), "certificate verify failed: unable to get local issuer"),
        (lambda known: known.server("127.0.0.2"), "IP address mismatch, certificate is not valid for '127.0.0.1'"),
        (lambda known: known.server(ADDRESS, not_after=NOW - timedelta(days=1)), "certificate has expired"),
    ],
    ids=["unknown authority", "other address", "expired"],
)
async def test_the_client_refuses_a_certificate(
    authority: Authority, make: Callable[[Authority], ssl.SSLContext], words: str
) -> None:
    """If the client refuses the certificate, the error has the reason of the TLS library, and no command is sent."""
    async with nodes_with(make(authority)) as fake:
        message = await refusal(tls(fake), fake.authenticator, authority.trusting())

    assert words in message
    assert not any(node.command_log for node in fake.nodes)


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda version: version.name)
@pytest.mark.parametrize("shows", ["nothing", "a certificate of an unknown authority"])
async def test_the_nodes_refuse_a_client(authority: Authority, newest: ssl.TLSVersion, shows: str) -> None:
    """If nodes refuse a client with an unknown certificate or none, the error has the alert, even in TLS 1.3."""
    async with nodes_with(authority.server(demands=True, newest=newest)) as fake:
        who: triclinium.Authenticator = (
            fake.authenticator if shows == "nothing" else authority.client(authority.unknown)
        )
        message = await refusal(tls(fake), who, authority.trusting())

    assert "alert" in message
    assert ("CertificateAuthenticator" in message) == (shows == "nothing" and newest is ssl.TLSVersion.TLSv1_3)
    assert not any(node.command_log for node in fake.nodes)


async def test_the_nodes_accept_a_client(authority: Authority) -> None:
    """Nodes that require a certificate accept a client with a valid one."""
    async with nodes_with(authority.server(demands=True)) as fake:
        await upsert(tls(fake), authority.client(), authority.trusting())

    assert any(Opcode.SET == command.opcode for node in fake.nodes for command in node.command_log)


async def test_a_port_of_the_other_scheme(authority: Authority) -> None:
    """TLS on a plain port, and a plain connection to a TLS port, fail; the error names the correct scheme."""
    async with nodes_with(authority.server()) as fake:
        in_tls = await refusal(fake.connection_string.replace("couchbase:", "couchbases:"), fake.authenticator, None)
        in_plain = await refusal(tls(fake).replace("couchbases:", "couchbase:"), fake.authenticator, None)

        assert not any(node.command_log for node in fake.nodes)
    assert "this port speaks TLS" in in_tls
    assert "connect with couchbases://" in in_plain


async def test_the_default_context_trusts_the_system(authority: Authority) -> None:
    """Without a context, only the authorities of the system are trusted."""
    async with nodes_with(authority.server()) as fake:
        assert "certificate verify failed" in await refusal(tls(fake), fake.authenticator, None)


async def test_a_node_without_plain_over_tls(authority: Authority) -> None:
    """Over TLS, a node without PLAIN gets SCRAM; a connection that ends without close_notify is replaced."""
    options = FakeNodeOptions(sasl_mechanisms=("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1"))
    async with (
        open_tcp_cluster(FakeNode(options), ssl_context=authority.server()) as fake,
        triclinium.open_cluster(
            tls(fake), fake.authenticator, timeouts=PATIENT, ssl_context=authority.trusting()
        ) as cluster,
    ):
        people = cluster.bucket("default").default_collection()
        await people.upsert("ada", 1)
        fake.node.faults.next(Opcode.GET, hang_up_mid_reply())

        assert 1 == (await people.get("ada")).content
        assert {"SCRAM-SHA512"} == {connection.sasl_mechanism for connection in cluster.statistics().connections}


async def test_best_effort_retries_a_refused_certificate(authority: Authority) -> None:
    """Under best effort, the client reconnects until the certificate has been replaced."""
    context = authority.server("node.example")
    async with nodes_with(context) as fake, trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: upsert(
                tls(fake), fake.authenticator, authority.trusting(), retry_strategy=triclinium.BestEffortRetryStrategy()
            )
        )
        await trio.sleep(0.2)
        authority.known.issue_cert(ADDRESS).configure_cert(context)

    assert any(Opcode.SET == command.opcode for node in fake.nodes for command in node.command_log)


async def test_host_names_are_verified(authority: Authority) -> None:
    """The client verifies the host name of the configs, and sends it in the handshake (SNI)."""
    asked: list[str | None] = []
    context = authority.server("localhost")
    context.sni_callback = lambda stream, name, context: asked.append(name)
    with trio.fail_after(60):
        nodes = FakeNodes(FakeNodeOptions(host="localhost"), nodes=3)
        async with open_tcp_cluster(nodes, ssl_context=context) as fake:
            await upsert(tls(fake).replace(ADDRESS, "localhost"), fake.authenticator, authority.trusting())

    assert {"localhost"} == set(asked)


def has_ipv6() -> bool:
    """Return whether the loopback interface has IPv6."""
    try:
        with closing(socket.socket(socket.AF_INET6)) as bound:
            bound.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 on its loopback")
async def test_ipv6_addresses(authority: Authority) -> None:
    """IPv6 addresses work in connection strings, configs and certificates; a certificate for another one is refused."""
    async with nodes_with(authority.server("::1"), host="::1") as fake:
        await upsert(tls(fake), fake.authenticator, authority.trusting())
        assert tls(fake).startswith("couchbases://[::1]:")
    async with nodes_with(authority.server("::2"), host="::1") as fake:
        message = await refusal(tls(fake), fake.authenticator, authority.trusting())

    assert "IP address mismatch, certificate is not valid for '::1'" in message


def blind() -> ssl.SSLContext:
    """Return a client context that verifies nothing."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def nameless(authority: Authority) -> ssl.SSLContext:
    """Return a client context that accepts trusted certificates of any host."""
    context = authority.trusting()
    context.check_hostname = False
    return context


def warnings_of_tls(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings about unverified certificates."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and "not verified" in record.getMessage()
    ]


@pytest.mark.parametrize("kind", ["blind", "nameless", "connector", "verifying"])
async def test_unverified_tls(kind: str, authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    """One warning is logged, and SCRAM hides the password, only if TLS does not verify certificates or host names."""
    contexts = {"nameless": nameless(authority), "verifying": authority.trusting()}
    given: dict[str, Any] = {"ssl_context": contexts.get(kind, blind())}
    if kind == "connector":
        given = {"connector": TcpConnector(blind())}
    async with (
        nodes_with(authority.server()) as fake,
        triclinium.open_cluster(tls(fake), fake.authenticator, timeouts=PATIENT, **given) as cluster,
    ):
        await cluster.wait_until_ready()
        await cluster.bucket("default").default_collection().upsert("ada", 1)
        mechanisms = {connection.sasl_mechanism for connection in cluster.statistics().connections}

    assert ({"PLAIN"} if kind == "verifying" else {"SCRAM-SHA512"}) == mechanisms
    assert (kind != "verifying") == len(warnings_of_tls(caplog))


@pytest.mark.parametrize("is_named", [False, True])
async def test_plain_over_unverified_tls(
    is_named: bool, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """Over unverified TLS, a node that offers only PLAIN gets the password only if the authenticator names PLAIN."""
    options = FakeNodeOptions(sasl_mechanisms=("PLAIN",))
    async with open_tcp_cluster(FakeNode(options), ssl_context=authority.server()) as fake:
        authenticator = replace(fake.authenticator, allowed_sasl_mechanisms=("PLAIN",) if is_named else None)
        if is_named:
            await upsert(tls(fake), authenticator, blind())
        else:
            with pytest.raises(errors.AuthenticationFailureException) as caught:
                await upsert(tls(fake), authenticator, blind())
            detail = caught.value.context.last_dispatch_error or ""
            assert PLAIN_ONLY in detail

        asked = [command.key for command in fake.node.command_log if command.opcode == Opcode.SASL_AUTH]

    assert is_named == (b"PLAIN" in asked)
    assert 1 == len(warnings_of_tls(caplog))


async def test_a_certificate_over_unverified_tls(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    """Over unverified TLS, a client certificate needs no permission, and one warning is logged."""
    context = blind()
    async with nodes_with(authority.server(demands=True)) as fake:
        await upsert(tls(fake), authority.client(), context)

    assert 1 == len(warnings_of_tls(caplog))


async def test_a_token_over_unverified_tls(authority: Authority) -> None:
    """A token over unverified TLS is refused before anything is sent unless unencrypted tokens are allowed."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        triclinium.open_cluster("couchbases://127.0.0.1", triclinium.JwtAuthenticator("a.e30.c"), ssl_context=blind())

    assert "authenticator" == caught.value.parameter
    triclinium.open_cluster(
        "couchbases://127.0.0.1", triclinium.JwtAuthenticator("a.e30.c", allow_unencrypted=True), ssl_context=blind()
    )
