"""Classification of KV responses: the RFC's list, its exclusions, and the error map for unknown statuses."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry import couchbase
from triclinium_core.retry.couchbase.tables import kv_responses
from triclinium_core.retry.couchbase.tables.error_map import Attribute
from triclinium_core.retry.couchbase.tables.kv_status import ERRORS_WITHOUT_A_MAP

R = couchbase.RetryReason

LIST_OF_THE_RFC: dict[int, tuple[couchbase.RetryReason, set[str]]] = {
    0x07: (R.KV_NOT_MY_VBUCKET, {"range_scan_continue"}),
    0x88: (R.KV_COLLECTION_OUTDATED, {"get_collection_id", "range_scan_continue", "range_scan_cancel"}),
    0x09: (R.KV_LOCKED, {"unlock"}),
    0x86: (R.KV_TEMPORARY_FAILURE, set()),
    0xA2: (R.KV_SYNC_WRITE_IN_PROGRESS, set()),
    0xA4: (R.KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS, set()),
}
"""KV part of SDK-RFC 0049 "Response Code Retry List", with the exclusions of the RFC and of decisions C9 to C11."""

OPERATIONS = [
    "get",
    "upsert",
    "unlock",
    "get_and_lock",
    "get_collection_id",
    "get_collections_manifest",
    "range_scan_create",
    "range_scan_continue",
    "range_scan_cancel",
    "get_cluster_config",
    "noop",
]

DCP_OPERATIONS = ["dcp", "dcp_open", "dcp_stream_request", "dcp_control"]

UNKNOWN = 0x7FF0
"""Status that the protocol does not define."""


def entry(*attributes: Attribute, name: str = "NEWS") -> couchbase.ErrorMapEntry:
    """Return an entry of an error map."""
    return couchbase.ErrorMapEntry(name, "Something new happened.", frozenset(attributes))


EVERYTHING = entry(*Attribute)


def test_the_list_is_that_of_the_rfc() -> None:
    """The list has the RFC's six statuses with reasons and exclusions, and one status for counters (decision D25)."""
    actual = {status: (line.reason, set(line.excluded)) for status, line in couchbase.RETRYABLE_STATUSES.items()}

    assert LIST_OF_THE_RFC | {0x05: (R.KV_TEMPORARY_FAILURE, set())} == actual
    assert all(status == line.status for status, line in couchbase.RETRYABLE_STATUSES.items())
    assert all(f"0x{status:02x}" in line.clause for status, line in couchbase.RETRYABLE_STATUSES.items())


@rows("operation", OPERATIONS)
@rows("status", LIST_OF_THE_RFC)
def test_listed(status: int, operation: str) -> None:
    """A listed status is retried unless the operation is excluded, whatever the error map contains."""
    reason, excluded = LIST_OF_THE_RFC[status]
    expected = None if operation in excluded else reason

    for mapped in (None, EVERYTHING):
        verdict = kv_responses.classify(operation, status, mapped)
        assert expected is verdict.reason
        assert couchbase.RETRYABLE_STATUSES[status].clause in verdict.clause
        assert (expected is R.KV_NOT_MY_VBUCKET) is verdict.refresh_topology
        assert (expected is R.KV_COLLECTION_OUTDATED) is verdict.refresh_collection
        assert verdict.close_connection is None


@rows("operation", DCP_OPERATIONS)
@rows("status", LIST_OF_THE_RFC)
def test_dcp_is_excluded(status: int, operation: str) -> None:
    """A DCP command with a listed status is not retried, and fails with the error of that status."""
    verdict = kv_responses.classify(operation, status, None)

    assert verdict.reason is None
    assert couchbase.KV_STATUSES[status].error is verdict.error


