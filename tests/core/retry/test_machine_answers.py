"""The answer that a refused or final request gives: the class that the tables and the node's error map ask for."""

from __future__ import annotations

import pytest

from tests.core.retry.request_cases import NODE, Says, annotation, machine_of, map_entry, map_store
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.errors import CouchbaseException
from triclinium_core.retry.actions import (
    CloseConnection,
    Fail,
    RefreshTopology,
    ReportRetry,
    RequestAction,
    RetryAfter,
)
from triclinium_core.retry.error_map import ErrorMap, ErrorMapStore
from triclinium_core.retry.events import (
    Dispatched,
    DispatchFailed,
    ErrorMapLoaded,
    KvResponse,
    RequestEvent,
    ResponseReceived,
    TimePassed,
)
from triclinium_core.retry.machine import RetryMachine
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.states import RequestState
from triclinium_core.retry.strategy import (
    BestEffortRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryAction,
)

R, S = RetryReason, RequestState

START = 100.0
LOCKED, TEMPORARY, NOT_MY_VBUCKET, OUTDATED, UNKNOWN = 0x09, 0x86, 0x07, 0x88, 0x7FF0


def answer(status: int, node: str | None = NODE) -> ResponseReceived:
    """Return a KV answer."""
    return ResponseReceived(KvResponse(status, node))


def error_of(actions: list[RequestAction] | tuple[RequestAction, ...]) -> CouchbaseException:
    """Return the error that the one Fail among ``actions`` carries."""
    (error,) = [action.error for action in actions if isinstance(action, Fail)]
    return error


def hear(machine: RetryMachine, event: RequestEvent, now: float = START) -> list[RequestAction]:
    """Feed one event."""
    return list(machine.handle(event, now))


@pytest.mark.parametrize(
    ("status", "operation", "expected"),
    [
        (LOCKED, "upsert", errors.DocumentLockedException),
        (TEMPORARY, "upsert", errors.TemporaryFailureException),
        (0xA2, "upsert", errors.DurableWriteInProgressException),
        (0xA4, "upsert", errors.DurableWriteReCommitInProgressException),
    ],
)
def test_a_refused_status_surfaces_as_itself(status: int, operation: str, expected: type[CouchbaseException]) -> None:
    """A reason born of a status brings the status's own exception (decision C32)."""
    machine = machine_of(annotation(FailFastRetryStrategy(), operation=operation))

    assert expected is type(error_of(hear(machine, answer(status))))


@rows("reason", [reason for reason in RetryReason if not reason.always_retry])
def test_a_refused_dispatch_is_canceled(reason: RetryReason) -> None:
    """Every other reason has no exception of its own; it stands in the context (decision C32)."""
    machine = machine_of(annotation(FailFastRetryStrategy()), state=S.PENDING)
    error = error_of(hear(machine, DispatchFailed(reason, "no route")))

    assert errors.RequestCanceledException is type(error)
    assert (reason.name, "no route") == (error.context.refused_reason, error.context.last_dispatch_error)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (R.AUTHENTICATION_ERROR, errors.AuthenticationFailureException),
        (R.TLS_ERROR, errors.TlsException),
        (R.BUCKET_ACCESS_ERROR, errors.BucketAccessException),
        (R.SCOPE_NOT_FOUND, errors.ScopeNotFoundException),
        (R.COLLECTION_NOT_FOUND, errors.CollectionNotFoundException),
    ],
)
def test_the_default_strategy_fails_fast(reason: RetryReason, expected: type[CouchbaseException]) -> None:
    """A terminal reason ends the request at once, and best effort goes on all the same."""
    fast = machine_of(annotation(FastFailOnTerminalErrorRetryStrategy()), state=S.PENDING)
    slow = machine_of(annotation(BestEffortRetryStrategy()), state=S.PENDING)

    assert expected is type(error_of(hear(fast, DispatchFailed(reason))))
    assert RetryAfter(0.001, True) == hear(slow, DispatchFailed(reason))[-1]


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
    assert loaded == store.map_of(NODE)

    hear(machine, Dispatched(NODE, 17))

    assert RetryAfter(0.001, True) == hear(machine, answer(UNKNOWN))[-1]


def test_without_a_store_a_machine_has_its_own() -> None:
    """Two machines without a shared store do not see each other's maps."""
    first, second = machine_of(annotation()), machine_of(annotation())
    hear(first, ErrorMapLoaded(NODE, ErrorMap(2, 1, {UNKNOWN: map_entry("retry-now")})))

    assert RetryAfter(0.001, True) == hear(first, answer(UNKNOWN))[-1]
    assert isinstance(hear(second, answer(UNKNOWN))[-1], Fail)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (["temp"], errors.TemporaryFailureException),
        (["auth", "temp"], errors.AuthenticationFailureException),
        (["support"], errors.FeatureNotAvailableException),
        (["invalid-input"], errors.InvalidArgumentException),
        ([], CouchbaseException),
    ],
)
def test_an_entry_without_a_retry_attribute(attributes: list[str], expected: type[CouchbaseException]) -> None:
    """The request ends without asking the strategy; the map's name and text go into the context (decision C31)."""
    strategy = Says(RetryAction.after(0.0))
    machine = machine_of(annotation(strategy), error_maps=map_store({UNKNOWN: map_entry(*attributes)}))
    error = error_of(hear(machine, answer(UNKNOWN)))

    assert expected is type(error)
    assert ("NEWS", "Something new.") == (error.context.status_name, error.context.status_text)
    assert "upsert 'airline_10': the server answered NEWS [0x7ff0] (Something new.)" == str(error)
    assert [] == strategy.asked


def test_a_refused_entry_surfaces_by_its_attributes() -> None:
    """The class of the refused retry is the entry's (decision C31)."""
    store = map_store({UNKNOWN: map_entry("retry-now", "temp")})
    machine = machine_of(annotation(FailFastRetryStrategy()), error_maps=store)

    assert errors.TemporaryFailureException is type(error_of(hear(machine, answer(UNKNOWN))))


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
