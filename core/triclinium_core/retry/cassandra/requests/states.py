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

The tables say which state follows: that of the event that is heard, then that of each order that answers it. An event
that is missing in a state is a mistake of the caller: ``RequestMachine.handle`` raises and changes nothing. What is told
of an attempt that is over, while its execution goes on with another one, came too late: it is not looked up in the
second table, and changes nothing. Diagrams are generated from these tables, and a test visits every pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import get_args

from triclinium_core.retry.cassandra.requests import events
from triclinium_core.retry.cassandra.requests.actions import Complete, CompleteEmpty, Fail, Reprepare, Send
from triclinium_core.retry.tables import transition_table


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


_FINAL = (RequestState.COMPLETED, RequestState.FAILED, RequestState.ABANDONED)

REQUEST_TRANSITIONS: Mapping[RequestState, Mapping[type, RequestState]] = transition_table(
    [
        (RequestState.NEW, events.RequestStarted, RequestState.RUNNING),
        (RequestState.NEW, events.TimerFired, RequestState.NEW),
        (RequestState.NEW, events.RequestAbandoned, RequestState.ABANDONED),
        *(
            (RequestState.RUNNING, kind, RequestState.RUNNING)
            for kind in (*get_args(events.AttemptEvent), events.TimerFired)
        ),
        (RequestState.RUNNING, events.RequestAbandoned, RequestState.ABANDONED),
        (RequestState.RUNNING, Complete, RequestState.COMPLETED),
        (RequestState.RUNNING, CompleteEmpty, RequestState.COMPLETED),
        (RequestState.RUNNING, Fail, RequestState.FAILED),
        *((final, kind, final) for final in _FINAL for kind in get_args(events.CassandraEvent)),
    ]
)


class PlanExhausted:
    """An execution finds no node left in the plan."""


class RequestSettled:
    """The request of an execution is settled, by this one or another."""


_ABORTED_OR_ANSWERED = (events.AttemptAborted, events.ResultReceived, events.ErrorReceived)

EXECUTION_TRANSITIONS: Mapping[ExecutionState, Mapping[type, ExecutionState]] = transition_table(
    [
        (ExecutionState.SENDING, events.ConnectionMissed, ExecutionState.SENDING),
        *((ExecutionState.SENDING, kind, ExecutionState.SENDING) for kind in _ABORTED_OR_ANSWERED),
        (ExecutionState.SENDING, events.RequestWritten, ExecutionState.WAITING),
        (ExecutionState.SENDING, Send, ExecutionState.SENDING),
        (ExecutionState.SENDING, Reprepare, ExecutionState.PREPARING),
        (ExecutionState.SENDING, PlanExhausted, ExecutionState.ENDED),
        *((ExecutionState.WAITING, kind, ExecutionState.WAITING) for kind in _ABORTED_OR_ANSWERED),
        (ExecutionState.WAITING, Send, ExecutionState.SENDING),
        (ExecutionState.WAITING, Reprepare, ExecutionState.PREPARING),
        (ExecutionState.WAITING, PlanExhausted, ExecutionState.ENDED),
        *(
            (ExecutionState.PREPARING, kind, ExecutionState.PREPARING)
            for kind in get_args(events.AttemptEvent)
            if kind is not events.ResultReceived
        ),
        (ExecutionState.PREPARING, Send, ExecutionState.SENDING),
        (ExecutionState.PREPARING, PlanExhausted, ExecutionState.ENDED),
        *((state, RequestSettled, ExecutionState.ENDED) for state in ExecutionState),
    ]
)
