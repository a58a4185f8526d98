"""Requests, errors and a speculation policy that the tests of Cassandra requests share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tests.core.retry.cassandra.policies_for_tests import Always
from triclinium_core.retry import cassandra

QUORUM = cassandra.ConsistencyLevel.QUORUM
SERVER = cassandra.ServerError("no")
CLOSED = cassandra.ClosedConnection("closed")
READ = cassandra.ReadTimeout(consistency=QUORUM, block_for=2, received=1, data_present=False)
WRITE = cassandra.WriteTimeout(consistency=QUORUM, write_type=cassandra.WriteType.SIMPLE, block_for=2, received=1)
UNAVAILABLE = cassandra.Unavailable(consistency=QUORUM, required=2, alive=1)
UNPREPARED = cassandra.Unprepared(statement_id=b"id")
NEVER_ASKED = Always(AssertionError("the policy must not be called"))

START = 100.0
NOTHING = cassandra.NoSpeculativeExecution()
DEFAULT = cassandra.DefaultRetryPolicy()


class Says:
    """Speculation policy that always returns one object, or raises it if it is an exception."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[Hashable, int]] = []

    def next_execution(self, *, node: Hashable, running: int) -> float | None:
        """Return ``answer``, or raise it if it is an exception."""
        self.asked.append((node, running))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


def request(
    policy: cassandra.RetryPolicy = DEFAULT,
    *,
    idempotent: bool = True,
    kind: cassandra.RequestKind = cassandra.RequestKind.STATEMENT,
    consistency: cassandra.ConsistencyLevel | None = None,
    timeout: float = 2.0,
    speculation: cassandra.SpeculativeExecutionPolicy = NOTHING,
) -> cassandra.CassandraRequest:
    """Return a request, idempotent by default."""
    return cassandra.CassandraRequest(
        policy=policy,
        idempotent=idempotent,
        kind=kind,
        consistency=consistency,
        timeout=timeout,
        speculation=speculation,
    )


def prepare(policy: cassandra.RetryPolicy = DEFAULT) -> cassandra.CassandraRequest:
    """Return a PREPARE that is not marked idempotent."""
    return request(policy, idempotent=False, kind=cassandra.RequestKind.PREPARE)


def submitted(
    asked: cassandra.CassandraRequest, plan: Sequence[Hashable] = ("n1", "n2", "n3")
) -> cassandra.RequestMachine:
    """Return the machine of a request that was submitted at START; attempt 0 was sent to the first node."""
    machine = cassandra.RequestMachine(asked, plan)
    machine.handle(cassandra.RequestStarted(), START)
    return machine


def hear(
    machine: cassandra.RequestMachine, *events: cassandra.CassandraEvent, at: float = START
) -> list[cassandra.CassandraAction]:
    """Pass the events to the machine. Return the actions that follow the last event."""
    actions: Sequence[cassandra.CassandraAction] = ()
    for event in events:
        actions = machine.handle(event, at)
    return list(actions)


def sends(actions: Sequence[cassandra.CassandraAction]) -> list[cassandra.Send]:
    """Return only the Send actions."""
    return [action for action in actions if isinstance(action, cassandra.Send)]


def error_of(actions: Sequence[cassandra.CassandraAction]) -> cassandra.CassandraError:
    """Return the error of the request's Fail action."""
    assert isinstance(actions[-1], cassandra.Fail), actions
    return actions[-1].error
