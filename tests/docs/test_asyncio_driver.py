"""Asyncio driver from the how-to. The test file next to the driver checks the laws; these tests check the rest."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import ssl
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import ClassVar

import pytest
import trustme

from docs.howto.examples.asyncio_driver import AsyncioClient, Stream
from docs.howto.examples.test_asyncio_driver import NO_TLS, hold
from tests.docs.serving import serving
from triclinium import errors
from triclinium_core import ClientMachine, ClientOptions, PasswordAuthenticator, TimeoutOptions
from triclinium_core.contract.couchbase import (
    AbandonReason,
    Action,
    Event,
    OperationAbandoned,
    OperationSubmitted,
    RequestSubmitted,
    RowsReceived,
)
from triclinium_core.contract.neutral import (
    ClosedError,
    LossCause,
    OpenStream,
    SendBytes,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
)
from triclinium_core.kv.operation.document_operations import Get, GetAndLock, Keyspace, Upsert
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.kv.operation.reports import PingResult
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing.driver_laws import OpenDriver, ScriptedClusterMachine, on
from triclinium_core.testing.driver_laws.couchbase.bench import CouchbaseBench
from triclinium_core.testing.driver_laws.neutral.trial import on_trial

pytestmark = pytest.mark.native

TRAVEL = Keyspace("travel")
APP = PasswordAuthenticator("app", "secret")
SECONDS_MAX = 250.0
"""Seconds after which a test counts as hanging."""

variable = ContextVar("variable", default="of nobody")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return the authority that signs certificates."""
    return trustme.CA()


