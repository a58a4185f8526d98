"""The life of one request, as a table.

Theory of operation
-------------------

A request is **PENDING** until it is handed over to a connection, then **IN_FLIGHT** until its answer comes. A failure
at either stage gives a reason. Reasons that are always retried, and those that a synchronous strategy decides, lead at
once to a verdict; for an asynchronous strategy the request is **CONSULTING** until the strategy has answered.

The verdict is a delay or a refusal. A delay makes the request **WAITING**; when it is over the request is PENDING again
and ordered to be dispatched. A delay that was cut to the deadline, or to the end of an error map's schedule, makes it
**EXPIRING**: when that is over the request fails and nothing is sent. A refusal makes it **FAILED**.

**COMPLETED**, **FAILED** and **ABANDONED** are final: whatever comes later is ignored, so a request settles once.
The deadline may strike in every state that is not final.

The table names, for each state and event, the states that the event may lead to. A pair that is missing is a mistake of
the caller: ``RetryMachine.handle`` raises and changes nothing. Diagrams are generated from this table, and a test
visits every pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique

from triclinium_core.retry.couchbase.events import (
    Abandoned,
    Dispatched,
    DispatchFailed,
    ErrorMapLoaded,
    RequestEvent,
    ResponseReceived,
    SocketClosed,
    StrategyDecided,
    TimePassed,
)


@unique
class RequestState(Enum):
    """Where a request stands."""

    PENDING = "pending"
    IN_FLIGHT = "in_flight"
    CONSULTING = "consulting"
    WAITING = "waiting"
    EXPIRING = "expiring"
    COMPLETED = "completed"
    FAILED = "failed"
    ABANDONED = "abandoned"

    @property
    def is_final(self) -> bool:
        """Whether the request is settled."""
        return self in _FINAL


# Members are singletons, and ask for no hash written in Python.
RequestState.__hash__ = object.__hash__  # type: ignore[method-assign]

_FINAL = frozenset({RequestState.COMPLETED, RequestState.FAILED, RequestState.ABANDONED})


def _to(*states: RequestState) -> frozenset[RequestState]:
    return frozenset(states)


_P, _I, _C, _W, _E = (
    RequestState.PENDING,
    RequestState.IN_FLIGHT,
    RequestState.CONSULTING,
    RequestState.WAITING,
    RequestState.EXPIRING,
)
_DONE, _FAIL, _LEFT = RequestState.COMPLETED, RequestState.FAILED, RequestState.ABANDONED

REQUEST_TRANSITIONS: Mapping[RequestState, Mapping[type[RequestEvent], frozenset[RequestState]]] = {
    _P: {
        Dispatched: _to(_I),
        DispatchFailed: _to(_W, _E, _C, _FAIL),
        ErrorMapLoaded: _to(_P),
        TimePassed: _to(_P, _FAIL),
        Abandoned: _to(_LEFT),
    },
    _I: {
        SocketClosed: _to(_W, _E, _C, _FAIL),
        ResponseReceived: _to(_DONE, _W, _E, _C, _FAIL),
        ErrorMapLoaded: _to(_I),
        TimePassed: _to(_I, _FAIL),
        Abandoned: _to(_LEFT),
    },
    _C: {
        StrategyDecided: _to(_W, _E, _FAIL),
        ErrorMapLoaded: _to(_C),
        TimePassed: _to(_C, _FAIL),
        Abandoned: _to(_LEFT),
    },
    _W: {
        ErrorMapLoaded: _to(_W),
        TimePassed: _to(_W, _P, _FAIL),
        Abandoned: _to(_LEFT),
    },
    _E: {
        ErrorMapLoaded: _to(_E),
        TimePassed: _to(_E, _FAIL),
        Abandoned: _to(_LEFT),
    },
    **{
        final: {
            event: _to(final)
            for event in (
                Dispatched,
                DispatchFailed,
                SocketClosed,
                ResponseReceived,
                ErrorMapLoaded,
                StrategyDecided,
                TimePassed,
                Abandoned,
            )
        }
        for final in (_DONE, _FAIL, _LEFT)
    },
}
