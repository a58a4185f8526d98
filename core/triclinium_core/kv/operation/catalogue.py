"""List of all operations, from every module that defines some."""

from __future__ import annotations

from triclinium_core.kv.operation.document_operations import (
    Append,
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
    Touch,
    Unlock,
    Upsert,
)
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.scan.scan_requests import SCAN_OPERATIONS
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn

OPERATIONS: tuple[type[Operation], ...] = (
    Noop,
    Get,
    GetReplica,
    Exists,
    GetAndTouch,
    GetAndLock,
    Unlock,
    Touch,
    Remove,
    Insert,
    Upsert,
    Replace,
    Append,
    Prepend,
    Increment,
    Decrement,
    LookupIn,
    MutateIn,
    LookupInReplica,
    *SCAN_OPERATIONS,
    GetCollectionsManifest,
)
"""Every operation that can be submitted."""
