"""A machine that orders what a test has written down, and remembers what it heard."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from triclinium_core.client.health.statistics import ClientStatistics
from triclinium_core.contract.couchbase import (
    Action,
    Event,
    OperationAbandoned,
    OperationsSubmitted,
    OperationSubmitted,
    ReportTelemetry,
    RequestSubmitted,
)
from triclinium_core.contract.neutral import BytesReceived, StreamId, StreamLost, TimePassed, Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.reports import ClusterState, DiagnosticsResult
from triclinium_core.kv.topology.topology import Topology
from triclinium_core.options import Authenticator
from triclinium_core.shown import total_repr
from triclinium_core.work import PIECE_WORK

Answer = Callable[[Event], Sequence[Action]]
"""What a scripted machine orders when it hears of an event."""


class LawBroken(AssertionError):
    """The driver breaks the contract; the message says which part of it, and what was seen."""


def nothing(event: Event) -> Sequence[Action]:
    """Order nothing: the answer of a machine that has none."""
    return ()


def on(kind: type[Event], *actions: Action) -> Answer:
    """Return the answer that orders ``actions`` at every event of one kind."""
    return lambda event: actions if isinstance(event, kind) else ()


class ScriptedMachine:
    """Stands where a driver has its ``ClientMachine``, and decides nothing.

    Args:
        answer: what to order; it may be replaced, and ``wakeup`` be set, at any time.
    """

    def __init__(self, answer: Answer = nothing) -> None:
        self.answer = answer
        self.events: list[Event] = []
        """What was heard, oldest first."""
        self.times: list[float] = []
        """When each event was heard."""
        self.works: list[int] = []
        """Units of work at each event."""
        self.wakeup: float = math.inf
        self.work: int = 0
        """Units of work on received bytes: only the reading, unless the test adds more."""
        self.ambiguous: set[Token] = set()
        """Operations that may have been applied."""
        self.contexts: dict[Token, ErrorContext] = {}
        """What is known of operations that are given up."""
        self.is_busy: bool = False
        """Whether ``handle`` is running."""
        self.broken: list[LawBroken] = []
        """What the driver has done to the machine that it must not, for it may swallow what ``handle`` raises."""
        self.topologies: Sequence[Topology] = ()
        self.reports: Sequence[ReportTelemetry] = ()
        """What is left to tell at the end."""

    @total_repr
    def __repr__(self) -> str:
        return f"<ScriptedMachine: {len(self.events)} events>"

    def handle(self, event: Event, now: float) -> Sequence[Action]:
        """Return what ``answer`` says; to several submissions at once, what it says to each, or to none where one raises.

        Raises:
            LawBroken: a call is under way, or the time went back.
        """
        if self.is_busy:
            self._break(f"the machine is not re-entrant: it was told of {event!r} while it handled {self.events[-1]!r}")
        if self.times and now < self.times[-1]:
            self._break(f"the time went back from {self.times[-1]!r} to {now!r}, at {event!r}")
        self.is_busy = True
        self.work += PIECE_WORK * isinstance(event, BytesReceived)
        try:
            if isinstance(event, OperationsSubmitted):
                actions = [action for each in event.submissions for action in self.answer(each)]
                self.events += event.submissions
                self.times += [now] * len(event.submissions)
                self.works += [self.work] * len(event.submissions)
                return actions
            self.events.append(event)
            self.times.append(now)
            self.works.append(self.work)
            return self.answer(event)
        finally:
            self.is_busy = False

    def check_authenticator(self, authenticator: Authenticator) -> None:
        """Mind nothing."""

    def is_ambiguous(self, token: Token) -> bool:
        """Return what the test has said."""
        return token in self.ambiguous

    def error_context(self, token: Token, now: float) -> ErrorContext | None:
        """Return what the test has said."""
        return self.contexts.get(token)

    def statistics(self) -> ClientStatistics:
        """Return a snapshot that can be told from others."""
        return ClientStatistics(open_operations=42)

    def last_reports(self, now: float | None = None) -> Sequence[ReportTelemetry]:
        """Return the reports that the test has set, once."""
        reports, self.reports = self.reports, ()
        return reports

    def diagnostics(self, report_id: str, now: float) -> DiagnosticsResult:
        """Return a report that can be told from others."""
        return DiagnosticsResult(id=report_id, sdk=f"at {now:g}", state=ClusterState.DEGRADED, endpoints={})

    def vbucket_count(self, bucket: str | None) -> int:
        """Return a number that can be told from others."""
        return 4

    def replica_count(self, bucket: str | None) -> int | None:
        """Return a number that can be told from others."""
        return 2

    @property
    def now(self) -> float:
        """When the last event was heard."""
        return self.times[-1]

    @property
    def submitted(self) -> list[OperationSubmitted]:
        """The submissions among the events."""
        return [event for event in self.events if isinstance(event, OperationSubmitted)]

    @property
    def requested(self) -> list[RequestSubmitted]:
        """The requests to services among the events."""
        return [event for event in self.events if isinstance(event, RequestSubmitted)]

    @property
    def later_events(self) -> list[Event]:
        """All events but the one that starts the client."""
        assert isinstance(self.events[0], TimePassed)
        return self.events[1:]

    def work_at(self, event: Event) -> int:
        """Return the units of work at an event."""
        return next(work for heard, work in zip(self.events, self.works, strict=True) if heard is event)

    def losses_of(self, stream: StreamId) -> list[StreamLost]:
        """Return how often, and how, a stream was reported lost."""
        return [event for event in self.events if isinstance(event, StreamLost) and event.stream == stream]

    def abandonments_of(self, token: Token) -> int:
        """Return how often an operation was abandoned, for whatever reason."""
        return sum(isinstance(event, OperationAbandoned) and event.token == token for event in self.events)

    def _break(self, what: str) -> None:
        self.broken.append(LawBroken(what))
        raise self.broken[-1]
