"""A driver without a network: it carries out a request machine's orders against nodes that answer by a script."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import CassandraError, ClosedConnection, CoordinatorError, ExecutionInfo
from triclinium_core.retry.cassandra.requests.actions import (
    CassandraAction,
    Complete,
    CompleteEmpty,
    Fail,
    Reprepare,
    Send,
)
from triclinium_core.retry.cassandra.requests.cassandra_request import CassandraRequest
from triclinium_core.retry.cassandra.requests.events import (
    AttemptAborted,
    CassandraEvent,
    ConnectionMissed,
    ErrorReceived,
    RequestStarted,
    RequestWritten,
    ResultReceived,
    StatementPrepared,
)
from triclinium_core.retry.cassandra.requests.request_machine import RequestMachine

ROWS = "rows"
"""What a node answers that has an answer."""
MISSING = "missing"
"""There is no connection to the node."""
UNSENT = "unsent"
"""The connection closes before a byte is handed over."""
SILENCE = "silence"
"""The node does not answer."""

Answer = str | CassandraError
Script = Sequence[Answer] | Callable[[Send | Reprepare], Answer]


@dataclass(slots=True)
class ScriptedCluster:
    """Nodes by name; each answers what stands in its list, and rows from then on, or what its function says."""

    nodes: Mapping[Hashable, Script]
    sent: list[Send | Reprepare] = field(default_factory=list)

    def answer(self, order: Send | Reprepare) -> list[CassandraEvent]:
        """Return what a driver hears of an attempt."""
        script = self.nodes.get(order.node, ())
        earlier = sum(other.node == order.node for other in self.sent)
        self.sent.append(order)
        answer = script(order) if callable(script) else script[earlier] if earlier < len(script) else ROWS
        return self._heard(order, answer)

    def _heard(self, order: Send | Reprepare, answer: Answer) -> list[CassandraEvent]:
        attempt = order.attempt
        written = RequestWritten(attempt)
        match answer:
            case "missing":
                self.sent.pop()
                return [ConnectionMissed(attempt)]
            case "unsent":
                self.sent.pop()
                return [AttemptAborted(attempt, ClosedConnection("closed"), 0)]
            case "silence":
                return [written]
            case CoordinatorError():
                return [written, ErrorReceived(attempt, answer)]
            case CassandraError():
                return [written, AttemptAborted(attempt, answer)]  # type: ignore[arg-type]
            case _ if isinstance(order, Reprepare):
                return [written, StatementPrepared(attempt, order.statement_id)]
            case _:
                return [written, ResultReceived(attempt, answer)]

    def counts(self, *nodes: Hashable, consistency: ConsistencyLevel | None = None) -> tuple[int, ...]:
        """Return how many requests each of the nodes got, at one level or at all."""
        return tuple(
            sum(
                order.node == node and (consistency is None or order.consistency is consistency)
                for order in self.sent
                if isinstance(order, Send)
            )
            for node in nodes
        )


@dataclass(slots=True)
class Run:
    """How a request ended."""

    machine: RequestMachine
    cluster: ScriptedCluster
    actions: list[CassandraAction]

    @property
    def end(self) -> CassandraAction | None:
        """What the caller got; None where it still waits."""
        ends = [action for action in self.actions if isinstance(action, Complete | CompleteEmpty | Fail)]
        assert len(ends) <= 1
        return ends[0] if ends else None

    @property
    def result(self) -> object:
        """The result; None for no rows."""
        end = self.end
        assert isinstance(end, Complete | CompleteEmpty), end
        return end.result if isinstance(end, Complete) else None

    @property
    def ending(self) -> object:
        """The result, None for no rows, or the class of what was raised."""
        return type(self.error) if isinstance(self.end, Fail) else self.result

    @property
    def error(self) -> CassandraError:
        """What was raised."""
        assert isinstance(self.end, Fail), self.end
        return self.end.error

    @property
    def info(self) -> ExecutionInfo:
        """How it went."""
        end = self.end
        assert end is not None
        if isinstance(end, Fail):
            assert end.error.execution_info is end.info
        assert isinstance(end, Complete | CompleteEmpty | Fail)
        return end.info


def play(request: CassandraRequest, nodes: Mapping[Hashable, Script], *, plan: Iterable[Hashable] | None = None) -> Run:
    """Play a request to its end, or to where all wait for a node that is silent; no time passes."""
    machine, cluster = RequestMachine(request, list(nodes) if plan is None else plan), ScriptedCluster(nodes)
    run = Run(machine, cluster, [])
    events: list[CassandraEvent] = [RequestStarted()]
    while events:
        actions = machine.handle(events.pop(0), 0.0)
        run.actions += actions
        for action in actions:
            if isinstance(action, Send | Reprepare):
                events += cluster.answer(action)
    return run
