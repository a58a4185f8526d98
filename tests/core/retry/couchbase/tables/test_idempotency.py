"""Idempotent operations, compared with the list of the RFC."""

from __future__ import annotations

from tests.rows import rows
from triclinium_core.retry.couchbase import IDEMPOTENT_OPERATIONS, Idempotency, Service, idempotent_row, is_idempotent
from triclinium_core.retry.couchbase.tables.idempotency import ANY_OPERATION, IdempotentOperation

LIST_OF_THE_RFC: dict[str, set[str]] = {
    "Carrier Config & Global Config Requests": {"get_cluster_config"},
    "Get Request (NOT get and lock and NOT get and touch)": {"get", "get_projection"},
    "Get Collection ID": {"get_collection_id"},
    "Get Collection Manifest": {"get_collections_manifest"},
    "Noop Request": {"noop"},
    "Observe Via CAS, Observe via Sequence Number": {"observe_cas", "observe_seqno"},
    "Replica Get Request": {"get_replica"},
    "Subdoc Lookup": {"lookup_in", "lookup_in_replica", "subdoc_get", "subdoc_exists", "subdoc_get_count"},
}
"""KV part of SDK-RFC 0049 "Idempotent Operation List", with the names that triclinium gives the operations."""

BEYOND_THE_RFC = {"exists"}
"""Operations that decision C34 adds to the RFC's list."""

ABOUT_INDEXES = (
    *("upsert_search_index", "get_search_index", "get_all_search_indexes", "drop_search_index"),
    *("get_indexed_documents_count", "analyze_document", "pause_ingest", "resume_ingest"),
    *("allow_querying", "disallow_querying", "freeze_plan", "unfreeze_plan"),
)
"""Names of the search service's management operations, which are about indexes."""

IDEMPOTENT_KV = BEYOND_THE_RFC.union(*LIST_OF_THE_RFC.values())

NOT_IDEMPOTENT_KV = [
    "get_and_lock",
    "get_and_touch",
    "touch",
    "unlock",
    "insert",
    "upsert",
    "replace",
    "remove",
    "append",
    "prepend",
    "increment",
    "decrement",
    "mutate_in",
    "range_scan_create",
    "range_scan_continue",
    "range_scan_cancel",
    "select_bucket",
    "sasl_auth",
    "hello",
    "dcp_open",
    "never heard of",
    "",
    "GET",
    ANY_OPERATION,
]


def test_the_rows_are_those_of_the_rfc() -> None:
    """KV has rows for the RFC's operations and ``exists``; each service has a row, and search has more for indexes."""
    rows = {(row.service, row.operation): row.idempotency for row in IDEMPOTENT_OPERATIONS}
    expected = {(Service.KV, operation): Idempotency.ALWAYS for operation in IDEMPOTENT_KV} | {
        (Service.QUERY, "*"): Idempotency.IF_READONLY,
        (Service.ANALYTICS, "*"): Idempotency.IF_READONLY,
        (Service.SEARCH, "*"): Idempotency.ALWAYS,
        **{(Service.SEARCH, operation): Idempotency.IF_GET for operation in ABOUT_INDEXES},
        (Service.VIEWS, "*"): Idempotency.ALWAYS,
        (Service.MANAGEMENT, "*"): Idempotency.IF_GET,
    }

    assert expected == rows
    assert len(expected) == len(IDEMPOTENT_OPERATIONS)


@rows("row", IDEMPOTENT_OPERATIONS)
def test_every_row_has_its_clause(row: IdempotentOperation) -> None:
    """The clause of each row is a decision or the part of the RFC's list for the row's service."""
    heading = {
        Service.KV: ("KV: ", "decision C34"),
        Service.QUERY: ("Query: ",),
        Service.ANALYTICS: ("Analytics: ",),
        Service.SEARCH: ("Search: ", "Cluster Manager and Management APIs: "),
        Service.VIEWS: ("View: ",),
        Service.MANAGEMENT: ("Cluster Manager and Management APIs: ",),
    }

    assert row.clause.startswith(heading[row.service])


@rows(
    ("service", "readonly", "method", "expected"),
    [
        *((service, True, method, True) for service in (Service.QUERY, Service.ANALYTICS) for method in ("", "POST")),
        *((service, False, "GET", False) for service in (Service.QUERY, Service.ANALYTICS)),
        *((service, False, "POST", True) for service in (Service.SEARCH, Service.VIEWS)),
        *((Service.MANAGEMENT, True, method, True) for method in ("GET", "get")),
        *((Service.MANAGEMENT, True, method, False) for method in ("POST", "PUT", "DELETE", "")),
    ],
)
def test_services(service: Service, readonly: bool, method: str, expected: bool) -> None:
    """A query is idempotent if it is readonly, a search or view query always is, and management only with GET."""
    assert expected is is_idempotent(service, "query", readonly=readonly, method=method)


@rows("operation", ABOUT_INDEXES)
def test_indexes_of_the_search_service(operation: str) -> None:
    """A management operation of the search service is idempotent only if it is a GET."""
    assert is_idempotent(Service.SEARCH, operation, method="GET")
    assert not is_idempotent(Service.SEARCH, operation, method="DELETE")


@rows("operation", NOT_IDEMPOTENT_KV)
def test_other_kv_operations(operation: str) -> None:
    """A KV operation that the list does not have is not idempotent, even if it is readonly or a GET."""
    assert not is_idempotent(Service.KV, operation, readonly=True, method="GET")
    assert idempotent_row(Service.KV, operation) is None
