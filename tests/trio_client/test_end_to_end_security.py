"""Authentication at three nodes over TLS on local ports, and changes of credentials."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count as count_from
from pathlib import Path

import pytest
import trio
import trustme

import triclinium
from triclinium import errors
from triclinium.testing import FakeCluster, Opcode, open_tcp_cluster
from triclinium_core.testing import FakeNodeOptions, FakeNodes

PATIENT = triclinium.TimeoutOptions(kv=60.0)
"""Timeout for which no test waits, because errors are immediate."""
TOKEN, NEXT_TOKEN = "eyJhbGciOiJFUzI1NiJ9.e30.AAAA", "eyJhbGciOiJFUzI1NiJ9.e30.BBBB"
ADA = "ada@example.org"
OPTIONS = FakeNodeOptions(tokens=(TOKEN,), certificate_users=(ADA,))
SASL = frozenset({Opcode.SASL_LIST_MECHS, Opcode.SASL_AUTH, Opcode.SASL_STEP})


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return the authority that signed all certificates."""
    return trustme.CA()


@pytest.fixture(scope="module")
def of_the_nodes(authority: trustme.CA) -> ssl.SSLContext:
    """Return the TLS context of the nodes, which accepts client certificates and does not require them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Return a client's TLS context, which trusts the authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
def of_ada(authority: trustme.CA, tmp_path: Path) -> triclinium.CertificateAuthenticator:
    """Return an authenticator with the certificate of a user."""
    return certificate(authority, ADA, tmp_path / "ada.pem")


def certificate(authority: trustme.CA, name: str, path: Path) -> triclinium.CertificateAuthenticator:
    """Write a certificate for a name, with its key, into one file, and return its authenticator."""
    authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(path)
    return triclinium.CertificateAuthenticator(str(path))


@pytest.fixture
async def fake(of_the_nodes: ssl.SSLContext) -> AsyncIterator[FakeCluster]:
    """Yield a fake cluster of three nodes with TLS."""
    with trio.fail_after(60):
        async with open_tcp_cluster(FakeNodes(OPTIONS, 3), ssl_context=of_the_nodes) as served:
            yield served


@asynccontextmanager
async def client(
    fake: FakeCluster, authenticator: triclinium.Authenticator, ssl_context: ssl.SSLContext | None
) -> AsyncIterator[triclinium.Cluster]:
    """Yield a client that uses TLS."""
    assert fake.tls_connection_string is not None
    async with triclinium.open_cluster(
        fake.tls_connection_string, authenticator, timeouts=PATIENT, ssl_context=ssl_context
    ) as cluster:
        yield cluster


def keys_of_all(fake: FakeCluster) -> list[str]:
    """Return one key for each node."""
    found: dict[int | None, str] = {}
    for number in range(1000):
        found.setdefault(fake.nodes.owner_of(f"k{number}"), f"k{number}")
    return [found[node] for node in range(len(fake.nodes))]


async def write_everywhere(fake: FakeCluster, cluster: triclinium.Cluster) -> None:
    """Write one document on each node."""
    for key in keys_of_all(fake):
        await cluster.bucket("default").default_collection().upsert(key, 1)


def opcodes(fake: FakeCluster) -> Iterator[Opcode | int]:
    """Yield the opcodes of all commands that the nodes received."""
    for node in fake.nodes:
        yield from (command.opcode for command in node.command_log)


async def test_authentication_with_a_password(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """The client connects over TLS to the addresses of the config, and authenticates with PLAIN."""
    async with client(fake, fake.authenticator, trusting) as cluster:
        await write_everywhere(fake, cluster)
        statistics = cluster.statistics()

    ports = {f"127.0.0.1:{node.options.tls_port}" for node in fake.nodes}
    assert ports == {connection.node for connection in statistics.connections}
    assert {"PLAIN"} == {connection.sasl_mechanism for connection in statistics.connections}


async def test_authentication_with_a_token(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """A token is sent with OAUTHBEARER in one message."""
    async with client(fake, triclinium.JwtAuthenticator(TOKEN), trusting) as cluster:
        await write_everywhere(fake, cluster)
        statistics = cluster.statistics()

    assert {"OAUTHBEARER"} == {connection.sasl_mechanism for connection in statistics.connections}
    assert Opcode.SASL_STEP not in set(opcodes(fake))


async def test_authentication_with_a_certificate(
    fake: FakeCluster, trusting: ssl.SSLContext, of_ada: triclinium.CertificateAuthenticator
) -> None:
    """A client certificate is presented in the TLS handshake, and no SASL command is sent."""
    async with client(fake, of_ada, trusting) as cluster:
        await write_everywhere(fake, cluster)
        statistics = cluster.statistics()

    assert not SASL & set(opcodes(fake))
    assert {None} == {connection.sasl_mechanism for connection in statistics.connections}


async def test_a_changed_token(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """Open connections authenticate again with a new token, and no new connection is opened."""
    async with client(fake, triclinium.JwtAuthenticator(TOKEN), trusting) as cluster:
        await write_everywhere(fake, cluster)
        before = [node.connections for node in fake.nodes]
        fake.nodes.set_credentials(tokens=[NEXT_TOKEN])
        cluster.set_authenticator(triclinium.JwtAuthenticator(NEXT_TOKEN))
        await write_everywhere(fake, cluster)

        assert before == [node.connections for node in fake.nodes]

    assert 2 * sum(before) == [*opcodes(fake)].count(Opcode.SASL_AUTH)


async def test_a_changed_password(fake: FakeCluster) -> None:
    """Open connections authenticate again with a new password over SCRAM; calls wait until they have done so."""
    async with triclinium.open_cluster(fake.connection_string, fake.authenticator, timeouts=PATIENT) as cluster:
        await write_everywhere(fake, cluster)
        before = [node.connections for node in fake.nodes]
        fake.nodes.set_credentials(password="other")
        cluster.set_authenticator(replace(fake.authenticator, password="other"))
        async with trio.open_nursery() as nursery:
            for key in keys_of_all(fake):
                nursery.start_soon(cluster.bucket("default").default_collection().upsert, key, 2)

        assert before == [node.connections for node in fake.nodes]
        assert {"SCRAM-SHA512"} == {connection.sasl_mechanism for connection in cluster.statistics().connections}

    assert 2 * sum(before) == [*opcodes(fake)].count(Opcode.SASL_STEP)


@pytest.mark.parametrize(
    "tls", [pytest.param(True, marks=pytest.mark.long), False], ids=["in one step", "in two steps"]
)
async def test_changes_of_credentials_are_transparent(fake: FakeCluster, trusting: ssl.SSLContext, tls: bool) -> None:
    """While credentials change repeatedly, every read and write succeeds, and no write is applied twice."""
    connection_string = fake.tls_connection_string if tls else fake.connection_string
    assert connection_string is not None
    counters = keys_of_all(fake)
    done = trio.Event()

    async def count(people: triclinium.Collection, key: str) -> None:
        for _ in range(15):
            await people.binary.increment(key, initial=1)

    async def change(cluster: triclinium.Cluster) -> None:
        for number in count_from(1):
            if done.is_set():
                return
            password = f"password-{number}"
            fake.nodes.set_credentials(password=password)
            cluster.set_authenticator(replace(fake.authenticator, password=password))
            await trio.sleep(0.002)
            while not all(each.state == "READY" for each in cluster.statistics().connections):  # noqa: ASYNC110
                await trio.sleep(0.001)

    async with (
        triclinium.open_cluster(
            connection_string, fake.authenticator, timeouts=PATIENT, ssl_context=trusting if tls else None
        ) as cluster,
        trio.open_nursery() as changing,
    ):
        await write_everywhere(fake, cluster)
        people = cluster.bucket("default").default_collection()
        for key in counters:
            await people.remove(key)
        changing.start_soon(change, cluster)
        async with trio.open_nursery() as nursery:
            for key in counters:
                for _ in range(4):
                    nursery.start_soon(count, people, key)
        done.set()
        found = [(await people.get(key)).content for key in counters]
        retries = cluster.statistics().retries_by_reason

    assert [60] * 3 == found
    assert {} == dict(retries)


async def test_a_changed_certificate(
    fake: FakeCluster,
    trusting: ssl.SSLContext,
    authority: trustme.CA,
    tmp_path: Path,
) -> None:
    """A new certificate is used by the connections that are opened afterwards."""
    of_a_stranger = certificate(authority, "nobody@example.org", tmp_path / "nobody.pem")
    async with client(fake, of_a_stranger, trusting) as cluster:
        with pytest.raises(errors.BucketAccessException) as caught:
            await write_everywhere(fake, cluster)
        cluster.set_authenticator(certificate(authority, ADA, tmp_path / "ada.pem"))
        await write_everywhere(fake, cluster)

    assert "BUCKET_ACCESS_ERROR" == caught.value.context.refused_reason
    assert "the user of the certificate may not open it" in str(caught.value)


async def test_a_certificate_does_not_replace_a_password(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """A certificate cannot replace a password, which remains in use; the files of the certificate are not even read."""
    unreadable = triclinium.CertificateAuthenticator("/nowhere.pem")
    async with client(fake, fake.authenticator, trusting) as cluster:
        with pytest.raises(errors.InvalidArgumentException, match="open another cluster") as caught:
            cluster.set_authenticator(unreadable)
        await write_everywhere(fake, cluster)

    assert "authenticator" == caught.value.parameter


async def test_a_user_name_with_a_colon(fake: FakeCluster, trusting: ssl.SSLContext) -> None:
    """A user name with a colon is refused without connecting, at the start and later; the error does not quote it."""
    wrong = triclinium.PasswordAuthenticator("ada:secret", "password")
    with pytest.raises(errors.InvalidArgumentException, match="has a colon") as caught:
        async with client(fake, wrong, trusting):
            pass

    assert "authenticator" == caught.value.parameter
    assert "secret" not in str(caught.value)
    assert not any(node.connections for node in fake.nodes)

    async with client(fake, fake.authenticator, trusting) as cluster:
        with pytest.raises(errors.InvalidArgumentException, match="has a colon"):
            cluster.set_authenticator(wrong)
        await write_everywhere(fake, cluster)
