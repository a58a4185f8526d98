"""The answer that a refused or final request gives: the class that the tables and the node's error map ask for."""

from __future__ import annotations

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
from triclinium_core import errors
from triclinium_core.errors import CouchbaseException
from triclinium_core.retry.couchbase.actions import (
    CloseConnection,
    Fail,
    RefreshTopology,
    ReportRetry,
    RetryAfter,
)
from triclinium_core.retry.couchbase.events import (
    Dispatched,
    DispatchFailed,
    ErrorMapLoaded,
    KvResponse,
    ResponseReceived,
    TimePassed,
)
from triclinium_core.retry.couchbase.states import RequestState
from triclinium_core.retry.couchbase.strategy import (
    RetryAction,
)
from triclinium_core.retry.couchbase.tables.error_map import ErrorMap, ErrorMapStore
from triclinium_core.retry.couchbase.tables.reasons import RetryReason

R, S = RetryReason, RequestState

START = 100.0
LOCKED, UNKNOWN = 0x09, 0x7FF0


def test_the_error_map_of_the_node_decides() -> None:
    """An unknown status is looked up in the map of the node that sent it, and of no other."""
    store = map_store({UNKNOWN: map_entry("retry-later", "temp")})
    mapped = machine_of(annotation(), error_maps=store)
    elsewhere = machine_of(annotation(), error_maps=store)
    nowhere = machine_of(annotation(), error_maps=store)

    assert RetryAfter(0.001, True) == hear(mapped, answer(UNKNOWN))[-1]
    assert {R.KV_ERROR_MAP_RETRY_INDICATED} == mapped.retry_reasons
    assert CouchbaseException is type(error_of(hear(elsewhere, answer(UNKNOWN, "10.0.0.2:11210"))))
    assert CouchbaseException is type(error_of(hear(nowhere, answer(UNKNOWN, None))))


def test_an_error_map_that_comes_later() -> None:
    """A map that is loaded while the request is under way counts from then on, for all who share the store."""
    store = ErrorMapStore()
    machine = machine_of(annotation(), state=S.PENDING, error_maps=store)
    loaded = ErrorMap(2, 1, {UNKNOWN: map_entry("retry-now")})

    assert [] == hear(machine, ErrorMapLoaded(NODE, loaded))
    assert loaded.entries[UNKNOWN] == store.entry(NODE, UNKNOWN)

    hear(machine, Dispatched(NODE, 17))

    assert RetryAfter(0.001, True) == hear(machine, answer(UNKNOWN))[-1]


def test_without_a_store_a_machine_has_its_own() -> None:
    """Two machines without a shared store do not see each other's maps."""
    first, second = machine_of(annotation()), machine_of(annotation())
    hear(first, ErrorMapLoaded(NODE, ErrorMap(2, 1, {UNKNOWN: map_entry("retry-now")})))

    assert RetryAfter(0.001, True) == hear(first, answer(UNKNOWN))[-1]
    assert isinstance(hear(second, answer(UNKNOWN))[-1], Fail)


def test_an_entry_without_a_retry_attribute() -> None:
    """The request ends without asking the strategy; the map's name and text go into the context (decision C31)."""
    strategy = Says(RetryAction.after(0.0))
    machine = machine_of(annotation(strategy), error_maps=map_store({UNKNOWN: map_entry("auth", "temp")}))
    error = error_of(hear(machine, answer(UNKNOWN)))

    assert errors.AuthenticationFailureException is type(error)
    assert ("NEWS", "Something new.") == (error.context.status_name, error.context.status_text)
    assert [] == strategy.asked


def test_a_failed_dispatch_is_safe() -> None:
    """Nothing was sent, so a write is sent again, and what was wrong is remembered."""
    machine = machine_of(annotation(), state=S.PENDING)
    actions = hear(machine, DispatchFailed(R.SOCKET_NOT_AVAILABLE, "refused"))

    assert RetryAfter(0.001, True) == actions[-1]
    assert "refused" == machine.error_context(START).last_dispatch_error

    hear(machine, TimePassed(), 100.001)
    hear(machine, DispatchFailed(R.SOCKET_NOT_AVAILABLE), 100.001)

    assert "refused" == machine.error_context(START).last_dispatch_error


def test_every_attempt_is_its_own() -> None:
    """The context tells of the newest attempt: its node, its opaque, its answer."""
    machine = machine_of(annotation(), state=S.PENDING)
    hear(machine, Dispatched(NODE, 17))
    hear(machine, ResponseReceived(KvResponse(LOCKED, NODE, server_context="held", server_ref="1")))
    hear(machine, TimePassed(), 100.001)
    hear(machine, Dispatched("10.0.0.2:11210", 18), 100.001)
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
    """The request is settled, or waits for its retry, before its connection goes (decision C31)."""
    attributes = ["fetch-config", "conn-state-invalidated", "retry-now"]
    store = map_store({UNKNOWN: map_entry(*attributes), UNKNOWN + 1: map_entry(*attributes[:2])})
    why = "the error map says conn-state-invalidated of status 0x7ff"
    retried = hear(machine_of(annotation(), error_maps=store), answer(UNKNOWN))
    failed = hear(machine_of(annotation(), error_maps=store), answer(UNKNOWN + 1))

    assert [RefreshTopology, ReportRetry, RetryAfter, CloseConnection] == [type(action) for action in retried]
    assert [RefreshTopology, Fail, CloseConnection] == [type(action) for action in failed]
    assert [CloseConnection(f"{why}0"), CloseConnection(f"{why}1")] == [retried[-1], failed[-1]]


def test_a_known_status_that_invalidates_the_connection() -> None:
    """A few known statuses do so too."""
    actions = hear(machine_of(annotation()), answer(0x25))

    assert [Fail, CloseConnection] == [type(action) for action in actions]
    assert errors.TemporaryFailureException is type(error_of(actions))
