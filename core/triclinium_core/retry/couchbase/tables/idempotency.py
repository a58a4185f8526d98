"""Table of the idempotent operations.

Source: SDK-RFC 0049 "Idempotent Operation List". Decision C34 adds rows that the RFC does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique

from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_errors import SEARCH_INDEX_OPERATIONS
from triclinium_core.retry.tables import table_of


@unique
class Idempotency(Enum):
    """Condition under which an operation in the table is idempotent."""

    ALWAYS = "always"
    IF_READONLY = "if its readonly property is set"
    IF_GET = "if its HTTP method is GET"


ANY_OPERATION = "*"


@dataclass(frozen=True, slots=True)
class IdempotentOperation:
    """Row of the table. An operation without a row is not idempotent."""

    service: Service
    operation: str
    idempotency: Idempotency
    clause: str


_ALWAYS, _IF_READONLY, _IF_GET = Idempotency.ALWAYS, Idempotency.IF_READONLY, Idempotency.IF_GET

# fmt: off
IDEMPOTENT_OPERATIONS: tuple[IdempotentOperation, ...] = (
    IdempotentOperation(Service.KV, "get_cluster_config", _ALWAYS, "KV: Carrier Config & Global Config Requests"),
    IdempotentOperation(Service.KV, "get", _ALWAYS, "KV: Get Request"),
    IdempotentOperation(Service.KV, "get_projection", _ALWAYS, "KV: Get Request, and Subdoc Lookup, of which it consists"),
    IdempotentOperation(Service.KV, "get_collection_id", _ALWAYS, "KV: Get Collection ID"),
    IdempotentOperation(Service.KV, "get_collections_manifest", _ALWAYS, "KV: Get Collection Manifest"),
    IdempotentOperation(Service.KV, "noop", _ALWAYS, "KV: Noop Request"),
    IdempotentOperation(Service.KV, "observe_cas", _ALWAYS, "KV: Observe Via CAS"),
    IdempotentOperation(Service.KV, "observe_seqno", _ALWAYS, "KV: Observe via Sequence Number"),
    IdempotentOperation(Service.KV, "get_replica", _ALWAYS, "KV: Replica Get Request"),
    IdempotentOperation(Service.KV, "lookup_in", _ALWAYS, "KV: Subdoc Lookup"),
    IdempotentOperation(Service.KV, "lookup_in_replica", _ALWAYS, "KV: Subdoc Lookup, and Replica Get Request"),
    IdempotentOperation(Service.KV, "subdoc_get", _ALWAYS, "KV: Subdoc Lookup"),
    IdempotentOperation(Service.KV, "subdoc_exists", _ALWAYS, "KV: Subdoc Lookup"),
    IdempotentOperation(Service.KV, "subdoc_get_count", _ALWAYS, "KV: Subdoc Lookup"),
    IdempotentOperation(Service.KV, "exists", _ALWAYS, "decision C34: GET_META changes nothing"),
    IdempotentOperation(Service.QUERY, ANY_OPERATION, _IF_READONLY, 'Query: the "readonly" property is set to "true"'),
    IdempotentOperation(Service.ANALYTICS, ANY_OPERATION, _IF_READONLY, 'Analytics: the "readonly" property is set to "true"'),
    IdempotentOperation(Service.SEARCH, ANY_OPERATION, _ALWAYS, "Search: all search requests, even though they are a POST"),
    *(
        IdempotentOperation(Service.SEARCH, name, _IF_GET, 'Cluster Manager and Management APIs: every "GET" call')
        for name in SEARCH_INDEX_OPERATIONS
    ),
    IdempotentOperation(Service.VIEWS, ANY_OPERATION, _ALWAYS, "View: all view requests"),
    IdempotentOperation(Service.MANAGEMENT, ANY_OPERATION, _IF_GET, 'Cluster Manager and Management APIs: every "GET" call'),
)
# fmt: on


IDEMPOTENCY: Mapping[tuple[Service, str], IdempotentOperation] = table_of(
    ((row.service, row.operation), row) for row in IDEMPOTENT_OPERATIONS
)


def idempotent_row(service: Service, operation: str) -> IdempotentOperation | None:
    """Return the row for an operation, or None if the table has no row for it."""
    return IDEMPOTENCY.get((service, operation)) or IDEMPOTENCY.get((service, ANY_OPERATION))


def is_idempotent(service: Service, operation: str, *, readonly: bool = False, method: str = "") -> bool:
    """Return whether an operation may be sent again although an earlier attempt may have been applied.

    Args:
        operation: name of the operation, as in the table. An operation without a row is not idempotent, as the RFC
            requires.
        readonly: value of the ``readonly`` property of a query or analytics request.
        method: HTTP method of a management request, including requests about indexes of the search service.
    """
    row = idempotent_row(service, operation)
    if row is None:
        return False
    match row.idempotency:
        case Idempotency.ALWAYS:
            return True
        case Idempotency.IF_READONLY:
            return readonly
        case Idempotency.IF_GET:
            return method.upper() == "GET"


IDEMPOTENT_KV_OPERATIONS: frozenset[str] = frozenset(
    row.operation
    for row in IDEMPOTENT_OPERATIONS
    if is_idempotent(row.service, row.operation) and row.service is Service.KV
)
"""Key-value operations that are idempotent. No row of this service has a condition."""
