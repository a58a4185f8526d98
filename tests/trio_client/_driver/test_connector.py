"""Connections to a node: their addresses, their TLS, and the causes of failed connections."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trustme
import truststore
from cryptography.hazmat.primitives import serialization

from tests.rows import rows
from tests.trio_client._driver.tls_peer import authority, client_context
from triclinium import CertificateAuthenticator, PasswordAuthenticator
from triclinium._cluster_driver.certificates import show_certificate, verifies_tls
from triclinium._driver.connector import StreamLoss, TcpConnector, loss_of
from triclinium.abc import ConnectedStream
from triclinium.errors import InvalidArgumentException
from triclinium_core.contract.neutral import LossCause


def chained(error: BaseException, cause: BaseException) -> BaseException:
    """Return ``error`` as if it were raised from ``cause``."""
    error.__cause__ = cause
    return error


def attempts(*errors: OSError) -> BaseException:
    """Return the exception that trio raises if several addresses fail."""
    return chained(OSError("all attempts to connect to node:11210 failed"), ExceptionGroup("all attempts", errors))


REFUSED = ConnectionRefusedError(111, "no")
OF_TRIO = "Error connecting to ('127.0.0.1', 1)"
UNREACHABLE = OSError(101, "no route")
BROKEN = trio.BrokenResourceError


@rows(
    ("expected", "error"),
    [
        (StreamLoss(LossCause.NAME_NOT_RESOLVED, "unknown name"), socket.gaierror(-2, "unknown name")),
        (StreamLoss(LossCause.REFUSED, "no"), REFUSED),
        (StreamLoss(LossCause.REFUSED, "ConnectionRefusedError"), ConnectionRefusedError()),
        (StreamLoss(LossCause.RESET, "reset"), ConnectionResetError(104, "reset")),
        (StreamLoss(LossCause.RESET, "pipe"), BrokenPipeError(32, "pipe")),
        (StreamLoss(LossCause.UNREACHABLE, "no route"), UNREACHABLE),
        (
            StreamLoss(LossCause.REFUSED, "Connection refused"),
            ConnectionRefusedError(111, f"{OF_TRIO}: Connection refused"),
        ),
        (StreamLoss(LossCause.UNREACHABLE, "No route to host"), OSError(113, f"{OF_TRIO}: No route to host")),
        (StreamLoss(LossCause.UNREACHABLE, "timed out"), TimeoutError(110, "timed out")),
        (StreamLoss(LossCause.UNREACHABLE, "in words"), OSError("in words")),
        (StreamLoss(LossCause.TLS, "bad certificate"), ssl.SSLError(1, "bad certificate")),
        (StreamLoss(LossCause.RESET, "gone"), BROKEN("gone")),
        (StreamLoss(LossCause.RESET, "reset"), chained(BROKEN("gone"), ConnectionResetError(104, "reset"))),
        (StreamLoss(LossCause.TLS, "alert"), chained(BROKEN("gone"), ssl.SSLError(1, "alert"))),
        (StreamLoss(LossCause.RESET, "gone"), chained(BROKEN("gone"), ValueError("neither"))),
        (StreamLoss(LossCause.REFUSED, "no route; no"), attempts(UNREACHABLE, REFUSED)),
        (StreamLoss(LossCause.REFUSED, "no"), attempts(REFUSED, REFUSED)),
        (StreamLoss(LossCause.UNREACHABLE, "no route"), attempts(UNREACHABLE)),
    ],
)
def test_every_failure_has_a_cause_and_text(expected: StreamLoss, error: OSError) -> None:
    """Of all root exceptions of a failure, the most specific one determines the cause, and each text appears once."""
    assert expected == loss_of(error)


Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]


class Names(trio.abc.HostnameResolver):
    """Resolver that returns the same addresses for every name, or raises if it has none."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        self.addresses = addresses

    async def getaddrinfo(self, *asked: object, **more: object) -> list[Address]:  # type: ignore[override]
        """Return the addresses."""
        await trio.lowlevel.checkpoint()
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address) for address in self.addresses]

    async def getnameinfo(self, *asked: object) -> tuple[str, str]:
        """Fail, because the connector does not call it."""
        raise AssertionError


