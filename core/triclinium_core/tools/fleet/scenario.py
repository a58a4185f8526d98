"""Scenario of a simulation: clients, service and outage. Durations and instants are seconds.

All of it is checked when it is made, so that a simulation that has begun comes to its end. Every value can be read from
TOML or JSON by ``msgspec.convert``; where one of several kinds may stand, the key ``type`` says which.
"""

from __future__ import annotations

from enum import StrEnum, unique

from msgspec import Struct

from triclinium_core import errors
from triclinium_core.checks import check_choice, check_flag, check_integer, check_number, check_seconds
from triclinium_core.tools.fleet.demand import (
    OPERATIONS_MAX,
    Arrivals,
    ClosedLoop,
    EvenArrivals,
    Steady,
    Trend,
    demanded,
)
from triclinium_core.tools.fleet.retries import Retries
from triclinium_core.tools.fleet.times import SECONDS_LEAST, SECONDS_MAX, FixedTime, RandomTime

WAITING_MAX = 2_000_000
"""Operations that may be under way at once; each is a few hundred bytes."""
BUCKETS_MAX = 100_000
CLIENTS_MAX = 1_000_000


@unique
class OutageKind(StrEnum):
    """What clients meet during the outage."""

    REFUSES = "refuses"
    """Connections are refused, so that nothing is sent."""
    CLOSES = "closes"
    """Requests are taken, and the connection closes without an answer."""
    SILENT = "silent"
    """Requests are taken, and nothing comes back."""
    DENIES = "denies"
    """The credentials are refused."""


@unique
class Overload(StrEnum):
    """What becomes of a request for which there is no room in the queue."""

    THROTTLES = "throttles"
    """It is answered at once: come back later."""
    SILENT = "silent"
    """It is dropped without an answer."""


class Fleet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Clients that begin an operation every ``period``, evenly spread over it, whatever became of the one before.

    That is what they do unless ``arrivals`` and ``trend`` say something else.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    clients: int = 1_000
    period: float = 10.0
    timeout: float = 2.5
    """What an operation may take in all; then its caller leaves."""
    attempt_timeout: float | None = None
    """What one attempt may take, for strategies that retry timeouts; Couchbase's know no such thing."""
    clients_per_process: int = 100
    """How many clients share a strategy, and so its quota."""
    idempotent: bool = True
    """Whether operations may be applied twice."""
    arrivals: Arrivals = EvenArrivals()
    """How operations follow each other."""
    trend: Trend = Steady()
    """How the demand changes over time; in a closed loop it cannot."""

    def __post_init__(self) -> None:
        check_integer(self.clients, "clients", 1, CLIENTS_MAX)
        check_integer(self.clients_per_process, "clients_per_process", 1, CLIENTS_MAX)
        check_number(self.period, "period", SECONDS_LEAST, SECONDS_MAX)
        check_number(self.timeout, "timeout", SECONDS_LEAST, SECONDS_MAX)
        if self.attempt_timeout is not None:
            check_number(self.attempt_timeout, "attempt_timeout", SECONDS_LEAST, SECONDS_MAX)
        check_flag(self.idempotent, "idempotent")
        if isinstance(self.arrivals, ClosedLoop) and not isinstance(self.trend, Steady):
            raise errors.InvalidArgumentException(
                f"trend={self.trend!r} cannot be followed by a closed loop, whose clients begin when they are answered; "
                "take other arrivals",
                parameter="trend",
            )

    @property
    def demand(self) -> float:
        """Operations that begin in a second, at the usual demand."""
        return self.clients / self.period

    def operations(self, duration: float) -> float:
        """Return how many operations begin in so many seconds, on average; in a closed loop, at most."""
        if isinstance(self.arrivals, ClosedLoop):
            return float(self.clients * self.arrivals.operations)
        return self.demand * demanded(self.trend, duration)


@unique
class Work(StrEnum):
    """How long the worker of a service takes for a request."""

    CONSTANT = "constant"
    """As long as for every other."""
    EXPONENTIAL = "exponential"
    """A random time that is as long on average, and mostly shorter: the service of an M/M/1 queue."""


