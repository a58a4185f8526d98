"""Commands by which older clients find out whether a write was replicated and persisted.

Replication is immediate unless it is held back. Persistence is immediate, but an ephemeral bucket has none.

Source: kv_engine docs/BinaryProtocol.md, 0x91 and 0x92; engines/ep/src/ep_engine.cc, observe and observe_seqno;
daemon/mcbp_validators.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct

from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandAnswer, CommandRefused
from triclinium_core.testing.fakes.commands.read_request import Command, Needs, Part, Request, split_key
from triclinium_core.testing.fakes.store.buckets import EPHEMERAL
from triclinium_core.testing.fakes.store.documents import DocumentAddress
from triclinium_core.testing.fakes.store.state import ClientConnection, NodeState

_UUID = Struct(">Q")
_SAME_HISTORY = Struct(">BHQQQ")
"""Format 0, vbucket, UUID, sequence number of the newest persisted write, sequence number of the newest write."""
_FORMER_HISTORY = Struct(">BHQQQQQ")
"""Format 1, the same fields, UUID of the former history, its last sequence number."""
_KEY_HEAD = Struct(">HH")
"""Vbucket, size of the key."""
_STATE = Struct(">BQ")
"""State of the key, CAS."""


class KeyState(IntEnum):
    """State of a key in the response to OBSERVE."""

    NOT_PERSISTED = 0x00
    PERSISTED = 0x01
    NOT_FOUND = 0x80
    LOGICALLY_DELETED = 0x81
    """Removed in memory, but not from the disk."""


def _observe_seqno(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    """Return the newest sequence numbers of a vbucket on this node, in memory and on disk, active or replica."""
    bucket, vbucket = request.address.bucket, request.address.vbucket
    _check_vbucket(node, connection, vbucket)
    if len(request.value) != _UUID.size:
        raise CommandRefused(Status.INVALID_ARGUMENTS, f"the value must have 8 bytes, not {len(request.value)}")
    (uuid,) = _UUID.unpack(request.value)
    histories = node.documents.histories
    newest = node.newest_sequence_number(bucket, vbucket)
    current = (vbucket, histories.uuid_of(vbucket), 0 if _is_ephemeral(node, bucket) else newest, newest)
    if uuid == histories.uuid_of(vbucket):
        return CommandAnswer(value=_SAME_HISTORY.pack(0, *current))
    last = histories.end_of(bucket, vbucket, uuid)
    if last is None:
        raise CommandRefused(Status.KEY_NOT_FOUND, f"vbucket {vbucket} has no history {uuid}")
    return CommandAnswer(value=_FORMER_HISTORY.pack(1, *current, uuid, last))


def _observe(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    """Return the state of the requested keys on this node. Times of replication and persistence, in the CAS, are 0."""
    reply = bytearray()
    for vbucket, wire_key in _read_keys(request.value):
        _check_vbucket(node, connection, vbucket)
        collection_id, key = split_key(connection, wire_key)
        collections = node.collections_of(connection.bucket)
        if collection_id not in collections:
            raise collections.unknown(Status.UNKNOWN_COLLECTION)
        state, cas = _state_of(node, DocumentAddress(connection.bucket or "", vbucket, collection_id, key))
        reply += _KEY_HEAD.pack(vbucket, len(wire_key)) + wire_key + _STATE.pack(state, cas)
    return CommandAnswer(value=bytes(reply))


def _read_keys(value: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield vbucket and key of each entry; raise CommandRefused if the value ends within an entry."""
    start = 0
    while start < len(value):
        if start + _KEY_HEAD.size > len(value):
            raise CommandRefused(Status.INVALID_ARGUMENTS, "the value ends within an entry")
        vbucket, size = _KEY_HEAD.unpack_from(value, start)
        start += _KEY_HEAD.size
        if start + size > len(value):
            raise CommandRefused(Status.INVALID_ARGUMENTS, f"a key of size {size} extends past the end of the value")
        yield vbucket, value[start : start + size]
        start += size


def _state_of(node: NodeState, address: DocumentAddress) -> tuple[KeyState, int]:
    in_replica, is_ephemeral = not node.owns(address.vbucket), _is_ephemeral(node, address.bucket)
    try:
        document = node.read(address, in_replica=in_replica, with_remains=is_ephemeral)
    except CommandRefused:
        return KeyState.NOT_FOUND, 0
    if document.is_deleted:
        return KeyState.LOGICALLY_DELETED, document.cas
    state = KeyState.NOT_PERSISTED if is_ephemeral else KeyState.PERSISTED
    return state, node.documents.visible_cas(document)


def _check_vbucket(node: NodeState, connection: ClientConnection, vbucket: int) -> None:
    if not (node.owns(vbucket) or node.has_replica(vbucket)):
        raise node.not_my_vbucket(connection)


def _is_ephemeral(node: NodeState, bucket: str) -> bool:
    known = node.cluster.buckets.get(bucket)
    return known is not None and known.settings["bucketType"] == EPHEMERAL


OBSERVE_COMMANDS = (
    Command(Opcode.OBSERVE_SEQNO, _observe_seqno, Needs.BUCKET, value=Part.OPTIONAL, cas=Part.OPTIONAL),
    Command(Opcode.OBSERVE, _observe, Needs.BUCKET, value=Part.REQUIRED),
)