@contextmanager
def dead_port() -> Iterator[int]:
    """Yield a port without a listener, which no other process can take in the meantime."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


async def failure_of(host: str, port: int, *, tls: bool = False, connector: TcpConnector | None = None) -> StreamLoss:
    """Return the reason why a connection failed."""
    try:
        await (connector or TcpConnector()).connect(host, port, tls=tls)
    except (OSError, trio.BrokenResourceError) as error:
        return loss_of(error)
    pytest.fail("the connection was made")


async def test_tcp_reports_both_addresses() -> None:
    """A TCP connection carries bytes and reports the addresses of both ends."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    async with listener:
        connected = await TcpConnector().connect("127.0.0.1", port, tls=False)
        theirs = await listener.accept()
        async with connected.stream, theirs:
            await connected.stream.send_all(b"ping")

            assert b"ping" == await theirs.receive_some()
            assert f"127.0.0.1:{port}" == connected.remote_address
            assert f"127.0.0.1:{theirs.socket.getpeername()[1]}" == connected.local_address


async def test_a_port_without_listener_refuses() -> None:
    """A refused connection has the system's text, without the address."""
    with dead_port() as port:
        loss = await failure_of("127.0.0.1", port)

    assert StreamLoss(LossCause.REFUSED, "Connection refused") == loss


async def test_all_failed_addresses_are_reported() -> None:
    """If no address of a name accepts a connection, the text lists each of them."""
    with dead_port() as first, dead_port() as second:
        trio.socket.set_custom_hostname_resolver(Names(("127.0.0.1", first), ("127.0.0.1", second)))
        loss = await failure_of("node.example", 11210)

    assert LossCause.REFUSED is loss.cause
    assert str(first) in loss.text
    assert str(second) in loss.text


async def test_an_unknown_name_is_not_resolved() -> None:
    """An unknown name has the cause NAME_NOT_RESOLVED and not REFUSED."""
    trio.socket.set_custom_hostname_resolver(Names())

    assert StreamLoss(LossCause.NAME_NOT_RESOLVED, "no such name") == await failure_of("node.example", 11210)


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".example"])
async def test_an_invalid_name_is_not_resolved(host: str) -> None:
    """A name that fails before it reaches the resolver has the cause NAME_NOT_RESOLVED."""
    loss = await failure_of(host, 11210)

    assert LossCause.NAME_NOT_RESOLVED is loss.cause
    assert "is not a host name" in loss.text