@pytest.fixture(scope="module")
def node(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Serve a node, with TLS as well, and yield its connection data."""
    path: Path = tmp_path_factory.mktemp("tls") / "node.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(path)
    options = f"--username app --password secret --bucket travel --tls-cert {path} --tls-key {path}"
    with serving(*options.split()) as said:
        yield said


def client_of(
    connection_string: str, authenticator: PasswordAuthenticator = APP, tls: ssl.SSLContext = NO_TLS
) -> AsyncioClient:
    """Return a client with the real machine, and with a key-value timeout long enough for a busy computer."""
    timeouts = TimeoutOptions(kv=SECONDS_MAX)
    options = ClientOptions(connection_string=connection_string, authenticator=authenticator, timeouts=timeouts)
    return AsyncioClient(ClientMachine(options, rng=random.Random(1)), tls)


def in_asyncio(test: Callable[..., Coroutine[object, None, None]]) -> Callable[..., None]:
    """Run a test in an asyncio event loop, for a limited time."""

    @wraps(test)
    def run(**fixtures: object) -> None:
        asyncio.run(asyncio.wait_for(test(**fixtures), SECONDS_MAX))

    return run


@in_asyncio
async def test_large_values_over_tls(node: Mapping[str, str], authority: trustme.CA) -> None:
    """A value of many TLS records is read back unchanged from a node with a verified certificate."""
    value = bytes(range(256)) * 4096
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    with client_of(node["tls_connection_string"], tls=tls) as client:
        await client.perform(Upsert(TRAVEL, "large", value, 0))
        found = await client.perform(Get(TRAVEL, "large"))

    assert isinstance(found, GetResult)
    assert value == found.data


async def write_locked(client: AsyncioClient, key: str, strategy: object) -> object:
    """Store and lock a document, then write it with a strategy that decides about the retry."""
    await client.perform(Upsert(TRAVEL, key, b"1", 0))
    await client.perform(GetAndLock(TRAVEL, key))
    variable.set("of the caller")
    return await client.perform(Upsert(TRAVEL, key, b"2", 0), strategy)  # type: ignore[arg-type]


class Never:
    """Asynchronous strategy that refuses every retry."""

    def __init__(self) -> None:
        self.asked: list[tuple[RetryReason, str]] = []

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse the retry, after yielding to the event loop."""
        await asyncio.sleep(0)
        self.asked.append((reason, variable.get()))
        return RetryAction.no_retry()


@in_asyncio
async def test_the_strategy_of_a_call_is_awaited(node: Mapping[str, str]) -> None:
    """The driver awaits a call's asynchronous strategy in the context of the caller."""
    strategy = Never()
    with client_of(node["connection_string"]) as client, pytest.raises(errors.DocumentLockedException):
        await write_locked(client, "locked", strategy)

    assert [(RetryReason.KV_LOCKED, "of the caller")] == strategy.asked


@in_asyncio
async def test_pings_and_new_authenticators_work(node: Mapping[str, str]) -> None:
    """After a client gets an authenticator with the correct password, its operations and pings succeed."""
    with client_of(node["connection_string"], PasswordAuthenticator("app", "wrong")) as client:
        with pytest.raises(errors.AuthenticationFailureException):
            await client.perform(Get(TRAVEL, "ada"))
        client.set_authenticator(APP)
        await client.perform(Upsert(TRAVEL, "ada", b"1", 0))
        result = await client.perform(Ping(None, "a report"))

    assert isinstance(result, PingResult)
    assert "a report" == result.id


class Watched(Stream):
    """Stream that records its writes."""

    written: list[bytes]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record writes to the transport."""
        assert isinstance(transport, asyncio.Transport)
        write, self.written = transport.write, []

        def watched(data: bytes | bytearray | memoryview) -> None:
            self.written.append(bytes(data))
            write(data)

        transport.write = watched  # type: ignore[method-assign]
        super().connection_made(transport)


def test_sends_of_one_pass_are_one_write() -> None:
    """The driver joins the sends of several events in one pass of the event loop into one write."""

    async def play(open_driver: OpenDriver) -> None:
        async with on_trial(CouchbaseBench(open_driver)) as trial:
            client: AsyncioClient = trial.driver._client  # type: ignore[attr-defined]  # of the asyncio driver
            client._open_stream = partial(Watched, client)
            peer = await trial.connect(StreamId(1))
            trial.machine.answer = on(
                OperationSubmitted, SendBytes(StreamId(1), b"one "), SendBytes(StreamId(1), b"two ")
            )
            for _ in range(3):
                trial.driver.submit()

            assert b"one two " * 3 == await peer.receive(24)
            [stream] = client.streams.values()
            assert isinstance(stream, Watched)
            assert [b"one two " * 3] == stream.written

    hold(play)


@in_asyncio
async def test_a_refused_submission_leaves_no_references() -> None:
    """If the machine refuses a submission, the objects of the caller's task are freed."""

    class Thing:
        """Object of a caller."""

    things: ContextVar[Thing] = ContextVar("things")

    def refuse(event: Event) -> Sequence[Action]:
        if isinstance(event, OperationSubmitted):
            raise errors.InvalidArgumentException("bucket=None: get needs one", parameter="bucket")
        return ()

    async def ask(client: AsyncioClient) -> weakref.ref[Thing]:
        thing = Thing()
        things.set(thing)
        with pytest.raises(errors.InvalidArgumentException):
            await client.perform(Get(TRAVEL, "ada"))
        return weakref.ref(thing)

    with AsyncioClient(ScriptedClusterMachine(refuse), NO_TLS) as client:
        left = await asyncio.create_task(ask(client))
        await asyncio.sleep(0)
        gc.collect()
        assert left() is None


STATEMENT = QueryRequest(statement="SELECT 1")


def rows_for(event: Event) -> Sequence[Action]:
    """Return two rows for a request, and no action for another event."""
    return [RowsReceived(event.token, [b"1", b"2"])] if isinstance(event, RequestSubmitted) else ()


@in_asyncio
async def test_rows_end_with_their_block() -> None:
    """After their block, only rows that have arrived can be read; the request is abandoned once, as not needed."""
    machine = ScriptedClusterMachine(rows_for)
    with AsyncioClient(machine, NO_TLS) as client:
        async with client.request(STATEMENT) as rows:
            found = await anext(aiter(rows))
        rest = aiter(rows)

        assert (b"1", b"2") == (found, await anext(rest))
        with pytest.raises(ClosedError):
            await anext(rest)

    [request] = machine.requested
    assert OperationAbandoned(request.token, reason=AbandonReason.NOT_NEEDED) == machine.events[-1]
    assert 1 == sum(isinstance(event, OperationAbandoned) for event in machine.events)


@in_asyncio
async def test_a_reader_cancelled_with_its_rows() -> None:
    """A reader that is cancelled just as its first rows arrive is reported as cancelled."""
    machine = ScriptedClusterMachine()

    async def read(client: AsyncioClient) -> None:
        async with client.request(STATEMENT):
            raise AssertionError("the block starts although its task was cancelled")

    with AsyncioClient(machine, NO_TLS) as client:
        reader = asyncio.create_task(read(client))
        await asyncio.sleep(0)
        [request] = machine.requested
        machine.answer = on(TimePassed, RowsReceived(request.token, [b"1"]))
        client.feed(TimePassed())
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader

        assert OperationAbandoned(request.token) == machine.events[-1]


@in_asyncio
async def test_a_cancelled_read_ends_the_request() -> None:
    """Cancelling a wait for rows ends the request, because rows that arrive at that moment would be lost."""
    machine = ScriptedClusterMachine(rows_for)
    with AsyncioClient(machine, NO_TLS) as client:
        async with client.request(STATEMENT) as rows:
            rows.arrived.clear()
            waiting = asyncio.ensure_future(anext(aiter(rows)))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            [request] = machine.requested

            assert OperationAbandoned(request.token) == machine.events[-1]
            with pytest.raises(ClosedError):
                await anext(aiter(rows))


@in_asyncio
async def test_rows_have_one_reader() -> None:
    """A second task that waits for the rows of a request gets an error; the first one goes on waiting."""
    with AsyncioClient(ScriptedClusterMachine(rows_for), NO_TLS) as client:
        async with client.request(STATEMENT) as rows:
            rows.arrived.clear()
            first = asyncio.ensure_future(anext(aiter(rows)))
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="another task"):
                await anext(aiter(rows))
            assert not first.done()
            client.close()
            with pytest.raises(ClosedError):
                await first


