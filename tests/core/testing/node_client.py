"""Client for a fake node that exchanges bytes; the core's codec encodes requests and decodes replies."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence

from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, FrameBuffer
from triclinium_core.kv.wire.leb128 import encode_unsigned
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection.scram import ScramClient
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.cluster.outbox import HangUp, NodeAction, SendReply
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.documents import vbucket_of

USUAL_FEATURES = (
    HelloFeature.XERROR,
    HelloFeature.SELECT_BUCKET,
    HelloFeature.JSON,
    HelloFeature.MUTATION_SEQNO,
    HelloFeature.ALT_REQUEST,
    HelloFeature.SYNC_REPLICATION,
    HelloFeature.PRESERVE_TTL,
    HelloFeature.COLLECTIONS,
    HelloFeature.UNORDERED_EXECUTION,
)
"""Features without compression and durations, so that a reply depends only on its command."""


class NodeClient:
    """One connection, whose next step is at the time ``now``."""

    def __init__(self, node: FakeNode, connection: int = 1) -> None:
        self.node = node
        self.connection = connection
        self.now = 0.0
        self.is_hung_up = False
        self.frames = FrameBuffer(CLIENT_ACCEPTS)
        self.received = b""
        self.features: frozenset[int] = frozenset()
        self.opaque = 0x1000 * connection
        assert [] == list(node.connection_opened(connection, self.now))

    def encode(self, opcode: int, *, vbucket: int | bytes = 0, **parts: int | bytes) -> bytes:
        """Return a request with a new opaque."""
        self.opaque += 1
        return encode_request(opcode, opaque=self.opaque, status=vbucket, **parts)  # type: ignore[arg-type]

    def encode_of(self, opcode: int, key: str, **parts: int | bytes) -> bytes:
        """Return a request on a document; ``collection_id`` may be among the parts."""
        wire_key = key.encode()
        parts.setdefault("vbucket", vbucket_of(wire_key, self.node.options.vbuckets))
        collection_id = parts.pop("collection_id", 0)
        assert isinstance(collection_id, int)
        if HelloFeature.COLLECTIONS in self.features:
            wire_key = encode_unsigned(collection_id) + wire_key
        return self.encode(opcode, key=wire_key, **parts)

    def send(self, data: bytes, *, piece: int | None = None) -> list[Frame]:
        """Send bytes in pieces of at most ``piece`` bytes, and return the replies."""
        frames = []
        for start in range(0, len(data), piece or len(data)):
            actions = self.node.bytes_received(self.connection, data[start : start + (piece or len(data))], self.now)
            frames += self.take(actions)
        return frames

    def take(self, actions: Sequence[NodeAction]) -> list[Frame]:
        """Return the frames that the actions send to this connection."""
        frames = []
        for action in actions:
            match action:
                case SendReply(self.connection, data):
                    assert not self.is_hung_up, "a reply after the end"
                    self.received += data
                    frames += self.frames.receive(data)
                case HangUp(self.connection):
                    self.is_hung_up = True
                case _:
                    pass
        return frames

    def wait(self, now: float) -> list[Frame]:
        """Return the replies that are due at ``now``."""
        self.now = now
        return self.take(self.node.time_passed(now))

    def ask(self, opcode: int, **parts: int | bytes) -> Frame:
        """Send a request and return its only reply."""
        (reply,) = self.send(self.encode(opcode, **parts))
        assert (opcode, self.opaque) == (reply.opcode, reply.opaque)
        return reply

    def ask_of(self, opcode: int, key: str, **parts: int | bytes) -> Frame:
        """Send a request on a document and return its only reply."""
        (reply,) = self.send(self.encode_of(opcode, key, **parts))
        assert (opcode, self.opaque) == (reply.opcode, reply.opaque)
        return reply

    def hello(self, features: Iterable[int]) -> Frame:
        """Negotiate features, store the granted ones, and return the reply."""
        wanted = list(features)
        reply = self.ask(Opcode.HELLO, key=b'{"a":"test"}', value=struct.pack(f">{len(wanted)}H", *wanted))
        if reply.status == Status.SUCCESS:
            self.features = frozenset(struct.unpack(f">{len(reply.value) // 2}H", reply.value))
        return reply

    def authenticate_plain(self, username: str = "Administrator", password: str = "password") -> Frame:
        """Authenticate in one step, and return the reply."""
        return self.ask(Opcode.SASL_AUTH, key=b"PLAIN", value=f"\0{username}\0{password}".encode())

    def authenticate_scram(self, mechanism: str, username: str = "Administrator", password: str = "password") -> Frame:
        """Authenticate in two steps, verify the node's signature after a success, and return the last reply."""
        client = ScramClient(mechanism, username, password, nonce="client nonce")
        challenge = self.ask(Opcode.SASL_AUTH, key=mechanism.encode(), value=client.first())
        assert Status.AUTH_CONTINUE == challenge.status
        reply = self.ask(Opcode.SASL_STEP, key=mechanism.encode(), value=client.final(challenge.value))
        if reply.status == Status.SUCCESS:
            client.verify(reply.value)
        return reply


def ready_client(
    node: FakeNode | None = None,
    *,
    connection: int = 1,
    features: Iterable[HelloFeature] = USUAL_FEATURES,
    without: Iterable[HelloFeature] = (),
    bucket: bytes | None = b"default",
) -> NodeClient:
    """Return an authenticated connection with these features and this selected bucket, if any."""
    client = NodeClient(FakeNode() if node is None else node, connection)
    omitted = set(without)
    client.hello(feature for feature in features if feature not in omitted)
    assert Status.SUCCESS == client.authenticate_plain().status
    if bucket is not None:
        assert Status.SUCCESS == client.ask(Opcode.SELECT_BUCKET, key=bucket).status
    return client


def with_options(**options: object) -> FakeNode:
    """Return a node with these options."""
    return FakeNode(FakeNodeOptions(**options))  # type: ignore[arg-type]


def as_json(value: bytes) -> Mapping[str, object]:
    """Return the JSON object in the value."""
    document = json.loads(value)
    assert isinstance(document, dict)
    return document


def status_of(reply: Frame) -> Status:
    """Return the status as an enum member, so that a failing test shows its name."""
    return Status(reply.status)


def ready_clients(nodes: FakeNodes, *features: HelloFeature) -> list[NodeClient]:
    """Return a connection to each node with these additional features, authenticated and with a selected bucket."""
    return [
        ready_client(node, connection=number, features=[*USUAL_FEATURES, *features])
        for number, node in enumerate(nodes, 1)
    ]


def value_of(nodes: FakeNode | FakeNodes, key: str = "ada") -> bytes | None:
    """Return the value of a document in the default bucket, or None."""
    document = nodes.documents.get("default", key)
    return None if document is None else document.value
