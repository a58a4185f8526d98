"""SCRAM exchange between a client and a server, in which a test can change any message."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from triclinium_core.options import SCRAM_ITERATIONS_MIN
from triclinium_core.runtime.kv.connection import scram

USERNAME = "user"
PASSWORD = "pencil"
CLIENT_NONCE = "client-nonce"
SERVER_NONCE = "server-nonce"
NONCE = CLIENT_NONCE + SERVER_NONCE
SALT = b"a salt of bytes \x00\xff"
SALT_TEXT = b64encode(SALT).decode()
ITERATIONS = SCRAM_ITERATIONS_MIN
SERVER_FIRST = f"r={NONCE},s={SALT_TEXT},i={ITERATIONS}"
Tamper = Callable[[int, bytes], bytes]


def make_client(
    mechanism: str = "SCRAM-SHA512",
    username: str = USERNAME,
    password: str = PASSWORD,
    *,
    nonce: str = CLIENT_NONCE,
    iterations_min: int = SCRAM_ITERATIONS_MIN,
) -> scram.ScramClient:
    """Return a client that has not sent its first message."""
    return scram.ScramClient(mechanism, username, password, nonce=nonce, iterations_min=iterations_min)


def make_server(
    mechanism: str = "SCRAM-SHA512",
    username: str = USERNAME,
    password: str = PASSWORD,
    *,
    nonce: str = SERVER_NONCE,
    salt: bytes = SALT,
    iterations: int = ITERATIONS,
) -> scram.ScramServer:
    """Return a server that has not received a message."""
    return scram.ScramServer(
        mechanism, username=username, password=password, nonce=nonce, salt=salt, iterations=iterations
    )


def untouched(_step: int, message: bytes) -> bytes:
    """Return the message unchanged."""
    return message


def exchange(client: scram.ScramClient, server: scram.ScramServer, tamper: Tamper = untouched) -> list[bytes]:
    """Run an exchange until client and server have verified each other; return the messages as received."""
    messages = [tamper(0, client.first())]
    messages.append(tamper(1, server.first(messages[-1])))
    messages.append(tamper(2, client.final(messages[-1])))
    messages.append(tamper(3, server.final(messages[-1])))
    client.verify(messages[-1])
    return messages


def client_after_first() -> scram.ScramClient:
    """Return a client that waits for the server-first-message."""
    client = make_client()
    client.first()
    return client


def client_after_final() -> scram.ScramClient:
    """Return a client that waits for the server-final-message."""
    client = client_after_first()
    client.final(SERVER_FIRST.encode())
    return client


def server_after_first() -> scram.ScramServer:
    """Return a server that waits for the client-final-message."""
    server = make_server()
    server.first(make_client().first())
    return server
