"""The official client with three fake nodes over TLS: authentication by password, token and certificate."""

from __future__ import annotations

import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trustme

from tests.live.official import Official, in_background, worker
from tests.live.waiting import until
from triclinium.testing import FakeCluster, Opcode, open_tcp_cluster
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import FakeNodeOptions, FakeNodes

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("couchbase_package")]

TOKEN, NEXT_TOKEN = "eyJhbGciOiJFUzI1NiJ9.e30.AAAA", "eyJhbGciOiJFUzI1NiJ9.e30.BBBB"
ADA = "ada@example.org"
OPTIONS = FakeNodeOptions(tokens=(TOKEN,), certificate_users=(ADA,))
BY_PASSWORD = ("PasswordAuthenticator", OPTIONS.username, OPTIONS.password)
BY_TOKEN, BY_NEXT_TOKEN = ("JwtAuthenticator", TOKEN), ("JwtAuthenticator", NEXT_TOKEN)
KEYS = [f"key-{number}" for number in range(30)]
SASL = (Opcode.SASL_LIST_MECHS, Opcode.SASL_AUTH, Opcode.SASL_STEP)


class FileAuthority:
    """Authority that has signed all certificates, with files for a client that reads them."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self._folder = folder
        self.trust_store = self._write("authority.pem", self._authority.cert_pem)

    def server_context(self) -> ssl.SSLContext:
        """Return the TLS context of the nodes, which accepts client certificates and does not require them."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert("127.0.0.1").configure_cert(context)
        self._authority.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def certificate(self, name: str) -> tuple[str, str, str]:
        """Return the arguments for a client certificate with this name."""
        issued = self._authority.issue_cert(name)
        files = self._write("cert.pem", *issued.cert_chain_pems), self._write("key.pem", issued.private_key_pem)
        return "CertificateAuthenticator", *files

    def _write(self, name: str, *blobs: trustme.Blob) -> str:
        path = self._folder / name
        path.write_bytes(b"".join(blob.bytes() for blob in blobs))
        return str(path)


@pytest.fixture
def authority(tmp_path: Path) -> FileAuthority:
    """Return the authority."""
    return FileAuthority(tmp_path)


@pytest.fixture
async def fake(safety_net: None, authority: FileAuthority) -> AsyncIterator[FakeCluster]:
    """Yield a fake cluster of three nodes with TLS."""
    async with open_tcp_cluster(FakeNodes(OPTIONS, 3), ssl_context=authority.server_context()) as served:
        yield served


def official_client(
    fake: FakeCluster, authority: FileAuthority, who: Sequence[str]
) -> AbstractAsyncContextManager[Official]:
    """Return a block with the official client, connected to ``fake`` or refused."""
    assert fake.tls_connection_string is not None
    arguments = (fake.tls_connection_string, authority.trust_store, OPTIONS.buckets[0], json.dumps(who))
    return in_background(worker("official_secure_worker", *arguments))


async def write_everywhere(official: Official) -> None:
    """Write to all nodes."""
    for key in KEYS:
        assert "result" in await official.ask(do="upsert", key=key, value=1)


def asked(fake: FakeCluster) -> Counter[Opcode | int]:
    """Return the number of commands on all nodes, by opcode."""
    return Counter(command.opcode for node in fake.nodes for command in node.command_log)


@pytest.mark.parametrize("who", [BY_PASSWORD, BY_TOKEN], ids=["password", "token"])
async def test_authentication_with_sasl(fake: FakeCluster, authority: FileAuthority, who: Sequence[str]) -> None:
    """The client authenticates on every node with SASL in one step."""
    async with official_client(fake, authority, who) as official:
        await write_everywhere(official)

    assert all(node.command_log for node in fake.nodes)
    assert {Opcode.SASL_LIST_MECHS, Opcode.SASL_AUTH} == set(asked(fake)) & set(SASL)


async def test_authentication_with_a_certificate(fake: FakeCluster, authority: FileAuthority) -> None:
    """With a certificate, the official client sends no SASL command, like triclinium."""
    async with official_client(fake, authority, authority.certificate(ADA)) as official:
        await write_everywhere(official)

    assert all(node.command_log for node in fake.nodes)
    assert not set(asked(fake)) & set(SASL)


@pytest.mark.parametrize(
    "who", [("PasswordAuthenticator", OPTIONS.username, "wrong"), BY_NEXT_TOKEN], ids=["password", "token"]
)
async def test_refused_credentials(fake: FakeCluster, authority: FileAuthority, who: Sequence[str]) -> None:
    """Refused credentials raise the client's authentication exception."""
    async with official_client(fake, authority, who) as official:
        assert {"error": "AuthenticationException"} == official.first


async def test_a_changed_token(fake: FakeCluster, authority: FileAuthority) -> None:
    """After a change of the token, the client authenticates again on every open connection."""
    async with official_client(fake, authority, BY_TOKEN) as official:
        await write_everywhere(official)
        before = asked(fake)
        fake.nodes.set_credentials(tokens=[NEXT_TOKEN])
        await official.ask(do="set_authenticator", who=BY_NEXT_TOKEN)
        await until(lambda: asked(fake)[Opcode.SASL_AUTH] >= 2 * before[Opcode.SASL_AUTH])
        await write_everywhere(official)

    statuses = {command.status for node in fake.nodes for command in node.command_log}
    assert {Status.SUCCESS} == statuses
    assert before[Opcode.HELLO] == asked(fake)[Opcode.HELLO]
