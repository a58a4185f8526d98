"""Example of each operation with all arguments, for tests that cover every operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from triclinium_core.kv.operation import document_operations as ops
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


DEFAULT = ops.Keyspace("travel")
HOTELS = ops.Keyspace("travel", "inventory", "hotel")

LOOKUP = {"key": "k", "specs": (LookupInSpec.get("a"),), "access_deleted": True, "transcoder": Raw()}


def change(**arguments: object) -> Mapping[str, object]:
    """Return the arguments of a write, with its key and the duration of its encoding."""
    return {"key": "k", **arguments, "encode_seconds": 0.25}


VALID: Mapping[type[ops.Operation], Mapping[str, object]] = {
    ops.Noop: {},
    ops.Get: {"key": "k", "transcoder": Raw()},
    ops.GetReplica: {"key": "k", "replica": 3, "transcoder": Raw()},
    ops.Exists: {"key": "k"},
    ops.GetAndTouch: {"key": "k", "expiry": 1, "transcoder": Raw()},
    ops.GetAndLock: {"key": "k", "lock_time": 30, "transcoder": Raw()},
    ops.Unlock: {"key": "k", "cas": 1},
    ops.Touch: {"key": "k", "expiry": 0},
    ops.Remove: change(cas=UINT64_MAX, durability=DurabilityLevel.MAJORITY),
    ops.Insert: change(value=b"", flags=0, expiry=0, durability=DurabilityLevel.NONE),
    ops.Upsert: change(
        value=b"v",
        flags=UINT32_MAX,
        expiry=UINT32_MAX,
        preserve_expiry=True,
        durability=DurabilityLevel.PERSIST_TO_MAJORITY,
    ),
    ops.Replace: change(
        value=b"v",
        flags=0,
        expiry=0,
        preserve_expiry=True,
        cas=5,
        durability=DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE,
    ),
    ops.Append: change(value=b"v", cas=5, durability=DurabilityLevel.MAJORITY),
    ops.Prepend: change(value=b"v", cas=0, durability=DurabilityLevel.NONE),
    ops.Increment: change(
        delta=UINT64_MAX, initial=UINT64_MAX, expiry=UINT32_MAX - 1, durability=DurabilityLevel.MAJORITY
    ),
    ops.Decrement: change(delta=0, initial=None, expiry=0, durability=DurabilityLevel.NONE),
    LookupIn: LOOKUP,
    LookupInReplica: LOOKUP | {"replica": 2},
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
    MutateIn: change(
        specs=(MutateInSpec.upsert("a", b"1").encode(Raw()),),
        cas=5,
        expiry=0,
        preserve_expiry=True,
        store_semantics=StoreSemantics.UPSERT,
        access_deleted=True,
        create_as_deleted=True,
        transcoder=Raw(),
        durability=DurabilityLevel.MAJORITY,
    ),
}
"""Valid arguments of each operation, by parameter."""


def make(kind: type[ops.Operation], keyspace: object = DEFAULT, **arguments: object) -> ops.Operation:
    """Return an operation with its valid arguments, updated with ``arguments``."""
    return cast("Callable[..., ops.Operation]", kind)(keyspace, **{**VALID[kind], **arguments})
