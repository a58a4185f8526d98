"""States of the client that cause the five terminal reasons."""

from __future__ import annotations

from collections.abc import Callable

from tests.rows import rows
from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryReason, Service, Status, TerminalStates
from triclinium_core.retry.couchbase.terminal_states import MISSING_MAX

R = RetryReason


def reason(
    states: TerminalStates,
    service: Service = Service.KV,
    *,
    bucket: str | None = "travel",
    scope: str | None = "inventory",
    collection: str | None = "airline",
) -> RetryReason | None:
    """Return the terminal reason for a request on one document, or None."""
    return states.reason_for(service, bucket=bucket, scope=scope, collection=collection)


def test_the_order_is_that_of_the_rfc() -> None:
    """Credentials, TLS, bucket, scope and collection are checked in the RFC's order; other services stop after TLS."""
    states = TerminalStates()
    states.sasl_answered("a", Status.AUTH_ERROR)
    states.tls_failed("b")
    states.bucket_selected("travel", Status.NO_ACCESS)
    states.collection_missing("travel", "inventory", "airline")
    states.scope_missing("travel", "inventory")
    clear: list[Callable[[], None]] = [
        lambda: None,
        lambda: states.sasl_answered("a", Status.SUCCESS),
        lambda: states.tls_established("b"),
        lambda: states.bucket_selected("travel", Status.SUCCESS),
        lambda: states.collection_missing("travel", "inventory", "airline"),
        lambda: states.collection_found("travel", "inventory", "airline"),
    ]
    seen = []
    for step in clear:
        step()
        seen.append((reason(states), reason(states, Service.QUERY)))

    assert [
        (R.AUTHENTICATION_ERROR, R.AUTHENTICATION_ERROR),
        (R.TLS_ERROR, R.TLS_ERROR),
        (R.BUCKET_ACCESS_ERROR, None),
        (R.SCOPE_NOT_FOUND, None),
        (R.COLLECTION_NOT_FOUND, None),
        (None, None),
    ] == seen
    assert set(TERMINAL_ERRORS) == {of_kv for of_kv, _ in seen} - {None}


@rows(
    ("report", "problem", "expected"),
    [
        (lambda states, status: states.sasl_answered("a", status), Status.AUTH_ERROR, R.AUTHENTICATION_ERROR),
        (lambda states, status: states.bucket_selected("travel", status), Status.NO_ACCESS, R.BUCKET_ACCESS_ERROR),
    ],
)
def test_other_failures_do_not_count(
    report: Callable[[TerminalStates, Status], None], problem: Status, expected: RetryReason
) -> None:
    """Only 0x20 means wrong credentials, and 0x24 an inaccessible bucket; other failures change nothing (C6, C7)."""
    for status in set(Status) - {Status.SUCCESS, problem}:
        states = TerminalStates()
        report(states, status)
        before = reason(states)
        report(states, problem)
        report(states, status)

        assert (None, expected) == (before, reason(states)), status


def test_new_credentials_clear_the_states() -> None:
    """New credentials clear all problems except a failed TLS handshake."""
    states = TerminalStates()
    states.sasl_answered("a", Status.AUTH_ERROR)
    states.bucket_selected("beer", Status.NO_ACCESS)
    states.scope_missing("travel", "s")
    states.collection_missing("travel", "t", "c")
    states.tls_failed("a")
    states.authenticator_changed()

    assert RetryReason.TLS_ERROR is states.reason_for(Service.KV, bucket="beer")

    states.tls_established("a")

    for bucket, scope, collection in (("beer", None, None), ("travel", "s", "c"), ("travel", "t", "c")):
        assert None is states.reason_for(Service.KV, bucket=bucket, scope=scope, collection=collection)


def test_a_success_of_any_connection_clears() -> None:
    """A SASL success clears the states of its connection, even without topology tracking; so does its removal."""
    states = TerminalStates()
    states.sasl_answered("a", Status.AUTH_ERROR)
    states.tls_failed("b")
    states.connection_removed("never seen")
    states.sasl_answered("a", Status.SUCCESS, tracks_topology=False)

    assert R.TLS_ERROR is reason(states)

    states.connection_removed("b")

    assert reason(states) is None


@rows(
    ("bucket", "scope", "collection", "of_scope", "of_collection"),
    [
        ("travel", "inventory", "airline", R.SCOPE_NOT_FOUND, R.COLLECTION_NOT_FOUND),
        ("travel", "inventory", "hotel", R.SCOPE_NOT_FOUND, None),
        ("travel", "inventory", None, R.SCOPE_NOT_FOUND, None),
        ("other", "inventory", "airline", None, None),
        ("travel", "tenant", "airline", None, None),
        ("travel", None, "airline", None, None),
        ("travel", None, None, None, None),
        (None, "inventory", "airline", None, None),
    ],
)
def test_scopes_and_collections_are_kept_by_name(
    bucket: str | None,
    scope: str | None,
    collection: str | None,
    of_scope: RetryReason | None,
    of_collection: RetryReason | None,
) -> None:
    """A missing scope or collection affects only requests with this bucket and these names."""
    states, others = TerminalStates(), TerminalStates()
    states.scope_missing("travel", "inventory")
    others.collection_missing("travel", "inventory", "airline")
    others.collection_missing("travel", "inventory", "found")
    others.collection_found("travel", "inventory", "found")

    assert of_scope is reason(states, bucket=bucket, scope=scope, collection=collection)
    assert of_collection is reason(others, bucket=bucket, scope=scope, collection=collection)
    assert reason(others, collection="found") is None


def test_a_missing_collection_proves_its_scope() -> None:
    """If a collection is reported missing, its scope counts as existing."""
    states = TerminalStates()
    states.scope_missing("travel", "inventory")
    states.collection_missing("travel", "inventory", "airline")

    assert R.COLLECTION_NOT_FOUND is reason(states)
    assert reason(states, collection="hotel") is None


def test_missing_names_are_limited() -> None:
    """The client stores only the last ``MISSING_MAX`` missing names."""
    states = TerminalStates()
    for number in (0, 1, *range(2, MISSING_MAX + 1), 1, MISSING_MAX + 1):
        states.scope_missing("travel", f"s{number}")
        states.collection_missing("travel", "inventory", f"c{number}")
    known = [reason(states, scope=f"s{number}") for number in (0, 1, 2, 3, MISSING_MAX + 1)]
    of_collections = [reason(states, collection=f"c{number}") for number in (0, 1, 2, 3, MISSING_MAX + 1)]

    assert [None, R.SCOPE_NOT_FOUND, None, R.SCOPE_NOT_FOUND, R.SCOPE_NOT_FOUND] == known
    assert [None, R.COLLECTION_NOT_FOUND, None, R.COLLECTION_NOT_FOUND, R.COLLECTION_NOT_FOUND] == of_collections
