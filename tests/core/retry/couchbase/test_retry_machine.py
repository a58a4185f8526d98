"""One request in the retry machine: its events, the actions that they cause, and the result."""

from __future__ import annotations

import gc
import math
import weakref
from dataclasses import replace

import pytest

from tests.core.retry.couchbase.machine_answers import LOCKED, NOT_MY_VBUCKET, OUTDATED, TEMPORARY, UNKNOWN, R, S
from tests.core.retry.couchbase.request_cases import (
    NODE,
    Says,
    annotation,
    answer,
    error_of,
    hear,
    machine_of,
    map_entry,
    map_store,
)
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry import couchbase

START = 100.0
QUERY = couchbase.Service.QUERY


def dispatched(request: couchbase.RequestAnnotation) -> couchbase.RetryMachine:
    """Return the machine of a request whose first attempt has opaque 17."""
    machine = machine_of(request, state=S.PENDING)
    assert [] == hear(machine, couchbase.Dispatched(NODE, 17))
    return machine


@pytest.mark.parametrize(
    ("operation", "response"),
    [
        ("upsert", couchbase.KvResponse(0x00)),
        ("exists", couchbase.KvResponse(0x01)),
        ("lookup_in", couchbase.KvResponse(0xCC)),
        ("range_scan_continue", couchbase.KvResponse(0xA6)),
        ("query", couchbase.ServiceResponse(couchbase.Service.QUERY, 200, b"{}")),
    ],
)
def test_success(operation: str, response: couchbase.KvResponse | couchbase.ServiceResponse) -> None:
    """A successful response completes the request, which then has no deadline."""
    machine = machine_of(replace(annotation(), operation=operation), state=S.PENDING)

    assert [] == hear(machine, couchbase.Dispatched(NODE, 17))
    assert [couchbase.Complete(response)] == hear(machine, couchbase.ResponseReceived(response), 100.1)
    assert S.COMPLETED is machine.state
    assert math.inf == machine.wakeup


@rows("status", [0xA6, 0xA7, 0xCC, 0xCD, 0xD3])
@rows("idempotent", [True, False])
def test_an_impossible_response(status: int, idempotent: bool) -> None:
    """If a response has a success status of another operation, the request fails with DecodingFailureException."""
    machine = dispatched(annotation(idempotent=idempotent))
    (action,) = hear(machine, couchbase.ResponseReceived(couchbase.KvResponse(status, NODE)), 100.1)
    error = error_of([action])

    assert (errors.DecodingFailureException, status) == (type(error), error.context.status)


def test_a_final_response() -> None:
    """If a known status is not listed as retryable, the request fails immediately, with the complete error context."""
    machine = dispatched(annotation())
    response = couchbase.KvResponse(0x01, NODE, server_context="gone", server_ref="4f-1")
    error = error_of(hear(machine, couchbase.ResponseReceived(response), 100.25))

    assert errors.DocumentNotFoundException is type(error)
    assert str(error).endswith("KEY_NOT_FOUND [0x01] (gone)")
    assert error.context == replace(
        machine.annotation.error_context,
        service="kv",
        operation="upsert",
        idempotent=False,
        opaque=17,
        status=0x01,
        status_name="KEY_NOT_FOUND",
        server_context="gone",
        server_ref="4f-1",
        last_dispatched_to=NODE,
        elapsed=0.25,
        timeout=2.5,
    )
    assert (S.FAILED, math.inf) == (machine.state, machine.wakeup)


def test_the_error_context_has_the_latest_facts() -> None:
    """The error context has the latest dispatch error, even if it is empty, and only the latest response's status."""
    known = replace(annotation(), error_context=ErrorContext(last_dispatch_error="an older one"))
    machine, now = machine_of(known, state=couchbase.RetryState.PENDING), START
    assert "an older one" == machine.error_context(now).last_dispatch_error
    hear(machine, couchbase.DispatchFailed(R.NODE_NOT_AVAILABLE, ""))
    assert "" == machine.error_context(now).last_dispatch_error

    for response, statuses in (
        (couchbase.KvResponse(LOCKED, NODE), (LOCKED, None)),
        (couchbase.ServiceResponse(couchbase.Service.SEARCH, 429, b"{}"), (None, 429)),
        (couchbase.KvResponse(TEMPORARY, NODE), (TEMPORARY, None)),
    ):
        now = machine.wakeup
        assert [couchbase.Dispatch()] == hear(machine, couchbase.WakeupReached(), now)
        hear(machine, couchbase.Dispatched(NODE, 1), now)
        hear(machine, couchbase.ResponseReceived(response), now)
        context = machine.error_context(now)
        assert statuses == (context.status, context.http_status)


