"""Documents with a list of unique values, which sub-document operations extend: ``{"parts":["<3>","<7>"]}``.

The first value identifies the creator of the document, each later one a mutation that appended it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from triclinium_core.json_depth import TooDeep, shallow
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, Concatenate, DocumentOperation, Store
from triclinium_core.kv.operation.results import LookupInResult
from triclinium_core.kv.operation.subdocument.specs import EncodedMutation, MutateInSpec
from triclinium_core.kv.operation.subdocument.subdocument_requests import MutateIn
from triclinium_core.kv.wire.subdocument import PathOpcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.oracle import unique_values

PATH = "parts"
"""Path of the list."""


class _ListDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    parts: list[str]


def list_document(fragment: bytes) -> bytes:
    """Return the document whose list has one value."""
    return msgspec.json.encode(_ListDocument([fragment.decode()]))


def list_append(fragment: bytes) -> EncodedMutation:
    """Return the mutation that appends a value, and creates the list if it is missing."""
    return MutateInSpec.array_append(PATH, fragment.decode(), create_parents=True).encode(JSON_TRANSCODER)


def read_list(data: bytes) -> Sequence[bytes]:
    """Return the values in a document or in its list, in order.

    Raises:
        Unreadable: the content is not a list of unique values, or has a value twice.
    """
    try:
        texts = msgspec.json.decode(shallow(data), type=_ListDocument | list[str])
    except (msgspec.DecodeError, TooDeep, UnicodeDecodeError) as error:
        raise unique_values.Unreadable(f"{data!r} is not a list of written values: {error}") from error
    parts = texts.parts if isinstance(texts, _ListDocument) else texts
    fragments = [part.encode() for part in parts]
    if not fragments or not all(map(unique_values.is_fragment, fragments)):
        raise unique_values.Unreadable(f"{data!r} is not a list of written values")
    if len(set(fragments)) < len(fragments):
        raise unique_values.Unreadable(f"{data!r} contains a write twice")
    return fragments


def written_by(operation: DocumentOperation) -> bytes | None:
    """Return the unique value that an operation writes; None if it writes none, or another value."""
    match operation:
        case Store(value=value) | Concatenate(value=value) if unique_values.is_fragment(value):
            return value
        case Store(value=value):
            return _only(value)
        case MutateIn(specs=(EncodedMutation(opcode=PathOpcode.ARRAY_APPEND, path="parts", value=value),)):
            return _only(b"[%b]" % value)
        case _:
            return None


def lists_found(result: LookupInResult) -> Sequence[bytes]:
    """Return the documents and lists of values that a lookup found, as JSON."""
    return [
        data
        for spec, (status, data) in zip(result.specs, result.outcomes, strict=True)
        if status == Status.SUCCESS
        and not spec.xattr
        and (spec.opcode is PathOpcode.GET_DOCUMENT or (spec.opcode is PathOpcode.GET and spec.path == PATH))
    ]


def _only(data: bytes) -> bytes | None:
    try:
        values = read_list(data)
    except unique_values.Unreadable:
        return None
    return values[0] if len(values) == 1 else None
