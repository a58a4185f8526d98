"""Parser that converts frames to requests, and refuses invalid frames.

Source: kv_engine docs/BinaryProtocol.md, including "ID:1 - Durability Requirement", and the checks of
daemon/mcbp_validators.cc, in their order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto, unique

import msgspec

from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.wire import constants
from triclinium_core.kv.wire.compression import MalformedCompression, inflate
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.framing_extras import MalformedFramingExtras, RequestFrameInfo, parse_framing_extras
from triclinium_core.kv.wire.leb128 import MalformedLeb128, decode_unsigned
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandAnswer, CommandRefused
from triclinium_core.testing.fakes.store.documents import DocumentAddress
from triclinium_core.testing.fakes.store.state import ClientConnection, NodeState

SECONDS_DEFAULT = 30.0
"""Timeout of a durable write if the client sends none."""

_LEVEL_AND_TIMEOUT = struct.Struct(">BH")

_LEVELS = {level.value for level in DurabilityLevel} - {DurabilityLevel.NONE.value}


class Request(msgspec.Struct, frozen=True):
    """A well-formed request; ``value`` is inflated, ``key`` excludes its collection's prefix."""

    opcode: int
    cas: int
    extras: bytes
    key: bytes
    value: bytes
    address: DocumentAddress
    """Address of the document; for commands that name no document, only its bucket and vbucket have a meaning."""
    preserves_expiry: bool
    reads_replica: bool = False
    durable_within: float | None = None
    """Seconds within which the write must be durable; None if it need not be durable."""


@unique
class Part(Enum):
    """Whether a part of a request must, may or must not be present."""

    ABSENT = auto()
    OPTIONAL = auto()
    REQUIRED = auto()


@unique
class Needs(Enum):
    """Preconditions on a connection for a command."""

    NOTHING = auto()
    AUTHENTICATION = auto()
    BUCKET = auto()
    VBUCKET = auto()
    """A bucket, and a vbucket that is active on the node."""
    DOCUMENT = auto()
    """A bucket, and the address of a document in the request."""


Handler = Callable[[NodeState, ClientConnection, Request], CommandAnswer]
"""Function that carries a command out, or raises ``CommandRefused``."""


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the command table: the shape of a request, and the handler."""

    opcode: constants.Opcode
    handler: Handler
    needs: Needs
    _: KW_ONLY
    extras_sizes: tuple[int, ...] = (0,)
    key: Part = Part.ABSENT
    value: Part = Part.ABSENT
    cas: Part = Part.ABSENT
    takes_json: bool = False
    """Whether the value is JSON and must be marked as JSON."""
    may_preserve_expiry: bool = False
    may_be_durable: bool = False
    reads_replica: Callable[[bytes], bool] = lambda extras: False
    """Function that takes the extras and returns whether the command reads a replica, which the node must have."""


def read_request(command: Command, node: NodeState, connection: ClientConnection, frame: Frame) -> Request:
    """Return the request in ``frame``; raise CommandRefused if the node cannot accept the frame."""
    if command.needs is not Needs.NOTHING and not connection.is_authenticated:
        raise CommandRefused(Status.NO_ACCESS, "authenticate first")
    preserves_expiry, durable_within = _read_framing_extras(command, connection, frame)
    _check_shape(command, frame)
    value = _read_value(command, connection, frame)
    if command.needs in (Needs.BUCKET, Needs.VBUCKET, Needs.DOCUMENT) and connection.bucket is None:
        raise CommandRefused(Status.NO_BUCKET, "select a bucket first")
    collection_id, key = 0, frame.key
    reads_replica = command.reads_replica(frame.extras)
    if command.needs is Needs.VBUCKET and not node.owns(frame.status):
        raise node.not_my_vbucket(connection)
    if command.needs is Needs.DOCUMENT:
        collection_id, key = split_key(connection, frame.key)
        if not (node.has_replica(frame.status) if reads_replica else node.owns(frame.status)):
            raise node.not_my_vbucket(connection)
        collections = node.collections_of(connection.bucket)
        if collection_id not in collections:
            raise collections.unknown(Status.UNKNOWN_COLLECTION)
    address = DocumentAddress(connection.bucket or "", frame.status, collection_id, key)
    return Request(
        frame.opcode, frame.cas, frame.extras, key, value, address, preserves_expiry, reads_replica, durable_within
    )


def split_key(connection: ClientConnection, wire_key: bytes) -> tuple[int, bytes]:
    """Return collection id and key; without collections, all keys are in the default collection."""
    collection_id, prefix_size = 0, 0
    if connection.has(constants.HelloFeature.COLLECTIONS):
        try:
            collection_id, prefix_size = decode_unsigned(wire_key)
        except MalformedLeb128 as error:
            raise CommandRefused(Status.INVALID_ARGUMENTS, f"the key's collection prefix: {error}") from error
    key = wire_key[prefix_size:]
    size_max = constants.KEY_SIZE_MAX_IN_COLLECTION if collection_id else constants.KEY_SIZE_MAX
    if not 1 <= len(key) <= size_max:
        raise CommandRefused(Status.INVALID_ARGUMENTS, f"the key has {len(key)} bytes; it must have 1 to {size_max}")
    return collection_id, key


def _read_framing_extras(command: Command, connection: ClientConnection, frame: Frame) -> tuple[bool, float | None]:
    """Return whether to preserve the document's expiry, and the seconds as in ``Request.durable_within``."""
    if not frame.framing_extras:
        return False, None
    if not connection.has(constants.HelloFeature.ALT_REQUEST):
        raise CommandRefused(Status.INVALID_ARGUMENTS, "framing extras were not negotiated")
    try:
        pieces = parse_framing_extras(frame.framing_extras)
    except MalformedFramingExtras as error:
        raise CommandRefused(Status.INVALID_ARGUMENTS, str(error)) from error
    durable_within = None
    for identifier, content in pieces.items():
        match identifier:
            case RequestFrameInfo.BARRIER | RequestFrameInfo.PRESERVE_TTL if content:
                raise CommandRefused(Status.INVALID_ARGUMENTS, f"frame info {identifier} must be empty")
            case RequestFrameInfo.BARRIER:
                # This node never processes two commands at the same time.
                pass
            case RequestFrameInfo.PRESERVE_TTL:
                if not (command.may_preserve_expiry and connection.has(constants.HelloFeature.PRESERVE_TTL)):
                    raise CommandRefused(
                        Status.NOT_SUPPORTED,
                        "this command cannot preserve the expiry, or PRESERVE_TTL was not negotiated",
                    )
            case RequestFrameInfo.DURABILITY:
                if not (command.may_be_durable and connection.has(constants.HelloFeature.SYNC_REPLICATION)):
                    raise CommandRefused(
                        Status.NOT_SUPPORTED,
                        "this command does not support durability, or SYNC_REPLICATION was not negotiated",
                    )
                durable_within = read_durability_timeout(content)
            case _ if identifier in set(RequestFrameInfo):
                raise CommandRefused(Status.NOT_SUPPORTED, f"frame info {identifier} is not supported")
            case _:
                raise CommandRefused(Status.UNKNOWN_FRAME_INFO, f"unknown frame info {identifier}")
    return RequestFrameInfo.PRESERVE_TTL in pieces, durable_within


