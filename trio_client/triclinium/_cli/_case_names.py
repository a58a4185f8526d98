"""The names by which a case is told on the command line, all taken from the tables of the core."""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.kv.operation.codec import CODECS
from triclinium_core.retry.couchbase.tables.idempotency import IDEMPOTENT_OPERATIONS
from triclinium_core.retry.couchbase.tables.kv_responses import RETRYABLE_STATUSES
from triclinium_core.retry.couchbase.tables.kv_status import KV_STATUSES, Status
from triclinium_core.retry.couchbase.tables.service import Service

EVENTS: Mapping[str, str] = {name: name for name in ("socket-closed", "dispatch-failed")}


STATUSES: Mapping[str, int] = {status.name: int(status) for status in Status}

METHODS: Mapping[str, str] = {method: method for method in ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")}

UNNAMED_OPERATION = "request"
"""Of a service whose operations are all covered by one row of the idempotent list, so that their names change nothing."""

OPERATION_OF: Mapping[Service, str] = {
    service: "http" if service is Service.MANAGEMENT else "query" for service in Service if service is not Service.KV
}
"""What a request of such a service is called in a file of questions."""


def _operations() -> set[str]:
    """Return every operation of KV that a table of the core or the client knows."""
    names = {operation.name for operation in CODECS}
    names.update(row.operation for row in IDEMPOTENT_OPERATIONS if row.service is Service.KV)
    names.update(name for row in KV_STATUSES.values() for name in row.of_operation)
    names.update(name for line in RETRYABLE_STATUSES.values() for name in line.excluded)
    return names


OPERATIONS: tuple[str, ...] = tuple(sorted(_operations()))
