"""Why nothing of a request is sent: no reason is named that a client never gives, and none is missing."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.errors import CouchbaseException, TemporaryFailureException
from triclinium_core.retry.couchbase.events import DispatchFailed, SocketClosed
from triclinium_core.retry.couchbase.strategy import TERMINAL_ERRORS
from triclinium_core.retry.couchbase.tables.kv_responses import classify
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.terminal_states import TerminalStates
from triclinium_core.retry.couchbase.unsent import OF_A_LOOKUP, error_of_lookup, unsent_reasons

R = RetryReason
EVENTS = (SocketClosed, DispatchFailed)


def terminal_reasons(service: Service) -> set[RetryReason]:
    """Return which terminal reasons the client's own states can give to a request of a service."""
    refused, untrusted, closed, scopeless, missing = all_states = [TerminalStates() for _ in range(5)]
    refused.sasl_answered("connection", Status.AUTH_ERROR)
    untrusted.tls_failed("connection")
    closed.bucket_selected("b", Status.NO_ACCESS)
    scopeless.scope_missing("b", "s")
    missing.collection_missing("b", "s", "c")
    given = {states.reason_for(service, bucket="b", scope="s", collection="c") for states in all_states}
    return {reason for reason in given if reason is not None}


@rows("event", EVENTS)
@rows("service", Service)
def test_terminal_reasons(service: Service, event: type[SocketClosed | DispatchFailed]) -> None:
    """Those that the client's states can give to the service, and no others."""
    assert terminal_reasons(service) == TERMINAL_ERRORS.keys() & unsent_reasons(service, event)


def test_all_reasons() -> None:
    """What is left is what a connection, a dispatch and a lookup can meet."""
    socket = {R.SOCKET_NOT_AVAILABLE}
    dispatch = socket | {R.NODE_NOT_AVAILABLE, R.SERVICE_NOT_AVAILABLE, R.CIRCUIT_BREAKER_OPEN, R.UNKNOWN}

    for service in Service:
        lookup = set(OF_A_LOOKUP) if service is Service.KV else set()
        assert socket == set(unsent_reasons(service, SocketClosed)) - TERMINAL_ERRORS.keys()
        assert dispatch | lookup == set(unsent_reasons(service, DispatchFailed)) - TERMINAL_ERRORS.keys()


@pytest.mark.parametrize("event", EVENTS)
def test_no_reason_stands_twice(event: type[SocketClosed | DispatchFailed]) -> None:
    """Nor does one that needs an answer to a request that was sent."""
    reasons = unsent_reasons(Service.KV, event)

    assert len(set(reasons)) == len(reasons)
    assert all(reason.allows_non_idempotent_retry for reason in reasons if reason is not R.UNKNOWN)
    assert R.KV_LOCKED not in reasons


def test_a_lookup_can_be_answered_so() -> None:
    """Each of its reasons is one that the client reads out of an answer to GET_COLLECTION_ID."""
    busy = classify("get_collection_id", Status.TEMPORARY_FAILURE, None)

    assert (R.KV_TEMPORARY_FAILURE, TemporaryFailureException) == (busy.reason, error_of_lookup(R.KV_TEMPORARY_FAILURE))
    assert CouchbaseException is error_of_lookup(R.KV_ERROR_MAP_RETRY_INDICATED)
    assert None not in {error_of_lookup(reason) for reason in OF_A_LOOKUP}


@pytest.mark.parametrize("reason", [R.KV_COLLECTION_OUTDATED, R.SCOPE_NOT_FOUND, R.NODE_NOT_AVAILABLE])
def test_what_no_answer_to_a_lookup_asks_for(reason: RetryReason) -> None:
    """It has no error of its own there."""
    assert error_of_lookup(reason) is None
