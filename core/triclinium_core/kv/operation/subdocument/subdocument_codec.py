"""Codec of the two sub-document commands: it encodes specs and decodes the outcome of each spec.

Source: kv_engine ``docs/SubDocument.md`` "Multi-Path Commands".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.codec_parts import Body, mutation_token
from triclinium_core.kv.operation.operation import context_of
from triclinium_core.kv.operation.results import Cas, LookupInResult, MutateInResult, Result, as_lookup_of_copy
from triclinium_core.kv.operation.subdocument.specs import EncodedMutation, LookupInSpec, StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.kv.wire import subdocument
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.subdocument import MUTATION_OUTCOME
from triclinium_core.retry.couchbase import Status


class MalformedOutcomes(ValueError):
    """The outcomes in a response are malformed, or do not fit the specs. The message gives the reason."""


_EXPIRY = struct.Struct(">I")
_NEEDS_XATTR = ((HelloFeature.XATTR, "xattr"),)
_NEEDS_CREATE_AS_DELETED = ((HelloFeature.SUBDOC_CREATE_AS_DELETED, "create_as_deleted"),)
_DOCUMENT_FLAGS = {
    StoreSemantics.REPLACE: subdocument.DocumentFlag.NONE,
    StoreSemantics.UPSERT: subdocument.DocumentFlag.UPSERT,
    StoreSemantics.INSERT: subdocument.DocumentFlag.INSERT,
}
_DELETED = (Status.SUBDOC_SUCCESS_DELETED, Status.SUBDOC_MULTI_PATH_FAILURE_DELETED)


def encode_lookup_in(operation: LookupIn) -> Body:
    """Return the parts of a request that depend on the lookup."""
    flags = subdocument.DocumentFlag.ACCESS_DELETED if operation.access_deleted else subdocument.DocumentFlag.NONE
    flags |= subdocument.DocumentFlag.REPLICA_READ if operation.copy else subdocument.DocumentFlag.NONE
    return Body(
        extras=bytes((flags,)) if flags else b"",
        value=encode_lookups(operation.specs),
        needs=_NEEDS_XATTR if any(spec.xattr for spec in operation.specs) else (),
    )


def encode_mutate_in(operation: MutateIn) -> Body:
    """Return the parts of a request that depend on the mutation."""
    flags = _DOCUMENT_FLAGS[operation.store_semantics]
    flags |= subdocument.DocumentFlag.ACCESS_DELETED if operation.access_deleted else subdocument.DocumentFlag.NONE
    flags |= (
        subdocument.DocumentFlag.CREATE_AS_DELETED if operation.create_as_deleted else subdocument.DocumentFlag.NONE
    )
    return Body(
        extras=(_EXPIRY.pack(operation.expiry) if operation.expiry else b"") + (bytes((flags,)) if flags else b""),
        value=encode_mutations(operation.specs),
        cas=operation.cas,
        needs=(_NEEDS_XATTR if any(spec.xattr for spec in operation.specs) else ())
        + (_NEEDS_CREATE_AS_DELETED if operation.create_as_deleted else ()),
    )


def decode_lookup_in(operation: LookupIn, frame: Frame, vbucket: int) -> Result:
    """Return the result of a lookup.

    Raises:
        MalformedOutcomes: the body does not fit the specs.
    """
    outcomes = decode_lookups(frame.value, operation.specs)
    # Decision C38: only errors use the context, so create it only if the lookup failed at any path.
    context = context_of(operation) if any(status for status, _ in outcomes) else ErrorContext()
    is_deleted = frame.status in _DELETED
    result = LookupInResult(Cas(frame.cas), operation.specs, outcomes, operation.transcoder, context, is_deleted)
    return as_lookup_of_copy(result, is_replica=True) if operation.copy else result


def decode_mutate_in(operation: MutateIn, frame: Frame, vbucket: int) -> Result:
    """Return the result of a mutation.

    Raises:
        MalformedOutcomes: the body does not fit the specs.
        struct.error: the extras have an invalid length.
    """
    values = decode_mutations(frame.value, operation.specs)
    return MutateInResult(
        Cas(frame.cas),
        tuple(values.get(index) for index in range(len(operation.specs))),
        operation.transcoder,
        mutation_token(operation, frame, vbucket),
        frame.status in _DELETED,
    )


def wire_order(specs: Sequence[LookupInSpec] | Sequence[EncodedMutation]) -> list[int]:
    """Return the indexes of the specs in wire order: extended attributes first, otherwise in the caller's order.

    Source: kv_engine ``daemon/subdocument_validators.cc``; SDK-RFC 0053 "LookupIn", notes.
    """
    return sorted(range(len(specs)), key=lambda place: not specs[place].xattr)


def encode_lookups(specs: Sequence[LookupInSpec]) -> bytes:
    """Return the value of a lookup request."""
    pieces = bytearray()
    for place in wire_order(specs):
        spec = specs[place]
        path = spec.path.encode()
        pieces += (
            subdocument.LOOKUP_SPEC.pack(
                spec.opcode, subdocument.PathFlag.XATTR if spec.xattr else subdocument.PathFlag.NONE, len(path)
            )
            + path
        )
    return bytes(pieces)


def encode_mutations(specs: Sequence[EncodedMutation]) -> bytes:
    """Return the value of a mutation request."""
    pieces = bytearray()
    for place in wire_order(specs):
        spec = specs[place]
        path = spec.path.encode()
        pieces += (
            subdocument.MUTATION_SPEC.pack(spec.opcode, spec.flags, len(path), len(spec.value)) + path + spec.value
        )
    return bytes(pieces)


def decode_lookups(body: bytes, specs: Sequence[LookupInSpec]) -> tuple[tuple[int, bytes], ...]:
    """Return the status and the value of each spec, in the caller's order.

    Raises:
        MalformedOutcomes: ``body`` has too few or too many outcomes, or a length exceeds the body.
    """
    outcomes: list[tuple[int, bytes]] = [(Status.SUCCESS, b"")] * len(specs)
    start = 0
    for place in wire_order(specs):
        if start + subdocument.LOOKUP_OUTCOME.size > len(body):
            raise MalformedOutcomes(f"outcomes expected: {len(specs)}; the body ends before the last is complete")
        status, size = subdocument.LOOKUP_OUTCOME.unpack_from(body, start)
        start += subdocument.LOOKUP_OUTCOME.size
        outcomes[place] = status, _piece(body, start, size)
        start += size
    if start != len(body):
        raise MalformedOutcomes(
            f"outcomes expected: {len(specs)}; the body continues after them, at byte {start} of {len(body)}"
        )
    return tuple(outcomes)


def decode_mutations(body: bytes, specs: Sequence[EncodedMutation]) -> Mapping[int, bytes]:
    """Return the values that the specs of an applied mutation returned, by index of the spec in the caller's order.

    Raises:
        MalformedOutcomes: an index is out of range or occurs twice, an outcome is a failure, or a length is wrong.
    """
    order = wire_order(specs)
    values: dict[int, bytes] = {}
    start = 0
    while start < len(body):
        if start + MUTATION_OUTCOME.size + subdocument.MUTATION_VALUE.size > len(body):
            raise MalformedOutcomes("the body ends within an outcome")
        index, status = MUTATION_OUTCOME.unpack_from(body, start)
        (size,) = subdocument.MUTATION_VALUE.unpack_from(body, start + MUTATION_OUTCOME.size)
        start += MUTATION_OUTCOME.size + subdocument.MUTATION_VALUE.size
        if status != Status.SUCCESS:
            raise MalformedOutcomes(f"spec {index} failed with status 0x{status:02x} in a mutation that was applied")
        place = _place(order, index)
        if place in values:
            raise MalformedOutcomes(f"spec {index} has two outcomes")
        values[place] = _piece(body, start, size)
        start += size
    return values


def decode_failed_mutation(body: bytes, specs: Sequence[EncodedMutation]) -> tuple[int, int]:
    """Return the index, in the caller's order, and the status of the spec that made a mutation fail.

    Raises:
        MalformedOutcomes: ``body`` is not exactly one failure of one of the specs.
    """
    if len(body) != MUTATION_OUTCOME.size:
        raise MalformedOutcomes(f"the failure of a mutation must have {MUTATION_OUTCOME.size} bytes, not {len(body)}")
    index, status = MUTATION_OUTCOME.unpack(body)
    if status == Status.SUCCESS:
        raise MalformedOutcomes(f"spec {index} failed with status success")
    return _place(wire_order(specs), index), status


def _place(order: Sequence[int], index: int) -> int:
    if index >= len(order):
        raise MalformedOutcomes(f"an outcome has index {index}, which is not below {len(order)}, the number of specs")
    return order[index]


def _piece(body: bytes, start: int, size: int) -> bytes:
    if start + size > len(body):
        raise MalformedOutcomes(f"a value of size {size} extends past the end of the body")
    return body[start : start + size]
