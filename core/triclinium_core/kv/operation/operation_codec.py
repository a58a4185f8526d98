"""Codec of operations: a table with an encoder of requests and a decoder of responses for each operation.

Source: kv_engine ``docs/BinaryProtocol.md``; memcached's ``doc/protocol-binary.txt`` for the bare mode.
"""

from __future__ import annotations

import math
import struct

from triclinium_core.errors import FeatureNotAvailableException
from triclinium_core.kv.operation.codec_parts import (
    WHOLE_DOCUMENT,
    Body,
    Codec,
    Dialect,
    MalformedResponse,
    mutation_token,
)
from triclinium_core.kv.operation.document_operations import (
    Append,
    Concatenate,
    Count,
    Decrement,
    Exists,
    Get,
    GetAndLock,
    GetAndTouch,
    GetReplica,
    Increment,
    Insert,
    Noop,
    Operation,
    Prepend,
    Remove,
    Replace,
    Store,
    Touch,
    Unlock,
    Upsert,
)
from triclinium_core.kv.operation.durability import DurabilityLevel, encode_requirement
from triclinium_core.kv.operation.manifest.manifest_codec import MANIFEST_CODEC
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.results import (
    Cas,
    CounterResult,
    Done,
    ExistsResult,
    GetReplicaResult,
    GetResult,
    MutationResult,
    Result,
)
from triclinium_core.kv.operation.scan.scan_codec import SCAN_CODECS, encode_document
from triclinium_core.kv.operation.subdocument.subdocument_codec import (
    MalformedOutcomes,
    decode_lookup_in,
    decode_mutate_in,
    encode_lookup_in,
    encode_mutate_in,
)
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.wire.compression import deflate
from triclinium_core.kv.wire.constants import SNAPPY_BIT, HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request, encode_store
from triclinium_core.kv.wire.framing_extras import RequestFrameInfo, encode_framing_extras
from triclinium_core.retry.couchbase import Status
from triclinium_core.transcoding.flags import CommonFormat, common_format

_UINT32 = struct.Struct(">I")
_COUNTER = struct.Struct(">QQI")
_UINT64 = struct.Struct(">Q")
_META = struct.Struct(">IIIQ")

_NONE = DurabilityLevel.NONE
"""Alias of an enum member used for each operation; ``kv.wire.constants`` documents the cost of a lookup."""
_JSON = int(CommonFormat.JSON)
_META_VERSION = b"\x02"
_DO_NOT_CREATE = UINT32_MAX


def encode_operation(
    operation: Operation,
    dialect: Dialect,
    *,
    opaque: int,
    vbucket: int,
    prefix: bytes,
    time_left: float = math.inf,
) -> bytes:
    """Return the frame for one attempt of an operation.

    Args:
        vbucket: vbucket of the operation or of its document; 0 for an operation without a vbucket.
        prefix: encoded collection id that precedes the key; empty if the server did not grant collections.
        time_left: seconds until the operation's deadline. For a durable operation, it determines the server's timeout.

    Raises:
        FeatureNotAvailableException: the connection lacks a feature that the operation requires.
    """
    codec = CODECS[type(operation)]
    opcode = codec.bare_opcode if dialect.bare else operation.opcode
    if opcode is None:
        raise _beyond_memcached(operation)
    key = operation.key.encode()
    if key:
        key = prefix + key
    # Encode the key only. If the opcodes differ, the request is a plain GET, which replaces GET_META for a plain
    # memcached.
    if codec.encode is None or opcode is not operation.opcode:
        return encode_request(opcode, opaque=opaque, status=vbucket, key=key)
    if codec.encode is WHOLE_DOCUMENT:
        assert isinstance(operation, Store), operation
        framing_extras = _framing_extras(operation, dialect, time_left)
        value, flags = operation.value, operation.flags
        datatype = dialect.json_datatype
        if datatype and common_format(flags) != _JSON:
            datatype = 0
        if dialect.deflates and (deflated := deflate(value)) is not None:
            datatype, value = datatype | SNAPPY_BIT, deflated
        return encode_store(
            opcode,
            opaque=opaque,
            vbucket=vbucket,
            cas=operation.cas,
            datatype=datatype,
            framing_extras=framing_extras,
            flags=flags,
            expiry=operation.expiry,
            key=key,
            value=value,
        )
    body, datatype = codec.encode(operation), 0
    framing_extras = _framing_extras(operation, dialect, time_left)
    for feature, option in body.needs:
        _require(dialect, feature, option)
    value = body.value
    if body.document is not None:
        datatype, value = encode_document(body.document, prefix)
    return encode_request(
        opcode,
        opaque=opaque,
        status=vbucket,
        cas=body.cas,
        datatype=datatype,
        framing_extras=framing_extras,
        extras=body.extras,
        key=key,
        value=value,
    )