class SimulatedService(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="queue"):
    """One queue and one worker that takes ``1 / capacity`` for a request.

    It does not know who still waits: it works for callers who have left, too.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    capacity: float
    """Requests that it serves in a second."""
    latency: float = 0.01
    """From sending to the answer, beside the wait in the queue and the work."""
    queue: float = 1.0
    """Seconds of work that may wait; what comes on top of it is overload."""
    overload: Overload = Overload.THROTTLES
    rejection_cost: float = 0.1
    """What turning a request away costs, as a share of what serving it would."""
    work: Work = Work.CONSTANT

    def __post_init__(self) -> None:
        check_number(self.capacity, "capacity", SECONDS_LEAST)
        check_number(self.latency, "latency", 0.0, SECONDS_MAX)
        check_number(self.queue, "queue", SECONDS_LEAST, SECONDS_MAX)
        check_choice(self.overload, "overload", Overload)
        check_number(self.rejection_cost, "rejection_cost", 0, 1)
        check_choice(self.work, "work", Work)


class ParallelService(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="parallel"):
    """It serves all requests at the same time, and takes longer for each the more there are.

    It does not know who still waits, and never turns anybody away.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    base: float = 0.0
    """Seconds that a request takes in any case."""
    growth: float = 0.0
    """Seconds that it takes in addition for each request that is served when it begins, itself among them."""
    leg: RandomTime = FixedTime(seconds=0.005)
    """The way of a request to the service, and again that of its answer."""

    def __post_init__(self) -> None:
        check_number(self.base, "base", 0.0, SECONDS_MAX)
        check_number(self.growth, "growth", 0.0, SECONDS_MAX)


class ContendedRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="contended_row"):
    """One row that all clients update, with optimistic concurrency: an attempt reads its version and writes it back.

    The write is refused where another one came between the two; it takes the service no time. An attempt is one request
    in the figures, and four legs long.
    """

    leg: RandomTime = FixedTime(seconds=0.005)
    """The way of a read or a write to the row, and again that of its answer."""


Service = SimulatedService | ParallelService | ContendedRow
"""Who answers."""


class Outage(Struct, frozen=True, forbid_unknown_fields=True):
    """From ``start`` on, up to ``end``, nobody is served, and what waited in the queue is lost.

    Raises:
        InvalidArgumentException: it does not end after its start, or a value is of another type.
    """

    start: float
    end: float
    kind: OutageKind = OutageKind.REFUSES

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("end", self.end)):
            check_seconds(value, name)
        if self.end <= self.start:
            raise errors.InvalidArgumentException(
                f"end={self.end!r} of an outage must come after its start, {self.start!r}", parameter="end"
            )
        check_choice(self.kind, "kind", OutageKind)


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One simulation: operations begin from 0 up to ``duration``, and each is followed to its end.

    Raises:
        InvalidArgumentException: a value is out of range, or all of them together ask for too much.
    """

    fleet: Fleet
    service: Service
    outage: Outage | None = None
    failure_rate: float = 0.0
    """The share of requests that the service answers with an error, each by chance; a retry may succeed."""
    duration: float = 60.0
    bucket: float = 1.0
    """Width of the steps in which figures are given."""
    strategies: tuple[Retries, ...] = ()
    """Strategies of one's own, beside those that everybody has; ``simulate`` finds them by their names."""

    def __post_init__(self) -> None:
        check_number(self.failure_rate, "failure_rate", 0.0, 1.0)
        check_number(self.duration, "duration", SECONDS_LEAST, SECONDS_MAX)
        check_number(self.bucket, "bucket", SECONDS_LEAST, SECONDS_MAX)
        if self.outage is not None and self.outage.end > self.duration:
            raise errors.InvalidArgumentException(
                f"the outage ends at {self.outage.end:g} s, after the duration of {self.duration:g} s; "
                "let it end earlier, or simulate for longer",
                parameter="outage",
            )
        names = [retries.name for retries in self.strategies]
        if len(set(names)) < len(names):
            raise errors.InvalidArgumentException(
                f"strategies: two have the same name; the names are {', '.join(names)}", parameter="strategies"
            )
        operations = self.fleet.operations(self.duration)
        # No more are under way than begin while one lasts; a trend may have all of them in one moment.
        waiting = min(self.fleet.demand * self.fleet.timeout, operations)
        for parameter, value, name, most, next_step in (
            ("duration", operations, "operations", OPERATIONS_MAX, "simulate fewer clients, or less time"),
            ("timeout", waiting, "operations under way", WAITING_MAX, "shorten the timeout"),
            ("bucket", self.duration / self.bucket, "buckets", BUCKETS_MAX, "make buckets wider"),
        ):
            if value > most:
                raise errors.InvalidArgumentException(
                    f"these are {value:,.0f} {name}, and {most:,} at most; {next_step}", parameter=parameter
                )
