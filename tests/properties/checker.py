"""Checker that compares the results of the callers with what the node receives while a script runs.

*Safety*: each result fits a history. No operation is applied twice, or after the client has reported that it is not
applied, and every acknowledged write is applied. *Liveness*: a failure has an excuse, that is, a fault since the
operation started, or an earlier one from which the client had not recovered.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import trio

from tests.properties.scripts import KEYSPACES
from triclinium import CircuitBreakerOptions, errors
from triclinium.health import ClientStatistics
from triclinium_core.kv.operation.document_operations import DocumentOperation
from triclinium_core.kv.operation.results import Result
from triclinium_core.retry.couchbase import BreakerState, Service, may_be_applied
from triclinium_core.testing import FakeNode, FakeNodeOptions, FakeNodes, HangUp, LoggedCommand, NodeAction, SendReply
from triclinium_core.testing.fakes.faults import CommandFault, DropResponse, WrongLength
from triclinium_core.testing.oracle.excuses import Excuses
from triclinium_core.testing.oracle.ledger import Ledger
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.submissions import Submission, Violation

NODE = 0
"""Index of the node, which is the only one in the cluster."""

BREAKER = CircuitBreakerOptions(volume_threshold=3)
"""Breaker options with which a few timeouts open the breaker, so that short scripts cover an open breaker."""


@dataclass
class Checker:
    """Observations of one client and its node, and the checks of the client's results.

    Args:
        statistics: function that returns the client's statistics, or empty ones before there is a client.
    """

    statistics: Callable[[], ClientStatistics] = ClientStatistics
    is_cut_off: Callable[[], bool] = lambda: False
    """Function that returns whether a stream is broken and the client has not noticed."""
    violations: list[Violation] = field(default_factory=list)
    """Violations found while the node runs. ``check`` raises the first one, because the node cannot raise it."""

    def __post_init__(self) -> None:
        self._model = Model()
        self._ledger = Ledger(KEYSPACES)
        self._excuses: Excuses
        self._ended: set[int] = set()
        """Connections that the node has closed and the client has not closed yet."""
        self._open: set[int] = set()
        self._commands_read = 0
        self._unanswered: dict[int, list[CommandFault]] = {}
        """For each connection, the faults that suppressed a response."""

    def follow(self, node: FakeNode) -> None:
        """Set the node to observe."""
        self._excuses = Excuses(FakeNodes.around(node), self._model, self._ledger, BREAKER)

    # Calls, their results, and recorded violations.

    @property
    def model(self) -> Model:
        """Model of the callers' results, with its clock set to the current time."""
        self._model.now = trio.current_time()
        return self._model

    def submitted(self, token: int, operation: DocumentOperation) -> Submission:
        """Record the submission of an operation."""
        submission = self.model.submitted(token, operation)
        assert submission is not None
        self._ledger.submitted(submission, deadline=0)
        self._excuses.submitted(submission, ill=set() if self.is_healthy else {NODE})
        return submission

    def completed(self, submission: Submission, result: Result) -> None:
        """Check the result of an operation."""
        self._ledger.completed(submission)
        self.model.completed(submission.token, result)

    def failed(self, submission: Submission, error: errors.CouchbaseException) -> None:
        """Check the error of an operation, and whether there was an excuse for the failure."""
        self._ledger.abandoned(submission, ambiguous=may_be_applied(error))
        self.model.failed(submission.token, error)
        self._excuses.check_failure(submission, error)

    def abandoned(self, submission: Submission, *, ambiguous: bool) -> None:
        """Check the ambiguity that the client reported for an abandoned operation."""
        self._ledger.abandoned(submission, ambiguous=ambiguous)
        self.model.abandoned(submission.token, ambiguous=ambiguous)

    def check(self) -> None:
        """Raise the first recorded violation, if there is one."""
        if self.violations:
            raise self.violations[0]

    # Events at the node.

    def opened(self, connection: int) -> None:
        """Record an opened connection."""
        self._open.add(connection)

    def sent(self, connection: int, data: bytes) -> None:
        """Record bytes that the client has sent."""
        self._ledger.ordered(connection, data)
        self._ledger.left(connection, sys.maxsize)

    def commanded(self, connection: int, log: Sequence[LoggedCommand]) -> None:
        """Read the commands that the node has logged since the previous call."""
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
        """Record the responses that the node sends and the connections that it closes."""
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
        """Record that a connection has failed."""
        self._excuses.lost(self.model.instant(), NODE)

    # State of the client.

    @property
    def is_healthy(self) -> bool:
        """Whether every connection is ready, no breaker is open, and the client has noticed every failure."""
        connections = self.statistics().connections
        return (
            all(connection.state == "READY" for connection in connections)
            and not self._ended
            and not self.is_cut_off()
            and not any(self._excuses.is_stuck(connection) for connection in self._open)
            and not self._open_breakers()
        )

    def may_be_in_flight(self, requests: int) -> bool:
        """Return whether ``requests`` requests of an idle client may still be without a response."""
        faults = [fault for faults in self._unanswered.values() for fault in faults]
        # A response with a wrong length swallows other complete responses if it ends exactly where one of them ends.
        return len(faults) == requests or any(isinstance(fault, WrongLength) for fault in faults)

    def describe(self) -> str:
        """Return the states of the connections and of the breakers that are not closed, as text."""
        connections = self.statistics().connections
        states = [f"{connection.bucket}: {connection.state}, {connection.last_error}" for connection in connections]
        return "; ".join([*states, *map(str, self._open_breakers())])

    def _open_breakers(self) -> Sequence[BreakerState]:
        breakers = [connection.circuit_breaker for connection in self.statistics().connections]
        return [breaker.state for breaker in breakers if breaker and breaker.state is not BreakerState.CLOSED]


class CheckedNode(FakeNode):
    """Fake node that reports to a checker what it receives and what it does."""

    def __init__(self, options: FakeNodeOptions, checker: Checker) -> None:
        super().__init__(options)
        self._checker = checker
        checker.follow(self)

    def accepts(self, now: float) -> bool:
        """Return whether the node accepts a connection. Report a refusal."""
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
        """Report the opened connection."""
        self._checker.opened(connection)
        return super().connection_opened(connection, now, service=service, unsent_size_max=unsent_size_max)

    def bytes_received(self, connection: int, data: bytes, now: float) -> Sequence[NodeAction]:
        """Report the received commands and the responses."""
        self._checker.sent(connection, data)
        actions = super().bytes_received(connection, data, now)
        self._checker.commanded(connection, self.command_log)
        self._checker.answered(actions)
        return actions

    def connection_lost(self, connection: int, now: float) -> None:
        """Report the connection that the client has closed."""
        super().connection_lost(connection, now)
        self._checker.lost(connection)

    def time_passed(self, now: float) -> Sequence[NodeAction]:
        """Report the responses that were delayed until now."""
        actions = super().time_passed(now)
        self._checker.answered(actions)
        return actions