def decode_response(operation: Operation, frame: Frame, *, vbucket: int) -> Result:
    """Return the result in a successful response.

    Args:
        frame: response whose value has been inflated.
        vbucket: vbucket of the request, for the mutation token.

    Raises:
        MalformedResponse: the extras or the value are invalid, for example because of a wrong length.
    """
    try:
        return CODECS[type(operation)].decode(operation, frame, vbucket)
    except (struct.error, MalformedOutcomes) as error:
        raise MalformedResponse(
            f"invalid body (size of the extras: {len(frame.extras)}, of the value: {len(frame.value)}): {error}"
        ) from error


def check_bare(operation: Operation) -> None:
    """Check that a plain memcached supports an operation and its options (decision C27).

    Raises:
        FeatureNotAvailableException: a plain memcached does not support ``operation`` or one of its options.
    """
    if CODECS[type(operation)].bare_opcode is None:
        raise _beyond_memcached(operation)
    _framing_extras(operation, Dialect(bare=True), math.inf)


def _beyond_memcached(operation: Operation) -> FeatureNotAvailableException:
    return FeatureNotAvailableException(f"a plain memcached does not support {operation.name}; use a Couchbase server")


def _framing_extras(operation: Operation, dialect: Dialect, time_left: float) -> bytes:
    durability, preserve_expiry = operation.durability, operation.preserve_expiry
    if durability is _NONE and not preserve_expiry:
        return b""
    pieces: dict[int, bytes] = {}
    if durability is not _NONE:
        _require(dialect, HelloFeature.SYNC_REPLICATION, "durability")
        _require(dialect, HelloFeature.ALT_REQUEST, "durability")
        pieces[RequestFrameInfo.DURABILITY] = encode_requirement(durability, time_left)
    if preserve_expiry:
        _require(dialect, HelloFeature.PRESERVE_TTL, "preserve_expiry")
        _require(dialect, HelloFeature.ALT_REQUEST, "preserve_expiry")
        pieces[RequestFrameInfo.PRESERVE_TTL] = b""
    return encode_framing_extras(pieces)


def _require(dialect: Dialect, feature: HelloFeature, option: str) -> None:
    if feature not in dialect.features:
        if dialect.bare:
            raise FeatureNotAvailableException(
                f"{option} is not supported by a plain memcached; use a Couchbase server"
            )
        raise FeatureNotAvailableException(
            f"{option} needs the feature {feature.name}, which this server does not support"
        )


def _encode_exists(operation: Operation) -> Body:
    return Body(extras=_META_VERSION)


def _encode_expiry(operation: Touch | GetAndTouch) -> Body:
    return Body(extras=_UINT32.pack(operation.expiry))


def _encode_get_and_lock(operation: GetAndLock) -> Body:
    return Body(extras=_UINT32.pack(operation.lock_time))


def _encode_cas(operation: Unlock | Remove) -> Body:
    return Body(cas=operation.cas)


def _encode_concatenate(operation: Concatenate) -> Body:
    return Body(value=operation.value, cas=operation.cas)


