"""The same operations through the trio client and through the drivers of the documentation."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import trio

from docs.howto.examples.asyncio_driver import AsyncioClient
from docs.howto.examples.selectors_driver import SelectorsClient
from tests.live.waiting import PATIENT
from triclinium import Authenticator, Cluster, Collection, PasswordAuthenticator, RawBinaryTranscoder, open_cluster
from triclinium_core import ClientMachine, ClientOptions, TimeoutOptions
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation.document_operations import Get, Insert, Keyspace, Operation, Remove, Upsert
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.services.query.query_request import QueryRequest

SECONDS_MAX = 250.0
"""Seconds after which a test counts as hanging."""

BYTES = RawBinaryTranscoder()


Kind = Literal["get", "insert", "query", "remove", "upsert"]
"""Kind of a request."""


@dataclass(frozen=True)
class Step:
    """One operation on a document, or a query with ``key`` as its statement."""

    kind: Kind
    key: str
    value: bytes = b""

    def request(self, keyspace: Keyspace) -> Operation | QueryRequest:
        """Return the request for a machine."""
        match self.kind:
            case "query":
                return QueryRequest(statement=self.key, readonly=True)
            case "get":
                return Get(keyspace, self.key, BYTES)
            case "remove":
                return Remove(keyspace, self.key)
            case "insert" | "upsert":
                document = BYTES.encode(self.value)
                store = Insert if self.kind == "insert" else Upsert
                return store(keyspace, self.key, document.data, document.flags)

    async def perform(self, cluster: Cluster, collection: Collection) -> AsyncIterator[object]:
        """Perform the request with the trio client, and yield the rows or the result."""
        match self.kind:
            case "query":
                async with cluster.query(self.key, readonly=True, row_type=bytes) as rows:
                    async for row in rows:
                        yield row
            case "get":
                yield await collection.get(self.key, transcoder=BYTES)
            case "remove":
                yield await collection.remove(self.key)
            case "insert" | "upsert":
                store = collection.insert if self.kind == "insert" else collection.upsert
                yield await store(self.key, self.value, transcoder=BYTES)


@dataclass(frozen=True)
class Server:
    """Address and credentials of a server, and the settings of its clients."""

    connection_string: str
    authenticator: Authenticator | None = None
    bucket: str | None = None
    timeouts: TimeoutOptions = PATIENT
    tls: ssl.SSLContext | None = None

    @classmethod
    def of(cls, served: Mapping[str, str], timeouts: TimeoutOptions = PATIENT) -> Server:
        """Return the server of ``triclinium serve --json``."""
        authenticator = PasswordAuthenticator(served["username"], served["password"])
        return cls(served["connection_string"], authenticator, served["bucket"], timeouts)

    @property
    def keyspace(self) -> Keyspace:
        """Default collection of the bucket."""
        return Keyspace(self.bucket)

    def machine(self) -> ClientMachine:
        """Return the machine of a client."""
        options = ClientOptions(
            connection_string=self.connection_string, authenticator=self.authenticator, timeouts=self.timeouts
        )
        return ClientMachine(options, rng=random.Random(1))


def ending(outcome: object) -> str:
    """Return an outcome as text: the value, the row, the exception with its retry reasons, or "done"."""
    if isinstance(outcome, GetResult):
        return f"read {outcome.data!r}"
    if isinstance(outcome, CouchbaseException):
        reasons = ", ".join(sorted(outcome.context.retry_reasons))
        return f"{type(outcome).__name__} after [{reasons}]"
    assert not isinstance(outcome, BaseException), outcome
    return f"row {outcome!r}" if isinstance(outcome, bytes) else "done"


async def ending_of(outcomes: AsyncIterator[object]) -> str:
    """Return the endings of a request: one for each row or result, and one for the exception if the request fails."""
    found = list[str]()
    try:
        async for outcome in outcomes:
            found.append(ending(outcome))
    except CouchbaseException as error:
        found.append(ending(error))
    return ", ".join(found)


def through_trio(server: Server, steps: Sequence[Step]) -> Sequence[str]:
    """Perform the steps one after another with the trio client."""

    async def main() -> Sequence[str]:
        with trio.fail_after(SECONDS_MAX):
            async with open_cluster(
                server.connection_string, server.authenticator, timeouts=server.timeouts, ssl_context=server.tls
            ) as cluster:
                bucket = cluster if server.bucket is None else cluster.bucket(server.bucket)
                return [await ending_of(step.perform(cluster, bucket.default_collection())) for step in steps]

    return trio.run(main)


def through_asyncio(server: Server, steps: Sequence[Step]) -> Sequence[str]:
    """Perform the steps one after another with the asyncio driver."""

    async def main() -> Sequence[str]:
        async with asyncio.timeout(SECONDS_MAX):
            with AsyncioClient(server.machine(), server.tls) as client:
                return [await ending_of(outcomes(step.request(server.keyspace), client)) for step in steps]

    async def outcomes(request: Operation | QueryRequest, client: AsyncioClient) -> AsyncIterator[object]:
        if isinstance(request, Operation):
            yield await client.perform(request)
        else:
            async with client.request(request) as rows:
                async for row in rows:
                    yield row

    return asyncio.run(main())


def through_selectors(server: Server, steps: Sequence[Step]) -> Sequence[str]:
    """Perform the steps except queries, one after another, with the driver without an event loop."""
    operations = [step.request(server.keyspace) for step in steps]
    with SelectorsClient(server.machine()) as client:
        return [ending(*client.perform(each)) for each in operations if isinstance(each, Operation)]


DRIVERS: Mapping[str, Callable[[Server, Sequence[Step]], Sequence[str]]] = {
    "asyncio": through_asyncio,
    "selectors": through_selectors,
}
"""Drivers of the documentation."""
