"""Requests for tests, and errors to meet."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tests.core.retry.cassandra.policies_for_tests import Always
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import (
    CassandraError,
    ClosedConnection,
    ReadTimeout,
    ServerError,
    Unavailable,
    Unprepared,
    WriteTimeout,
)
from triclinium_core.retry.cassandra.policies import DefaultRetryPolicy
from triclinium_core.retry.cassandra.policy import RetryPolicy
from triclinium_core.retry.cassandra.requests.actions import CassandraAction, Fail, Send
from triclinium_core.retry.cassandra.requests.cassandra_request import CassandraRequest, RequestKind
from triclinium_core.retry.cassandra.requests.events import CassandraEvent, RequestStarted
from triclinium_core.retry.cassandra.requests.request_machine import RequestMachine
from triclinium_core.retry.cassandra.requests.speculation import NoSpeculativeExecution, SpeculativeExecutionPolicy

QUORUM = ConsistencyLevel.QUORUM
SERVER = ServerError("no")
CLOSED = ClosedConnection("closed")
READ = ReadTimeout(consistency=QUORUM, block_for=2, received=1, data_present=False)
WRITE = WriteTimeout(consistency=QUORUM, write_type=WriteType.SIMPLE, block_for=2, received=1)
UNAVAILABLE = Unavailable(consistency=QUORUM, required=2, alive=1)
UNPREPARED = Unprepared(statement_id=b"id")
NEVER_ASKED = Always(AssertionError("the policy was asked"))

START = 100.0
NOTHING = NoSpeculativeExecution()
DEFAULT = DefaultRetryPolicy()


def request(
    policy: RetryPolicy = DEFAULT,
    *,
    idempotent: bool = True,
    kind: RequestKind = RequestKind.STATEMENT,
    consistency: ConsistencyLevel | None = None,
    timeout: float = 2.0,
    speculation: SpeculativeExecutionPolicy = NOTHING,
) -> CassandraRequest:
    """Return a request, idempotent unless told otherwise."""
    return CassandraRequest(
        policy=policy,
        idempotent=idempotent,
        kind=kind,
        consistency=consistency,
        timeout=timeout,
        speculation=speculation,
    )


def prepare(policy: RetryPolicy = DEFAULT) -> CassandraRequest:
    """Return a PREPARE, which nobody calls idempotent."""
    return request(policy, idempotent=False, kind=RequestKind.PREPARE)


def submitted(asked: CassandraRequest, plan: Sequence[Hashable] = ("n1", "n2", "n3")) -> RequestMachine:
    """Return a request that was submitted at START; its first attempt has number 0 and goes to the first node."""
    machine = RequestMachine(asked, plan)
    machine.handle(RequestStarted(), START)
    return machine


def hear(machine: RequestMachine, *events: CassandraEvent, at: float = START) -> list[CassandraAction]:
    """Return what is ordered after the last of some events."""
    actions: Sequence[CassandraAction] = ()
    for event in events:
        actions = machine.handle(event, at)
    return list(actions)


def sends(actions: Sequence[CassandraAction]) -> list[Send]:
    """Return what is to be sent."""
    return [action for action in actions if isinstance(action, Send)]


def error_of(actions: Sequence[CassandraAction]) -> CassandraError:
    """Return what the request failed with."""
    assert isinstance(actions[-1], Fail), actions
    return actions[-1].error