@rows("operation", ["increment", "decrement", *OPERATIONS])
def test_a_counter_that_lost_a_race(operation: str) -> None:
    """On NOT_STORED only a counter is retried, as a temporary failure (decision D25)."""
    is_counter = operation in {"increment", "decrement"}

    for mapped in (None, EVERYTHING):
        verdict = kv_responses.classify(operation, couchbase.Status.NOT_STORED, mapped)
        assert (R.KV_TEMPORARY_FAILURE if is_counter else None) is verdict.reason
        assert is_counter is ("D25" in verdict.clause)
        assert is_counter is (verdict.error is errors.TemporaryFailureException)


IMPOSSIBLE = (0xA6, 0xA7, 0xCC, 0xCD, 0xD3)
"""Success statuses that only scans and sub-document operations can have."""


@rows("status", sorted(set(couchbase.KV_STATUSES) - set(LIST_OF_THE_RFC) - set(IMPOSSIBLE)))
def test_known_and_not_listed(status: int) -> None:
    """A known status that is not listed is not retried, whatever the error map contains."""
    for mapped in (None, EVERYTHING):
        verdict = kv_responses.classify("get", status, mapped)
        assert verdict.reason is None
        assert couchbase.KV_STATUSES[status].error is verdict.error
        assert "a known response that is not in the list is not retried" in verdict.clause
        assert (False, False) == (verdict.refresh_topology, verdict.refresh_collection)
        expected = "the status invalidates the connection" if status in kv_responses.CONNECTION_INVALIDATING else None
        assert expected == verdict.close_connection


@rows(
    ("operation", "status", "expected"),
    [
        ("lookup_in", 0xCC, None),
        ("lookup_in", 0xD3, None),
        ("mutate_in", 0xCC, errors.CouchbaseException),
        ("mutate_in", 0xD3, errors.CouchbaseException),
        ("exists", couchbase.Status.KEY_NOT_FOUND, None),
        ("get", couchbase.Status.KEY_NOT_FOUND, errors.DocumentNotFoundException),
    ],
)
def test_successes_of_some_operations(
    operation: str, status: int, expected: type[errors.CouchbaseException] | None
) -> None:
    """For a lookup, failed paths are part of a success; for ``exists``, a missing document is a success."""
    assert (expected is None) is kv_responses.is_success(operation, status)
    assert expected is kv_responses.classify(operation, status, EVERYTHING).error


@rows("status", IMPOSSIBLE)
def test_impossible_success_statuses(status: int) -> None:
    """A response whose success status belongs to another operation fails its request with DecodingFailureException."""
    verdict = kv_responses.classify("get", status, EVERYTHING)
    names = ("lookup_in", "mutate_in", "range_scan_continue")
    owners = [
        name for name in names if kv_responses.classify(name, status, None).error is not errors.DecodingFailureException
    ]

    assert (None, errors.DecodingFailureException, None) == (verdict.reason, verdict.error, verdict.close_connection)
    assert (["range_scan_continue"] if status < 0xC0 else ["lookup_in", "mutate_in"]) == owners


def test_connection_invalidating() -> None:
    """Four statuses close the connection: for a missing bucket, a wrong opaque, and stale or missing authentication."""
    assert {0x08, 0x0B, 0x1F, 0x25} == set(kv_responses.CONNECTION_INVALIDATING)


@rows("status", [UNKNOWN, 0x0010, 0x8000, 0xFF00, 0xFFFF, *ERRORS_WITHOUT_A_MAP])
def test_unknown_without_an_entry(status: int) -> None:
    """An unknown status without an entry is not retried; those in a table have their own error class (decision C13)."""
    verdict = kv_responses.classify("get", status, None)

    assert (
        couchbase.KvVerdict(None, ERRORS_WITHOUT_A_MAP.get(status, errors.CouchbaseException), verdict.clause)
        == verdict
    )
    assert verdict.clause.endswith("no entry, so no retry indication")


