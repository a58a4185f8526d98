"""TLS over real connections: what is trusted, what is not, and who is told what is wrong."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import pytest
import trio
import trustme

from triclinium import TimeoutOptions, open_cluster
from triclinium.errors import TlsException
from triclinium.testing import FakeCluster, open_tcp_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeNode, FakeNodeOptions, hang_up_mid_reply

PATIENT = TimeoutOptions(kv=60.0)
"""Nobody waits for a timeout: what is wrong with TLS shows at once."""
SCRAM_ONLY = FakeNodeOptions(sasl_mechanisms=("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1"))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return who has signed the node's certificate."""
    return trustme.CA()


@pytest.fixture(scope="module")
def server_context(authority: trustme.CA) -> ssl.SSLContext:
    """Return the node's context; its certificate is for the address, not for a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Return a client's context that trusts the authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
async def fake(server_context: ssl.SSLContext) -> AsyncIterator[FakeCluster]:
    """Give the test a node with a plain port and one for TLS."""
    with trio.fail_after(60):
        async with open_tcp_cluster(FakeNode(), ssl_context=server_context) as served:
            yield served


def tls(fake: FakeCluster) -> str:
    """Return the connection string for TLS."""
    assert fake.tls_connection_string is not None
    return fake.tls_connection_string


async def upsert(fake: FakeCluster, connection_string: str, ssl_context: ssl.SSLContext | None) -> set[str | None]:
    """Write a document, and return the SASL mechanisms that were used."""
    async with open_cluster(
        connection_string, fake.authenticator, timeouts=PATIENT, ssl_context=ssl_context
    ) as cluster:
        await cluster.bucket("default").default_collection().upsert("ada", 1)
        return {connection.sasl_mechanism for connection in cluster.statistics().connections}


async def test_a_trusted_node_gets_the_password_in_plain(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """TLS hides it already, and PLAIN costs nothing."""
    mechanisms = await upsert(fake, tls(fake), trusting)

    assert {"PLAIN"} == mechanisms
    assert fake.node.documents.get("default", "ada") is not None


async def test_without_tls_the_password_does_not_travel(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """The strongest SCRAM is used, although the node would take PLAIN too."""
    mechanisms = await upsert(fake, fake.connection_string, None)

    assert {"SCRAM-SHA512"} == mechanisms
    assert b"PLAIN" not in {command.key for command in fake.node.command_log}


async def test_a_node_without_plain_gets_scram(server_context: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    """Also over TLS."""
    async with open_tcp_cluster(FakeNode(SCRAM_ONLY), ssl_context=server_context) as fake:
        mechanisms = await upsert(fake, tls(fake), trusting)

    assert {"SCRAM-SHA512"} == mechanisms


async def test_a_node_that_hangs_up_is_found_again(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """A connection may end without TLS's goodbye; what came before the end counts."""
    async with open_cluster(tls(fake), fake.authenticator, timeouts=PATIENT, ssl_context=trusting) as cluster:
        store = cluster.bucket("default").default_collection()
        await store.upsert("ada", 1)
        fake.node.faults.next(Opcode.GET, hang_up_mid_reply())

        assert 1 == (await store.get("ada")).content


async def fails_fast(fake: FakeCluster, connection_string: str, ssl_context: ssl.SSLContext | None) -> str:
    """Fail to write a document under the default strategy, for the reason TLS_ERROR, and return the message."""
    with pytest.raises(TlsException) as caught:
        await upsert(fake, connection_string, ssl_context)

    assert "TLS_ERROR" in str(caught.value)
    assert Opcode.SET not in {command.opcode for command in fake.node.command_log}
    return str(caught.value)


async def test_an_untrusted_certificate_is_refused(fake: FakeCluster) -> None:
    """By the authorities of the system, which is what a client trusts unless it is told otherwise."""
    message = await fails_fast(fake, tls(fake), None)

    assert "certificate verify failed" in message


async def test_a_certificate_of_somebody_else_is_refused(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """It is trusted, and does not carry the name that was asked for."""
    message = await fails_fast(fake, tls(fake).replace("127.0.0.1", "localhost"), trusting)

    assert "not valid for 'localhost'" in message


async def test_a_plain_port_does_not_speak_tls(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """The node hangs up on the handshake, which is told as such."""
    message = await fails_fast(fake, fake.connection_string.replace("couchbase:", "couchbases:"), trusting)

    assert "this port speaks TLS" in message
    assert [] == fake.node.command_log


async def test_a_port_for_tls_suggests_the_scheme(fake: FakeCluster) -> None:
    """Whoever forgets the s of couchbases:// learns of it."""
    message = await fails_fast(fake, tls(fake).replace("couchbases:", "couchbase:"), None)

    assert "couchbases://" in message
    assert [] == fake.node.command_log
