"""Error contexts and timeouts of operations."""

from __future__ import annotations

from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.durability import DURABLE_TIMEOUT_MIN, DurabilityLevel
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import Service

_NONE = DurabilityLevel.NONE
"""Alias of an enum member used for each operation; ``kv.wire.constants`` documents the cost of a lookup."""


def context_of(
    request: Operation, *, opaque: int | None = None, node: str | None = None, sender: str | None = None
) -> ErrorContext:
    """Return the error context of an operation, with the facts about one attempt."""
    keyspace = request.keyspace
    return ErrorContext(
        service=str(Service.KV),
        operation=request.name,
        idempotent=request.idempotent,
        bucket=keyspace.bucket,
        scope=keyspace.scope,
        collection=keyspace.collection,
        key=request.key or None,
        opaque=opaque,
        last_dispatched_to=node,
        last_dispatched_from=sender,
    )


def timeout_of(operation: Operation, timeouts: TimeoutOptions) -> float:
    """Return the timeout of an operation in seconds. It includes all retries."""
    if operation.durability is not _NONE:
        return max(timeouts.kv_durable, DURABLE_TIMEOUT_MIN)
    return timeouts.kv_scan if operation.is_scan else timeouts.kv
