"""A small Cassandra driver: it performs the actions of the request machine, and decides nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import trio
import trio.testing

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import (
    CassandraError,
    CoordinatorError,
    ServerError,
    Unavailable,
    Unprepared,
)
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.requests.actions import (
    Cancel,
    CassandraAction,
    Complete,
    CompleteEmpty,
    Fail,
    Reprepare,
    Send,
)
from triclinium_core.retry.cassandra.requests.cassandra_request import CassandraRequest
from triclinium_core.retry.cassandra.requests.events import (
    CassandraEvent,
    ConnectionMissed,
    ErrorReceived,
    RequestAbandoned,
    RequestStarted,
    RequestWritten,
    ResultReceived,
    StatementPrepared,
    TimerFired,
)
from triclinium_core.retry.cassandra.requests.request_machine import RequestMachine
from triclinium_core.retry.cassandra.requests.speculation import ConstantSpeculativeExecutionPolicy

DOWN, ROWS, PREPARED = "no connection", "rows", "prepared"
QUORUM = ConsistencyLevel.QUORUM


@dataclass
class Node:
    """A node that sends scripted responses, and then rows."""

    answers: Iterator[str | CoordinatorError] = field(default_factory=lambda: iter(()))
    delay: float = 0.01


class Driver:
    """Driver of requests to scripted nodes. A real driver sends them over connections; all other code is the same."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes

    async def execute(self, request: CassandraRequest) -> object:
        """Return the rows, or None if an error was ignored; raise the error of the request."""
        machine = RequestMachine(request, self.nodes)
        call = Call(self.nodes)
        async with trio.open_nursery() as nursery:
            try:
                call.hear(RequestStarted())
                while call.end is None:
                    event: CassandraEvent = TimerFired()
                    with trio.move_on_at(machine.wakeup):  # the machine uses trio's clock
                        event = await call.events.receive()
                    call.carry_out(machine.handle(event, trio.current_time()), nursery)
            finally:
                # The caller may have been cancelled. If the request has ended, the machine ignores this event.
                call.carry_out(machine.handle(RequestAbandoned(), trio.current_time()), nursery)
        if isinstance(call.end, Fail):
            raise call.end.error
        return call.end.result if isinstance(call.end, Complete) else None


class Call:
    """State of one request."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self.inbox, self.events = trio.open_memory_channel[CassandraEvent](math.inf)
        self.attempts: dict[int, trio.CancelScope] = {}
        self.end: Complete | CompleteEmpty | Fail | None = None

    def hear(self, event: CassandraEvent) -> None:
        """Queue an event for the machine."""
        self.inbox.send_nowait(event)

    def carry_out(self, actions: Sequence[CassandraAction], nursery: trio.Nursery) -> None:
        """Perform the actions in order."""
        for action in actions:
            match action:
                case Send() | Reprepare():
                    self.attempts[action.attempt] = trio.CancelScope()
                    nursery.start_soon(self.attempt, action)
                case Cancel(attempt):
                    # A real driver keeps the stream id until the response arrives, and then discards the response.
                    self.attempts[attempt].cancel()
                case Complete() | CompleteEmpty() | Fail():
                    self.end = action

    async def attempt(self, order: Send | Reprepare) -> None:
        """Send the request, wait, and report the result."""
        node = self.nodes[str(order.node)]
        with self.attempts[order.attempt]:
            answer = next(node.answers, ROWS) if isinstance(order, Send) else PREPARED
            shown = answer if isinstance(answer, str) else type(answer).__name__
            reported(f"{order.node} {in_words(order)}: {shown if answer == DOWN else f'{shown} in {node.delay:g} s'}")
            if answer == DOWN:
                self.hear(ConnectionMissed(order.attempt))
                return
            self.hear(RequestWritten(order.attempt))
            await trio.sleep(node.delay)
            if isinstance(answer, CoordinatorError):
                self.hear(ErrorReceived(order.attempt, answer))
            elif isinstance(order, Reprepare):
                self.hear(StatementPrepared(order.attempt, order.statement_id))
            else:
                self.hear(ResultReceived(order.attempt, answer))


def in_words(order: Send | Reprepare) -> str:
    """Return in words what a node does for an order."""
    if isinstance(order, Reprepare):
        return "prepares"
    return "executes" if order.consistency is None else f"executes at {order.consistency.name}"


def reported(line: str) -> None:
    """Print a line with the current time."""
    print(f"{trio.current_time():6.2f} s  {line}")


def three(*answers: str | CoordinatorError, delay: float = 0.01) -> Driver:
    """Return a driver with three nodes; the first responds as given."""
    return Driver({"n1": Node(iter(answers), delay), "n2": Node(), "n3": Node()})


SCENES: Mapping[str, tuple[Driver, CassandraRequest]] = {
    "A node that is down, and one that is alone": (
        Driver({"n1": Node(iter([DOWN])), "n2": Node(iter([Unavailable(consistency=QUORUM, required=2, alive=1)]))}),
        CassandraRequest(policy=ConsistencyDowngradingRetryPolicy(), consistency=QUORUM),
    ),
    "A slow node": (
        three(delay=1.5),
        CassandraRequest(
            policy=DefaultRetryPolicy(),
            idempotent=True,
            speculation=ConstantSpeculativeExecutionPolicy(max_executions=2, delay=0.1),
        ),
    ),
    "A node that was restarted": (
        three(Unprepared(statement_id=b"id")),
        CassandraRequest(policy=DefaultRetryPolicy()),
    ),
    "A write that may not be repeated": (
        three(ServerError("no disk")),
        CassandraRequest(policy=DefaultRetryPolicy()),
    ),
    "No response in time": (
        three(delay=5),
        CassandraRequest(policy=DefaultRetryPolicy(), timeout=2.0),
    ),
}


async def main() -> None:
    """Run each scene, and print the caller's result."""
    for title, (driver, request) in SCENES.items():
        print(title)
        try:
            result = await driver.execute(request)
        except CassandraError as error:
            reported(f"the caller gets {type(error).__name__}: {error}")
        else:
            reported(f"the caller gets {result}")


trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
