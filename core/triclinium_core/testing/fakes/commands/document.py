"""Commands of a fake node on one document.

Source: kv_engine docs/BinaryProtocol.md, one section per command; its ep engine for the rules on locked documents.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from struct import Struct

from triclinium_core.kv.operation.validation import UINT32_MAX, UINT64_MAX
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX, HelloFeature, Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandAnswer, CommandRefused
from triclinium_core.testing.fakes.commands.read_request import Command, Needs, Part, Request
from triclinium_core.testing.fakes.store.documents import LOCK_SECONDS_DEFAULT, LOCK_SECONDS_MAX, Document
from triclinium_core.testing.fakes.store.state import ClientConnection, NodeState

NO_CREATION = UINT32_MAX
"""Expiry by which a client forbids a counter command to create the document."""

_STORE_EXTRAS = Struct(">II")
"""Flags, expiry."""
_COUNTER_EXTRAS = Struct(">QQI")
"""Delta, initial value, expiry."""
_NUMBER = Struct(">I")
"""Flags, an expiry, or the seconds of a lock."""
_TOKEN = Struct(">QQ")
"""UUID of the vbucket, sequence number."""
_DIGITS_MAX = 20
"""Maximum number of digits in a 64-bit number."""
_META_VERSION_MAX = 2
"""Newest version of the metadata. A request without a version gets the fields of version 1."""
_META = Struct(">IIIQ")
"""Deleted, flags, expiry, sequence number; version 2 adds one byte, the datatype."""


def _get(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    document = node.read(request.address, in_replica=request.reads_replica)
    return _document_answer(document, node.documents.visible_cas(document))


def _get_meta(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    """Return the metadata, even of a removed document: the client must check whether the document is deleted."""
    if request.extras > bytes((_META_VERSION_MAX,)):
        raise CommandRefused(Status.INVALID_ARGUMENTS, f"the metadata's version must be at most {_META_VERSION_MAX}")
    documents = node.documents
    document = node.read(request.address, in_replica=False, with_remains=True)
    extras = _META.pack(document.is_deleted, document.flags, documents.unix_expiry(document), document.sequence_number)
    if request.extras == b"\x02":
        extras += bytes((document.datatype,))
    return CommandAnswer(cas=documents.visible_cas(document), extras=extras)


def _get_and_touch(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    document = _touched(node, request)
    return _document_answer(document, document.cas)


def _touch(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    return CommandAnswer(cas=_touched(node, request).cas)


def _get_and_lock(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    seconds = _NUMBER.unpack(request.extras)[0] if request.extras else LOCK_SECONDS_DEFAULT
    if not 1 <= seconds <= LOCK_SECONDS_MAX:
        seconds = LOCK_SECONDS_DEFAULT
    if node.documents.is_locked(node.read(request.address, in_replica=False)):
        raise CommandRefused(Status.LOCKED)
    document = node.documents.lock_at(request.address, seconds)
    return _document_answer(document, document.cas)


def _unlock(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    document = node.read(request.address, in_replica=False)
    if not node.documents.is_locked(document):
        raise CommandRefused(Status.NOT_LOCKED)
    if request.cas != document.cas:
        raise CommandRefused(Status.LOCKED)
    return CommandAnswer(cas=node.documents.unlock_at(request.address).cas)


def _set(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    existing = node.documents.find_for_writing(request.address, request.cas)
    if existing is None and request.cas:
        raise CommandRefused(Status.KEY_NOT_FOUND)
    return _store(node, connection, request, existing)


def _add(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    if node.documents.find(request.address) is not None:
        raise CommandRefused(Status.KEY_EXISTS)
    return _store(node, connection, request, None)


def _replace(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    return _store(node, connection, request, _writable(node, request, missing=Status.KEY_NOT_FOUND))


def _delete(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    _writable(node, request, missing=Status.KEY_NOT_FOUND)
    return mutation_answer(node, connection, request, node.documents.erase(request.address))


def _writable(node: NodeState, request: Request, *, missing: Status) -> Document:
    document = node.documents.find_for_writing(request.address, request.cas)
    if document is None:
        raise CommandRefused(missing)
    return document


def _touched(node: NodeState, request: Request) -> Document:
    documents = node.documents
    document = _writable(node, request, missing=Status.KEY_NOT_FOUND)
    (expiry,) = _NUMBER.unpack(request.extras)
    expires_at = documents.expires_at(expiry)
    return documents.write(request.address, document.value, flags=document.flags, expires_at=expires_at)


def _store(node: NodeState, connection: ClientConnection, request: Request, existing: Document | None) -> CommandAnswer:
    flags, expiry = _STORE_EXTRAS.unpack(request.extras)
    expires_at = node.documents.expires_at(expiry)
    if existing is not None and request.preserves_expiry:
        expires_at = existing.expires_at
    document = node.documents.write(request.address, request.value, flags=flags, expires_at=expires_at)
    return mutation_answer(node, connection, request, document)


def _concatenate(
    join: Callable[[bytes, bytes], bytes], node: NodeState, connection: ClientConnection, request: Request
) -> CommandAnswer:
    there = _writable(node, request, missing=Status.NOT_STORED)
    value = join(there.value, request.value)
    if len(value) > VALUE_SIZE_MAX:
        raise CommandRefused(Status.TOO_BIG)
    document = node.documents.write(request.address, value, flags=there.flags, expires_at=there.expires_at)
    return mutation_answer(node, connection, request, document)


def _count(
    step: Callable[[int, int], int], node: NodeState, connection: ClientConnection, request: Request
) -> CommandAnswer:
    """Count in ASCII digits, as a real node stores a counter; an existing counter keeps its flags and expiry."""
    delta, number, expiry = _COUNTER_EXTRAS.unpack(request.extras)
    documents = node.documents
    there = documents.find_for_writing(request.address, request.cas)
    if there is None:
        if expiry == NO_CREATION:
            raise CommandRefused(Status.KEY_NOT_FOUND)
        flags, expires_at = 0, documents.expires_at(expiry)
    else:
        number = step(_number(there.value), delta)
        flags, expires_at = there.flags, there.expires_at
    document = documents.write(request.address, b"%d" % number, flags=flags, expires_at=expires_at)
    return mutation_answer(node, connection, request, document, value=number.to_bytes(8, "big"))


def _number(value: bytes) -> int:
    if len(value) <= _DIGITS_MAX and value.isdigit() and int(value) <= UINT64_MAX:
        return int(value)
    raise CommandRefused(Status.DELTA_BAD_VALUE)


def _document_answer(document: Document, cas: int) -> CommandAnswer:
    return CommandAnswer(
        cas=cas,
        extras=_NUMBER.pack(document.flags),
        value=document.value,
        datatype=document.datatype,
        deflates_with=HelloFeature.SNAPPY,
    )


def mutation_answer(
    node: NodeState, connection: ClientConnection, request: Request, document: Document, value: bytes = b""
) -> CommandAnswer:
    """Return the reply to a write, with a mutation token if that is negotiated."""
    token = b""
    if connection.has(HelloFeature.MUTATION_SEQNO):
        token = _TOKEN.pack(node.documents.histories.uuid_of(request.address.vbucket), document.sequence_number)
    return CommandAnswer(cas=document.cas, extras=token, value=value)


_document_command = partial(Command, needs=Needs.DOCUMENT, key=Part.REQUIRED)
_write = partial(_document_command, may_be_durable=True)
_write_of_any_cas = partial(_write, cas=Part.OPTIONAL)

# fmt: off
DOCUMENT_COMMANDS: tuple[Command, ...] = (
    _document_command(Opcode.GET, _get),
    _document_command(Opcode.GET_REPLICA, _get, reads_replica=lambda extras: True),
    _document_command(Opcode.GET_META, _get_meta, extras_sizes=(0, 1)),
    _write(Opcode.GET_AND_TOUCH, _get_and_touch, extras_sizes=(4,)),
    _write(Opcode.TOUCH, _touch, extras_sizes=(4,)),
    _document_command(Opcode.GET_AND_LOCK, _get_and_lock, extras_sizes=(0, 4)),
    _document_command(Opcode.UNLOCK, _unlock, cas=Part.REQUIRED),
    _write_of_any_cas(Opcode.SET, _set, extras_sizes=(8,), value=Part.OPTIONAL, may_preserve_expiry=True),
    _write(Opcode.ADD, _add, extras_sizes=(8,), value=Part.OPTIONAL),
    _write_of_any_cas(Opcode.REPLACE, _replace, extras_sizes=(8,), value=Part.OPTIONAL, may_preserve_expiry=True),
    _write_of_any_cas(Opcode.DELETE, _delete),
    _write_of_any_cas(Opcode.APPEND, partial(_concatenate, lambda there, piece: there + piece), value=Part.OPTIONAL, may_preserve_expiry=True),
    _write_of_any_cas(Opcode.PREPEND, partial(_concatenate, lambda there, piece: piece + there), value=Part.OPTIONAL, may_preserve_expiry=True),
    _write(Opcode.INCREMENT, partial(_count, lambda number, delta: (number + delta) & UINT64_MAX), extras_sizes=(20,), may_preserve_expiry=True),
    _write(Opcode.DECREMENT, partial(_count, lambda number, delta: max(0, number - delta)), extras_sizes=(20,), may_preserve_expiry=True),
)
# fmt: on
