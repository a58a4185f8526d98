"""The how-to's driver without an event loop. The test file next to the driver checks the laws; these check the rest."""

from __future__ import annotations

import errno
import gc
import os
import random
import select
import selectors
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from docs.howto.examples.control_through_http import ask
from docs.howto.examples.selectors_driver import SelectorsClient, Stream
from tests.docs.serving import serving
from triclinium import errors
from triclinium.testing._tcp_port import RESET_ON_CLOSE
from triclinium_core import ClientMachine, ClientOptions, PasswordAuthenticator, TimeoutOptions
from triclinium_core.contract.couchbase import Action, Event, OperationAbandoned, OperationSubmitted
from triclinium_core.contract.neutral import (
    BytesReceived,
    ClosedError,
    LossCause,
    OpenStream,
    SendBytes,
    StreamId,
    StreamLost,
    TimePassed,
    Token,
)
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Upsert
from triclinium_core.kv.operation.results import GetResult, MutationResult
from triclinium_core.testing.driver_laws import OPERATION, ScriptedClusterMachine, on

pytestmark = pytest.mark.native

DEFAULT = Keyspace("default")
SECONDS_MAX = 250.0
"""Maximum time in seconds that a test waits for a node."""


@pytest.fixture(scope="module")
def node() -> Iterator[Mapping[str, Any]]:
    """Serve a node, and yield its connection data."""
    with serving() as said:
        yield said


def client_of(said: Mapping[str, Any], connection_string: str = "", **options: Any) -> SelectorsClient:
    """Return a client of a served node."""
    settings = ClientOptions(
        connection_string=connection_string or said["connection_string"],
        authenticator=PasswordAuthenticator(said["username"], said["password"]),
        timeouts=TimeoutOptions(kv=SECONDS_MAX if not connection_string else 0.5),
        **options,
    )
    return SelectorsClient(ClientMachine(settings, rng=random.Random(1)))


def test_outcomes_are_in_order(node: Mapping[str, Any]) -> None:
    """``perform`` returns the outcome of each operation in order, among them exceptions and a large value."""
    value = bytes(range(256)) * 16_384
    with client_of(node) as client:
        [written] = client.perform(Upsert(DEFAULT, "large", value, 0))
        found, missing, again = client.perform(*(Get(DEFAULT, key) for key in ("large", "bob", "large")))

    assert isinstance(written, MutationResult)
    assert isinstance(found, GetResult)
    assert isinstance(missing, errors.DocumentNotFoundException)
    assert (value, found) == (found.data, again)


def test_streams_that_ended_between_calls(node: Mapping[str, Any]) -> None:
    """If a node was restarted between two calls, a write is sent on a new stream, and is not ambiguous."""
    with client_of(node) as client:
        client.perform(Get(DEFAULT, "ada"))
        for command in ("kill", "revive"):
            ask(node["control"], "/commands", {"command": command, "node": 0})
        for stream in client.streams.values():
            select.select([stream._socket], [], [], SECONDS_MAX)
        [written] = client.perform(Upsert(DEFAULT, "ada", b"1", 0))

    assert isinstance(written, MutationResult)


def test_a_refused_operation_is_an_outcome() -> None:
    """If the machine refuses operations, each has the exception as its outcome."""
    mistake = errors.InvalidArgumentException("no bucket", parameter="bucket")

    def refuse(event: Event) -> Sequence[Action]:
        if isinstance(event, OperationSubmitted):
            raise mistake
        return ()

    with SelectorsClient(ScriptedClusterMachine(refuse)) as client:
        assert [mistake, mistake] == client.perform(Get(DEFAULT, "ada"), Get(DEFAULT, "bob"))


