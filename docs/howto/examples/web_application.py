"""Web application on hypercorn's trio worker: one cluster, health, a time limit for each request, spans and shutdown.

The program serves the cluster of ``TRICLINIUM_CONNECTION_STRING``. Without that variable, it tries the application on a
cluster in memory.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypedDict, cast

import httpx
import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from hypercorn.typing import Framework
from opentelemetry import propagate, trace
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import triclinium
from triclinium import Cluster, Collection
from triclinium.errors import (
    AmbiguousTimeoutException,
    CouchbaseException,
    DocumentNotFoundException,
    DurabilityAmbiguousException,
    InvalidArgumentException,
    RequestCanceledException,
    TemporaryFailureException,
    UnambiguousTimeoutException,
    ValueTooLargeException,
)
from triclinium.health import ClusterState
from triclinium.opentelemetry import OpenTelemetryRequestTracer
from triclinium.testing import FakeCluster, Opcode, delay, open_fake_cluster

BUCKET = "notes"
SECONDS_TO_START = 10.0
SECONDS_PER_REQUEST = 2.0

NOT_APPLIED = "nothing of this was written; repeat the request"
IN_DOUBT = "the note may have been written; read it before you repeat the request"

RESPONSES: Mapping[type[CouchbaseException], tuple[int, str]] = {
    DocumentNotFoundException: (404, "no such note"),
    InvalidArgumentException: (400, "the id is invalid"),
    ValueTooLargeException: (413, "the note is too large"),
    UnambiguousTimeoutException: (503, NOT_APPLIED),
    TemporaryFailureException: (503, NOT_APPLIED),
    AmbiguousTimeoutException: (504, IN_DOUBT),
    RequestCanceledException: (504, IN_DOUBT),
    DurabilityAmbiguousException: (504, IN_DOUBT),
}
"""Status and text for each exception with which a request may end. Any other one is a defect: status 500."""

# -- Endpoints.


def notes_of(request: Request) -> Collection:
    """Return the collection. The lifespan has put the cluster into the state of each request."""
    cluster: Cluster = request.state.cluster
    return cluster.bucket(BUCKET).default_collection()


async def write_note(request: Request) -> Response:
    """Write a note."""
    await notes_of(request).upsert(request.path_params["id"], (await request.body()).decode())
    return Response(status_code=204)


async def read_note(request: Request) -> Response:
    """Return a note."""
    found = await notes_of(request).get(request.path_params["id"])
    return Response(found.content_as(str), media_type="text/plain")


async def live(request: Request) -> Response:
    """Respond, whatever the cluster does: a restart of this process would not repair it."""
    return JSONResponse({"state": "live"})


async def ready(request: Request) -> Response:
    """Respond with 503 while no connection is ready. Nothing is sent to the cluster."""
    cluster: Cluster = request.state.cluster
    state = cluster.diagnostics().state
    return JSONResponse({"cluster": state.value}, 503 if state is ClusterState.OFFLINE else 200)


# -- Middleware.


class Limited:
    """Time limit of each request, and the response to each failure that ``RESPONSES`` lists."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on. An exception after the first byte of the response closes the connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            with triclinium.fail_after(self.seconds):
                await self.app(scope, receive, noted)
        except tuple(RESPONSES) as error:
            if has_begun:
                raise
            status, text = next(row for kind, row in RESPONSES.items() if isinstance(error, kind))
            headers = {"Retry-After": "1"} if status == 503 else None
            await JSONResponse({"error": text}, status, headers)(scope, receive, send)


class Traced:
    """Span of each request, inside the caller's trace. The client's spans become its children."""

    def __init__(self, app: ASGIApp, tracer: trace.Tracer) -> None:
        self.app = app
        self.tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on inside a span."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        parent = propagate.extract(headers)
        with self.tracer.start_as_current_span(scope["method"], parent, trace.SpanKind.SERVER) as span:

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            await self.app(scope, receive, noted)
            if (route := scope.get("route")) is not None:
                span.update_name(f"{scope['method']} {route.path}")
                span.set_attribute("http.route", route.path)


# -- The application.


class State(TypedDict):
    """State that every request may use, as ``request.state``."""

    cluster: Cluster


