"""Extended attributes of a fake node: keys, macros, and the virtual attributes of a document.

Source: kv_engine docs/ExtendedAttributes.md, ``include/xattr/{utils,key_validator}.h``, daemon/subdocument_context.cc.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import assert_never

import msgspec

from triclinium_core.kv.operation.subdocument.specs import MutationMacro
from triclinium_core.kv.wire.constants import Datatype
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.store.documents import Document, FakeDocuments
from triclinium_core.testing.fakes.store.json_values import PathFailed, decode_json

KEY_SIZE_MAX = 15
"""Maximum size in bytes of an attribute's key."""
_NO_FIRST_CHARACTER = (frozenset(string.punctuation) | frozenset(map(chr, (*range(0x20), 0x7F)))) - frozenset("_$")


def key_of(path: str) -> str:
    """Return the attribute key at the start of a path."""
    for place, character in enumerate(path):
        if character in ".[":
            return path[:place]
    return path


def is_valid_key(path: str) -> bool:
    """Return whether a path starts with a valid attribute key."""
    key = key_of(path)
    if not 1 <= len(key.encode()) <= KEY_SIZE_MAX or "\0" in path:
        return False
    return key[0] not in _NO_FIRST_CHARACTER and key not in ("_", "$")


def is_virtual(path: str) -> bool:
    """Return whether a path leads to a virtual attribute, which is not stored."""
    return path.startswith("$")


def read_macro(value: bytes) -> MutationMacro | None:
    """Return the macro that a value, including its quotes, names; None if there is no such macro."""
    return next((macro for macro in MutationMacro if b'"%b"' % macro.value.encode() == value), None)


def tree_of(xattrs: Mapping[str, bytes]) -> dict[str, object]:
    """Return the stored attributes as one document."""
    return {key: decode_json(value) for key, value in xattrs.items()}


def stored(tree: Mapping[str, object], value: bytes, cas: int, sequence_number: int) -> dict[str, bytes]:
    """Return the attributes in ``tree`` for storage, with macros expanded; ``value`` is the document's value."""

    def expand(macro: MutationMacro) -> str:
        match macro:
            case MutationMacro.CAS:
                # The server writes the bytes of a CAS in reverse order, and clients expect that.
                return f"0x{cas.to_bytes(8, 'little').hex()}"
            case MutationMacro.SEQ_NO:
                return f"0x{sequence_number:016x}"
            case MutationMacro.VALUE_CRC32C:
                return f"0x{crc32c(value):08x}"
            case _:
                assert_never(macro)

    return {key: msgspec.json.encode(_expanded(attribute, expand)) for key, attribute in tree.items()}


def _expanded(value: object, expand: Callable[[MutationMacro], str]) -> object:
    match value:
        case MutationMacro():
            return expand(value)
        case dict():
            return {key: _expanded(each, expand) for key, each in value.items()}
        case list():
            return [_expanded(each, expand) for each in value]
        case _:
            return value


def virtual_tree(path: str, documents: FakeDocuments, document: Document, vbucket: int) -> dict[str, object]:
    """Return a tree that contains the virtual attribute of ``path``; raise PathFailed if there is no such attribute."""
    key = key_of(path)
    if key == "$document":
        return {key: _describe(documents, document, vbucket)}
    if key == "$vbucket":
        return {key: {"HLC": {"now": str(int(documents.wall_seconds)), "mode": "real"}}}
    if key == "$XTOC":
        return {key: sorted(document.xattrs)}
    raise PathFailed(Status.SUBDOC_XATTR_UNKNOWN_VATTR)


def _describe(documents: FakeDocuments, document: Document, vbucket: int) -> dict[str, object]:
    kinds = [kind.name for kind in Datatype if kind in document.datatype and kind.name is not None]
    return {
        "CAS": f"0x{documents.visible_cas(document):016x}",
        "vbucket_uuid": f"0x{documents.histories.uuid_of(vbucket):016x}",
        "seqno": f"0x{document.sequence_number:016x}",
        "revid": str(document.sequence_number),
        "exptime": documents.unix_expiry(document),
        "flags": document.flags,
        "value_bytes": len(document.value),
        "datatype": [kind.lower() for kind in kinds] + ["xattr"] * bool(document.xattrs) or ["raw"],
        "deleted": document.is_deleted,
        "last_modified": str(document.cas // 1_000_000_000),
        "value_crc32c": f"0x{crc32c(document.value):08x}",
    }


def _crc32c_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # noqa: PLW2901
        table.append(byte)
    return tuple(table)


_CRC32C = _crc32c_table()


def crc32c(data: bytes) -> int:
    """Return the Castagnoli checksum (RFC 3720, section 12.1)."""
    checksum = 0xFFFF_FFFF
    for byte in data:
        checksum = checksum >> 8 ^ _CRC32C[(checksum ^ byte) & 0xFF]
    return checksum ^ 0xFFFF_FFFF