@pytest.mark.parametrize("host", ["", "a\0b"])
async def test_an_invalid_name_for_tls_fails(host: str) -> None:
    """A name that a custom resolver accepts but TLS cannot verify has the cause TLS."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        here = "127.0.0.1", listener.socket.getsockname()[1]
        trio.socket.set_custom_hostname_resolver(Names(here))
        loss = await failure_of(host, here[1], tls=True)

    assert LossCause.TLS is loss.cause
    assert repr(host) in loss.text


@pytest.mark.parametrize("answer", [b"\x81" + bytes(23), b""], ids=["something else", "closes"])
async def test_a_server_without_tls_fails(answer: bytes) -> None:
    """If a server sends bytes that are not TLS, or closes the stream, a TLS connection fails with the cause TLS."""

    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        loss = await failure_of("127.0.0.1", listener.socket.getsockname()[1], tls=True)
        nursery.cancel_scope.cancel()

    assert LossCause.TLS is loss.cause


async def test_cancelling_the_handshake_closes_the_socket() -> None:
    """Cancelling a connection attempt during the handshake closes its socket."""
    received: list[bytes] = []
    end_of_stream = trio.Event()

    async def serve(stream: trio.SocketStream) -> None:
        received.append(await stream.receive_some())
        scope.cancel()
        received.append(await stream.receive_some())
        end_of_stream.set()

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        with trio.CancelScope() as scope:
            await TcpConnector().connect("127.0.0.1", listener.socket.getsockname()[1], tls=True)
        await end_of_stream.wait()
        nursery.cancel_scope.cancel()

    assert scope.cancelled_caught
    assert b"" == received[1]


# -- The client's certificate.


def encrypted(key: trustme.Blob, password: str) -> bytes:
    """Return a private key in PEM format, encrypted."""
    loaded = serialization.load_pem_private_key(key.bytes(), None)
    return loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(password.encode()),
    )


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str, str]:
    """Return the paths of a certificate, its key, and the key encrypted with "secret"."""
    issued = trustme.CA().issue_cert("ada@example.org")
    paths = [tmp_path / name for name in ("cert.pem", "key.pem", "encrypted.pem")]
    paths[0].write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    paths[1].write_bytes(issued.private_key_pem.bytes())
    paths[2].write_bytes(encrypted(issued.private_key_pem, "secret"))
    cert, key, secret_key = map(str, paths)
    return cert, key, secret_key


@pytest.mark.parametrize("context", [None, ssl.create_default_context()], ids=["own context", "given context"])
def test_a_certificate_is_read(certificate: tuple[str, str, str], context: ssl.SSLContext | None) -> None:
    """The certificate and its key, plain or encrypted, are read from two files; an unneeded password is ignored."""
    cert, key, secret_key = certificate
    connector = TcpConnector(context)
    show_certificate(connector, CertificateAuthenticator(cert, key))
    show_certificate(connector, CertificateAuthenticator(cert, key, "needless"))
    show_certificate(connector, CertificateAuthenticator(cert, secret_key, "secret"))


@pytest.mark.parametrize("password", [None, "mistaken"])
def test_a_wrong_key_password_is_an_error(certificate: tuple[str, str, str], password: str | None) -> None:
    """A missing or wrong password of a key raises without a prompt, and the error does not quote the password."""
    cert, _, secret_key = certificate
    with pytest.raises(InvalidArgumentException) as caught:
        show_certificate(TcpConnector(), CertificateAuthenticator(cert, secret_key, password))

    assert "authenticator" == caught.value.parameter
    assert f"{cert} and {secret_key}" in str(caught.value)
    assert "mistaken" not in str(caught.value)


def test_a_certificate_in_a_custom_context() -> None:
    """A CertificateAuthenticator without files requires a connector with a custom SSL context."""
    with pytest.raises(InvalidArgumentException, match="cert_path"):
        show_certificate(TcpConnector(), CertificateAuthenticator())

    show_certificate(TcpConnector(ssl.create_default_context()), CertificateAuthenticator())


class Tunnel:
    """Custom connector, which no test uses to connect."""

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Fail."""
        raise AssertionError


def test_a_custom_connector_reads_no_files() -> None:
    """A custom connector accepts other authenticators, but a CertificateAuthenticator only without files."""
    show_certificate(Tunnel(), None)
    show_certificate(Tunnel(), PasswordAuthenticator("ada", "secret"))
    show_certificate(Tunnel(), CertificateAuthenticator())
    with pytest.raises(InvalidArgumentException, match="pass CertificateAuthenticator()") as caught:
        show_certificate(Tunnel(), CertificateAuthenticator("ada.pem"))

    assert "authenticator" == caught.value.parameter


# -- Verification of nodes.


