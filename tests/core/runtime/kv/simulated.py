"""Simulations that the tests of the client machine share, by default of one node, with a record of all actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.client.health.statistics import ConnectionStatistics
from triclinium_core.contract.couchbase import Action, Event
from triclinium_core.contract.neutral import CloseStream, OpenStream, SendBytes, StreamId, Token
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Noop, Operation, Upsert
from triclinium_core.kv.operation.results import Result
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame, encode_response
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase import Service
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.error_map import ErrorMapDocument, ErrorMapRow
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.simulation import MIDPOINT, Simulation
from triclinium_core.transcoding.flags import JSON_FLAGS

TRAVEL = Keyspace("travel")
HOTELS = Keyspace("travel", "inventory", "hotel")
HOTEL_ID = 8
SMALL_MAP = ErrorMapDocument(revision=7, rows=(ErrorMapRow(0x7FF0, "LATER", "temp retry-later", "Try again later"),))
"""Error map that is parsed quickly; the complete error map has its own tests."""
COLLECTIONS: Mapping[str, Mapping[str, int]] = {"_default": {"_default": 0}, "inventory": {"hotel": HOTEL_ID}}
ADDRESS = "couchbase://127.0.0.1:11210"
TIMEOUT = 2.5

E = TypeVar("E", bound=errors.CouchbaseException)


def get(key: str = "k", keyspace: Keyspace = TRAVEL) -> Get:
    """Return a read."""
    return Get(keyspace, key)


def upsert(key: str = "k", keyspace: Keyspace = TRAVEL, value: bytes = b"{}", **options: Any) -> Upsert:
    """Return a write."""
    return Upsert(keyspace, key, value, JSON_FLAGS, **options)


def client_options(connection_string: str = ADDRESS, **options: Any) -> ClientOptions:
    """Return options with the credentials of the node, and without telemetry, which would add timers."""
    defaults: Mapping[str, Any] = {
        "authenticator": PasswordAuthenticator("Administrator", "password"),
        "tracer": None,
        "meter": None,
        "orphans": None,
    }
    return ClientOptions(connection_string=connection_string, **{**defaults, **options})


def machine(connection_string: str = ADDRESS, **options: Any) -> ClientMachine:
    """Return a client that has not started."""
    return ClientMachine(client_options(connection_string, **options), rng=MIDPOINT)


def node_options(**options: Any) -> FakeNodeOptions:
    """Return options of a node with one bucket and only key-value, whose small error map is parsed quickly."""
    defaults: Mapping[str, Any] = {
        "buckets": ("travel",),
        "collections": COLLECTIONS,
        "error_map": SMALL_MAP,
        "services": frozenset({Service.KV}),
        "vbuckets": 128,
    }
    return FakeNodeOptions(**{**defaults, **options})


class Watched(Simulation):
    """Simulation that records every action."""

    def __init__(self, nodes: FakeNode | FakeNodes, options: ClientOptions, *, rng: Random = MIDPOINT) -> None:
        self.actions: list[Action] = []
        super().__init__(nodes, options, rng=rng)

    def feed(self, event: Event) -> list[Action]:
        """Feed an event, and record the resulting actions."""
        actions = list(super().feed(event))
        self.actions += actions
        return actions

    def live(self, seconds: float) -> None:
        """Let ``seconds`` pass and all bytes flow, even after all operations have completed."""
        end = self.now + seconds
        self.flow()
        while (instant := self.wakeup) <= end:
            self.now = max(self.now, instant)
            self.flow()
        self.now = end

    def settled(self, token: Token) -> Token:
        """Run the simulation, check that an operation or a request has then completed, and return its token."""
        self.run()
        assert token in self.settled_at
        return token

    def error(self, kind: type[E], token: Token) -> E:
        """Return the error of an operation or a request, which must have failed with exactly this class."""
        error = self.errors[token]
        assert type(error) is kind, repr(error)
        assert isinstance(error, kind)
        return error


class Recorded(Watched):
    """Simulation that also records streams and requests, with helpers for document operations."""

    def __init__(
        self,
        node: FakeNode | FakeNodes | None = None,
        options: ClientOptions | None = None,
        *,
        rng: Random = MIDPOINT,
        **options_of_node: Any,
    ) -> None:
        if node is None:
            node = FakeNode(node_options(**options_of_node))
        self.opened_at: list[tuple[float, OpenStream]] = []
        self.sent: dict[StreamId, FrameBuffer] = {}
        self.requests: dict[StreamId, list[Frame]] = {}
        super().__init__(node, options if options is not None else client_options(), rng=rng)

    def feed(self, event: Event) -> list[Action]:
        """Feed an event, and record the resulting actions and requests."""
        actions = super().feed(event)
        for action in actions:
            if isinstance(action, OpenStream):
                self.opened_at.append((self.now, action))
                self.sent[action.stream], self.requests[action.stream] = FrameBuffer(SERVER_ACCEPTS), []
            elif isinstance(action, SendBytes):
                self.requests[action.stream] += self.sent[action.stream].receive(action.data)
        return actions

    @property
    def newest(self) -> StreamId:
        """Newest of the streams that exist."""
        return max(self.links)

    def finish(self, operation: Operation, **options: Any) -> Token:
        """Submit an operation, run the simulation until it completes, and return its token."""
        return self.settled(self.submit(operation, **options))

    def result(self, operation: Operation, **options: Any) -> Result:
        """Run an operation that must succeed, and return its result."""
        token = self.finish(operation, **options)
        assert token not in self.errors, self.errors[token]
        return self.results[token]

    def failure(self, kind: type[E], operation: Operation, **options: Any) -> E:
        """Run an operation that must fail with exactly this class, and return its error."""
        return self.error(kind, self.finish(operation, **options))

    def submit_in_flight(self, operation: Operation, **options: Any) -> tuple[Token, Frame]:
        """Submit an operation that must be sent immediately, and return its token and request.

        The request is handed over but never reaches the node, so the test provides its response.
        """
        token = self.submit(operation, **options)
        (stream,) = (stream for stream, link in self.links.items() if link.outgoing)
        self.swallow(stream)
        return token, self.requests[stream][-1]

    def swallow(self, stream: StreamId) -> None:
        """Hand over the pending bytes of a stream, but do not deliver them to the node."""
        link = self.links[stream]
        link.handed_over += len(link.outgoing)
        link.outgoing.clear()

    def inject(self, data: bytes, stream: StreamId | None = None) -> None:
        """Deliver ``data``, which the node has not sent, to the client, by default on the newest stream."""
        stream = stream if stream is not None else self.newest
        self.links[stream].incoming += data
        self.deliver(stream)

    def closings(self) -> list[str]:
        """Return the reason for each stream that the client closed."""
        return [action.reason for action in self.actions if isinstance(action, CloseStream)]

    def commands(self, *opcodes: Opcode) -> list[LoggedCommand]:
        """Return the requests with these opcodes that the node has received."""
        return [command for command in self.node.command_log if command.opcode in opcodes]

    def addresses(self) -> set[str]:
        """Return the addresses of the connections of the bucket."""
        return {each.node for each in self.machine.statistics().connections if each.bucket == "travel"}

    def connection(self, bucket: str | None = "travel") -> ConnectionStatistics:
        """Return the statistics of the bucket's connection."""
        (found,) = (found for found in self.machine.statistics().connections if found.bucket == bucket)
        return found


def ready(*, options: ClientOptions | None = None, replicas: int = 0, **options_of_node: Any) -> Recorded:
    """Return a simulation whose two connections are ready and idle; the newer one is that of the bucket.

    Args:
        replicas: number of replicas of each vbucket that the map gives to the node.
    """
    simulation = Recorded(options=options, **options_of_node)
    cluster = simulation.node.cluster
    cluster.map = replace(cluster.map, replicas=(cluster.map.owners,) * replicas)
    for bucket in cluster.buckets:
        cluster.buckets.update(bucket.name, {"replicaNumber": str(replicas)})
    simulation.flow()
    simulation.finish(Noop(TRAVEL))
    assert [ConnectionState.READY.name] * 2 == [each.state for each in simulation.machine.statistics().connections]
    return simulation


def respond(request: Frame, status: int = 0, **parts: Any) -> bytes:
    """Return the response to a request."""
    return encode_response(request.opcode, opaque=request.opaque, status=status, **parts)


def found(request: Frame, value: bytes = b"{}", cas: int = 9) -> bytes:
    """Return the response to a read of a document that exists."""
    return respond(request, cas=cas, extras=JSON_FLAGS.to_bytes(4, "big"), value=value)
