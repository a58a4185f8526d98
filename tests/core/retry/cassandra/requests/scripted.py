"""A driver without a network: it carries out a request machine's orders against nodes that answer by a script."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import AttemptAborted

ROWS = "rows"
"""What a node answers that has an answer."""
MISSING = "missing"
"""There is no connection to the node."""
UNSENT = "unsent"
"""The connection closes before a byte is handed over."""
SILENCE = "silence"
"""The node does not answer."""

Answer = str | cassandra.CassandraError
Script = Sequence[Answer] | Callable[[cassandra.Send | cassandra.Reprepare], Answer]


@dataclass(slots=True)
class ScriptedCluster:
    """Nodes by name; each answers what stands in its list, and rows from then on, or what its function says."""

    nodes: Mapping[Hashable, Script]
    sent: list[cassandra.Send | cassandra.Reprepare] = field(default_factory=list)

    def answer(self, order: cassandra.Send | cassandra.Reprepare) -> list[cassandra.CassandraEvent]:
        """Return what a driver hears of an attempt."""
        script = self.nodes.get(order.node, ())
        earlier = sum(other.node == order.node for other in self.sent)
        self.sent.append(order)
        answer = script(order) if callable(script) else script[earlier] if earlier < len(script) else ROWS
        return self._heard(order, answer)

    def _heard(self, order: cassandra.Send | cassandra.Reprepare, answer: Answer) -> list[cassandra.CassandraEvent]:
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
        """Return how many requests each of the nodes got, at one level or at all."""
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
    """How a request ended."""

    machine: cassandra.RequestMachine
    cluster: ScriptedCluster
    actions: list[cassandra.CassandraAction]

    @property
    def end(self) -> cassandra.CassandraAction | None:
        """What the caller got; None where it still waits."""
        ends = [
            action
            for action in self.actions
            if isinstance(action, cassandra.Complete | cassandra.CompleteEmpty | cassandra.Fail)
        ]
        assert len(ends) <= 1
        return ends[0] if ends else None

    @property
    def result(self) -> object:
        """The result; None for no rows."""
        end = self.end
        assert isinstance(end, cassandra.Complete | cassandra.CompleteEmpty), end
        return end.result if isinstance(end, cassandra.Complete) else None

    @property
    def ending(self) -> object:
        """The result, None for no rows, or the class of what was raised."""
        return type(self.error) if isinstance(self.end, cassandra.Fail) else self.result

    @property
    def error(self) -> cassandra.CassandraError:
        """What was raised."""
        assert isinstance(self.end, cassandra.Fail), self.end
        return self.end.error

    @property
    def info(self) -> cassandra.ExecutionInfo:
        """How it went."""
        end = self.end
        assert end is not None
        if isinstance(end, cassandra.Fail):
            assert end.error.execution_info is end.info
        assert isinstance(end, cassandra.Complete | cassandra.CompleteEmpty | cassandra.Fail)
        return end.info


def play(
    request: cassandra.CassandraRequest, nodes: Mapping[Hashable, Script], *, plan: Iterable[Hashable] | None = None
) -> Run:
    """Play a request to its end, or to where all wait for a node that is silent; no time passes."""
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
