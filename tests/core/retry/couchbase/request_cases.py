"""Requests, strategies, events and machines that the tests of retries share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.core.retry.smithy.cases import Fixed
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry import couchbase

NODE = "10.0.0.1:11210"


class Says:
    """Strategy that records its calls and always returns one value, which may have any type."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[tuple[couchbase.RetryRequest, couchbase.RetryReason]] = []

    def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /) -> couchbase.RetryAction:
        """Return the value, even if it is not a RetryAction."""
        self.asked.append((request, reason))
        answer: Any = self.answer
        return answer  # type: ignore[no-any-return]


class Raises:
    """Strategy that always raises an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /) -> couchbase.RetryAction:
        """Raise the error."""
        raise self.error


class Awaits:
    """Asynchronous strategy. Tests await it themselves, as a driver does."""

    async def retry_after(
        self, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /
    ) -> couchbase.RetryAction:
        """Return a retry without a delay."""
        return couchbase.RetryAction.after(0.0)


class Refusal(errors.CouchbaseException):
    """Custom exception of an application, with the constructor of CouchbaseException."""


class Unbuildable(errors.CouchbaseException):
    """Custom exception of an application, whose constructor takes no arguments."""

    def __init__(self) -> None:
        super().__init__("unbuildable")


def retry_request(
    *,
    idempotent: bool = False,
    retry_attempts: int = 0,
    remaining: float = 2.5,
    since_first_failure: float = 0.0,
    attempts_this_status: int | None = None,
    entry: couchbase.ErrorMapEntry | None = None,
    rng: Fixed | None = None,
) -> couchbase.RetryRequest:
    """Return a request in the form that a strategy gets."""
    return couchbase.RetryRequest(
        service=couchbase.Service.KV,
        operation="get" if idempotent else "upsert",
        idempotent=idempotent,
        rng=rng if rng is not None else Fixed(),
        retry_attempts=retry_attempts,
        remaining=remaining,
        since_first_failure=since_first_failure,
        attempts_this_status=retry_attempts if attempts_this_status is None else attempts_this_status,
        error_map_entry=entry,
    )


def map_entry(
    *attributes: str, retry: Mapping[str, object] | None = None, name: str = "NEWS"
) -> couchbase.ErrorMapEntry:
    """Return an entry of an error map, parsed from decoded JSON."""
    return couchbase.parse_entry({"name": name, "desc": "Something new.", "attrs": list(attributes), "retry": retry})


def map_store(entries: Mapping[int, couchbase.ErrorMapEntry], node: str = NODE) -> couchbase.ErrorMapStore:
    """Return a store with the error map of one node."""
    store = couchbase.ErrorMapStore()
    store.load(node, couchbase.ErrorMap(2, 1, dict(entries)))
    return store


def annotation(
    strategy: couchbase.AnyRetryStrategy | None = None,
    *,
    idempotent: bool = False,
    submitted_at: float = 100.0,
    timeout: float = 2.5,
    service: couchbase.Service = couchbase.Service.KV,
    operation: str | None = None,
    client_context: Mapping[str, object] | None = None,
) -> couchbase.RequestAnnotation:
    """Return the annotation of a request for the document ``airline_10``."""
    return couchbase.RequestAnnotation(
        operation=operation if operation is not None else ("get" if idempotent else "upsert"),
        idempotent=idempotent,
        strategy=strategy if strategy is not None else couchbase.BestEffortRetryStrategy(),
        submitted_at=submitted_at,
        deadline=submitted_at + timeout,
        service=service,
        client_context=client_context if client_context is not None else {},
        error_context=ErrorContext(bucket="travel-sample", scope="inventory", collection="airline", key="airline_10"),
    )


def machine_of(
    request: couchbase.RequestAnnotation,
    *,
    state: couchbase.RetryState = couchbase.RetryState.IN_FLIGHT,
    error_maps: couchbase.ErrorMapStore | None = None,
    retry_attempts: int = 0,
) -> couchbase.RetryMachine:
    """Return the machine of a request."""
    return couchbase.RetryMachine(
        request, rng=Fixed(), state=state, error_maps=error_maps, retry_attempts=retry_attempts
    )


def answer(status: int, node: str | None = NODE) -> couchbase.ResponseReceived:
    """Return the event of a KV response."""
    return couchbase.ResponseReceived(couchbase.KvResponse(status, node))


def hear(
    machine: couchbase.RetryMachine, event: couchbase.RequestEvent, now: float = 100.0
) -> list[couchbase.RequestAction]:
    """Pass one event to the machine, by default at 100 s. Return the actions of the machine."""
    return list(machine.handle(event, now))


def error_of(actions: Iterable[couchbase.RequestAction]) -> errors.CouchbaseException:
    """Return the error of the only Fail among ``actions``."""
    (error,) = [action.error for action in actions if isinstance(action, couchbase.Fail)]
    return error