@pytest.mark.parametrize(
    ("attributes", "is_verified"),
    [
        ({}, True),
        ({"verify_mode": ssl.CERT_REQUIRED, "check_hostname": True}, True),
        # OpenSSL treats CERT_OPTIONAL like CERT_REQUIRED in a client.
        ({"verify_mode": ssl.CERT_OPTIONAL, "check_hostname": True}, True),
        ({"verify_mode": ssl.CERT_NONE, "check_hostname": False}, False),
        ({"verify_mode": ssl.CERT_REQUIRED, "check_hostname": False}, False),
        ({"verify_mode": 0}, False),
        ({"check_hostname": False}, False),
        ({"verify_mode": 2}, True),
    ],
)
def test_contexts_that_verify(attributes: dict[str, object], is_verified: bool) -> None:
    """A context verifies nodes unless one of its attributes turns verification off; it may lack the attributes."""
    connector = TcpConnector(cast("ssl.SSLContext", SimpleNamespace(**attributes)))

    assert is_verified == connector.tls_is_verified
    assert is_verified == verifies_tls(connector)


def test_connectors_without_a_tls_attribute() -> None:
    """A connector with the default context, and a connector without ``tls_is_verified``, count as verifying."""
    assert verifies_tls(Tunnel())
    assert verifies_tls(TcpConnector())


@asynccontextmanager
async def tls_server(name: str) -> AsyncIterator[tuple[int, list[str | None]]]:
    """Yield the port of a server with a certificate for ``name``, and the requested names. Any host resolves to it."""
    asked = list[str | None]()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert(name).configure_cert(context)
    context.sni_callback = lambda stream, name, context: asked.append(name)

    async def serve(tcp: trio.SocketStream) -> None:
        try:
            await trio.SSLStream(tcp, context, server_side=True).do_handshake()
            while await tcp.receive_some():
                pass
        except trio.BrokenResourceError:
            # Some tests let the client refuse the certificate.
            pass

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        trio.socket.set_custom_hostname_resolver(Names(("127.0.0.1", port)))
        yield port, asked
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("node_1.example", "node_1.example"),
        ("NODE.example", "node.example"),
        ("node.example.", "node.example"),
        ("straße.example", "xn--strae-oqa.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
    ],
)
async def test_names_are_verified_as_looked_up(host: str, name: str) -> None:
    """TLS verifies names as trio looks them up: with underscores, and names outside ASCII encoded by IDNA 2008."""
    # trustme issues no certificate with an underscore.
    async with tls_server(name.replace("_", "-")) as (port, asked):
        context = client_context()
        context.check_hostname = "_" not in name
        connected = await TcpConnector(context).connect(host, port, tls=True)
        await connected.stream.aclose()

    assert [name] == [each.lower() for each in asked if each is not None]


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_truststore(is_trusted: bool, tmp_path: Path) -> None:
    """A context of truststore accepts the certificate of a trusted authority, and refuses that of another one."""
    async with tls_server("node.example") as (port, _):
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if is_trusted:
            authority().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
            context.load_verify_locations(str(tmp_path / "ca.pem"))
            connected = await TcpConnector(context).connect("node.example", port, tls=True)
            await connected.stream.aclose()
        else:
            loss = await failure_of("node.example", port, tls=True, connector=TcpConnector(context))

            assert LossCause.TLS is loss.cause
            assert "certificate verify failed" in loss.text


async def test_a_context_that_verifies_during_the_handshake() -> None:
    """The client calls ``do_handshake`` of the context's own class, where other packages verify certificates."""

    class Suspicious(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            raise ssl.SSLCertVerificationError("not this one")

    async with tls_server("node.example") as (port, _):
        context = client_context()
        context.sslobject_class = Suspicious
        loss = await failure_of("node.example", port, tls=True, connector=TcpConnector(context))

    assert LossCause.TLS is loss.cause
    assert "not this one" in loss.text


async def test_a_certificate_for_another_name() -> None:
    """If a certificate is for another name, the text of the failure gives the expected name."""
    async with tls_server("other.example") as (port, _):
        loss = await failure_of("node.example", port, tls=True, connector=TcpConnector(client_context()))

    assert LossCause.TLS is loss.cause
    assert "Hostname mismatch, certificate is not valid for 'node.example'" in loss.text