def test_a_retry_creates_no_error_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retry creates no error context: only an error needs one, and thousands of requests may be retried together."""
    machine = machine_of(annotation(), state=S.PENDING)
    written = []
    monkeypatch.setattr(ErrorContext, "__init__", lambda self, **given: written.append(given))
    now = START
    for status in (LOCKED, NOT_MY_VBUCKET, TEMPORARY):
        hear(machine, couchbase.Dispatched(NODE, 1, "127.0.0.1:4711"), now)
        hear(machine, answer(status), now)
        now = machine.wakeup
        assert [couchbase.Dispatch()] == hear(machine, couchbase.WakeupReached(), now)

    assert [] == written


@pytest.mark.parametrize(
    ("status", "refresh"), [(NOT_MY_VBUCKET, couchbase.RefreshTopology()), (OUTDATED, couchbase.RefreshCollection())]
)
def test_always_retried(status: int, refresh: couchbase.RequestAction) -> None:
    """Some statuses are retried even with fail-fast; a refresh and a report precede the retry."""
    machine = machine_of(annotation(couchbase.FailFastRetryStrategy()))
    hear_of = machine.snapshot(START)
    actions = hear(machine, answer(status))
    reason = machine.last_reason

    assert reason is not None
    assert [
        refresh,
        couchbase.ReportRetry(hear_of, reason, 0.001, True, None),
        couchbase.RetryAfter(0.001, True),
    ] == actions
    assert (S.WAITING, 100.001) == (machine.state, machine.wakeup)


def test_a_retry_is_reported() -> None:
    """The report of a retry has the request that the strategy got, the reason, the delay and the node."""
    strategy = Says(couchbase.RetryAction.after(0.25))
    machine = dispatched(annotation(strategy))
    actions = hear(machine, answer(LOCKED), 100.5)
    ((seen, reason),) = strategy.asked

    assert R.KV_LOCKED is reason
    assert [couchbase.ReportRetry(seen, R.KV_LOCKED, 0.25, True, NODE), couchbase.RetryAfter(0.25, True)] == actions


def test_a_refusal_is_reported() -> None:
    """The report of a refusal precedes the failure, and has the request, the reason, the error's name and the node."""
    strategy = Says(couchbase.RetryAction.no_retry())
    machine = dispatched(annotation(strategy))
    report, fail = hear(machine, answer(LOCKED), 100.5)
    ((seen, _),) = strategy.asked

    assert couchbase.ReportRefusal(seen, R.KV_LOCKED, "DocumentLockedException", NODE) == report
    assert isinstance(fail, couchbase.Fail)
    assert (0, frozenset({"KV_LOCKED"}), "KV_LOCKED") == (
        fail.error.context.retry_attempts,
        fail.error.context.retry_reasons,
        fail.error.context.refused_reason,
    )


def test_the_request_that_a_strategy_gets() -> None:
    """The strategy gets the key, the times, the attempts, the earlier reasons, the client context and itself."""
    strategy = Says(couchbase.RetryAction.after(0.25))
    machine = machine_of(annotation(strategy, client_context={"robot": True}), state=S.PENDING)
    hear(machine, couchbase.DispatchFailed(R.NODE_NOT_AVAILABLE), 100.25)
    hear(machine, couchbase.WakeupReached(), 100.5)
    hear(machine, couchbase.Dispatched(NODE, 17), 100.5)
    hear(machine, answer(LOCKED), 101.5)
    (first, _), (second, reason) = strategy.asked

    assert (0, frozenset(), 0.25, 2.25, 0.0, 0) == (
        first.retry_attempts,
        first.retry_reasons,
        first.age,
        first.remaining,
        first.since_first_failure,
        first.attempts_this_status,
    )
    assert (1, frozenset({R.NODE_NOT_AVAILABLE}), 1.5, 1.0, 1.25, 0) == (
        second.retry_attempts,
        second.retry_reasons,
        second.age,
        second.remaining,
        second.since_first_failure,
        second.attempts_this_status,
    )
    assert (couchbase.Service.KV, "upsert", False, "airline_10", {"robot": True}, None) == (
        second.service,
        second.operation,
        second.idempotent,
        second.key,
        second.client_context,
        second.error_map_entry,
    )
    assert R.KV_LOCKED is reason
    assert strategy is second.retry_strategy


