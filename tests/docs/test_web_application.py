"""The web application of its page, on real sockets: responses to failures, health, spans, and shutdown under load."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from subprocess import PIPE
from typing import NamedTuple

import httpx
import pytest
import trio
from hypercorn.utils import LifespanFailureError
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from docs.howto.examples.web_application import BUCKET, SECONDS_PER_REQUEST, application, serving, settings
from tests.docs.pages import EXAMPLES
from tests.docs.serving import serving as serving_a_node
from triclinium import PasswordAuthenticator, open_cluster
from triclinium.opentelemetry import OpenTelemetryRequestTracer
from triclinium.testing import (
    FakeCluster,
    Fault,
    Opcode,
    delay,
    drop_response,
    hang_up,
    open_fake_cluster,
    temporary_failure,
)

pytestmark = pytest.mark.native

SECONDS_MAX = 200.0
"""Seconds after which a test counts as hanging."""
CLIENTS = 16
NOTES_BEFORE_THE_STOP = 100
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Server(NamedTuple):
    """A served application, and its cluster in memory."""

    http: httpx.AsyncClient
    fake: FakeCluster
    stop: trio.Event
    spans: InMemorySpanExporter


@asynccontextmanager
async def served(bucket: str = BUCKET, seconds_per_request: float = 3.0) -> AsyncIterator[Server]:
    """Serve the application on a free port during a block, and stop it at the end."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    stop = trio.Event()
    async with open_fake_cluster(buckets=[bucket]) as fake, trio.open_nursery() as nursery:
        tracer = OpenTelemetryRequestTracer(provider)
        app = application(lambda: fake.open_client(tracer=tracer), provider.get_tracer("tests"), seconds_per_request)
        config = settings("127.0.0.1:0", seconds_per_request)
        config.errorlog = None
        (address,) = await nursery.start(serving(app, config, stop.wait))
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=address, timeout=SECONDS_MAX, limits=limits) as http:
            yield Server(http, fake, stop, exporter)
        stop.set()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that has no event."""
    with trio.fail_after(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await trio.sleep(0.001)


CASES: list[tuple[str, str, Fault | None, int]] = [
    ("PUT", "/notes/a", None, 204),
    ("GET", "/notes/a", None, 404),
    ("PUT", f"/notes/{'a' * 251}", None, 400),
    ("GET", "/notes/a", delay(60), 503),
    ("PUT", "/notes/a", delay(60), 504),
    ("PUT", "/notes/a", drop_response(), 504),
    ("PUT", "/notes/a", hang_up(), 504),
    ("PUT", "/notes/a", temporary_failure(), 503),
    ("DELETE", "/notes/a", None, 405),
]


async def test_each_failure_has_a_status() -> None:
    """Each failure has its status, and only a response with 503 has a ``Retry-After`` header."""
    found: dict[int, tuple[int, str | None]] = {}

    async def request(number: int) -> None:
        method, path, fault, _ = CASES[number]
        async with served() as server:
            if fault is not None:
                server.fake.node.faults.always(Opcode.SET if method == "PUT" else Opcode.GET, fault)
            response = await server.http.request(method, path, content="text")
        found[number] = (response.status_code, response.headers.get("Retry-After"))

    # Run the cases concurrently, so that their time limits pass at the same time.
    async with trio.open_nursery() as nursery:
        for number in range(len(CASES)):
            nursery.start_soon(request, number)

    assert {number: (status, "1" if status == 503 else None) for number, (*_, status) in enumerate(CASES)} == found


async def test_a_large_note_is_refused() -> None:
    """A note above the size that a node stores is refused with 413."""
    async with served(seconds_per_request=SECONDS_PER_REQUEST) as server:
        response = await server.http.put("/notes/a", content=b"a" * (20 * 2**20 + 1))

    assert 413 == response.status_code


async def test_readiness_follows_the_cluster() -> None:
    """Without a reachable node the application is live and not ready, and its reads end with 503."""
    async with served() as server:
        before = await server.http.get("/health/ready")
        server.fake.nodes.kill(0)
        read = await server.http.get("/notes/a")
        after = await server.http.get("/health/ready")
        live = await server.http.get("/health/live")

    assert (200, {"cluster": "online"}) == (before.status_code, before.json())
    assert (503, {"cluster": "offline"}) == (after.status_code, after.json())
    assert (503, 200) == (read.status_code, live.status_code)


async def test_an_operation_is_in_the_trace() -> None:
    """The span of a request belongs to the caller's trace, and the operation's span to that of the request."""
    async with served() as server:
        await server.http.put("/notes/a", content="text", headers={"traceparent": TRACEPARENT})
    spans = {span.name: span for span in server.spans.get_finished_spans()}
    request, operation = spans["PUT /notes/{id}"], spans["upsert"]

    assert request.parent is not None
    assert TRACEPARENT.split("-")[1:3] == [f"{request.parent.trace_id:032x}", f"{request.parent.span_id:016x}"]
    assert request.attributes is not None
    assert 204 == request.attributes["http.response.status_code"]
    assert "/notes/{id}" == request.attributes["http.route"]
    assert operation.parent is not None
    assert request.context.span_id == operation.parent.span_id


async def test_a_missing_bucket_ends_the_start() -> None:
    """A bucket that does not exist ends the start of the server with BucketAccessException."""
    with pytest.raises(BaseExceptionGroup) as raised:
        # hypercorn reports its address before the failure ends it.
        async with served(bucket="other"):
            await trio.sleep_forever()

    assert raised.group_contains(LifespanFailureError, match="BucketAccessException")


class Load:
    """Clients that write notes until the server refuses them."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.statuses: list[int] = []
        self.sent: set[str] = set()
        self.confirmed: set[str] = set()

    async def run(self, nursery: trio.Nursery) -> None:
        """Start the clients, and return when some notes are written."""
        for client in range(CLIENTS):
            nursery.start_soon(self._write, client)
        try:
            await until(lambda: len(self.confirmed) >= NOTES_BEFORE_THE_STOP)
        except trio.TooSlowError:
            raise AssertionError(
                f"{len(self.confirmed)} of {NOTES_BEFORE_THE_STOP} notes were confirmed; last statuses: "
                f"{self.statuses[-20:]}"
            ) from None

    async def _write(self, client: int) -> None:
        for number in range(10_000):
            key = f"{client}-{number}"
            self.sent.add(key)
            try:
                response = await self.http.put(f"/notes/{key}", content=key)
            except (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                return
            self.statuses.append(response.status_code)
            if response.status_code == 204:
                self.confirmed.add(key)


# httpx leaves the iterator of a body unfinished when the connection ends.
unfinished_bodies = pytest.mark.filterwarnings("ignore:Async generator 'httpx:ResourceWarning")


@unfinished_bodies
async def test_shutdown_under_load_loses_no_write() -> None:
    """Writes in flight at the stop complete, every response confirms one, and each confirmed note is stored."""
    # The time that hypercorn gives requests to end depends on this limit.
    async with served(seconds_per_request=6.0) as server:
        load, node = Load(server.http), server.fake.node
        async with trio.open_nursery() as nursery:
            await load.run(nursery)
            # Stop while the node delays a write of each client: hypercorn then closes idle connections, and a request
            # that arrives on one of them may be carried out and get no response.
            node.faults.next(Opcode.SET, delay(1.0), times=CLIENTS)
            await until(lambda: not node.faults.pending)
            before = len(load.confirmed)
            server.stop.set()
        stored = {key for key in load.sent if node.documents.get(BUCKET, key) is not None}

    assert {204} == set(load.statuses)
    assert len(load.confirmed) > before
    assert stored == load.confirmed


async def test_slow_writes_are_answered_during_a_shutdown() -> None:
    """A write to which the node sends no response is answered with 504 during the shutdown."""
    statuses: list[int] = []
    async with served() as server:
        server.fake.node.faults.next(Opcode.SET, drop_response(), times=CLIENTS)

        async def write(client: int) -> None:
            statuses.append((await server.http.put(f"/notes/{client}", content="text")).status_code)

        async with trio.open_nursery() as nursery:
            for client in range(CLIENTS):
                nursery.start_soon(write, client)
            await until(lambda: not server.fake.node.faults.pending)
            server.stop.set()

    assert [504] * CLIENTS == statuses


@pytest.mark.long
@unfinished_bodies
async def test_a_signal_ends_the_program() -> None:
    """The program, in a separate process, ends on SIGTERM with status 0, and each confirmed note is stored."""
    with serving_a_node("--bucket", BUCKET, "--username", "app", "--password", "secret") as node:
        variables = {
            "TRICLINIUM_CONNECTION_STRING": node["connection_string"],
            "TRICLINIUM_USERNAME": "app",
            "TRICLINIUM_PASSWORD": "secret",
            "BIND": "127.0.0.1:0",
        }
        command = [sys.executable, "-W", "error", str(EXAMPLES / "web_application.py")]
        said = b""
        async with trio.open_nursery() as nursery:
            # The client refuses unknown ``TRICLINIUM_`` variables, such as those that configure the tests.
            others = {name: value for name, value in os.environ.items() if not name.startswith("TRICLINIUM_")}
            start = partial(trio.run_process, command, stderr=PIPE, check=False, env={**others, **variables})
            program: trio.Process = await nursery.start(start)
            assert program.stderr is not None
            while (address := re.search(rb"http://[0-9.:]+", said)) is None:
                more = await program.stderr.receive_some()
                assert more, said
                said += more
            async with httpx.AsyncClient(base_url=address[0].decode(), timeout=SECONDS_MAX) as http:
                load = Load(http)
                async with trio.open_nursery() as clients:
                    await load.run(clients)
                    program.send_signal(signal.SIGTERM)
            async for more in program.stderr:
                said += more
        async with open_cluster(node["connection_string"], PasswordAuthenticator("app", "secret")) as cluster:
            notes = cluster.bucket(BUCKET).default_collection()
            lost = [key for key in load.confirmed if await notes.get_or_none(key) is None]

    assert (0, {204}, []) == (program.returncode, set(load.statuses), lost), said.decode()
