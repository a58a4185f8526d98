"""Two transition tables: the life cycle of a request, and the life cycle of one execution of the request.

Theory of operation
-------------------

A request is **NEW** until it is submitted, and **RUNNING** until it ends. A running request has at least one execution.
An idempotent request also has speculative executions if its policy starts them. All executions take their nodes from
one query plan.

An execution is **SENDING** from the ``Send`` to a node until the driver reports that the request is written. It is then
**WAITING** for the response. If the node has no connection, the attempt is aborted, or the node sends an error, the
execution may send the request again, to the same node or to the next one: it is then SENDING again. If a node has
forgotten a prepared statement, the execution is **PREPARING** the statement on that node before it is SENDING again.
The execution has **ENDED** when it finds the plan empty, or when the request ends.

A request ends with the first result, ignored error or raised error of any execution. The machine then cancels the
attempts of the other executions. If an execution finds the plan empty while others continue, it ends without a report.
If the last execution finds the plan empty, the request is **FAILED**. The timeout may expire while the request is
RUNNING. **COMPLETED**, **FAILED** and **ABANDONED** are final: the machine ignores later events, so a request ends only
once.

An event and each action that follows it cause transitions, in this order; the tables give the next states. If a table
has no row for a state and an event, the caller has made a mistake: ``RequestMachine.handle`` raises and changes
nothing. An event of an attempt that has ended, while its execution continues with another attempt, is too late: the
machine ignores it and does not look it up in the second table. Diagrams are generated from these tables, and a test
visits every pair.
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
    """State of a request; the docstring of the module describes each state."""

    NEW = "new"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ABANDONED = "abandoned"

    @property
    def is_final(self) -> bool:
        """Whether the request has ended."""
        return self in _FINAL


@unique
class ExecutionState(Enum):
    """State of an execution; the docstring of the module describes each state."""

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
    """Input of the second table: the execution found no further node in the plan."""


class RequestSettled:
    """Input of the second table: this execution or another one has ended the request."""


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