@rows("idempotent", [True, False])
@rows("reason", [R.SOCKET_NOT_AVAILABLE, R.NODE_NOT_AVAILABLE, R.AUTHENTICATION_ERROR])
def test_a_socket_that_closed_before_the_frame(idempotent: bool, reason: couchbase.RetryReason) -> None:
    """If no byte of a request was handed over, the request is retried for the event's reason, and is not ambiguous."""
    machine = machine_of(annotation(idempotent=idempotent))
    actions = hear(machine, couchbase.SocketClosed(couchbase.HandedOver.NOTHING, "reset", reason))

    assert couchbase.RetryAfter(0.001, True) == actions[-1]
    assert {reason} == machine.retry_reasons
    assert "reset" == machine.error_context(START).last_dispatch_error
    assert not machine.is_ambiguous


def test_services() -> None:
    """The error code of a query decides about its retry, and the error context has the error's code and text."""
    stale = couchbase.ServiceResponse(QUERY, 400, b'{"errors":[{"code":4040,"msg":"stale plan"}]}')
    request = annotation(couchbase.FailFastRetryStrategy(), service=QUERY, operation="query")
    error, final = (
        error_of(hear(machine_of(request), couchbase.ResponseReceived(response)))
        for response in (stale, couchbase.ServiceResponse(QUERY, 401, b"no"))
    )
    retried = machine_of(annotation(service=QUERY, operation="query"))
    hear(retried, couchbase.ResponseReceived(stale))

    assert errors.PreparedStatementFailureException is type(error)
    context = error.context
    assert ("query", 400, 4040) == (context.service, context.http_status, context.error_code)
    assert ("stale plan", None, None) == (context.error_message, context.status, final.context.error_code)
    assert (errors.AuthenticationFailureException, 401) == (type(final), final.context.http_status)
    assert {R.QUERY_PREPARED_STATEMENT_FAILURE} == retried.retry_reasons


def test_a_machine_created_after_the_first_failure() -> None:
    """A machine that is created after the first failure continues with the attempts and times that it gets."""
    machine = couchbase.RetryMachine(
        annotation(Says(couchbase.RetryAction.after(0.25))),
        rng=machine_of(annotation()).snapshot(START).rng,
        state=S.IN_FLIGHT,
        retry_attempts=3,
        first_failure_at=99.0,
    )
    seen = machine.snapshot(101.0)

    assert (3, 3, 2.0) == (seen.retry_attempts, seen.attempts_this_status, seen.since_first_failure)
    assert machine.is_ambiguous

    hear(machine, answer(LOCKED), 101.0)
    hear(machine, couchbase.WakeupReached(), 101.25)

    assert 4 == machine.retry_attempts
    assert 4 == machine.error_context(101.0).retry_attempts
    assert 2.0 == machine.snapshot(101.0).since_first_failure


def test_a_machine_is_freed() -> None:
    """After its request has ended, the machine is freed with its last reference, without garbage collection."""
    machine = machine_of(annotation())
    hear(machine, answer(TEMPORARY))
    seen = weakref.ref(machine)
    gc.disable()
    try:
        del machine

        assert seen() is None
    finally:
        gc.enable()


# -- The node's error map.


def test_the_error_map_of_the_node_decides() -> None:
    """An unknown status is looked up only in the error map of the node that sent it."""
    store = map_store({UNKNOWN: map_entry("retry-later", "temp")})
    machines = [machine_of(annotation(), error_maps=store) for _ in range(3)]
    mapped, elsewhere, nowhere = (
        hear(machine, answer(UNKNOWN, node))
        for machine, node in zip(machines, (NODE, "10.0.0.2:11210", None), strict=True)
    )

    assert couchbase.RetryAfter(0.001, True) == mapped[-1]
    assert {R.KV_ERROR_MAP_RETRY_INDICATED} == machines[0].retry_reasons
    assert [errors.CouchbaseException] * 2 == [type(error_of(elsewhere)), type(error_of(nowhere))]


def test_a_later_error_map() -> None:
    """An error map that is loaded during a request is in the shared store, and the machine uses it."""
    store = couchbase.ErrorMapStore()
    machine = machine_of(annotation(), state=S.PENDING, error_maps=store)
    loaded = couchbase.ErrorMap(2, 1, {UNKNOWN: map_entry("retry-now")})

    assert [] == hear(machine, couchbase.ErrorMapLoaded(NODE, loaded))
    assert loaded.entries[UNKNOWN] == store.entry(NODE, UNKNOWN)

    hear(machine, couchbase.Dispatched(NODE, 17))

    assert couchbase.RetryAfter(0.001, True) == hear(machine, answer(UNKNOWN))[-1]


