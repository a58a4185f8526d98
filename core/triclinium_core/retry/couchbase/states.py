"""Transition table of the life cycle of one request.

Theory of operation
-------------------

A request is **PENDING** until the driver hands it to a connection, and then **IN_FLIGHT** until its response arrives. A
final response ends the request. Any other response, and any failure in either state, has a retry reason. If the reason
is always retried, or if the strategy is synchronous, the machine decides immediately. With an asynchronous strategy,
the request is **CONSULTING** until the strategy returns.

The decision is a delay or a refusal. With a delay, the request is **WAITING**. When the delay is over, the machine
orders a dispatch, and the request is PENDING again. If the delay was cut to the deadline, or to the strategy's limit
``within``, the request is **EXPIRING** instead: when the delay is over, the request fails without being sent. After
a refusal, the request is **FAILED**.

**COMPLETED**, **FAILED** and **ABANDONED** are final: the machine ignores later events, so a request ends only once.
The deadline may pass in every state that is not final.

The handler of an event returns a *ruling*: the decision on a retry, the success of the request, or none. Each row of
the table has a state, an event with a ruling, and the next state. ``RetryMachine.handle`` takes the next state only
from this table. If the table has no row for a state and an event, the caller has made a mistake: ``handle`` raises and
changes nothing. Diagrams are generated from this table, and a test visits every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import get_args

from triclinium_core.retry.couchbase import events
from triclinium_core.retry.tables import transition_table


@unique
class RetryState(Enum):
    """State of a request; the docstring of the module describes each state."""

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
        """Whether the request has ended."""
        return self in _FINAL


@unique
class Ruling(Enum):
    """Decision of an event handler, which determines the next state of the request."""

    NONE = "none"
    """No decision was necessary."""
    RETRY = "retry"
    """The request is sent again after a delay."""
    EXPIRE = "expire"
    """The delay was cut, so that the request fails when the delay is over."""
    CONSULT = "consult"
    """The driver must await the decision of the strategy."""
    RESUME = "resume"
    """The delay is over, and the request is sent again."""
    COMPLETE = "complete"
    """The request has succeeded."""
    FAIL = "fail"
    """The request has failed."""


# The members are singletons, so the hash of ``object`` is correct for them. Enum's own hash is written in Python: with
# it, a retry takes 12 % more instructions, 56300 instead of 50200 (callgrind, ``tests.bench --only core``).
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
    """Return the events that are possible in ``state``, each with the next states by ruling."""
    rows: dict[type[events.RequestEvent], dict[Ruling, RetryState]] = {}
    for (kind, ruling), following in REQUEST_TRANSITIONS[state].items():
        rows.setdefault(kind, {})[ruling] = following
    return rows
