"""The state behind the five terminal reasons."""

from __future__ import annotations

import itertools

import pytest

from tests.rows import rows
from triclinium_core.retry.kv_status import Status
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.service import Service
from triclinium_core.retry.strategy import TERMINAL_ERRORS
from triclinium_core.retry.terminal_states import TerminalStates

R = RetryReason
HTTP = [service for service in Service if service is not Service.KV]


def reason(
    states: TerminalStates,
    service: Service = Service.KV,
    *,
    bucket: str | None = "travel",
    scope: str | None = "inventory",
    collection: str | None = "airline",
) -> RetryReason | None:
    """Return the reason that a request for one document meets."""
    return states.reason_for(service, bucket=bucket, scope=scope, collection=collection)


def all_bad() -> TerminalStates:
    """Return a state in which everything is wrong at once."""
    states = TerminalStates()
    states.sasl_answered("a", Status.AUTH_ERROR)
    states.tls_failed("b")
    states.bucket_selected("travel", Status.NO_ACCESS)
    states.collection_missing("travel", "inventory", "airline")
    states.scope_missing("travel", "inventory")
    return states


@pytest.mark.parametrize("service", Service)
def test_nothing_is_wrong_at_first(service: Service) -> None:
    """Without news there is no terminal reason."""
    assert reason(TerminalStates(), service) is None


def test_the_order_is_that_of_the_rfc() -> None:
    """Credentials, TLS, bucket, scope, collection: each shows when those before it are cleared."""
    states = all_bad()
    seen = [reason(states)]
    states.sasl_answered("a", Status.SUCCESS)
    seen.append(reason(states))
    states.tls_established("b")
    seen.append(reason(states))
    states.bucket_selected("travel", Status.SUCCESS)
    seen.append(reason(states))
    states.collection_missing("travel", "inventory", "airline")
    seen.append(reason(states))
    states.collection_found("travel", "inventory", "airline")
    seen.append(reason(states))

    assert [
        R.AUTHENTICATION_ERROR,
        R.TLS_ERROR,
        R.BUCKET_ACCESS_ERROR,
        R.SCOPE_NOT_FOUND,
        R.COLLECTION_NOT_FOUND,
        None,
    ] == seen


@pytest.mark.parametrize("service", HTTP)
def test_http_services_know_two_of_them(service: Service) -> None:
    """Credentials and TLS concern all services; the other three are KV's."""
    states = all_bad()
    seen = [reason(states, service)]
    states.sasl_answered("a", Status.SUCCESS)
    seen.append(reason(states, service))
    states.tls_established("b")
    seen.append(reason(states, service))

    assert [R.AUTHENTICATION_ERROR, R.TLS_ERROR, None] == seen


@rows("status", [status for status in Status if status not in {0x00, 0x20}])
def test_other_sasl_failures_do_not_count(status: Status) -> None:
    """Only 0x20 says that the credentials are wrong; 0x02, which the RFC prints, does not (decision C6)."""
    states = TerminalStates()
    states.sasl_answered("a", status)

    assert reason(states) is None

    states.sasl_answered("a", Status.AUTH_ERROR)
    states.sasl_answered("a", status)

    assert R.AUTHENTICATION_ERROR is reason(states)


def test_wrong_credentials_are_kept_per_connection() -> None:
    """A success clears its own connection, and no other."""
    states = TerminalStates()
    states.sasl_answered("a", Status.AUTH_ERROR)
    states.sasl_answered("b", Status.AUTH_ERROR)
    states.sasl_answered("a", Status.SUCCESS)

    assert R.AUTHENTICATION_ERROR is reason(states)

    states.sasl_answered("b", Status.SUCCESS)

    assert reason(states) is None


def test_somebody_else() -> None:
    """Who the client was is no matter any more to what it may open and see; TLS has nothing to do with it."""
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


def test_tls_is_kept_per_connection() -> None:
    """A handshake clears its own connection, and no other; a success of SASL clears no TLS failure."""
    states = TerminalStates()
    states.tls_failed(1)
    states.tls_failed(2)
    states.tls_established(1)
    states.sasl_answered(2, Status.SUCCESS)

    assert R.TLS_ERROR is reason(states)

    states.tls_established(2)

    assert reason(states) is None


def test_only_topology_tracking_connections_count() -> None:
    """What befalls another connection says nothing about the client as a whole."""
    states = TerminalStates()
    states.sasl_answered("a", Status.AUTH_ERROR, tracks_topology=False)
    states.tls_failed("a", tracks_topology=False)

    assert reason(states) is None


def test_a_connection_that_stopped_tracking_is_still_cleared() -> None:
    """Good news count whatever the connection is used for by now."""
    states = TerminalStates()
    states.sasl_answered("a", Status.AUTH_ERROR)
    states.sasl_answered("a", Status.SUCCESS, tracks_topology=False)

    assert reason(states) is None


