"""Driver without a network: it executes the actions of a request machine on scripted nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import AttemptAborted

ROWS = "rows"
"""Script item: the node returns rows."""
MISSING = "missing"
"""Script item: the driver has no connection to the node."""
UNSENT = "unsent"
"""Script item: the connection closes before the driver has written a byte."""
SILENCE = "silence"
"""Script item: the node sends no response."""

Answer = str | cassandra.CassandraError
Script = Sequence[Answer] | Callable[[cassandra.Send | cassandra.Reprepare], Answer]


@dataclass(slots=True)
class ScriptedCluster:
    """Nodes by name. Each node sends the responses in its list and then rows, or what its function returns."""

    nodes: Mapping[Hashable, Script]
    sent: list[cassandra.Send | cassandra.Reprepare] = field(default_factory=list)

    def answer(self, order: cassandra.Send | cassandra.Reprepare) -> list[cassandra.CassandraEvent]:
        """Return the events that the driver reports for an attempt."""
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
        """Return how many requests each of ``nodes`` received, at one consistency level or in total."""
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
    """Everything that a request did until ``play`` returned."""

    machine: cassandra.RequestMachine
    cluster: ScriptedCluster
    actions: list[cassandra.CassandraAction]

    @property
    def end(self) -> cassandra.CassandraAction | None:
        """The final action of the request, or None without one."""
        ends = [
            action
            for action in self.actions
            if isinstance(action, cassandra.Complete | cassandra.CompleteEmpty | cassandra.Fail)
        ]
        assert len(ends) <= 1
        return ends[0] if ends else None

    @property
    def result(self) -> object:
        """The rows of the request, or None if it completed without rows."""
        end = self.end
        assert isinstance(end, cassandra.Complete | cassandra.CompleteEmpty), end
        return end.result if isinstance(end, cassandra.Complete) else None

    @property
    def ending(self) -> object:
        """The rows, None without rows, or the class of the error that failed the request."""
        return type(self.error) if isinstance(self.end, cassandra.Fail) else self.result

    @property
    def error(self) -> cassandra.CassandraError:
        """The error that failed the request."""
        assert isinstance(self.end, cassandra.Fail), self.end
        return self.end.error

    @property
    def info(self) -> cassandra.ExecutionInfo:
        """The execution info of the result or the error."""
        end = self.end
        assert end is not None
        if isinstance(end, cassandra.Fail):
            assert end.error.execution_info is end.info
        assert isinstance(end, cassandra.Complete | cassandra.CompleteEmpty | cassandra.Fail)
        return end.info


def play(
    request: cassandra.CassandraRequest, nodes: Mapping[Hashable, Script], *, plan: Iterable[Hashable] | None = None
) -> Run:
    """Run a request until it ends or all its attempts wait for a silent node. The clock stands still."""
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
