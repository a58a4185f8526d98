"""A driver without a network, which executes the actions of a request machine on scripted nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import AttemptAborted

ROWS = "rows"
"""The node sends a result."""
MISSING = "missing"
"""The node has no connection."""
UNSENT = "unsent"
"""The connection closes before a byte is written."""
SILENCE = "silence"
"""The node sends no response."""

Answer = str | cassandra.CassandraError
Script = Sequence[Answer] | Callable[[cassandra.Send | cassandra.Reprepare], Answer]


@dataclass(slots=True)
class ScriptedCluster:
    """Nodes by name; each sends the responses of its list, then rows, or calls its function."""

    nodes: Mapping[Hashable, Script]
    sent: list[cassandra.Send | cassandra.Reprepare] = field(default_factory=list)

    def answer(self, order: cassandra.Send | cassandra.Reprepare) -> list[cassandra.CassandraEvent]:
        """Return the driver's events for an attempt."""
        script = self.nodes.get(order.node, ())
        earlier = sum(other.node == order.node for other in self.sent)
        self.sent.append(order)
        answer = script(order) if callable(script) else script[earlier] if earlier < len(script) else ROWS
        return self._received(order, answer)

    def _received(self, order: cassandra.Send | cassandra.Reprepare, answer: Answer) -> list[cassandra.CassandraEvent]:
        attempt = order.attempt
        written = cassandra.RequestWritten(attempt)
        match answer:
            case "missing":
                self.sent.pop()
                return [cassandra.ConnectionMissed(attempt)]
            case "unsent":
                self.sent.pop()
                return [AttemptAborted(attempt, cassandra.ClosedConnection("closed"), 0)]
            case "silence":
                return [written]
            case cassandra.CoordinatorError():
                return [written, cassandra.ErrorReceived(attempt, answer)]
            case cassandra.CassandraError():
                return [written, AttemptAborted(attempt, answer)]  # type: ignore[arg-type]
            case _ if isinstance(order, cassandra.Reprepare):
                return [written, cassandra.StatementPrepared(attempt, order.statement_id)]
            case _:
                return [written, cassandra.ResultReceived(attempt, answer)]

    def counts(self, *nodes: Hashable, consistency: cassandra.ConsistencyLevel | None = None) -> tuple[int, ...]:
        """Return how many requests each node received, at one level or in total."""
        return tuple(
            sum(
                order.node == node and (consistency is None or order.consistency is consistency)
                for order in self.sent
                if isinstance(order, cassandra.Send)
            )
            for node in nodes
        )


@dataclass(slots=True)
class Run:
    """Result of a request."""

    machine: cassandra.RequestMachine
    cluster: ScriptedCluster
    actions: list[cassandra.CassandraAction]

    @property
    def end(self) -> cassandra.CassandraAction | None:
        """Final action of the request; None if it is still running."""
        ends = [
            action
            for action in self.actions
            if isinstance(action, cassandra.Complete | cassandra.CompleteEmpty | cassandra.Fail)
        ]
        assert len(ends) <= 1
        return ends[0] if ends else None

    @property
    def result(self) -> object:
        """Result; None without rows."""
        end = self.end
        assert isinstance(end, cassandra.Complete | cassandra.CompleteEmpty), end
        return end.result if isinstance(end, cassandra.Complete) else None

    @property
    def ending(self) -> object:
        """Result, None without rows, or the class of the error."""
        return type(self.error) if isinstance(self.end, cassandra.Fail) else self.result

    @property
    def error(self) -> cassandra.CassandraError:
        """Error of the request."""
        assert isinstance(self.end, cassandra.Fail), self.end
        return self.end.error

    @property
    def info(self) -> cassandra.ExecutionInfo:
        """Execution info of the request."""
        end = self.end
        assert end is not None
        if isinstance(end, cassandra.Fail):
            assert end.error.execution_info is end.info
        assert isinstance(end, cassandra.Complete | cassandra.CompleteEmpty | cassandra.Fail)
        return end.info


def play(
    request: cassandra.CassandraRequest, nodes: Mapping[Hashable, Script], *, plan: Iterable[Hashable] | None = None
) -> Run:
    """Run a request until it ends or all its attempts wait for a silent node; no time passes."""
    machine, cluster = cassandra.RequestMachine(request, list(nodes) if plan is None else plan), ScriptedCluster(nodes)
    run = Run(machine, cluster, [])
    events: list[cassandra.CassandraEvent] = [cassandra.RequestStarted()]
    while events:
        actions = machine.handle(events.pop(0), 0.0)
        run.actions += actions
        for action in actions:
            if isinstance(action, cassandra.Send | cassandra.Reprepare):
                events += cluster.answer(action)
    return run