def test_machines_have_separate_stores_by_default() -> None:
    """If machines are created without a store, they do not share error maps."""
    first, second = (machine_of(annotation()), machine_of(annotation()))
    hear(first, couchbase.ErrorMapLoaded(NODE, couchbase.ErrorMap(2, 1, {UNKNOWN: map_entry("retry-now")})))

    assert couchbase.RetryAfter(0.001, True) == hear(first, answer(UNKNOWN))[-1]
    assert isinstance(hear(second, answer(UNKNOWN))[-1], couchbase.Fail)


def test_an_entry_without_a_retry_attribute() -> None:
    """If the entry has no retry attribute, the request fails, and the context has the entry's texts (decision C31)."""
    strategy = Says(couchbase.RetryAction.after(0.0))
    machine = machine_of(annotation(strategy), error_maps=map_store({UNKNOWN: map_entry("auth", "temp")}))
    error = error_of(hear(machine, answer(UNKNOWN)))

    assert errors.AuthenticationFailureException is type(error)
    assert ("NEWS", "Something new.") == (error.context.status_name, error.context.status_text)
    assert [] == strategy.asked


# -- Error contexts, and connections that are closed.


def test_a_failed_dispatch_is_safe() -> None:
    """If a dispatch fails, even a write is retried, and the context keeps the error of the dispatch."""
    machine = machine_of(annotation(), state=S.PENDING)
    actions = hear(machine, couchbase.DispatchFailed(R.SOCKET_NOT_AVAILABLE, "refused"))

    assert couchbase.RetryAfter(0.001, True) == actions[-1]
    assert "refused" == machine.error_context(START).last_dispatch_error

    hear(machine, couchbase.WakeupReached(), 100.001)
    hear(machine, couchbase.DispatchFailed(R.SOCKET_NOT_AVAILABLE), 100.001)

    assert "refused" == machine.error_context(START).last_dispatch_error


def test_the_context_describes_the_latest_attempt() -> None:
    """The error context has the node, the opaque and the response of the latest attempt."""
    machine = dispatched(annotation())
    hear(machine, couchbase.ResponseReceived(couchbase.KvResponse(LOCKED, NODE, server_context="held", server_ref="1")))
    hear(machine, couchbase.WakeupReached(), 100.001)
    hear(machine, couchbase.Dispatched("10.0.0.2:11210", 18), 100.001)
    context = error_of(hear(machine, answer(0x01), 100.5)).context

    assert ("10.0.0.2:11210", 18) == (context.last_dispatched_to, context.opaque)
    assert (0x01, "KEY_NOT_FOUND", None, None) == (
        context.status,
        context.status_name,
        context.server_context,
        context.server_ref,
    )
    assert (1, frozenset({"KV_LOCKED"})) == (context.retry_attempts, context.retry_reasons)


def test_the_connection_is_closed_last() -> None:
    """The machine ends the request or schedules its retry before it closes the connection (decision C31)."""
    attributes = ["fetch-config", "conn-state-invalidated", "retry-now"]
    store = map_store({UNKNOWN: map_entry(*attributes), UNKNOWN + 1: map_entry(*attributes[:2])})
    retried, failed = (
        hear(machine_of(annotation(), error_maps=store), answer(status)) for status in (UNKNOWN, UNKNOWN + 1)
    )

    assert [couchbase.RefreshTopology, couchbase.ReportRetry, couchbase.RetryAfter, couchbase.CloseConnection] == [
        type(action) for action in retried
    ]
    assert [couchbase.RefreshTopology, couchbase.Fail, couchbase.CloseConnection] == [type(action) for action in failed]
    for status, close in ((UNKNOWN, retried[-1]), (UNKNOWN + 1, failed[-1])):
        assert isinstance(close, couchbase.CloseConnection)
        assert "conn-state-invalidated" in close.why
        assert f"0x{status:04x}" in close.why


def test_a_known_status_that_invalidates_the_connection() -> None:
    """If a known status invalidates the connection, the connection is closed after the request has failed."""
    actions = hear(machine_of(annotation()), answer(0x25))

    assert [couchbase.Fail, couchbase.CloseConnection] == [type(action) for action in actions]
    assert errors.TemporaryFailureException is type(error_of(actions))
