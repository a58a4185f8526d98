"""Error map of a fake node: the error map of a real node, with three more entries for retries.

Source: kv_engine docs/ErrorMap.md and its error map of version 2, revision 9; SDK-RFC 0013 for ``retry``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from triclinium_core.checks import check_integer
from triclinium_core.errors import InvalidArgumentException

V1_REVISION_OFFSET = 4
"""Number that is added to the revision of a version 1 map.

Version 1 maps are derived from version 2, and their revisions continue after the last original version 1 map.
"""

V2_ATTRIBUTES = frozenset({"no-retry", "rate-limit", "system-constraint"})
"""Attributes that exist only in version 2."""


@dataclass(frozen=True, slots=True)
class ErrorMapRow:
    """One status. ``attributes`` are separated by spaces; ``retry`` is the plan of SDK-RFC 0013, in milliseconds."""

    code: int
    name: str
    attributes: str
    description: str
    retry: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class ErrorMapDocument:
    """A map, independent of the version that a client requests.

    Raises:
        InvalidArgumentException: a status occurs twice, or is not a number of 16 bits.
    """

    revision: int
    rows: tuple[ErrorMapRow, ...]

    def __post_init__(self) -> None:
        codes = [check_integer(row.code, "code", 0, 0xFFFF) for row in self.rows]
        for code in codes:
            if codes.count(code) > 1:
                raise InvalidArgumentException(f"status 0x{code:02x} is listed twice", parameter="rows")

    def encode(self, version: int) -> bytes:
        """Return the map as JSON in version 1 or 2. Version 1 omits the attributes that exist only in version 2."""
        errors: dict[str, object] = {}
        for row in self.rows:
            attributes = [name for name in row.attributes.split() if version > 1 or name not in V2_ATTRIBUTES]
            entry: dict[str, object] = {"name": row.name, "desc": row.description, "attrs": attributes}
            if row.retry is not None:
                entry["retry"] = row.retry
            errors[f"{row.code:x}"] = entry
        revision = self.revision if version > 1 else self.revision + V1_REVISION_OFFSET
        return msgspec.json.encode({"version": version, "revision": revision, "errors": errors})


_CONSTANT: Mapping[str, object] = {"strategy": "constant", "interval": 10, "after": 50, "max-duration": 500}
_LINEAR: Mapping[str, object] = {"strategy": "linear", "interval": 2, "after": 50, "max-duration": 500, "ceil": 50}
_EXPONENTIAL: Mapping[str, object] = {**_LINEAR, "strategy": "exponential", "ceil": 200}

# fmt: off
_ROWS = (
    ErrorMapRow(0x00, "SUCCESS", "success", "The operation succeeded"),
    ErrorMapRow(0x01, "KEY_ENOENT", "item-only", "The document does not exist"),
    ErrorMapRow(0x02, "KEY_EEXISTS", "item-only", "The document exists, or has another CAS"),
    ErrorMapRow(0x03, "E2BIG", "item-only invalid-input", "The value exceeds the maximum size"),
    ErrorMapRow(0x04, "EINVAL", "internal invalid-input", "The request is malformed"),
    ErrorMapRow(0x05, "NOT_STORED", "internal item-only", "Nothing was stored"),
    ErrorMapRow(0x06, "DELTA_BADVAL", "item-only invalid-input", "The document is not a counter"),
    ErrorMapRow(0x07, "NOT_MY_VBUCKET", "fetch-config invalid-input", "Another node has this vbucket"),
    ErrorMapRow(0x08, "NO_BUCKET", "conn-state-invalidated", "The connection has selected no bucket"),
    ErrorMapRow(0x09, "LOCKED", "item-locked item-only retry-now", "The document is locked"),
    ErrorMapRow(0x0A, "STREAM_NOT_FOUND", "conn-state-invalidated", "The DCP stream does not exist"),
    ErrorMapRow(0x0B, "OPAQUE_NO_MATCH", "conn-state-invalidated", "The opaque belongs to another stream"),
    ErrorMapRow(0x0C, "EWOULD_THROTTLE", "temp retry-later rate-limit", "The request exceeded the limit and was not throttled"),
    ErrorMapRow(0x0D, "ECONFIG_ONLY", "fetch-config retry-now", "The bucket on this node offers its config only"),
    ErrorMapRow(0x0E, "NOT_LOCKED", "item-only", "The document is not locked"),
    ErrorMapRow(0x0F, "CAS_VALUE_INVALID", "item-only", "No document can have this CAS"),
    ErrorMapRow(0x1F, "AUTH_STALE", "conn-state-invalidated auth", "The authentication has expired"),
    ErrorMapRow(0x20, "AUTH_ERROR", "conn-state-invalidated auth", "The credentials are wrong"),
    ErrorMapRow(0x21, "AUTH_CONTINUE", "special-handling", "One more step of authentication is due"),
    ErrorMapRow(0x22, "ERANGE", "invalid-input", "A number is out of range"),
    ErrorMapRow(0x23, "ROLLBACK", "dcp special-handling", "The stream has to be rolled back"),
    ErrorMapRow(0x24, "EACCESS", "support", "The user lacks a permission"),
    ErrorMapRow(0x25, "NOT_INITIALIZED", "conn-state-invalidated", "The node is still starting"),
    ErrorMapRow(0x26, "ENCRYPTION_KEY_NOT_AVAILABLE", "special-handling", "The encryption key of the data is not available"),
    ErrorMapRow(0x27, "CHECKSUM_MISMATCH", "special-handling", "The data does not match its checksum"),
    ErrorMapRow(0x28, "EXPIRY_OVERFLOW", "item-only system-constraint no-retry", "The expiry does not fit into 32 bits"),
    ErrorMapRow(0x29, "LOCK_EXPIRY_OVERFLOW", "item-only system-constraint no-retry", "The lock's end does not fit into 32 bits"),
    ErrorMapRow(0x30, "RATE_LIMITED_NETWORK_INGRESS", "temp retry-later rate-limit", "Too many bytes received from this user"),
    ErrorMapRow(0x31, "RATE_LIMITED_NETWORK_EGRESS", "temp retry-later rate-limit", "Too many bytes sent to this user"),
    ErrorMapRow(0x32, "RATE_LIMITED_MAX_CONNECTIONS", "conn-state-invalidated rate-limit", "Too many connections of this user"),
    ErrorMapRow(0x33, "RATE_LIMITED_MAX_COMMANDS", "temp retry-later rate-limit", "Too many commands of this user"),
    ErrorMapRow(0x35, "BUCKET_SIZE_LIMIT_EXCEEDED", "item-only system-constraint no-retry", "The bucket is over its size"),
    ErrorMapRow(0x36, "BUCKET_RESIDENT_RATIO_TOO_LOW", "item-only system-constraint no-retry", "Too little of the bucket is in memory to take writes"),
    ErrorMapRow(0x37, "BUCKET_DATA_SIZE_TOO_BIG", "item-only system-constraint no-retry", "The bucket holds too much data to take writes"),
    ErrorMapRow(0x38, "BUCKET_DISK_SPACE_TOO_LOW", "item-only system-constraint no-retry", "The bucket's disk is too full to take writes"),
    ErrorMapRow(0x50, "BUCKET_PAUSED", "support", "The bucket is paused"),
    ErrorMapRow(0x51, "CANCELLED", "item-only retry-now", "The request was cancelled before it changed anything"),
    ErrorMapRow(0x80, "UNKNOWN_FRAME_INFO", "support", "The node does not know an id in the framing extras"),
    ErrorMapRow(0x81, "UNKNOWN_COMMAND", "support", "The node does not know the opcode"),
    ErrorMapRow(0x82, "ENOMEM", "temp retry-later", "No memory is left"),
    ErrorMapRow(0x83, "NOT_SUPPORTED", "support", "This bucket or connection does not offer the command"),
    ErrorMapRow(0x84, "EINTERNAL", "internal conn-state-invalidated", "An internal error of the node; reconnect"),
    ErrorMapRow(0x85, "EBUSY", "temp retry-now", "The node is busy with another such request"),
    ErrorMapRow(0x86, "ETMPFAIL", "temp retry-now", "The node is temporarily unable to do it"),
    ErrorMapRow(0x87, "XATTR_EINVAL", "invalid-input", "The extended attributes are malformed"),
    ErrorMapRow(0x88, "UNKNOWN_COLLECTION", "invalid-input", "The collection does not exist"),
    ErrorMapRow(0x8A, "CANNOT_APPLY_COLLECTIONS_MANIFEST", "invalid-input", "The manifest contradicts the current one"),
    ErrorMapRow(0x8C, "UNKNOWN_SCOPE", "invalid-input", "The scope does not exist"),
    ErrorMapRow(0x8D, "DCP stream-ID invalid", "invalid-input", "The id of the DCP stream cannot be used like this"),
    ErrorMapRow(0xA0, "DurabilityInvalidLevel", "invalid-input", "The durability level does not exist"),
    ErrorMapRow(0xA1, "DurabilityImpossible", "item-only invalid-input", "Too few nodes for this durability level"),
    ErrorMapRow(0xA2, "SyncWriteInProgress", "item-only retry-later", "A durable write on the document is pending"),
    ErrorMapRow(0xA3, "SyncWriteAmbiguous", "item-only", "The durable write did not finish in time and may still succeed"),
    ErrorMapRow(0xA4, "SyncWriteReCommitInProgress", "item-only retry-later", "A durable write on the document is being completed after a failover"),
    ErrorMapRow(0xA5, "RangeScanCancelled", "success", "The range scan was cancelled"),
    ErrorMapRow(0xA6, "RangeScanMore", "success", "The range scan continues"),
    ErrorMapRow(0xA7, "RangeScanComplete", "success", "The range scan is complete"),
    ErrorMapRow(0xA8, "VbUuidNotEqual", "invalid-input", "The vbucket has another history than the one named"),
    ErrorMapRow(0xC0, "SUBDOC_PATH_ENOENT", "subdoc item-only", "The path does not exist in the document"),
    ErrorMapRow(0xC1, "SUBDOC_PATH_MISMATCH", "subdoc item-only", "The path does not fit the document's structure"),
    ErrorMapRow(0xC2, "SUBDOC_PATH_EINVAL", "subdoc invalid-input", "The path is malformed, or not one for this command"),
    ErrorMapRow(0xC3, "SUBDOC_PATH_E2BIG", "subdoc invalid-input", "The path is too long"),
    ErrorMapRow(0xC4, "SUBDOC_PATH_E2DEEP", "subdoc invalid-input", "The path has too many levels"),
    ErrorMapRow(0xC5, "SUBDOC_VALUE_CANTINSERT", "subdoc invalid-input", "The value would break the document"),
    ErrorMapRow(0xC6, "SUBDOC_DOC_NOTJSON", "subdoc item-only", "The document is not JSON"),
    ErrorMapRow(0xC7, "SUBDOC_NUM_ERANGE", "subdoc item-only", "The number in the document is out of range"),
    ErrorMapRow(0xC8, "SUBDOC_DELTA_EINVAL", "subdoc item-only", "The delta is not an integer in range"),
    ErrorMapRow(0xC9, "SUBDOC_PATH_EEXISTS", "subdoc item-only", "The path already exists"),
    ErrorMapRow(0xCA, "SUBDOC_VALUE_ETOODEEP", "subdoc invalid-input item-only", "The value has, or would make, too many levels"),
    ErrorMapRow(0xCB, "SUBDOC_INVALID_COMBO", "subdoc invalid-input", "Lookups and mutations do not mix in one request"),
    ErrorMapRow(0xCC, "SUBDOC_MULTI_PATH_FAILURE", "subdoc special-handling", "At least one path failed; the body names it"),
    ErrorMapRow(0xCD, "SUBDOC_SUCCESS_DELETED", "item-deleted success subdoc", "The operation succeeded on a deleted document"),
    ErrorMapRow(0xCE, "SUBDOC_XATTR_INVALID_FLAG_COMBO", "subdoc invalid-input", "These flags make no sense together"),
    ErrorMapRow(0xCF, "SUBDOC_XATTR_INVALID_KEY_COMBO", "subdoc invalid-input", "These extended attributes do not go together"),
    ErrorMapRow(0xD0, "SUBDOC_XATTR_UNKNOWN_MACRO", "subdoc invalid-input", "There is no such macro"),
    ErrorMapRow(0xD1, "SUBDOC_XATTR_UNKNOWN_VATTR", "subdoc invalid-input", "There is no such virtual attribute"),
    ErrorMapRow(0xD2, "SUBDOC_XATTR_CANT_MODIFY_VATTR", "subdoc invalid-input", "Virtual attributes are read-only"),
    ErrorMapRow(0xD3, "SUBDOC_MULTI_PATH_FAILURE_DELETED", "item-deleted subdoc special-handling", "At least one path failed on a deleted document"),
    ErrorMapRow(0xD4, "SUBDOC_INVALID_XATTR_ORDER", "subdoc invalid-input", "Extended attributes must stand first"),
    ErrorMapRow(0xD5, "SUBDOC_XATTR_UNKNOWN_VATTR_MACRO", "subdoc invalid-input", "The virtual macro does not exist"),
    ErrorMapRow(0xD6, "SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS", "subdoc item-only", "The document is alive and cannot be revived"),
    ErrorMapRow(0xD7, "SUBDOC_DELETED_DOCUMENT_CANT_HAVE_VALUE", "subdoc item-only", "A deleted document has extended attributes only"),
    ErrorMapRow(0xD8, "SUBDOC_FIELD_NOT_BINARY_VALUE", "subdoc item-only", "The field holds no binary value"),
    ErrorMapRow(0x7FF0, "RETRY_CONSTANT", "auto-retry temp", "A made-up failure to retry at a steady pace", _CONSTANT),
    ErrorMapRow(0x7FF1, "RETRY_LINEAR", "auto-retry temp", "A made-up failure to retry ever more slowly", _LINEAR),
    ErrorMapRow(0x7FF2, "RETRY_EXPONENTIAL", "auto-retry temp", "A made-up failure to retry at doubling intervals", _EXPONENTIAL),
)
# fmt: on

ERROR_MAP = ErrorMapDocument(revision=9, rows=_ROWS)
"""Default map of a node."""
