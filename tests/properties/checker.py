"""What callers are told and what the node sees, held against each other while a script runs.

*Safety*: what a caller is told fits a history, nothing is applied twice, after it was denied, or acknowledged and not
applied. *Liveness*: a failure needs an excuse, something that went wrong since the operation began.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import trio

from tests.properties.scripts import KEYSPACES
from triclinium import CircuitBreakerOptions, ClientStatistics, errors
from triclinium_core.kv.operation.document_operations import DocumentOperation
from triclinium_core.kv.operation.results import Result
from triclinium_core.retry.couchbase import BreakerState, Service
from triclinium_core.testing import FakeNode, FakeNodeOptions, FakeNodes, HangUp, LoggedCommand, NodeAction, SendReply
from triclinium_core.testing.fakes.faults import CommandFault, DropResponse, WrongLength
from triclinium_core.testing.oracle.excuses import Excuses
from triclinium_core.testing.oracle.ledger import Ledger
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.submissions import Submission, Violation, may_be_applied

NODE = 0
"""The only one, by its place in the cluster."""

BREAKER = CircuitBreakerOptions(volume_threshold=3)
"""Few timeouts open it, so that a short script meets it."""


@dataclass
class Checker:
    """All that is known of one client.

    Args:
        statistics: of the client, from when there is one.
    """

    statistics: Callable[[], ClientStatistics] = ClientStatistics
    is_cut_off: Callable[[], bool] = lambda: False
    """Whether a stream is broken, and the client has not found out."""
    violations: list[Violation] = field(default_factory=list)
    """Laws that were broken where nobody could raise."""

    def __post_init__(self) -> None:
        self._model = Model()
        self._ledger = Ledger(KEYSPACES)
        self._excuses: Excuses
        self._ended: set[int] = set()
        """Connections that the node has hung up, and the client has not closed."""
        self._open: set[int] = set()
        self._commands_read = 0
        self._unanswered: dict[int, list[CommandFault]] = {}
        """What kept answers from the client, by connection."""

    def follow(self, node: FakeNode) -> None:
        """Name the node, the only one."""
        self._excuses = Excuses(FakeNodes.around(node), self._model, self._ledger, BREAKER)

    # What callers do and are told.

    @property
    def model(self) -> Model:
        """What the callers know, now."""
        self._model.now = trio.current_time()
        return self._model

    def submitted(self, token: int, operation: DocumentOperation) -> Submission:
        """Record that a caller asks for something."""
        submission = self.model.submitted(token, operation)
        assert submission is not None
        self._ledger.submitted(submission, deadline=0)
        self._excuses.submitted(submission, ill=set() if self.is_healthy else {NODE})
        return submission

    def completed(self, submission: Submission, result: Result) -> None:
        """Check what a caller is told."""
        self._ledger.completed(submission)
        self.model.completed(submission.token, result)

    def failed(self, submission: Submission, error: errors.CouchbaseException) -> None:
        """Check what a caller is told, and the excuse for it."""
        self._ledger.abandoned(submission, ambiguous=may_be_applied(error))
        self.model.failed(submission.token, error)
        self._excuses.check_failure(submission, error)

    def abandoned(self, submission: Submission, *, ambiguous: bool) -> None:
        """Check what a caller is told who leaves."""
        self._ledger.abandoned(submission, ambiguous=ambiguous)
        self.model.abandoned(submission.token, ambiguous=ambiguous)

    def check(self) -> None:
        """Raise the first violation that could not be raised where it was found."""
        if self.violations:
            raise self.violations[0]

    # What the node sees.

    def opened(self, connection: int) -> None:
        """Record a connection."""
        self._open.add(connection)

    def sent(self, connection: int, data: bytes) -> None:
        """Record what the client has sent."""
        self._ledger.ordered(connection, data)
        self._ledger.left(connection, sys.maxsize)

    def commanded(self, connection: int, log: Sequence[LoggedCommand]) -> None:
        """Read what the node has noted since the last time."""
        for command in log[self._commands_read :]:
            instant = self.model.instant()
            if command.fault is not None:
                self._excuses.struck(command, instant, NODE)
            if isinstance(command.fault, DropResponse | WrongLength):
                self._unanswered.setdefault(connection, []).append(command.fault)
            try:
                self._ledger.commanded(command, instant)
            except Violation as violation:
                self.violations.append(violation)
        self._commands_read = len(log)

    def answered(self, actions: Sequence[NodeAction]) -> None:
        """Record what the node sends."""
        for action in actions:
            match action:
                case SendReply(connection, data):
                    self._excuses.delivered(connection, data, NODE, self.model.instant())
                case HangUp(connection):
                    self._ended.add(connection)
                    self.broke()

    def lost(self, connection: int) -> None:
        """Record that the client has closed a connection."""
        self._open.discard(connection)
        self._ended.discard(connection)
        self._unanswered.pop(connection, None)
        self.broke()

    def broke(self) -> None:
        """Record that something went wrong with a connection."""
        self._excuses.lost(self.model.instant(), NODE)

    # Whether there is an excuse.

    @property
    def is_healthy(self) -> bool:
        """Whether every connection is ready to serve, and the client is not mistaken about that."""
        connections = self.statistics().connections
        return (
            all(connection.state == "READY" for connection in connections)
            and not self._ended
            and not self.is_cut_off()
            and not any(self._excuses.is_stuck(connection) for connection in self._open)
            and not self._open_breakers()
        )

    def may_be_in_flight(self, requests: int) -> bool:
        """Tell whether so many requests may be unanswered when nothing is under way."""
        faults = [fault for faults in self._unanswered.values() for fault in faults]
        # A reply of a wrong length takes whole other ones for its own, where it happens to end with one of them.
        return len(faults) == requests or any(isinstance(fault, WrongLength) for fault in faults)

    def describe(self) -> str:
        """Return what is not as it should be."""
        connections = self.statistics().connections
        states = [f"{connection.bucket}: {connection.state}, {connection.last_error}" for connection in connections]
        return "; ".join([*states, *map(str, self._open_breakers())])

    def _open_breakers(self) -> Sequence[BreakerState]:
        breakers = [connection.circuit_breaker for connection in self.statistics().connections]
        return [breaker.state for breaker in breakers if breaker and breaker.state is not BreakerState.CLOSED]


class CheckedNode(FakeNode):
    """A node that tells a checker what it sees and does."""

    def __init__(self, options: FakeNodeOptions, checker: Checker) -> None:
        super().__init__(options)
        self._checker = checker
        checker.follow(self)

    def accepts(self, now: float) -> bool:
        """Tell of a refusal."""
        accepts = super().accepts(now)
        if not accepts:
            self._checker.broke()
        return accepts

    def connection_opened(
        self,
        connection: int,
        now: float,
        *,
        service: Service = Service.KV,
        unsent_size_max: float = math.inf,
    ) -> Sequence[NodeAction]:
        """Tell of a connection."""
        self._checker.opened(connection)
        return super().connection_opened(connection, now, service=service, unsent_size_max=unsent_size_max)

    def bytes_received(self, connection: int, data: bytes, now: float) -> Sequence[NodeAction]:
        """Tell of every command, and of what is answered."""
        self._checker.sent(connection, data)
        actions = super().bytes_received(connection, data, now)
        self._checker.commanded(connection, self.command_log)
        self._checker.answered(actions)
        return actions

    def connection_lost(self, connection: int, now: float) -> None:
        """Tell of a connection that the client has closed."""
        super().connection_lost(connection, now)
        self._checker.lost(connection)

    def time_passed(self, now: float) -> Sequence[NodeAction]:
        """Tell of what is answered late."""
        actions = super().time_passed(now)
        self._checker.answered(actions)
        return actions
