"""The life of a request over its query plan, and of one execution of it, as two tables.

Theory of operation
-------------------

A request is **NEW** until it is submitted and **RUNNING** until it is settled. While it runs it has one execution, and,
where it is idempotent and a policy says so, speculative ones beside it. All of them take nodes from one plan.

An execution is **SENDING** from the moment that it is ordered to a node until it is known to be written, then
**WAITING** for the answer. The connection may be missing, the write may fail, an error may come instead of a result:
each leads to the same node or the next one, and so back to SENDING. Where a node has forgotten a prepared statement,
the execution is **PREPARING** it there before it is SENDING again. It has **ENDED** when the plan is empty, or when the
request is settled.

A result, an ignored error and an error that is raised settle the whole request, whichever execution they come from; the
attempts of the others are cancelled. An execution that finds the plan empty ends in silence, and only the last one
makes the request **FAILED**. **COMPLETED**, **FAILED** and **ABANDONED** are final: whatever comes later is ignored, so
a request settles once. Time may run out while the request is RUNNING.

The tables name, for each state and event, the states that the event may lead to. A pair that is missing is a mistake of
the caller: ``RequestMachine.handle`` raises and changes nothing. What is told of an attempt that is over, while its
execution goes on with another one, came too late: it is not looked up in the second table, and changes nothing.
Diagrams are generated from these tables, and a test visits every pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import get_args

from triclinium_core.retry.cassandra.requests.events import (
    AttemptAborted,
    AttemptEvent,
    CassandraEvent,
    ConnectionMissed,
    ErrorReceived,
    RequestAbandoned,
    RequestSubmitted,
    RequestWritten,
    ResultReceived,
    StatementForgotten,
    StatementPrepared,
    TimePassed,
)


@unique
class RequestState(Enum):
    """Where a request stands."""

    NEW = "new"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ABANDONED = "abandoned"

    @property
    def is_final(self) -> bool:
        """Whether the request is settled."""
        return self in _FINAL


@unique
class ExecutionState(Enum):
    """Where an execution stands."""

    SENDING = "sending"
    WAITING = "waiting"
    PREPARING = "preparing"
    ENDED = "ended"


_NEW, _RUN = RequestState.NEW, RequestState.RUNNING
_DONE, _FAIL, _LEFT = RequestState.COMPLETED, RequestState.FAILED, RequestState.ABANDONED
_FINAL = frozenset({_DONE, _FAIL, _LEFT})

REQUEST_TRANSITIONS: Mapping[RequestState, Mapping[type[CassandraEvent], frozenset[RequestState]]] = {
    _NEW: {
        RequestSubmitted: frozenset({_RUN, _FAIL}),
        TimePassed: frozenset({_NEW}),
        RequestAbandoned: frozenset({_LEFT}),
    },
    _RUN: {
        ConnectionMissed: frozenset({_RUN, _FAIL}),
        RequestWritten: frozenset({_RUN, _FAIL}),
        AttemptAborted: frozenset({_RUN, _DONE, _FAIL}),
        ResultReceived: frozenset({_RUN, _DONE}),
        ErrorReceived: frozenset({_RUN, _DONE, _FAIL}),
        StatementPrepared: frozenset({_RUN, _FAIL}),
        StatementForgotten: frozenset({_RUN, _FAIL}),
        TimePassed: frozenset({_RUN, _FAIL}),
        RequestAbandoned: frozenset({_LEFT}),
    },
    **{final: {event: frozenset({final}) for event in get_args(CassandraEvent)} for final in (_DONE, _FAIL, _LEFT)},
}

_SEND, _WAIT, _PREP, _END = (
    ExecutionState.SENDING,
    ExecutionState.WAITING,
    ExecutionState.PREPARING,
    ExecutionState.ENDED,
)

EXECUTION_TRANSITIONS: Mapping[ExecutionState, Mapping[type[AttemptEvent], frozenset[ExecutionState]]] = {
    _SEND: {
        ConnectionMissed: frozenset({_SEND, _END}),
        RequestWritten: frozenset({_WAIT, _END}),
        AttemptAborted: frozenset({_SEND, _END}),
        ResultReceived: frozenset({_END}),
        ErrorReceived: frozenset({_SEND, _PREP, _END}),
    },
    _WAIT: {
        AttemptAborted: frozenset({_SEND, _END}),
        ResultReceived: frozenset({_END}),
        ErrorReceived: frozenset({_SEND, _PREP, _END}),
    },
    _PREP: {
        ConnectionMissed: frozenset({_SEND, _END}),
        RequestWritten: frozenset({_PREP}),
        AttemptAborted: frozenset({_SEND, _END}),
        ErrorReceived: frozenset({_SEND, _END}),
        StatementPrepared: frozenset({_SEND, _END}),
        StatementForgotten: frozenset({_END}),
    },
    _END: {event: frozenset({_END}) for event in get_args(AttemptEvent)},
}
