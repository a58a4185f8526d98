"""Texts about a connection in errors and logs: its state, why it was lost, and advice."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.simulated import Recorded, client_options, get, ready
from triclinium_core import errors
from triclinium_core.contract.neutral import LossCause, StreamId, StreamLost, TimePassed
from triclinium_core.kv.wire.constants import HEADER_SIZE, Opcode
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.in_flight import REQUESTS_MAX
from triclinium_core.runtime.kv.pool.connection_texts import CONSOLE_PORT, loss_text, overdue_text, status_text
from triclinium_core.testing.fakes.faults import drop_response, refuse_connection

ONE = StreamId(1)


def node_of(simulation: Recorded) -> Connection:
    """Return the connection that the client opened last."""
    return [*simulation.clients[0]._connections.all][-1]


def test_full() -> None:
    """If a connection is full, its text has the number of unanswered requests (decision C37)."""
    connection = node_of(ready())
    for _ in range(REQUESTS_MAX):
        connection.in_flight.send(None, bytes(HEADER_SIZE))

    assert f"127.0.0.1:11210: ready, with {REQUESTS_MAX} requests unanswered" == status_text(connection)


@pytest.mark.parametrize(
    ("cause", "reported", "seconds", "text"),
    [
        (LossCause.REFUSED, "Connection refused", 0.0, "connection refused"),
        (LossCause.RESET, "[Errno 104]", 0.02, "connecting after: connection reset ([Errno 104])"),
    ],
)
def test_lost(cause: LossCause, reported: str, seconds: float, text: str) -> None:
    """If a connection is lost, its text has the address and the reason once each, even while it reconnects."""
    simulation = Recorded()
    simulation.feed(TimePassed())
    simulation.links.clear()
    simulation.feed(StreamLost(ONE, cause, reported))
    simulation.advance(seconds)

    assert f"127.0.0.1:11210: {text}" == status_text(node_of(simulation))


def test_overdue() -> None:
    """If a connection is overdue, its text has its state and the timeout."""
    simulation = Recorded()
    simulation.feed(TimePassed())

    assert "still connecting after 3 s" == overdue_text(node_of(simulation), 3.0)

    simulation.open(ONE)

    assert overdue_text(node_of(simulation), 3.0).startswith("still negotiating after 3 s; ")
    assert "memcached://" in status_text(node_of(simulation))


@pytest.mark.parametrize(
    ("answers", "hello_after_auth", "blamed"),
    [
        (False, False, Opcode.HELLO),
        (False, True, Opcode.SASL_LIST_MECHS),
        (True, False, Opcode.SASL_AUTH),
        (True, True, Opcode.SASL_AUTH),
        (True, False, Opcode.GET_CLUSTER_CONFIG),
    ],
)
def test_the_unanswered_request_is_named(blamed: Opcode, *, answers: bool, hello_after_auth: bool) -> None:
    """The texts name the unanswered request; they mention memcached only if the server has sent nothing."""
    simulation = Recorded(options=client_options(hello_after_auth=hello_after_auth))
    for opcode in (blamed,) if answers else Opcode:
        simulation.node.faults.always(opcode, drop_response())
    simulation.live(0.1)
    connection = node_of(simulation)
    texts = (
        overdue_text(connection, 3.0),
        status_text(connection),
        loss_text(connection, StreamLost(ONE, LossCause.END_OF_STREAM)),
    )

    assert [True] * 3 == [f" {blamed.name}" in text for text in texts]
    assert [not answers] * 3 == ["memcached://" in text for text in texts]


@pytest.mark.parametrize("port", [8091, 18091])
def test_port_of_the_web_console(port: int) -> None:
    """If the port is that of the web console, the error recommends the key-value ports."""
    simulation = Recorded(options=client_options(f"couchbase://h:{port}"))
    simulation.feed(TimePassed())
    text = loss_text(node_of(simulation), StreamLost(ONE, LossCause.REFUSED))

    assert f"h:{port}: connection refused; {CONSOLE_PORT}" == text


def test_nothing_listens() -> None:
    """If no server listens at the address, the error of a read has the address once, with the reason."""
    simulation = Recorded()
    simulation.node.faults.always(None, refuse_connection())
    error = simulation.failure(errors.UnambiguousTimeoutException, get())

    assert "127.0.0.1:11210: connection refused" == error.context.last_dispatch_error
    assert 1 == str(error).count("127.0.0.1:11210")
