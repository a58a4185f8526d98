"""Reasons for an unsent request: the list has exactly those that the client can report."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry import couchbase
from triclinium_core.retry.couchbase.tables.kv_responses import classify

R = couchbase.RetryReason
EVENTS = (couchbase.SocketClosed, couchbase.DispatchFailed)


def terminal_reasons(service: couchbase.Service) -> set[couchbase.RetryReason]:
    """Return the terminal reasons that the client's states can cause for a service."""
    refused, untrusted, closed, scopeless, missing = all_states = [couchbase.TerminalStates() for _ in range(5)]
    refused.sasl_answered("connection", couchbase.Status.AUTH_ERROR)
    untrusted.tls_failed("connection")
    closed.bucket_selected("b", couchbase.Status.NO_ACCESS)
    scopeless.scope_missing("b", "s")
    missing.collection_missing("b", "s", "c")
    given = {states.reason_for(service, bucket="b", scope="s", collection="c") for states in all_states}
    return {reason for reason in given if reason is not None}


@rows("event", EVENTS)
@rows("service", couchbase.Service)
def test_terminal_reasons(
    service: couchbase.Service, event: type[couchbase.SocketClosed | couchbase.DispatchFailed]
) -> None:
    """For each service, the listed terminal reasons are exactly those that the client's states can cause."""
    assert terminal_reasons(service) == couchbase.TERMINAL_ERRORS.keys() & couchbase.unsent_reasons(service, event)


def test_all_reasons() -> None:
    """Apart from terminal reasons, the list has the reasons of a connection, a dispatch and a collection lookup."""
    socket = {R.SOCKET_NOT_AVAILABLE}
    dispatch = socket | {R.NODE_NOT_AVAILABLE, R.SERVICE_NOT_AVAILABLE, R.CIRCUIT_BREAKER_OPEN, R.UNKNOWN}

    for service in couchbase.Service:
        lookup = set(couchbase.OF_A_LOOKUP) if service is couchbase.Service.KV else set()
        assert (
            socket == set(couchbase.unsent_reasons(service, couchbase.SocketClosed)) - couchbase.TERMINAL_ERRORS.keys()
        )
        assert (
            dispatch | lookup
            == set(couchbase.unsent_reasons(service, couchbase.DispatchFailed)) - couchbase.TERMINAL_ERRORS.keys()
        )


@pytest.mark.parametrize("event", EVENTS)
def test_each_reason_is_listed_once(event: type[couchbase.SocketClosed | couchbase.DispatchFailed]) -> None:
    """The list has each reason once; all but UNKNOWN allow a non-idempotent retry, and KV_LOCKED is absent."""
    reasons = couchbase.unsent_reasons(couchbase.Service.KV, event)

    assert len(set(reasons)) == len(reasons)
    assert all(reason.allows_non_idempotent_retry for reason in reasons if reason is not R.UNKNOWN)
    assert R.KV_LOCKED not in reasons


def test_a_lookup_reason_has_an_error() -> None:
    """Each reason of a collection lookup has the error of a GET_COLLECTION_ID response with that reason."""
    busy = classify("get_collection_id", couchbase.Status.TEMPORARY_FAILURE, None)

    assert (R.KV_TEMPORARY_FAILURE, errors.TemporaryFailureException) == (
        busy.reason,
        couchbase.error_of_lookup(R.KV_TEMPORARY_FAILURE),
    )
    assert errors.CouchbaseException is couchbase.error_of_lookup(R.KV_ERROR_MAP_RETRY_INDICATED)
    assert None not in {couchbase.error_of_lookup(reason) for reason in couchbase.OF_A_LOOKUP}


@pytest.mark.parametrize("reason", [R.KV_COLLECTION_OUTDATED, R.SCOPE_NOT_FOUND, R.NODE_NOT_AVAILABLE])
def test_other_reasons_of_a_lookup(reason: couchbase.RetryReason) -> None:
    """If a reason cannot occur in a collection lookup, it has no lookup error."""
    assert couchbase.error_of_lookup(reason) is None
