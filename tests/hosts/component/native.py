"""Machines of the core in this process, and the calls that a host makes for the same requests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.tools.vectors.couchbase import STRATEGIES

SECONDS_TO_RESPONSE = 0.002

Json = object
Event = tuple[Json, couchbase.RequestEvent]
"""Event as the component takes it, and as the core does."""


class Request(NamedTuple):
    """Request, and the outcomes of its attempts."""

    operation: str
    timeout: float
    outcomes: Sequence[Event]
    service: str = "kv"
    strategy: str = "fast_fail_on_terminal_error"
    idempotent: bool = False


def kv(status: int) -> Event:
    """Return the response of a node."""
    value = {"status": status, "node": "n1"}
    return {"tag": "kv-response-received", "val": value}, couchbase.ResponseReceived(couchbase.KvResponse(status, "n1"))


def http(service: str, status: int, body: str, *, is_partial: bool = False) -> Event:
    """Return the response of an HTTP service to a request named query."""
    value = {"http-status": status, "body": body, "is-partial": is_partial}
    response = couchbase.ServiceResponse(couchbase.Service(service), status, body, "query", is_partial)
    return {"tag": "service-response-received", "val": value}, couchbase.ResponseReceived(response)


def lost(share: str) -> Event:
    """Return the loss of a connection after a share of the request was written."""
    return {"tag": "socket-closed", "val": share}, couchbase.SocketClosed(couchbase.HandedOver(share))


DISPATCHED: Event = ({"tag": "dispatched", "val": "n1"}, couchbase.Dispatched("n1"))
TIME_PASSED: Event = ({"tag": "time-passed"}, couchbase.WakeupReached())
ABANDONED: Event = ({"tag": "abandoned"}, couchbase.Abandoned())


def in_json(action: couchbase.RequestAction) -> Mapping[str, Json]:
    """Return an action as the component does."""
    match action:
        case couchbase.RetryAfter(seconds, dispatches):
            return {"tag": "retry-after", "val": {"seconds": seconds, "dispatches": dispatches}}
        case couchbase.Fail(error):
            value = {"error": error.rfc_class.__name__, "message": str(error), "context": error.context.to_json()}
            return {"tag": "fail", "val": value}
        case couchbase.CloseConnection(why):
            return {"tag": "close-connection", "val": why}
        case couchbase.ReportRetry(reason=reason):
            return {"tag": "report-retry", "val": str(reason).lower().replace("_", "-")}
        case couchbase.ReportRefusal(reason=reason):
            return {"tag": "report-refusal", "val": str(reason).lower().replace("_", "-")}
        case _:
            name = "".join(f"-{letter}" if letter.isupper() else letter for letter in type(action).__name__)
            return {"tag": name.lower().removeprefix("-")}


class Step(NamedTuple):
    """Call of an exported function, and its result."""

    call: Sequence[Json]
    result: Json


def play(requests: Sequence[Request], maps: couchbase.ErrorMapStore | None = None) -> Iterator[Step]:
    """Yield the calls of a host that carries out the actions for each request in turn, and their native results."""
    for number, request in enumerate(requests, start=1):
        given = {
            "service": request.service,
            "operation": request.operation,
            "idempotent": request.idempotent,
            "strategy": request.strategy.replace("_", "-"),
            "timeout": request.timeout,
        }
        yield Step(["open", given, 0.0], number)
        annotation = couchbase.RequestAnnotation(
            operation=request.operation,
            idempotent=request.idempotent,
            strategy=STRATEGIES[request.strategy],
            submitted_at=0.0,
            deadline=request.timeout,
            service=couchbase.Service(request.service),
        )
        machine = couchbase.RetryMachine(annotation, rng=ConstantRandom(0.0), error_maps=maps)
        yield from _attempts(machine, number, iter(request.outcomes))
        yield Step(["wakeup", number], None)
        yield Step(["handle", number, ABANDONED[0], 1e6], [{"tag": "ignore"}])
        yield Step(["close", number], None)


def _attempts(machine: couchbase.RetryMachine, number: int, outcomes: Iterator[Event]) -> Iterator[Step]:
    now, orders = 0.0, list[couchbase.RequestAction]([couchbase.Dispatch()])
    while orders:
        order, events = orders.pop(0), list[Event]()
        if isinstance(order, couchbase.Dispatch):
            events = [DISPATCHED, *itertools.islice(outcomes, 1)]
        elif isinstance(order, couchbase.RetryAfter):
            events = [TIME_PASSED]
            yield Step(["wakeup", number], machine.wakeup)
            now = machine.wakeup
        for given, event in events:
            now += 0.0 if event in (DISPATCHED[1], TIME_PASSED[1]) else SECONDS_TO_RESPONSE
            actions = machine.handle(event, now)
            yield Step(["handle", number, given, now], [in_json(action) for action in actions])
            orders += actions