def test_a_connection_that_is_gone_counts_no_more() -> None:
    """Only current connections count; the others are not touched, and an unknown one is no mistake."""
    states = TerminalStates()
    states.sasl_answered("a", Status.AUTH_ERROR)
    states.tls_failed("a")
    states.tls_failed("b")
    states.connection_removed("a")
    states.connection_removed("never seen")

    assert R.TLS_ERROR is reason(states)

    states.connection_removed("b")

    assert reason(states) is None


@rows("status", [status for status in Status if status not in {0x00, 0x24}])
def test_other_answers_to_select_bucket(status: Status) -> None:
    """Only 0x24 denies access; 0x01 means not on this node yet; neither that nor another one clears (decision C7)."""
    states = TerminalStates()
    states.bucket_selected("travel", status)

    assert reason(states) is None

    states.bucket_selected("travel", Status.NO_ACCESS)
    states.bucket_selected("travel", status)

    assert R.BUCKET_ACCESS_ERROR is reason(states)


def test_buckets_are_kept_by_name() -> None:
    """Another bucket is not concerned, nor is a request without a bucket; a success on any connection clears."""
    states = TerminalStates()
    states.bucket_selected("travel", Status.NO_ACCESS)
    states.bucket_selected("other", Status.SUCCESS)

    assert R.BUCKET_ACCESS_ERROR is reason(states)
    assert reason(states, bucket="other") is None
    assert reason(states, bucket=None) is None

    states.bucket_selected("travel", Status.SUCCESS)

    assert reason(states) is None


@pytest.mark.parametrize(
    ("bucket", "scope", "collection"),
    [
        ("other", "inventory", "airline"),
        ("travel", "tenant", "airline"),
        ("travel", None, None),
        (None, "inventory", "airline"),
    ],
)
def test_scopes_are_kept_by_name(bucket: str | None, scope: str | None, collection: str | None) -> None:
    """Another scope, the same scope of another bucket, and a request without a scope are not concerned."""
    states = TerminalStates()
    states.scope_missing("travel", "inventory")

    assert R.SCOPE_NOT_FOUND is reason(states)
    assert R.SCOPE_NOT_FOUND is reason(states, collection="another")
    assert R.SCOPE_NOT_FOUND is reason(states, collection=None)
    assert reason(states, bucket=bucket, scope=scope, collection=collection) is None


@pytest.mark.parametrize(
    ("bucket", "scope", "collection"),
    [
        ("other", "inventory", "airline"),
        ("travel", "tenant", "airline"),
        ("travel", "inventory", "hotel"),
        ("travel", "inventory", None),
        ("travel", None, "airline"),
        (None, "inventory", "airline"),
    ],
)
def test_collections_are_kept_by_name(bucket: str | None, scope: str | None, collection: str | None) -> None:
    """Another collection, or the same name elsewhere, is not concerned."""
    states = TerminalStates()
    states.collection_missing("travel", "inventory", "airline")

    assert R.COLLECTION_NOT_FOUND is reason(states)
    assert reason(states, bucket=bucket, scope=scope, collection=collection) is None


def test_a_missing_collection_proves_its_scope() -> None:
    """The map that lacks the collection has the scope, so the scope is missing no more."""
    states = TerminalStates()
    states.scope_missing("travel", "inventory")
    states.collection_missing("travel", "inventory", "airline")

    assert R.COLLECTION_NOT_FOUND is reason(states)
    assert reason(states, collection="hotel") is None


def test_a_found_collection_clears_only_itself() -> None:
    """Another collection of the scope stays missing."""
    states = TerminalStates()
    states.collection_missing("travel", "inventory", "airline")
    states.collection_missing("travel", "inventory", "hotel")
    states.collection_found("travel", "inventory", "airline")

    assert reason(states) is None
    assert R.COLLECTION_NOT_FOUND is reason(states, collection="hotel")


def test_no_manifest_yet() -> None:
    """As long as no map was fetched, nothing is missing (decision C8)."""
    states = TerminalStates()
    states.sasl_answered("a", Status.SUCCESS)
    states.bucket_selected("travel", Status.SUCCESS)

    assert reason(states) is None


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_news_does_not_matter(order: tuple[int, ...]) -> None:
    """Independent conditions show by their rank, not by their age."""
    states = TerminalStates()
    news = [
        lambda: states.scope_missing("travel", "inventory"),
        lambda: states.bucket_selected("travel", Status.NO_ACCESS),
        lambda: states.tls_failed("b"),
    ]
    for index in order:
        news[index]()

    assert R.TLS_ERROR is reason(states)


def test_the_terminal_reasons_are_five() -> None:
    """What this object can answer is what the default strategy fails fast for."""
    answers = {R.AUTHENTICATION_ERROR, R.TLS_ERROR, R.BUCKET_ACCESS_ERROR, R.SCOPE_NOT_FOUND, R.COLLECTION_NOT_FOUND}

    assert set(TERMINAL_ERRORS) == answers
