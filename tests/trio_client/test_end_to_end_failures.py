"""Failures as a caller sees them: timeouts, retries, decisions of strategies, and log records."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import triclinium
from tests.rows import rows
from tests.trio_client.pair import Thinks, open_pair
from triclinium.abc import ConnectedStream
from triclinium.errors import (
    AmbiguousTimeoutException,
    AuthenticationFailureException,
    CouchbaseException,
    DecodingFailureException,
    RequestCanceledException,
    TemporaryFailureException,
    UnambiguousTimeoutException,
)
from triclinium.testing import FakeNodeOptions, open_fake_cluster
from triclinium_core.kv.wire.constants import Datatype, Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection.sasl import PLAIN_ONLY
from triclinium_core.runtime.kv.pool.connection_texts import CONSOLE_PORT
from triclinium_core.testing import delay, drop_response, hang_up, hang_up_after_applying, status, temporary_failure


async def test_an_undecodable_response(autojump_clock: MockClock) -> None:
    """A response that cannot be decoded fails its own operation and no concurrent write."""
    async with open_pair() as (fake, _, people):
        await people.upsert("ada", 1)
        fake.node.faults.next(Opcode.GET, status(Status.SUCCESS, b"\xff" * 40, Datatype.SNAPPY))
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(people.upsert, f"k{number}", number)
            with pytest.raises(DecodingFailureException):
                await people.get("ada")

        assert 1 == (await people.get("ada")).content
        assert 2 == len({command.connection for command in fake.node.command_log})


# -- Timeouts.


async def test_a_scope_cancels_a_call(autojump_clock: MockClock) -> None:
    """Any trio scope can cancel a call; the connection stays open, and the late response is dropped."""
    async with open_pair() as (fake, cluster, people):
        await people.upsert("banner", "hello")
        fake.node.faults.next(Opcode.GET, delay(1.0))
        with trio.move_on_after(0.05) as scope:
            await people.get("banner")
        given_up_at = trio.current_time()
        await trio.sleep(2)

        assert scope.cancelled_caught
        assert 0.05 == given_up_at
        assert "hello" == (await people.get("banner")).content
        assert (1, 0) == (cluster.statistics().orphans, cluster.statistics().in_flight)
        assert 2 == len({command.connection for command in fake.node.command_log})


async def test_a_timeout_of_a_refused_write(autojump_clock: MockClock) -> None:
    """``fail_after`` reports a write that was refused on every attempt as unambiguous."""
    async with open_pair() as (fake, _, people):
        fake.node.faults.always(Opcode.SET, temporary_failure())
        with pytest.raises(UnambiguousTimeoutException) as caught, triclinium.fail_after(0.2):
            await people.upsert("ada", 1)
        fake.node.faults.clear()

        assert isinstance(caught.value, trio.TooSlowError)
        assert await people.get_or_none("ada") is None


async def answer_in_http(stream: trio.abc.Stream) -> None:
    """Respond like a web server."""
    await stream.receive_some()
    await stream.send_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    await stream.aclose()


async def listen(stream: trio.abc.Stream) -> None:
    """Read until the client closes the stream, and never respond."""
    while await stream.receive_some():
        pass


@dataclass
class Misguided:
    """Connector to a server that is not a node, or that does not exist."""

    peer: Callable[[trio.abc.Stream], Awaitable[None]] | Exception
    nursery: trio.Nursery

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a stream to the server, or raise ``peer`` if it is an exception."""
        await trio.sleep(0.01)
        if isinstance(self.peer, Exception):
            raise self.peer
        ours, theirs = memory_stream_pair()
        self.nursery.start_soon(self.peer, theirs)
        return ConnectedStream(ours)


async def write_to(cluster: triclinium.Cluster, bucket: str) -> None:
    """Write a document to a bucket."""
    await cluster.bucket(bucket).default_collection().upsert("ada", 1)


async def write(cluster: triclinium.Cluster) -> None:
    """Write a document."""
    await write_to(cluster, "travel")


async def wait(cluster: triclinium.Cluster) -> None:
    """Wait for a bucket."""
    await cluster.bucket("travel").wait_until_ready()


@pytest.mark.parametrize("call", [write, wait])
@pytest.mark.parametrize(
    ("expected", "peer"),
    [
        ("connection refused", ConnectionRefusedError()),
        ("this is an HTTP port", answer_in_http),
        (" HELLO", listen),
        ("host name not resolved", trio.socket.gaierror(trio.socket.EAI_NONAME, "no such name")),
    ],
    ids=["refused", "http", "silent", "unknown"],
)
async def test_a_timeout_names_the_connection_problem(
    autojump_clock: MockClock,
    call: Callable[[triclinium.Cluster], Awaitable[None]],
    expected: str,
    peer: Callable[[trio.abc.Stream], Awaitable[None]] | OSError,
) -> None:
    """If a problem keeps the client from its node, the timeout of the block names it."""
    async with trio.open_nursery() as nursery:
        authenticator = triclinium.PasswordAuthenticator("app", "secret")
        connector = Misguided(peer, nursery)
        async with triclinium.open_cluster("couchbase://node:11210", authenticator, connector=connector) as cluster:
            with pytest.raises(UnambiguousTimeoutException) as caught, triclinium.fail_after(1.0):
                await call(cluster)
        nursery.cancel_scope.cancel()
    context = caught.value.context

    assert "node:11210" in str(caught.value)
    assert expected in str(caught.value)
    assert any(expected in text for text in (context.last_dispatch_error or "", *context.connections))
    assert "travel" == context.bucket


