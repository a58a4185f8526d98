"""Life cycle of a request over its query plan, and of one execution of it, as two tables.

Theory of operation
-------------------

A request is **NEW** until it is submitted and **RUNNING** until it is settled. While it runs it has one execution. An
idempotent request also has speculative executions if its policy starts them. All executions take nodes from one plan.

An execution is **SENDING** from the ``Send`` to a node until the request is known to be written, then **WAITING** for
the response. The connection may be missing, the write may fail, or an error may arrive instead of a result: each leads
to the same node or the next one, and so back to SENDING. If a node has forgotten a prepared statement, the execution is
**PREPARING** it there before it is SENDING again. It has **ENDED** when the plan is empty or the request is settled.

A result, an ignored error and a raised error of any execution settle the whole request; the attempts of the other
executions are cancelled. An execution that finds the plan empty ends silently, and only the last one makes the request
**FAILED**. **COMPLETED**, **FAILED** and **ABANDONED** are final: later events are ignored, so a request settles once.
The timeout may expire while the request is RUNNING.

The tables give the state that follows: first that of the event, then that of each action that responds to it. An event
that is missing in a state is a mistake of the caller: ``RequestMachine.handle`` raises and changes nothing. An event of
an attempt that has ended, while its execution continues with another one, is too late: it is not looked up in the
second table and changes nothing. Diagrams are generated from these tables, and a test visits every pair.
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
    """State of a request."""

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
    """State of an execution."""

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
    """Transition of an execution that finds no node left in the plan."""


class RequestSettled:
    """Transition of an execution whose request is settled, by this execution or another."""


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
