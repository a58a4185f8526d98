"""Example of each operation with all arguments, for tests that cover every operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.operation.scan.scan_requests import RangeScanCancel, RangeScanContinue, RangeScanCreate
from triclinium_core.kv.operation.scan.scans import Bounds
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec, MutateInSpec, StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.kv.operation.validation import UINT32_MAX, UINT64_MAX
from triclinium_core.transcoding.transcoder import RawBinaryTranscoder


@dataclass(frozen=True)
class Raw(RawBinaryTranscoder):
    """Transcoder that equals every instance of its class, and whose repr contains no address."""


DEFAULT = document_operations.Keyspace("travel")
HOTELS = document_operations.Keyspace("travel", "inventory", "hotel")

VALID: Mapping[type[document_operations.Operation], Mapping[str, object]] = {
    document_operations.Noop: {},
    document_operations.Get: {"key": "k", "transcoder": Raw()},
    document_operations.GetReplica: {"key": "k", "replica": 3, "transcoder": Raw()},
    document_operations.Exists: {"key": "k"},
    document_operations.GetAndTouch: {"key": "k", "expiry": 1, "transcoder": Raw()},
    document_operations.GetAndLock: {"key": "k", "lock_time": 30, "transcoder": Raw()},
    document_operations.Unlock: {"key": "k", "cas": 1},
    document_operations.Touch: {"key": "k", "expiry": 0},
    document_operations.Remove: {
        "key": "k",
        "cas": UINT64_MAX,
        "durability": DurabilityLevel.MAJORITY,
        "encode_seconds": 0.25,
    },
    document_operations.Insert: {
        "key": "k",
        "value": b"",
        "flags": 0,
        "expiry": 0,
        "durability": DurabilityLevel.NONE,
        "encode_seconds": 0.25,
    },
    document_operations.Upsert: {
        "key": "k",
        "value": b"v",
        "flags": UINT32_MAX,
        "expiry": UINT32_MAX,
        "preserve_expiry": True,
        "durability": DurabilityLevel.PERSIST_TO_MAJORITY,
        "encode_seconds": 0.25,
    },
    document_operations.Replace: {
        "key": "k",
        "value": b"v",
        "flags": 0,
        "expiry": 0,
        "preserve_expiry": True,
        "cas": 5,
        "durability": DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE,
        "encode_seconds": 0.25,
    },
    document_operations.Append: {
        "key": "k",
        "value": b"v",
        "cas": 5,
        "durability": DurabilityLevel.MAJORITY,
        "encode_seconds": 0.25,
    },
    document_operations.Prepend: {
        "key": "k",
        "value": b"v",
        "cas": 0,
        "durability": DurabilityLevel.NONE,
        "encode_seconds": 0.25,
    },
    document_operations.Increment: {
        "key": "k",
        "delta": UINT64_MAX,
        "initial": UINT64_MAX,
        "expiry": UINT32_MAX - 1,
        "durability": DurabilityLevel.MAJORITY,
        "encode_seconds": 0.25,
    },
    document_operations.Decrement: {
        "key": "k",
        "delta": 0,
        "initial": None,
        "expiry": 0,
        "durability": DurabilityLevel.NONE,
        "encode_seconds": 0.25,
    },
    LookupIn: {"key": "k", "specs": (LookupInSpec.get("a"),), "access_deleted": True, "transcoder": Raw()},
    LookupInReplica: {
        "key": "k",
        "specs": (LookupInSpec.get("a"),),
        "access_deleted": True,
        "transcoder": Raw(),
        "replica": 2,
    },
    RangeScanCreate: {
        "vbucket": 5,
        "selection": Bounds(),
        "ids_only": True,
        "token": MutationToken("travel", 0xFFFF, 1, 2),
    },
    RangeScanContinue: {
        "vbucket": 0,
        "scan_id": b"sixteen bytes it",
        "item_limit": 1,
        "byte_limit": UINT32_MAX,
        "time_limit_ms": UINT32_MAX,
        "transcoder": Raw(),
    },
    GetCollectionsManifest: {},
    RangeScanCancel: {"vbucket": 0, "scan_id": b"sixteen bytes it"},
    MutateIn: {
        "key": "k",
        "specs": (MutateInSpec.upsert("a", b"1").encode(Raw()),),
        "cas": 5,
        "expiry": 0,
        "preserve_expiry": True,
        "store_semantics": StoreSemantics.UPSERT,
        "access_deleted": True,
        "create_as_deleted": True,
        "transcoder": Raw(),
        "durability": DurabilityLevel.MAJORITY,
        "encode_seconds": 0.25,
    },
}
"""Valid arguments of each operation, by parameter."""


def make(
    kind: type[document_operations.Operation], keyspace: object = DEFAULT, **arguments: object
) -> document_operations.Operation:
    """Return an operation with its valid arguments, updated with ``arguments``."""
    return cast("Callable[..., document_operations.Operation]", kind)(keyspace, **{**VALID[kind], **arguments})