def _check_shape(command: Command, frame: Frame) -> None:
    if len(frame.extras) not in command.extras_sizes:
        sizes = " or ".join(map(str, command.extras_sizes))
        raise CommandRefused(
            Status.INVALID_ARGUMENTS, f"the size of the extras is {len(frame.extras)}; it must be {sizes}"
        )
    for name, part, is_there in (
        ("key", command.key, bool(frame.key)),
        ("value", command.value, bool(frame.value)),
        ("CAS", command.cas, bool(frame.cas)),
    ):
        if (part is Part.ABSENT and is_there) or (part is Part.REQUIRED and not is_there):
            raise CommandRefused(Status.INVALID_ARGUMENTS, f"a {name} is {'not allowed' if is_there else 'required'}")


def _read_value(command: Command, connection: ClientConnection, frame: Frame) -> bytes:
    """Return the value, inflated."""
    granted = constants.Datatype.RAW
    if command.takes_json and connection.has(constants.HelloFeature.JSON):
        granted = constants.Datatype.JSON
    if command.needs is Needs.DOCUMENT and command.value is not Part.ABSENT:
        granted |= constants.Datatype.JSON if connection.has(constants.HelloFeature.JSON) else constants.Datatype.RAW
        granted |= (
            constants.Datatype.SNAPPY if connection.has(constants.HelloFeature.SNAPPY) else constants.Datatype.RAW
        )
    # The complement of a flag lacks the bits that have no name, so complement the integer.
    if frame.datatype & ~int(granted):
        raise CommandRefused(
            Status.INVALID_ARGUMENTS,
            f"the datatype 0x{frame.datatype:02x} was not negotiated, or this command does not take it",
        )
    if command.takes_json and not frame.datatype & constants.Datatype.JSON:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "the datatype must be JSON")
    value = frame.value
    if frame.datatype & constants.Datatype.SNAPPY:
        try:
            value = inflate(value)
        except MalformedCompression as error:
            raise CommandRefused(Status.INVALID_ARGUMENTS, str(error)) from error
    if len(value) > VALUE_SIZE_MAX:
        raise CommandRefused(Status.TOO_BIG, f"the value has {len(value)} bytes; the maximum is {VALUE_SIZE_MAX}")
    return value


def read_durability_timeout(content: bytes) -> float:
    """Return the seconds in the DURABILITY frame info; raise CommandRefused for an invalid size, level or timeout."""
    timeout = SECONDS_DEFAULT
    if len(content) == _LEVEL_AND_TIMEOUT.size:
        _, milliseconds = _LEVEL_AND_TIMEOUT.unpack(content)
        if milliseconds in (0, 0xFFFF):
            raise CommandRefused(Status.INVALID_ARGUMENTS, f"a durability timeout of {milliseconds} ms is reserved")
        timeout = milliseconds / 1000
    elif len(content) != 1:
        raise CommandRefused(
            Status.INVALID_ARGUMENTS, f"a durability requirement must have 1 or 3 bytes, not {len(content)}"
        )
    if content[0] not in _LEVELS:
        raise CommandRefused(Status.DURABILITY_INVALID_LEVEL, f"unknown durability level {content[0]}")
    return timeout
