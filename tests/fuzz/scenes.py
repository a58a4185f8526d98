"""Start of an attack: a client in some phase, and the valid bytes that an attack changes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.couchbase import Action, OperationSubmitted
from triclinium_core.contract.neutral import BytesReceived, OpenStream, StreamId, StreamOpened, TimePassed, Token
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.codec_parts import Dialect
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.results import Cas
from triclinium_core.kv.operation.scan.scan_requests import RangeScanCancel, RangeScanContinue, RangeScanCreate
from triclinium_core.kv.operation.scan.scans import Bounds
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec, MutateInSpec, MutationMacro
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import encode_request, encode_response
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, FrameBuffer
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.backoff import exponential
from triclinium_core.retry.couchbase import CircuitBreakerOptions, FastFailOnTerminalErrorRetryStrategy
from triclinium_core.runtime.kv.connection.address_cycle import AddressCycle
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapPlan
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.in_flight import Probe
from triclinium_core.testing.simulation import MIDPOINT

DEADLINE = 0.004
"""Timeout of an operation in seconds: enough for a few retries, and short for the sake of speed."""

AUTHENTICATOR = PasswordAuthenticator("user", "secret", ("PLAIN",))
STRATEGY = FastFailOnTerminalErrorRetryStrategy(exponential(first=DEADLINE / 2))

FEATURES = (
    HelloFeature.XATTR,
    HelloFeature.XERROR,
    HelloFeature.SELECT_BUCKET,
    HelloFeature.JSON,
    HelloFeature.SNAPPY,
    HelloFeature.ALT_REQUEST,
    HelloFeature.COLLECTIONS,
    HelloFeature.MUTATION_SEQNO,
)
ERROR_MAP = {
    "version": 2,
    "revision": 1,
    "errors": {
        "7ff0": {
            "name": "AGAIN",
            "desc": "try again",
            "attrs": ["auto-retry", "temp"],
            "retry": {"strategy": "constant", "interval": 10, "after": 50, "max-duration": 500},
        },
        "7ff5": {"name": "CLOSE", "desc": "hang up", "attrs": ["conn-state-invalidated", "fetch-config"]},
    },
}
CONFIG = {
    "rev": 3,
    "name": "b",
    "nodeLocator": "vbucket",
    "nodesExt": [{"services": {"kv": 11210}, "thisNode": True}],
    "vBucketServerMap": {
        "hashAlgorithm": "CRC",
        "numReplicas": 1,
        "serverList": ["$HOST:11210"],
        "vBucketMap": [[0, 0]],
    },
    "bucketCapabilities": ["rangeScan", "subdoc.ReplicaRead"],
}

BOOTSTRAP_REPLIES = b"".join(
    (
        encode_response(Opcode.HELLO, opaque=1, value=struct.pack(f">{len(FEATURES)}H", *FEATURES)),
        encode_response(Opcode.GET_ERROR_MAP, opaque=2, datatype=1, value=msgspec.json.encode(ERROR_MAP)),
        encode_response(Opcode.SASL_LIST_MECHS, opaque=3, value=b"SCRAM-SHA512 PLAIN"),
        encode_response(Opcode.SASL_AUTH, opaque=4),
        encode_response(Opcode.SELECT_BUCKET, opaque=5),
        encode_response(Opcode.GET_CLUSTER_CONFIG, opaque=6, datatype=1, value=msgspec.json.encode(CONFIG)),
    )
)
"""Valid responses to the bootstrap of a bucket's connection, in order."""

_FLAGS = b"\x02\x00\x00\x00"
_MUTATION = struct.pack(">QQ", 7, 8)

_BUCKET = document_operations.Keyspace("b")
_NAMED = document_operations.Keyspace("b", "s", "c")

_SCAN_ID = bytes(range(16))
_SCANNED = struct.pack(">IIQQB2s2s", 0x0200_0000, 5, 1, 2, 0, b"\1k", b"\0011")

_MUTATIONS = tuple(
    spec.encode(document_operations.JSON_TRANSCODER)
    for spec in (MutateInSpec.decrement("n"), MutateInSpec.upsert("x", MutationMacro.CAS), MutateInSpec.remove("a"))
)