@pytest.mark.parametrize(
    ("call", "error", "opcode"),
    [
        (lambda people: people.upsert("ada", 1), AmbiguousTimeoutException, Opcode.SET),
        (lambda people: people.get("ada"), UnambiguousTimeoutException, Opcode.GET),
    ],
)
async def test_the_default_timeout(
    autojump_clock: MockClock,
    call: Callable[[triclinium.Collection], Awaitable[object]],
    error: type[Exception],
    opcode: Opcode,
) -> None:
    """Without a scope, the client's timeout ends a call with the SDK's exception, which is not a trio.TooSlowError."""
    async with open_pair(timeouts=triclinium.TimeoutOptions(kv=1.5)) as (fake, _, people):
        await people.exists("ada")
        fake.node.faults.next(opcode, drop_response())
        with pytest.raises(error) as caught:
            await call(people)

    assert 1.5 == trio.current_time()
    assert isinstance(caught.value, CouchbaseException)
    assert not isinstance(caught.value, trio.TooSlowError)
    assert ("ada", 1.5) == (caught.value.context.key, caught.value.context.timeout)


# -- Connections.


async def answer_with_an_alert(stream: trio.abc.Stream) -> None:
    """Respond like a server that expects TLS."""
    await stream.receive_some()
    await stream.send_all(b"\x15\x03\x03\x00\x02\x02\x0a")
    await stream.aclose()


async def close_unanswered(stream: trio.abc.Stream) -> None:
    """Close the stream after the first bytes, without a response."""
    await stream.receive_some()
    await stream.aclose()


def warnings_of(caplog: pytest.LogCaptureFixture, advice: str) -> list[str]:
    """Return the warnings of the connection logger that contain this advice."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING
        and record.name == "triclinium.connection"
        and advice in record.getMessage()
    ]


@pytest.mark.parametrize(
    ("scheme", "port", "peer"),
    [
        ("couchbase", 8091, answer_in_http),
        ("couchbases", 18091, answer_in_http),
        ("couchbase", 8091, close_unanswered),
        ("couchbase", 8091, listen),
        ("couchbase", 18091, answer_with_an_alert),
        ("couchbases", 8091, ssl.SSLError("wrong version number")),
    ],
)
async def test_a_port_of_the_web_console(
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    scheme: str,
    port: int,
    peer: Callable[[trio.abc.Stream], Awaitable[None]] | Exception,
) -> None:
    """If the seeds have ports of the web console, one warning lists the ports to use, and errors repeat it."""
    caplog.set_level(logging.DEBUG, "triclinium")
    async with trio.open_nursery() as nursery:
        authenticator = triclinium.PasswordAuthenticator("app", "secret")
        string = f"{scheme}://a.example:{port},b.example:{port}?kv_timeout=30s"
        async with triclinium.open_cluster(string, authenticator, connector=Misguided(peer, nursery)) as cluster:
            with pytest.raises(CouchbaseException) as caught:
                await write(cluster)
        nursery.cancel_scope.cancel()

    assert 1 == len(warnings_of(caplog, CONSOLE_PORT))
    assert CONSOLE_PORT in str(caught.value)


async def test_a_node_at_a_console_port(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """A node that speaks the protocol at port 18091 is used, and its loss gives no advice on the port."""
    options = FakeNodeOptions(port=18091)
    async with open_fake_cluster(options=options) as fake, fake.open_client() as cluster:
        await write_to(cluster, "default")
        fake.node.kill()
        await trio.sleep(5.0)

    assert [] == warnings_of(caplog, CONSOLE_PORT)


@pytest.mark.parametrize(("mechanisms", "warnings"), [(("PLAIN",), 1), (("PLAIN", "SCRAM-SHA1"), 0)], ids=str)
async def test_nodes_that_offer_only_plain(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, mechanisms: tuple[str, ...], warnings: int
) -> None:
    """The cluster logs one warning, and errors repeat its advice, only if nodes without TLS offer just PLAIN."""
    options = FakeNodeOptions(sasl_mechanisms=mechanisms)
    errors = []
    async with open_fake_cluster(options=options, nodes=3) as fake, fake.open_client() as cluster:
        for _ in range(2):
            try:
                await write_to(cluster, "default")
            except AuthenticationFailureException as error:
                errors.append(str(error))
            await trio.sleep(30.0)

    assert warnings == len(warnings_of(caplog, PLAIN_ONLY))
    assert [True] * 2 * warnings == [PLAIN_ONLY in text for text in errors]


async def test_a_lost_connection_retries_reads_only(autojump_clock: MockClock) -> None:
    """After a lost connection, a read is retried transparently; a write in flight may have been applied and fails."""
    async with open_pair() as (fake, cluster, people):
        await people.upsert("ada", 1)
        fake.node.faults.next(Opcode.GET, hang_up())
        found = await people.get("ada")
        fake.node.faults.next(Opcode.SET, hang_up_after_applying())
        with pytest.raises(RequestCanceledException) as caught:
            await people.upsert("ada", 2)

        assert 1 == found.content
        assert triclinium.retries.RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT == caught.value.context.refused_reason
        assert 2 == (await people.get("ada")).content
        assert 1 == cluster.statistics().retries_by_reason[triclinium.retries.RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT]


# -- Strategies.


class Budgeted:
    """Strategy with a retry budget that many calls share."""

    def __init__(self, inner: triclinium.retries.RetryStrategy, tokens: int) -> None:
        self._inner, self.tokens = inner, tokens

    def retry_after(
        self, request: triclinium.retries.RetryRequest, reason: triclinium.retries.RetryReason, /
    ) -> triclinium.retries.RetryAction:
        """Spend a token on a decision of the inner strategy, or refuse if none is left."""
        if self.tokens < 1:
            return triclinium.retries.RetryAction.no_retry()
        self.tokens -= 1
        return self._inner.retry_after(request, reason)


class Broken:
    """Strategy with a defect."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def retry_after(
        self, request: triclinium.retries.RetryRequest, reason: triclinium.retries.RetryReason, /
    ) -> triclinium.retries.RetryAction:
        """Raise."""
        raise self._error