def _encode_count(operation: Count) -> Body:
    initial, expiry = operation.initial, operation.expiry
    if initial is None:
        initial, expiry = 0, _DO_NOT_CREATE
    return Body(extras=_COUNTER.pack(operation.delta, initial, expiry))


def _decode_document(operation: Get | GetAndTouch | GetAndLock, frame: Frame, vbucket: int) -> Result:
    (flags,) = _UINT32.unpack(frame.extras)
    return GetResult(Cas(frame.cas), flags, frame.value, operation.transcoder)


def _decode_replica(operation: GetReplica, frame: Frame, vbucket: int) -> Result:
    (flags,) = _UINT32.unpack(frame.extras)
    return GetReplicaResult(Cas(frame.cas), flags, frame.value, operation.transcoder, is_replica=True)


def _decode_exists(operation: Operation, frame: Frame, vbucket: int) -> Result:
    if frame.status == Status.KEY_NOT_FOUND:
        return ExistsResult(exists=False, cas=Cas(0))
    if frame.opcode == Opcode.GET:
        return ExistsResult(exists=True, cas=Cas(frame.cas))
    # ``unpack_from``, because newer servers append the datatype to the four numbers.
    deleted, _, _, _ = _META.unpack_from(frame.extras)
    return ExistsResult(exists=not deleted, cas=Cas(0 if deleted else frame.cas))


def _decode_mutation(operation: Operation, frame: Frame, vbucket: int) -> Result:
    token = mutation_token(operation, frame, vbucket) if frame.extras else None
    return MutationResult(Cas(frame.cas), token)


def _decode_counter(operation: Operation, frame: Frame, vbucket: int) -> Result:
    (content,) = _UINT64.unpack(frame.value)
    return CounterResult(content, Cas(frame.cas), mutation_token(operation, frame, vbucket))


def _decode_touch(operation: Operation, frame: Frame, vbucket: int) -> Result:
    return MutationResult(Cas(frame.cas))


def _decode_done(operation: Operation, frame: Frame, vbucket: int) -> Result:
    return Done()


CODECS: dict[type[Operation], Codec] = {
    Noop: Codec(None, _decode_done, Opcode.NOOP),
    Get: Codec(None, _decode_document, Opcode.GET),
    GetReplica: Codec(None, _decode_replica, None),
    Exists: Codec(_encode_exists, _decode_exists, Opcode.GET),
    GetAndTouch: Codec(_encode_expiry, _decode_document, Opcode.GET_AND_TOUCH),
    GetAndLock: Codec(_encode_get_and_lock, _decode_document, None),
    Unlock: Codec(_encode_cas, _decode_done, None),
    Touch: Codec(_encode_expiry, _decode_touch, Opcode.TOUCH),
    Remove: Codec(_encode_cas, _decode_mutation, Opcode.DELETE),
    Insert: Codec(WHOLE_DOCUMENT, _decode_mutation, Opcode.ADD),
    Upsert: Codec(WHOLE_DOCUMENT, _decode_mutation, Opcode.SET),
    Replace: Codec(WHOLE_DOCUMENT, _decode_mutation, Opcode.REPLACE),
    Append: Codec(_encode_concatenate, _decode_mutation, Opcode.APPEND),
    Prepend: Codec(_encode_concatenate, _decode_mutation, Opcode.PREPEND),
    Increment: Codec(_encode_count, _decode_counter, Opcode.INCREMENT),
    Decrement: Codec(_encode_count, _decode_counter, Opcode.DECREMENT),
    LookupIn: Codec(encode_lookup_in, decode_lookup_in, None),
    LookupInReplica: Codec(encode_lookup_in, decode_lookup_in, None),
    MutateIn: Codec(encode_mutate_in, decode_mutate_in, None),
    GetCollectionsManifest: MANIFEST_CODEC,
    **SCAN_CODECS,
}
