"""Asyncio driver of the how-to. The test file next to the driver checks the laws; these tests check the rest."""

from __future__ import annotations

import asyncio
import gc
import random
import ssl
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path

import pytest
import trustme

from docs.howto.examples.asyncio_driver import AsyncioClient, ClosedError, Stream
from docs.howto.examples.test_asyncio_driver import NO_TLS, hold
from tests.docs.serving import serving
from triclinium import errors
from triclinium_core import ClientMachine, ClientOptions, PasswordAuthenticator
from triclinium_core.contract.couchbase import Action, Event, OperationSubmitted
from triclinium_core.contract.neutral import OpenStream, SendBytes, StreamId
from triclinium_core.kv.operation.document_operations import Get, GetAndLock, Keyspace, Upsert
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.kv.operation.reports import PingResult
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest
from triclinium_core.testing.driver_laws import OpenDriver, ScriptedClusterMachine, on
from triclinium_core.testing.driver_laws.couchbase.bench import CouchbaseBench
from triclinium_core.testing.driver_laws.neutral.trial import on_trial

pytestmark = pytest.mark.native

TRAVEL = Keyspace("travel")
APP = PasswordAuthenticator("app", "secret")
SECONDS_MAX = 30.0
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
    with serving(
        "--username",
        "app",
        "--password",
        "secret",
        "--bucket",
        "travel",
        "--tls-cert",
        str(path),
        "--tls-key",
        str(path),
    ) as said:
        yield said


def client_of(
    connection_string: str, authenticator: PasswordAuthenticator = APP, tls: ssl.SSLContext = NO_TLS
) -> AsyncioClient:
    """Return a client with the real machine."""
    options = ClientOptions(connection_string=connection_string, authenticator=authenticator)
    return AsyncioClient(ClientMachine(options, rng=random.Random(1)), tls)


def test_large_values_over_tls(node: Mapping[str, str], authority: trustme.CA) -> None:
    """A value of many TLS records is read back unchanged from a node with a verified certificate."""
    value = bytes(range(256)) * 4096
    tls = ssl.create_default_context()
    authority.configure_trust(tls)

    async def main() -> None:
        with closing(client_of(node["tls_connection_string"], tls=tls)) as client:
            async with asyncio.timeout(SECONDS_MAX):
                await client.perform(Upsert(TRAVEL, "large", value, 0))
                found = await client.perform(Get(TRAVEL, "large"))

        assert isinstance(found, GetResult)
        assert value == found.data

    asyncio.run(main())


class Never:
    """Asynchronous strategy that refuses every retry."""

    def __init__(self) -> None:
        self.asked: list[tuple[RetryReason, str]] = []

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse the retry, after yielding to the event loop."""
        await asyncio.sleep(0)
        self.asked.append((reason, variable.get()))
        return RetryAction.no_retry()


def test_the_strategy_of_a_call_is_awaited(node: Mapping[str, str]) -> None:
    """The driver awaits a call's asynchronous strategy in the context of the caller."""
    strategy = Never()

    async def main() -> None:
        with closing(client_of(node["connection_string"])) as client:
            async with asyncio.timeout(SECONDS_MAX):
                await client.perform(Upsert(TRAVEL, "locked", b"1", 0))
                await client.perform(GetAndLock(TRAVEL, "locked"))
                variable.set("of the caller")
                with pytest.raises(errors.DocumentLockedException):
                    await client.perform(Upsert(TRAVEL, "locked", b"2", 0), strategy)

    asyncio.run(main())

    assert [(RetryReason.KV_LOCKED, "of the caller")] == strategy.asked


def test_pings_and_new_authenticators_work(node: Mapping[str, str]) -> None:
    """After a client gets an authenticator with the correct password, its operations and pings succeed."""

    async def main() -> PingResult:
        with closing(client_of(node["connection_string"], PasswordAuthenticator("app", "wrong"))) as client:
            async with asyncio.timeout(SECONDS_MAX):
                with pytest.raises(errors.AuthenticationFailureException):
                    await client.perform(Get(TRAVEL, "ada"))
                client.set_authenticator(APP)
                await client.perform(Upsert(TRAVEL, "ada", b"1", 0))
                result = await client.perform(Ping(None, "a report"))
        assert isinstance(result, PingResult)
        return result

    assert "a report" == asyncio.run(main()).id


def test_a_closed_client_raises() -> None:
    """A closed client refuses operations and authenticators."""

    async def main() -> None:
        client = client_of("couchbase://127.0.0.1:1")
        client.close()
        client.close()
        with pytest.raises(ClosedError):
            await client.perform(Get(TRAVEL, "ada"))
        with pytest.raises(ClosedError):
            client.set_authenticator(APP)

    asyncio.run(main())


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


class WatchedClient(AsyncioClient):
    """Client with recorded streams."""

    def _open(self, order: OpenStream) -> None:
        self._streams[order.stream] = Watched(self, order)


def test_sends_of_one_pass_are_one_write() -> None:
    """The driver joins the sends of several events in one pass of the event loop into one write."""

    async def play(open_driver: OpenDriver) -> None:
        async with on_trial(CouchbaseBench(open_driver)) as trial:
            peer = await trial.connect(StreamId(1))
            trial.machine.answer = on(
                OperationSubmitted, SendBytes(StreamId(1), b"one "), SendBytes(StreamId(1), b"two ")
            )
            for _ in range(3):
                trial.driver.submit()

            assert b"one two " * 3 == await peer.receive(24)
            [stream] = trial.driver._client._streams.values()  # type: ignore[attr-defined]  # of the asyncio driver
            assert [b"one two " * 3] == stream.written

    hold(play, WatchedClient)


def test_a_refused_submission_leaves_no_references() -> None:
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

    async def main() -> None:
        with closing(AsyncioClient(ScriptedClusterMachine(refuse), NO_TLS)) as client:
            left = await asyncio.create_task(ask(client))
            await asyncio.sleep(0)
            gc.collect()
            assert left() is None

    asyncio.run(main())
