"""List of all operations, from every module that defines some."""

from __future__ import annotations

from triclinium_core.kv.operation.manifest.requests import GetCollectionsManifest
from triclinium_core.kv.operation.replica.requests import LookupInReplica
from triclinium_core.kv.operation.requests import (
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
from triclinium_core.kv.operation.scan.requests import SCAN_OPERATIONS
from triclinium_core.kv.operation.subdocument.requests import LookupIn, MutateIn

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