OPERATIONS: tuple[document_operations.Operation, ...] = (
    document_operations.Get(_BUCKET, "a"),
    document_operations.Upsert(_BUCKET, "b", b'{"x":1}', 0x0200_0000),
    document_operations.Exists(_BUCKET, "c"),
    document_operations.Increment(_BUCKET, "d", 1, 1),
    document_operations.GetAndLock(_BUCKET, "e"),
    document_operations.Unlock(_BUCKET, "f", Cas(9)),
    document_operations.Touch(_BUCKET, "g", 10),
    document_operations.Remove(_BUCKET, "h"),
    document_operations.Append(_BUCKET, "i", b"x"),
    LookupIn(_BUCKET, "k", (LookupInSpec.get("a"), LookupInSpec.exists("x", xattr=True), LookupInSpec.count(""))),
    MutateIn(_BUCKET, "l", _MUTATIONS),
    MutateIn(_BUCKET, "m", _MUTATIONS),
    document_operations.GetReplica(_BUCKET, "n"),
    LookupInReplica(_BUCKET, "o", (LookupInSpec.get("a"),)),
    RangeScanCreate(_BUCKET, 0, Bounds()),
    RangeScanContinue(_BUCKET, 0, _SCAN_ID, 9),
    RangeScanContinue(_BUCKET, 0, _SCAN_ID, 9),
    RangeScanCancel(_BUCKET, 0, _SCAN_ID),
    document_operations.Get(_NAMED, "j"),
)
WITHOUT_BUCKET: tuple[document_operations.Operation, ...] = tuple(
    msgspec.structs.replace(operation, keyspace=msgspec.structs.replace(operation.keyspace, bucket=None))
    for operation in OPERATIONS
)
OPERATION_REPLIES = b"".join(
    (
        encode_response(Opcode.GET, opaque=1, cas=5, extras=_FLAGS, value=b'{"x":1}', datatype=1),
        encode_response(Opcode.SET, opaque=2, cas=6, extras=_MUTATION),
        encode_response(Opcode.GET_META, opaque=3, cas=6, extras=bytes(21)),
        encode_response(Opcode.INCREMENT, opaque=4, cas=7, extras=_MUTATION, value=bytes(8)),
        encode_response(Opcode.GET_AND_LOCK, opaque=5, status=0x09),
        encode_response(Opcode.UNLOCK, opaque=6, status=0x7FF0),
        encode_response(Opcode.TOUCH, opaque=7, status=0x07, datatype=1, value=msgspec.json.encode(CONFIG)),
        encode_response(Opcode.DELETE, opaque=8, status=0x86, value=b'{"error":{"context":"busy","ref":"1"}}'),
        encode_response(Opcode.APPEND, opaque=9, framing_extras=b"\x02\x00\x01", status=0x7FF5),
        encode_response(
            Opcode.SUBDOC_MULTI_LOOKUP,
            opaque=10,
            status=0xCC,
            value=struct.pack(">HIHI1sHI1s", 0xC0, 0, 0, 1, b"1", 0, 1, b"7"),
        ),
        encode_response(
            Opcode.SUBDOC_MULTI_MUTATION, opaque=11, extras=_MUTATION, value=struct.pack(">BHI2s", 1, 0, 2, b"-1")
        ),
        encode_response(Opcode.SUBDOC_MULTI_MUTATION, opaque=12, status=0xCC, value=struct.pack(">BH", 0, 0xC9)),
        encode_response(Opcode.GET_REPLICA, opaque=13, cas=5, extras=_FLAGS, value=b"1", datatype=1),
        encode_response(Opcode.SUBDOC_MULTI_LOOKUP, opaque=14, value=struct.pack(">HI1s", 0, 1, b"1")),
        encode_response(Opcode.RANGE_SCAN_CREATE, opaque=15, value=_SCAN_ID),
        encode_response(Opcode.RANGE_SCAN_CONTINUE, opaque=16, extras=b"\0\0\0\1", value=_SCANNED),
        encode_response(Opcode.RANGE_SCAN_CONTINUE, opaque=17, status=0xA5),
        encode_response(Opcode.RANGE_SCAN_CONTINUE, opaque=16, status=0xA6, extras=b"\0\0\0\0", value=b"\1a\1b"),
        encode_response(Opcode.RANGE_SCAN_CANCEL, opaque=18),
        encode_response(Opcode.GET_COLLECTION_ID, opaque=19, extras=struct.pack(">QI", 1, 8)),
    )
)
"""Valid responses to ``OPERATIONS``, successes and errors, in order."""
OPCODES = {frame.opaque: frame.opcode for frame in FrameBuffer(CLIENT_ACCEPTS).receive(OPERATION_REPLIES)}
"""Opcode of each of the operations, by opaque."""