@in_asyncio
async def test_tls_writes_without_a_response(authority: trustme.CA) -> None:
    """Over TLS, a large write and those after it are complete before the peer sends any data."""
    size, context, tls = 1_000_000, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(tls)
    # Send no session tickets (TLS 1.3), because they would be bytes from the peer.
    context.num_tickets = 0
    read = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3 * size)
        writer.close()
        read.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    order = OpenStream(StreamId(1), "127.0.0.1", server.sockets[0].getsockname()[1], tls=True)
    sends = [SendBytes(StreamId(1), bytes(size))] * 3
    machine = ScriptedClusterMachine(
        lambda event: [order] if isinstance(event, TimePassed) else sends if isinstance(event, StreamOpened) else ()
    )
    async with server:
        with AsyncioClient(machine, tls):
            await read.wait()


class RecordsContext(Stream):
    """Stream that records the variable of the context in which it receives data."""

    recorded: ClassVar[list[str]] = []

    def data_received(self, data: bytes) -> None:
        """Record the variable."""
        self.recorded.append(variable.get())
        super().data_received(data)


@in_asyncio
async def test_streams_have_no_callers_context(node: Mapping[str, str]) -> None:
    """A stream that was opened for one caller's operation does not run in the context of that caller."""
    variable.set("of the program")
    with client_of(node["connection_string"]) as client:
        client._open_stream = partial(RecordsContext, client)
        variable.set("of a caller")
        await client.perform(Upsert(TRAVEL, "ada", b"1", 0))

    assert {"of the program"} == set(RecordsContext.recorded)


@in_asyncio
async def test_a_cancelled_consultation_is_not_decided(node: Mapping[str, str]) -> None:
    """When a caller leaves, the driver cancels the call to its strategy."""
    asked, ended = asyncio.Event(), list[str]()

    class Waits:
        """Strategy that never answers."""

        async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
            """Wait."""
            asked.set()
            try:
                await asyncio.Event().wait()
                return RetryAction.no_retry()
            finally:
                ended.append("cancelled")

    with client_of(node["connection_string"]) as client:
        writing = asyncio.create_task(write_locked(client, "waits", Waits()))
        await asked.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert ["cancelled"] == ended


@in_asyncio
async def test_a_strategy_cancelled_by_others(node: Mapping[str, str]) -> None:
    """If the future that a strategy awaits is cancelled, the operation fails without a timeout, with that cause."""

    class Cancelled:
        """Strategy that waits for a cancelled future."""

        async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
            """Wait."""
            future = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(future.cancel)
            await future
            return RetryAction.no_retry()

    with client_of(node["connection_string"]) as client, pytest.raises(errors.CouchbaseException) as caught:
        await write_locked(client, "cancelled", Cancelled())

    assert not isinstance(caught.value, errors.TimeoutException)
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)


@in_asyncio
async def test_several_refused_addresses() -> None:
    """A stream whose name has several addresses that refuse is lost as refused, although asyncio joins the errors."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    opens = on(TimePassed, OpenStream(StreamId(1), "several", port, tls=False))
    loop = asyncio.get_running_loop()
    cause: asyncio.Future[LossCause] = loop.create_future()

    async def look_up(*arguments: object, **options: object) -> Sequence[object]:
        addresses = [(f"127.0.0.{last}", port) for last in (1, 2)]
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address) for address in addresses]

    def answer(event: Event) -> Sequence[Action]:
        if isinstance(event, StreamLost):
            cause.set_result(event.cause)
        return opens(event)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "getaddrinfo", look_up)
        with AsyncioClient(ScriptedClusterMachine(answer), NO_TLS):
            assert LossCause.REFUSED is await cause
