"""List of all key-value operations."""

from __future__ import annotations

from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.scan.scan_requests import SCAN_OPERATIONS
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn

OPERATIONS: tuple[type[document_operations.Operation], ...] = (
    document_operations.Noop,
    document_operations.Get,
    document_operations.GetReplica,
    document_operations.Exists,
    document_operations.GetAndTouch,
    document_operations.GetAndLock,
    document_operations.Unlock,
    document_operations.Touch,
    document_operations.Remove,
    document_operations.Insert,
    document_operations.Upsert,
    document_operations.Replace,
    document_operations.Append,
    document_operations.Prepend,
    document_operations.Increment,
    document_operations.Decrement,
    LookupIn,
    MutateIn,
    LookupInReplica,
    *SCAN_OPERATIONS,
    GetCollectionsManifest,
)
"""All operations that a driver can submit."""
