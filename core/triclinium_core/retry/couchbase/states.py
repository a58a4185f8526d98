"""Life cycle of one request, as a table.

Theory of operation
-------------------

A request is **PENDING** until it is handed over to a connection, then **IN_FLIGHT** until its response arrives. A
failure at either stage has a reason. If the reason is always retried or a synchronous strategy decides, the verdict
follows immediately. With an asynchronous strategy the request is **CONSULTING** until the strategy has returned its
answer.

The verdict is a delay or a refusal. A delay makes the request **WAITING**. When the delay is over, the request is
PENDING again and a dispatch is ordered. A delay that was cut to the deadline, or to the end of an error map's schedule,
makes the request **EXPIRING**: when it is over, the request fails and nothing is sent. A refusal makes it **FAILED**.

**COMPLETED**, **FAILED** and **ABANDONED** are final: later events are ignored, so a request settles once. The deadline
may pass in every state that is not final.

The table gives the next state: each row has the state, the event, and the ruling on the event. A strategy's verdict is
such a ruling, and so is a successful response. ``RetryMachine.handle`` reads its next state only here. A missing pair
of state and event is a mistake of the caller: ``handle`` raises and changes nothing. Diagrams are generated from this
table, and a test visits every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import get_args

from triclinium_core.retry.couchbase import events
from triclinium_core.retry.tables import transition_table


@unique
class RetryState(Enum):
    """State of a request."""

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


@unique
class Ruling(Enum):
    """Decision on the request after an event."""

    NONE = "none"
    """No decision was necessary."""
    RETRY = "retry"
    """The request is sent again after a delay."""
    EXPIRE = "expire"
    """The delay was cut: the request fails when it is over."""
    CONSULT = "consult"
    """The strategy must be awaited."""
    RESUME = "resume"
    """The delay is over: the request is sent again."""
    COMPLETE = "complete"
    """The request has succeeded."""
    FAIL = "fail"
    """The request has failed."""


# Members are singletons. The hash of Enum is written in Python, and with it a retry takes 12 % more instructions: 57100
# instead of 51000 (``python -m tests.bench --only core``).
RetryState.__hash__ = object.__hash__  # type: ignore[method-assign]
Ruling.__hash__ = object.__hash__  # type: ignore[method-assign]

_OPEN = (
    RetryState.PENDING,
    RetryState.IN_FLIGHT,
    RetryState.CONSULTING,
    RetryState.WAITING,
    RetryState.EXPIRING,
)
_FINAL = (RetryState.COMPLETED, RetryState.FAILED, RetryState.ABANDONED)

RequestInput = tuple[type[events.RequestEvent], Ruling]

REQUEST_TRANSITIONS: Mapping[RetryState, Mapping[RequestInput, RetryState]] = transition_table(
    [
        (RetryState.PENDING, (events.Dispatched, Ruling.NONE), RetryState.IN_FLIGHT),
        (RetryState.PENDING, (events.DispatchFailed, Ruling.RETRY), RetryState.WAITING),
        (RetryState.PENDING, (events.DispatchFailed, Ruling.EXPIRE), RetryState.EXPIRING),
        (RetryState.PENDING, (events.DispatchFailed, Ruling.CONSULT), RetryState.CONSULTING),
        (RetryState.PENDING, (events.DispatchFailed, Ruling.FAIL), RetryState.FAILED),
        (RetryState.IN_FLIGHT, (events.SocketClosed, Ruling.RETRY), RetryState.WAITING),
        (RetryState.IN_FLIGHT, (events.SocketClosed, Ruling.EXPIRE), RetryState.EXPIRING),
        (RetryState.IN_FLIGHT, (events.SocketClosed, Ruling.CONSULT), RetryState.CONSULTING),
        (RetryState.IN_FLIGHT, (events.SocketClosed, Ruling.FAIL), RetryState.FAILED),
        (RetryState.IN_FLIGHT, (events.ResponseReceived, Ruling.COMPLETE), RetryState.COMPLETED),
        (RetryState.IN_FLIGHT, (events.ResponseReceived, Ruling.RETRY), RetryState.WAITING),
        (RetryState.IN_FLIGHT, (events.ResponseReceived, Ruling.EXPIRE), RetryState.EXPIRING),
        (RetryState.IN_FLIGHT, (events.ResponseReceived, Ruling.CONSULT), RetryState.CONSULTING),
        (RetryState.IN_FLIGHT, (events.ResponseReceived, Ruling.FAIL), RetryState.FAILED),
        (RetryState.CONSULTING, (events.StrategyAnswered, Ruling.RETRY), RetryState.WAITING),
        (RetryState.CONSULTING, (events.StrategyAnswered, Ruling.EXPIRE), RetryState.EXPIRING),
        (RetryState.CONSULTING, (events.StrategyAnswered, Ruling.FAIL), RetryState.FAILED),
        (RetryState.WAITING, (events.WakeupReached, Ruling.RESUME), RetryState.PENDING),
        *(
            (state, (kind, Ruling.NONE), state)
            for state in _OPEN
            for kind in (events.ErrorMapLoaded, events.WakeupReached)
        ),
        *((state, (events.WakeupReached, Ruling.FAIL), RetryState.FAILED) for state in _OPEN),
        *((state, (events.Abandoned, Ruling.NONE), RetryState.ABANDONED) for state in _OPEN),
        *((state, (kind, Ruling.NONE), state) for state in _FINAL for kind in get_args(events.RequestEvent)),
    ]
)


def permitted_events(state: RetryState) -> Mapping[type[events.RequestEvent], Mapping[Ruling, RetryState]]:
    """Return the events that are possible in ``state``, each with the next state for each ruling."""
    rows: dict[type[events.RequestEvent], dict[Ruling, RetryState]] = {}
    for (kind, ruling), following in REQUEST_TRANSITIONS[state].items():
        rows.setdefault(kind, {})[ruling] = following
    return rows
