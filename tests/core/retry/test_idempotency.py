"""What may be sent again at any stage, against the RFC's list."""

from __future__ import annotations

import pytest

from tests.core.retry.doctored import import_with
from tests.rows import rows
from triclinium_core.retry import idempotency
from triclinium_core.retry.idempotency import (
    ANY_OPERATION,
    IDEMPOTENT_OPERATIONS,
    Idempotency,
    IdempotentOperation,
    idempotent_row,
    index_rows,
    is_idempotent,
)
from triclinium_core.retry.service import Service

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
"""SDK-RFC 0049 "Idempotent Operation List", KV, with the names that operations have here."""

BEYOND_THE_RFC = {"exists"}
"""Decision C34."""

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
    """The KV rows name the RFC's operations and the decided one, all without a condition; the services have a row each."""
    rows = {(row.service, row.operation): row.idempotency for row in IDEMPOTENT_OPERATIONS}
    expected = {(Service.KV, operation): Idempotency.ALWAYS for operation in IDEMPOTENT_KV} | {
        (Service.QUERY, "*"): Idempotency.IF_READONLY,
        (Service.ANALYTICS, "*"): Idempotency.IF_READONLY,
        (Service.SEARCH, "*"): Idempotency.ALWAYS,
        (Service.VIEWS, "*"): Idempotency.ALWAYS,
        (Service.MANAGEMENT, "*"): Idempotency.IF_GET,
    }

    assert expected == rows
    assert len(expected) == len(IDEMPOTENT_OPERATIONS)


@rows("row", IDEMPOTENT_OPERATIONS)
def test_every_row_has_its_clause(row: IdempotentOperation) -> None:
    """Beside each row stands where it comes from: the service's part of the list, or a decision."""
    heading = {
        Service.KV: ("KV: ", "decision C34"),
        Service.QUERY: ("Query: ",),
        Service.ANALYTICS: ("Analytics: ",),
        Service.SEARCH: ("Search: ",),
        Service.VIEWS: ("View: ",),
        Service.MANAGEMENT: ("Cluster Manager and Management APIs: ",),
    }

    assert row.clause.startswith(heading[row.service])


@rows("operation", sorted(IDEMPOTENT_KV))
def test_kv_reads(operation: str) -> None:
    """A listed operation is idempotent."""
    assert is_idempotent(Service.KV, operation)


@rows("operation", NOT_IDEMPOTENT_KV)
def test_everything_else_of_kv(operation: str) -> None:
    """Every operation is non-idempotent unless it is listed, whatever other services look at."""
    assert not is_idempotent(Service.KV, operation, readonly=True, method="GET")
    assert idempotent_row(Service.KV, operation) is None


@pytest.mark.parametrize("service", [Service.QUERY, Service.ANALYTICS])
@pytest.mark.parametrize("method", ["", "GET", "POST"])
def test_readonly_services(service: Service, method: str) -> None:
    """A query may be repeated if, and only if, it is marked readonly."""
    assert is_idempotent(service, "query", readonly=True, method=method)
    assert not is_idempotent(service, "query", readonly=False, method=method)
    assert not is_idempotent(service, "query", method=method)


@pytest.mark.parametrize("service", [Service.SEARCH, Service.VIEWS])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_reading_services(service: Service, method: str) -> None:
    """Search and views only read, even by POST."""
    assert is_idempotent(service, "query", method=method)


@pytest.mark.parametrize(
    ("method", "expected"),
    [("GET", True), ("get", True), ("POST", False), ("PUT", False), ("DELETE", False), ("", False)],
)
def test_management(method: str, expected: bool) -> None:
    """Every GET call is idempotent, and no other one, readonly or not."""
    assert expected is is_idempotent(Service.MANAGEMENT, "get_all_buckets", readonly=True, method=method)


def test_every_service_has_an_answer() -> None:
    """The match over the conditions is complete: no row raises."""
    assert 6 == len(Service)
    assert [True, False] == [is_idempotent(Service.KV, name) for name in ("get", "upsert")]


def test_a_special_row_comes_before_the_general_one() -> None:
    """A service may have a row for all operations and one for a single operation."""
    general = IdempotentOperation(Service.SEARCH, ANY_OPERATION, Idempotency.ALWAYS, "Search")
    special = IdempotentOperation(Service.SEARCH, "pause", Idempotency.IF_GET, "Search")

    assert {(Service.SEARCH, "*"): general, (Service.SEARCH, "pause"): special} == index_rows((general, special))


def test_index_refuses_a_second_row() -> None:
    """Two rows for one operation would leave the answer to their order."""
    row = IDEMPOTENT_OPERATIONS[1]
    with pytest.raises(ValueError, match="^two rows for kv get$"):
        index_rows((*IDEMPOTENT_OPERATIONS, row))


def test_a_second_row_fails_at_import() -> None:
    """The mistake does not wait for the first request."""
    row = '    IdempotentOperation(Service.KV, "noop", _ALWAYS, "KV: Noop Request"),\n'
    with pytest.raises(ValueError, match="^two rows for kv noop$"):
        import_with(idempotency, row, row + row)