def application(
    open_client: Callable[[], AbstractAsyncContextManager[Cluster]],
    tracer: trace.Tracer,
    seconds_per_request: float = SECONDS_PER_REQUEST,
) -> Starlette:
    """Return the application. ``open_client`` opens its cluster."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[State]:
        async with open_client() as cluster:
            with triclinium.fail_after(SECONDS_TO_START):
                await cluster.bucket(BUCKET).wait_until_ready()
            yield {"cluster": cluster}

    return Starlette(
        routes=[
            Route("/notes/{id}", write_note, methods=["PUT"]),
            Route("/notes/{id}", read_note),
            Route("/health/live", live),
            Route("/health/ready", ready),
        ],
        middleware=[Middleware(Traced, tracer=tracer), Middleware(Limited, seconds=seconds_per_request)],
        lifespan=lifespan,
    )


# -- The server.


def open_configured_client() -> AbstractAsyncContextManager[Cluster]:
    """Open the cluster that the environment names, with spans for the global tracer provider."""
    return triclinium.open_cluster_from_environment(os.environ, tracer=OpenTelemetryRequestTracer())


async def wait_for_signal() -> None:
    """Return when the process is asked to end."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            return


def settings(address: str, seconds_per_request: float = SECONDS_PER_REQUEST) -> Config:
    """Return settings with which a stopping server lets each request end within its limit."""
    config = Config()
    config.bind = [address]
    config.graceful_timeout = seconds_per_request + 1
    return config


def serving(served: Starlette, config: Config, until: Callable[[], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Return a function that serves an application until ``until`` returns and its requests have ended."""
    # Starlette's and hypercorn's types of the same callable differ.
    return partial(serve, cast("Framework", served), config, shutdown_trigger=until)


app = application(open_configured_client, trace.get_tracer("notes"))
"""The application, also for ``hypercorn --worker-class trio web_application:app``."""


# -- A trial with a fake cluster.


async def try_it(http: httpx.AsyncClient, fake: FakeCluster) -> None:
    """Send requests to the healthy cluster, then to a slow one."""
    for method, path in [("PUT", "/notes/a"), ("GET", "/notes/a"), ("GET", "/notes/b"), ("GET", "/health/ready")]:
        response = await http.request(method, path, content="Hello" if method == "PUT" else None)
        print(f"{method} {path}: {response.status_code} {response.text}".rstrip())

    fake.node.faults.next(Opcode.GET, delay(9))
    fake.node.faults.next(Opcode.SET, delay(9))
    for method in ("GET", "PUT"):
        response = await http.request(method, "/notes/a")
        print(f"{method} /notes/a: {response.status_code} {response.text}")


async def stop_under_load(http: httpx.AsyncClient, fake: FakeCluster, stop: trio.Event) -> None:
    """Stop the server while 16 notes are being written."""
    fake.node.faults.next(Opcode.SET, delay(0.1), times=16)
    statuses: list[int] = []

    async def write(number: int) -> None:
        statuses.append((await http.put(f"/notes/{number}", content="Hello")).status_code)

    async with trio.open_nursery() as nursery:
        for number in range(16):
            nursery.start_soon(write, number)
        # The faults are used up when all 16 writes have reached the node.
        while fake.node.faults.pending:  # noqa: ASYNC110
            await trio.sleep(0.001)
        stop.set()
    print("stopped while 16 notes were being written:", statuses.count(204), "were written")
    try:
        await http.get("/health/live")
    except httpx.TransportError:  # The client cannot connect, or the server has closed the idle connection.
        print("no further request is accepted")


async def main() -> None:
    """Serve the application on a free port of this machine, with a cluster in memory."""
    stop = trio.Event()
    config = settings("127.0.0.1:0", seconds_per_request=1.0)
    config.loglevel = "WARNING"
    async with open_fake_cluster(buckets=[BUCKET]) as fake, trio.open_nursery() as nursery:
        tried = application(fake.open_client, trace.get_tracer("notes"), seconds_per_request=1.0)
        (address,) = await nursery.start(serving(tried, config, stop.wait))
        async with httpx.AsyncClient(base_url=address) as http:
            await try_it(http, fake)
            await stop_under_load(http, fake, stop)


if __name__ == "__main__":
    if "TRICLINIUM_CONNECTION_STRING" in os.environ:
        trio.run(serving(app, settings(os.environ.get("BIND", "127.0.0.1:8000")), wait_for_signal))
    else:
        trio.run(main)