class BrokenLater(Broken):
    """Asynchronous strategy with a defect."""

    async def retry_after(  # type: ignore[override]
        self, request: triclinium.retries.RetryRequest, reason: triclinium.retries.RetryReason, /
    ) -> triclinium.retries.RetryAction:
        """Raise."""
        await trio.sleep(0.1)
        raise self._error


async def test_a_slow_asynchronous_strategy(autojump_clock: MockClock) -> None:
    """An asynchronous strategy is awaited, and its delay counts from its decision; other calls do not wait for it."""
    slow = Thinks(1.0, 0.5)
    async with open_pair() as (fake, _, people):
        await people.exists("ada")
        fake.node.faults.next(Opcode.SET, temporary_failure())

        async def read() -> None:
            await people.exists("bob")
            assert 0 == trio.current_time()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: people.upsert("ada", 1, retry_strategy=slow))
            nursery.start_soon(read)

    assert 1.5 == trio.current_time()
    assert [("upsert", triclinium.retries.RetryReason.KV_TEMPORARY_FAILURE, 0)] == slow.asked


@rows("kind", [Broken, BrokenLater])
async def test_a_strategy_that_raises(autojump_clock: MockClock, kind: type[Broken]) -> None:
    """If a strategy raises, the call fails with that exception as the cause, and the client continues."""
    error = ZeroDivisionError("mine")
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with pytest.raises(CouchbaseException) as caught:
            await people.upsert("ada", 1, retry_strategy=kind(error))
        await people.upsert("ada", 2)

    assert error is caught.value.__cause__


# -- The log.


async def test_retries_and_refusals_are_logged(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Retries are logged at DEBUG with delay, refusals at INFO; both with operation, reason, attempts and node."""
    caplog.set_level(logging.DEBUG, "triclinium.retry")
    async with open_pair(retry_strategy=Budgeted(triclinium.BestEffortRetryStrategy(), tokens=1)) as (fake, _, people):
        fake.node.faults.always(Opcode.SET, temporary_failure())
        with pytest.raises(TemporaryFailureException):
            await people.upsert("ada", 1)

    reported = [record for record in caplog.records if record.name == "triclinium.retry"]
    assert [logging.DEBUG, logging.INFO] == [record.levelno for record in reported]
    assert [
        ("upsert", "ada", "KV_TEMPORARY_FAILURE", "127.0.0.1:11210", 0, 0.001),
        ("upsert", "ada", "KV_TEMPORARY_FAILURE", "127.0.0.1:11210", 1, None),
    ] == [
        tuple(getattr(record, name, None) for name in ("operation", "key", "reason", "node", "retry_attempts", "delay"))
        for record in reported
    ]
    assert "is not retried and fails with TemporaryFailureException" in reported[1].getMessage()


@pytest.mark.parametrize("redact_logs", [False, True])
async def test_document_ids_are_marked_for_redaction(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, redact_logs: bool
) -> None:
    """With redaction, every document id in the log is inside marks; without it, none is."""
    caplog.set_level(logging.DEBUG, "triclinium")
    async with open_pair() as (fake, _, _), fake.open_client(redact_logs=redact_logs) as cluster:
        fake.node.faults.next(Opcode.SET, temporary_failure())
        fake.node.faults.next(Opcode.SET, hang_up_after_applying())
        with pytest.raises(RequestCanceledException):
            await cluster.bucket("travel").default_collection().upsert("secret-id", 1)

    naming = [record.getMessage() for record in caplog.records if "secret-id" in record.getMessage()]
    assert 2 == len(naming)
    assert all(("<ud>secret-id</ud>" in message) is redact_logs for message in naming)
