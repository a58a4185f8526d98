"""Names of spans: the identifier of SDK-RFC 0067 for each operation and request.

The RFC calls operations that it does not list "Additional Operations". Their names may change.

Source: SDK-RFC 0067 "Span Names".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum, unique
from typing import Self

from triclinium_core.retry.couchbase import Service
from triclinium_core.retry.tables import table_of

DISPATCH = "dispatch_to_server"
"""Span of one attempt, from the order to send its bytes to the response."""
ENCODING = "request_encoding"
"""Span of the encoding by the transcoder or the serializer."""

_KEY_VALUE = """
    get upsert replace insert remove get_and_lock get_and_touch exists touch unlock lookup_in mutate_in append prepend
    increment decrement
"""
_SERVICES = {"query": "query", "analytics_query": "analytics", "search": "search", "view_query": "views"}
_REPLICAS = ("get_replica", "lookup_in_replica")
"""Reads of replicas. RFC 0067 "Span Names": the identifier of any request that touches a replica is get_replica."""
_INDEX_STATEMENTS = """
    create_query_index create_primary_query_index drop_query_index drop_primary_query_index build_query_indexes
    get_all_query_indexes get_deferred_query_indexes
"""
"""Queries of the index manager. Each has a span inside the span of its call: see ``WrappingCall``."""
_BUCKET_MANAGER = "create_bucket drop_bucket flush_bucket get_all_buckets get_bucket update_bucket"
_COLLECTION_MANAGER = "create_collection update_collection create_scope drop_collection drop_scope get_all_scopes"
_SEARCH_MANAGER = {
    "allow_querying": "allow_querying",
    "analyze_document": "analyze_document",
    "disallow_querying": "disallow_querying",
    "drop_search_index": "drop_index",
    "freeze_plan": "freeze_plan",
    "get_all_search_indexes": "get_all_indexes",
    "get_search_index": "get_index",
    "get_indexed_documents_count": "get_indexed_documents_count",
    "pause_ingest": "pause_ingest",
    "resume_ingest": "resume_ingest",
    "unfreeze_plan": "unfreeze_plan",
    "upsert_search_index": "upsert_index",
}
_USER_MANAGER = (
    "drop_group drop_user get_all_groups get_all_users get_group get_roles get_user upsert_group upsert_user"
)

_ADDITIONAL = {
    "range_scan_create": "range_scan_create",
    "range_scan_continue": "range_scan_continue",
    "range_scan_cancel": "range_scan_cancel",
    "noop": "noop",
    "wait_until_ready": "wait_until_ready",
    "wait_for_nodes": "wait_for_nodes",
    "get_collections_manifest": "get_collections_manifest",
    "change_password": "manager_users_change_password",
}
"""Operations that are not in the RFC (RFC 0067 "Additional Operations")."""


def _rows() -> Iterator[tuple[str, str]]:
    for name in (*_KEY_VALUE.split(), "ping"):
        yield name, name
    yield from _SERVICES.items()
    for name in _REPLICAS:
        yield name, "get_replica"
    for name in _INDEX_STATEMENTS.split():
        yield name, "query"
    for name, identifier in _SEARCH_MANAGER.items():
        yield name, f"manager_search_{identifier}"
    for manager, listed in (
        ("buckets", _BUCKET_MANAGER),
        ("collections", _COLLECTION_MANAGER),
        ("users", _USER_MANAGER),
    ):
        for name in listed.split():
            yield name, f"manager_{manager}_{name}"
    yield from _ADDITIONAL.items()


SPAN_NAMES: Mapping[str, str] = table_of(_rows())
"""Identifier of each operation and request, by its name in errors and reports."""


@unique
class WrappingCall(StrEnum):
    """Calls that consist of one or more operations or requests, each with a span inside the span of the call.

    Layout of a row: identifier, service. Some rows for reads of replicas and for scans are not in the RFC.

    Source: SDK-RFC 0067 "Span Names": operations which perform multiple operations underneath, and management
    operations that execute a query.
    """

    service: Service
    """Service in the telemetry of the call."""

    def __new__(cls, identifier: str, service: Service) -> Self:
        """Create the row of a member. Enum calls this method."""
        row = str.__new__(cls, identifier)
        row._value_ = identifier
        row.service = service
        return row

    GET_ANY_REPLICA = "get_any_replica", Service.KV
    GET_ALL_REPLICAS = "get_all_replicas", Service.KV
    LOOKUP_IN_ANY_REPLICA = "lookup_in_any_replica", Service.KV
    LOOKUP_IN_ALL_REPLICAS = "lookup_in_all_replicas", Service.KV
    RANGE_SCAN = "range_scan", Service.KV
    GET_ALL_QUERY_INDEXES = "manager_query_get_all_indexes", Service.QUERY
    CREATE_QUERY_INDEX = "manager_query_create_index", Service.QUERY
    CREATE_PRIMARY_QUERY_INDEX = "manager_query_create_primary_index", Service.QUERY
    DROP_QUERY_INDEX = "manager_query_drop_index", Service.QUERY
    DROP_PRIMARY_QUERY_INDEX = "manager_query_drop_primary_index", Service.QUERY
    WATCH_QUERY_INDEXES = "manager_query_watch_indexes", Service.QUERY
    BUILD_DEFERRED_QUERY_INDEXES = "manager_query_build_deferred_indexes", Service.QUERY
    CREATE_BUCKET = "manager_buckets_create_bucket", Service.MANAGEMENT
    DROP_BUCKET = "manager_buckets_drop_bucket", Service.MANAGEMENT
    CREATE_SCOPE = "manager_collections_create_scope", Service.MANAGEMENT
    DROP_SCOPE = "manager_collections_drop_scope", Service.MANAGEMENT
    CREATE_COLLECTION = "manager_collections_create_collection", Service.MANAGEMENT
    UPDATE_COLLECTION = "manager_collections_update_collection", Service.MANAGEMENT
    DROP_COLLECTION = "manager_collections_drop_collection", Service.MANAGEMENT