@rows("status", [UNKNOWN, *ERRORS_WITHOUT_A_MAP])
@rows("attribute", Attribute)
def test_single_attributes(status: int, attribute: Attribute) -> None:
    """An entry permits a retry if it has one of the three retry attributes; ``temp`` alone does not (decision C13)."""
    may_retry = attribute in {"retry-now", "retry-later", "auto-retry"}
    verdict = kv_responses.classify("upsert", status, entry(attribute))

    assert (R.KV_ERROR_MAP_RETRY_INDICATED if may_retry else None) is verdict.reason
    assert ("indicates a retry" if may_retry else "misses any retry indication") in verdict.clause
    assert (attribute == "fetch-config") is verdict.refresh_topology
    assert not verdict.refresh_collection
    assert (attribute in {"conn-state-invalidated", "special-handling"}) is (
        attribute in (verdict.close_connection or "")
    )


@rows(
    ("attributes", "expected"),
    [
        ([], errors.CouchbaseException),
        ([Attribute.AUTH], errors.AuthenticationFailureException),
        ([Attribute.INVALID_INPUT], errors.InvalidArgumentException),
        ([Attribute.SUPPORT], errors.FeatureNotAvailableException),
        ([Attribute.TEMP], errors.TemporaryFailureException),
        ([Attribute.ITEM_LOCKED, Attribute.RATE_LIMIT, Attribute.SUCCESS], errors.CouchbaseException),
        ([Attribute.TEMP, Attribute.SUPPORT], errors.FeatureNotAvailableException),
        ([Attribute.SUPPORT, Attribute.INVALID_INPUT], errors.InvalidArgumentException),
        ([Attribute.INVALID_INPUT, Attribute.AUTH], errors.AuthenticationFailureException),
        (list(Attribute), errors.AuthenticationFailureException),
    ],
)
def test_error_by_attribute(attributes: list[Attribute], expected: type[errors.CouchbaseException]) -> None:
    """For an unknown status, the first of four attributes in the entry selects the error class (decision C31)."""
    mapped = entry(*attributes)

    assert expected is kv_responses.error_of_entry(mapped)
    assert expected is kv_responses.classify("get", UNKNOWN, mapped).error
    assert ["auth", "invalid-input", "support", "temp"] == [
        str(attribute) for attribute, _ in kv_responses.ERRORS_BY_ATTRIBUTE
    ]


@rows("operation", [*OPERATIONS, *DCP_OPERATIONS])
def test_the_map_decides_for_every_operation(operation: str) -> None:
    """The error map decides about an unknown status of every operation; exclusions are for known statuses only."""
    assert (
        R.KV_ERROR_MAP_RETRY_INDICATED is kv_responses.classify(operation, UNKNOWN, entry(Attribute.RETRY_NOW)).reason
    )


def test_one_entry_with_three_effects() -> None:
    """One entry can cause a retry, a refresh of the topology, and a closed connection."""
    mapped = entry(Attribute.RETRY_LATER, Attribute.FETCH_CONFIG, Attribute.CONN_STATE_INVALIDATED, Attribute.TEMP)
    verdict = kv_responses.classify("get", UNKNOWN, mapped)

    assert (
        couchbase.KvVerdict(
            R.KV_ERROR_MAP_RETRY_INDICATED,
            errors.TemporaryFailureException,
            verdict.clause,
            refresh_topology=True,
            close_connection=verdict.close_connection,
        )
        == verdict
    )
    assert "conn-state-invalidated" in (verdict.close_connection or "")


@given(
    st.sampled_from([*OPERATIONS, *DCP_OPERATIONS]),
    st.integers(0, 0xFF) | st.integers(0, 0xFFFF),
    st.frozensets(st.sampled_from(Attribute)),
)
def test_every_status_has_a_verdict(operation: str, status: int, attributes: Iterable[Attribute]) -> None:
    """Every status of every operation is classified, and a status that is retried also has an error."""
    for mapped in (None, entry(*attributes)):
        verdict = kv_responses.classify(operation, status, mapped)
        assert verdict.reason is None or verdict.error is not None
        assert verdict.clause.startswith(("RFC 0049 ", "no clause: "))