def test_an_interrupted_call_abandons_its_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control-C while ``perform`` waits abandons its operations; the client goes on."""
    machine = ScriptedClusterMachine()
    with SelectorsClient(machine) as client:
        wait = selectors.DefaultSelector.select

        def interrupted(selector: selectors.DefaultSelector, seconds: float | None = None) -> Any:
            if seconds:
                raise KeyboardInterrupt
            return wait(selector, seconds)

        monkeypatch.setattr(selectors.DefaultSelector, "select", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.perform(Get(DEFAULT, "ada"), Get(DEFAULT, "bob"))

        assert [OperationAbandoned(each.token) for each in machine.submitted] == machine.events[-2:]
        assert not client.is_ended


def test_tls_is_refused(node: Mapping[str, Any]) -> None:
    """With ``couchbases://`` an operation times out, and its error gives the reason."""
    with client_of(node, "couchbases://127.0.0.1:1") as client:
        [failed] = client.perform(Get(DEFAULT, "ada"))

    assert isinstance(failed, errors.UnambiguousTimeoutException)
    assert "selectors_driver does not support TLS" in str(failed)


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    """Yield a listening socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def opening(peer: socket.socket) -> ScriptedClusterMachine:
    """Return a machine that opens a stream to ``peer`` when time passes for the first time."""
    host, port = peer.getsockname()
    return ScriptedClusterMachine(on(TimePassed, OpenStream(StreamId(1), host, port, tls=False)))


def test_an_interrupted_write_is_not_repeated(peer: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control-C after a write ends the client: the operation fails with ClosedError, and no byte is sent twice."""
    machine, sent, received = opening(peer), random.Random(1).randbytes(20_000_000), bytearray()
    with SelectorsClient(machine) as client:
        accepted, _ = peer.accept()
        machine.answer = on(OperationSubmitted, SendBytes(StreamId(1), sent))
        [token] = client.submit(OPERATION)
        flush = Stream.flush

        def interrupted(stream: Stream) -> None:
            flush(stream)
            raise KeyboardInterrupt

        monkeypatch.setattr(Stream, "flush", interrupted)

        def read_on() -> None:
            while piece := accepted.recv(1_000_000):
                received.extend(piece)
                client.turn(0.0)

        with accepted:
            with pytest.raises(KeyboardInterrupt):
                read_on()
            monkeypatch.undo()
            read_on()

        assert client.is_ended
        assert isinstance(client.outcomes[token], ClosedError)
        assert received
        assert sent.startswith(received)


def test_reset_is_the_cause_of_the_loss(peer: socket.socket) -> None:
    """If a write fails because of a reset, the bytes before it are fed, and the loss has the system's error."""
    machine = opening(peer)
    with SelectorsClient(machine) as client:
        accepted, _ = peer.accept()
        accepted.send(b"last words")
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        accepted.close()
        [stream] = client.streams.values()
        select.select([stream._socket], [], [], SECONDS_MAX)
        machine.answer = on(OperationSubmitted, SendBytes(StreamId(1), b"request"))
        client.feed(OperationSubmitted(Token(1), OPERATION))
        while client.streams:
            client.turn(0.0)

    assert [
        BytesReceived(StreamId(1), b"last words"),
        StreamLost(StreamId(1), LossCause.RESET, os.strerror(errno.ECONNRESET), 0),
    ] == machine.events[-2:]


def test_an_interrupted_connect_is_raised(peer: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control-C while the driver connects reaches the program, and ends the client."""

    def interrupted(address: object, timeout: float) -> socket.socket:
        raise KeyboardInterrupt

    with SelectorsClient(ScriptedClusterMachine()) as client, monkeypatch.context() as patch:
        patch.setattr(socket, "create_connection", interrupted)
        client._machine.answer = opening(peer).answer  # type: ignore[attr-defined]  # of the scripted machine
        with pytest.raises(KeyboardInterrupt):
            client.feed(TimePassed())

    assert client.is_ended


def test_time_passes_after_an_interrupted_alarm(peer: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Control-C interrupts the reading before ``TimePassed``, a later turn still feeds ``TimePassed``."""
    machine, now = opening(peer), [0.0]
    with SelectorsClient(machine, clock=lambda: now[0]) as client, monkeypatch.context() as patch:
        machine.answer, machine.wakeup = on(OperationAbandoned), 1.0
        client.feed(TimePassed())
        now[0], serve = 2.0, client._serve
        calls = iter([serve])

        def interrupted(seconds: float) -> None:
            for call in calls:
                return call(seconds)
            raise KeyboardInterrupt

        patch.setattr(client, "_serve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.turn(0.0)
        patch.undo()
        before = len(machine.events)
        client.turn(0.0)

        assert [TimePassed()] == machine.events[before:]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc lists the open files")
def test_a_closed_client_keeps_no_files(peer: socket.socket) -> None:
    """Closing a client closes its files without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            with SelectorsClient(opening(peer)) as client:
                client.turn(0.0)
        after = len(os.listdir("/proc/self/fd"))
    finally:
        gc.enable()

    assert before == after