@dataclass(frozen=True, slots=True)
class FuzzScene:
    """Client that waits on ``stream``, at time 0, for the valid bytes ``honest``."""

    machine: ClientMachine
    stream: StreamId
    honest: bytes
    ordered: Sequence[Action]
    """Actions that the client has returned so far."""


def bootstrapping() -> FuzzScene:
    """Return a scene whose client has sent its first burst, with operations that wait for the connection."""
    options = ClientOptions(
        connection_string=f"couchbase://127.0.0.1?kv_timeout={DEADLINE}s&kv_scan_timeout={DEADLINE}s",
        authenticator=AUTHENTICATOR,
        retry_strategy=STRATEGY,
    )
    machine = ClientMachine(options, rng=MIDPOINT)
    ordered = _submit(machine)
    stream = next(action.stream for action in ordered if isinstance(action, OpenStream))
    opened = machine.handle(StreamOpened(stream, "nonce"), 0.0)
    return FuzzScene(machine, stream, BOOTSTRAP_REPLIES, [*ordered, *opened])


def ready() -> FuzzScene:
    """Return a scene whose client has a ready connection and operations in flight."""
    scene = bootstrapping()
    sent = scene.machine.handle(BytesReceived(scene.stream, BOOTSTRAP_REPLIES), 0.0)
    return FuzzScene(scene.machine, scene.stream, OPERATION_REPLIES, [*scene.ordered, *sent])


def bare() -> FuzzScene:
    """Return a scene whose client of a plain memcached server has operations in flight."""
    machine = ClientMachine(
        ClientOptions(connection_string=f"memcached://127.0.0.1?kv_timeout={DEADLINE}s&kv_scan_timeout={DEADLINE}s"),
        rng=MIDPOINT,
    )
    first = machine.handle(TimePassed(), 0.0)
    stream = next(action.stream for action in first if isinstance(action, OpenStream))
    opened = machine.handle(StreamOpened(stream, "nonce"), 0.0)
    return FuzzScene(machine, stream, OPERATION_REPLIES, [*first, *opened, *_submit(machine, WITHOUT_BUCKET)])


SCENES: tuple[Callable[[], FuzzScene], ...] = (bootstrapping, ready, bare)


def bootstrapping_node() -> tuple[Connection, bytes]:
    """Return a connection that has sent its first burst, and the valid responses."""
    connection = Connection(
        "b",
        AddressCycle((Address("127.0.0.1", 11210),)),
        dialect=Dialect(),
        circuit_breaker=CircuitBreakerOptions(),
        sending=[],
    )
    connection.connect()
    plan = BootstrapPlan(
        authenticator=AUTHENTICATOR, bucket="b", tls=False, nonce="nonce", user_agent="fuzz", connection_id="1/2"
    )
    connection.stream_opened(plan, 0.0)
    return connection, BOOTSTRAP_REPLIES


def ready_node() -> tuple[Connection, bytes]:
    """Return a connection with requests in flight, and the valid responses."""
    connection, honest = bootstrapping_node()
    connection.bytes_received(honest, 0.0)
    for token, opcode in OPCODES.items():
        connection.in_flight.send(Probe(token), encode_request(opcode, opaque=connection.in_flight.next_opaque))
    return connection, OPERATION_REPLIES


NODES: tuple[Callable[[], tuple[Connection, bytes]], ...] = (bootstrapping_node, ready_node)


def _submit(machine: ClientMachine, operations: Sequence[document_operations.Operation] = OPERATIONS) -> list[Action]:
    actions: list[Action] = []
    for number, operation in enumerate(operations, 1):
        actions += machine.handle(OperationSubmitted(Token(number), operation), 0.0)
    return actions
