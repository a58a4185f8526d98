"""The same operations through the trio client and through the drivers of the documentation."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import trio

from docs.howto.examples.asyncio_driver import AsyncioClient
from docs.howto.examples.selectors_driver import SelectorsClient
from triclinium import Authenticator, Collection, PasswordAuthenticator, RawBinaryTranscoder, open_cluster
from triclinium_core import ClientMachine, ClientOptions, TimeoutOptions
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation.document_operations import Get, Insert, Keyspace, Operation, Remove, Upsert
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.services.query.query_request import QueryRequest

SECONDS_MAX = 60.0
"""Seconds after which a test counts as hanging."""

PATIENT = TimeoutOptions(kv=60.0, query=60.0)
"""Timeouts that no correct client reaches."""

BYTES = RawBinaryTranscoder()


class Kind(Enum):
    """Kind of an operation."""

    GET = Get
    INSERT = Insert
    REMOVE = Remove
    UPSERT = Upsert


@dataclass(frozen=True)
class Step:
    """One operation on a document."""

    kind: Kind
    key: str
    value: bytes = b""

    def operation(self, keyspace: Keyspace) -> Operation:
        """Return the operation for a machine."""
        match self.kind:
            case Kind.GET:
                return Get(keyspace, self.key, BYTES)
            case Kind.REMOVE:
                return Remove(keyspace, self.key)
            case Kind.INSERT | Kind.UPSERT:
                document = BYTES.encode(self.value)
                store = Insert if self.kind is Kind.INSERT else Upsert
                return store(keyspace, self.key, document.data, document.flags)

    async def perform(self, collection: Collection) -> object:
        """Perform the operation with the trio client."""
        match self.kind:
            case Kind.GET:
                return await collection.get(self.key, transcoder=BYTES)
            case Kind.REMOVE:
                return await collection.remove(self.key)
            case Kind.INSERT:
                return await collection.insert(self.key, self.value, transcoder=BYTES)
            case Kind.UPSERT:
                return await collection.upsert(self.key, self.value, transcoder=BYTES)


@dataclass(frozen=True)
class Server:
    """Address and credentials of a server, and the settings of its clients."""

    connection_string: str
    authenticator: Authenticator | None = None
    bucket: str | None = None
    timeouts: TimeoutOptions = PATIENT
    tls: ssl.SSLContext | None = None

    @classmethod
    def served(cls, said: Mapping[str, str], timeouts: TimeoutOptions = PATIENT) -> Server:
        """Return the server of ``triclinium serve --json``."""
        authenticator = PasswordAuthenticator(said["username"], said["password"])
        return cls(said["connection_string"], authenticator, said["bucket"], timeouts)

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
    """Return an outcome as text: the value, or the exception with its retry reasons."""
    if isinstance(outcome, GetResult):
        return f"read {outcome.data!r}"
    if isinstance(outcome, CouchbaseException):
        reasons = ", ".join(sorted(outcome.context.retry_reasons))
        return f"{type(outcome).__name__} after [{reasons}]"
    assert not isinstance(outcome, BaseException), outcome
    return "done"


def through_trio(server: Server, steps: Sequence[Step]) -> Sequence[str]:
    """Perform the steps one after another with the trio client."""

    async def main() -> Sequence[str]:
        with trio.fail_after(SECONDS_MAX):
            async with open_cluster(
                server.connection_string, server.authenticator, timeouts=server.timeouts, ssl_context=server.tls
            ) as cluster:
                bucket = cluster if server.bucket is None else cluster.bucket(server.bucket)
                return [await end(step, bucket.default_collection()) for step in steps]

    async def end(step: Step, collection: Collection) -> str:
        try:
            return ending(await step.perform(collection))
        except CouchbaseException as error:
            return ending(error)

    return trio.run(main)


def through_asyncio(server: Server, steps: Sequence[Step]) -> Sequence[str]:
    """Perform the steps one after another with the asyncio driver."""

    async def main() -> Sequence[str]:
        async with asyncio.timeout(SECONDS_MAX):
            with AsyncioClient(server.machine(), server.tls) as client:
                return [await end(step, client) for step in steps]

    async def end(step: Step, client: AsyncioClient) -> str:
        try:
            return ending(await client.perform(step.operation(server.keyspace)))
        except CouchbaseException as error:
            return ending(error)

    return asyncio.run(main())


def through_selectors(server: Server, steps: Sequence[Step]) -> Sequence[str]:
    """Perform the steps one after another with the driver without an event loop."""
    with SelectorsClient(server.machine()) as client:
        return [ending(*client.perform(step.operation(server.keyspace))) for step in steps]


DRIVERS: Mapping[str, Callable[[Server, Sequence[Step]], Sequence[str]]] = {
    "asyncio": through_asyncio,
    "selectors": through_selectors,
}
"""Drivers of the documentation."""


def query_through_trio(server: Server, statement: str) -> Sequence[object]:
    """Return the rows of a query, and then the exception if it fails, with the trio client."""

    async def main() -> Sequence[object]:
        rows = list[object]()
        with trio.fail_after(SECONDS_MAX):
            async with open_cluster(
                server.connection_string, server.authenticator, timeouts=server.timeouts, ssl_context=server.tls
            ) as cluster:
                try:
                    async with cluster.query(statement, readonly=True, row_type=bytes) as result:
                        async for row in result:
                            rows.append(row)  # the rows before a failure count
                except CouchbaseException as error:
                    rows.append(ending(error))
        return rows

    return trio.run(main)


def query_through_asyncio(server: Server, statement: str) -> Sequence[object]:
    """Return the rows of a query, and then the exception if it fails, with the asyncio driver."""

    async def main() -> Sequence[object]:
        rows = list[object]()
        async with asyncio.timeout(SECONDS_MAX):
            with AsyncioClient(server.machine(), server.tls) as client:
                try:
                    async with client.request(QueryRequest(statement=statement, readonly=True)) as result:
                        async for row in result:
                            rows.append(row)  # the rows before a failure count
                except CouchbaseException as error:
                    rows.append(ending(error))
        return rows

    return asyncio.run(main())
