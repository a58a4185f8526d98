"""Scenario of a simulation: clients, service and outage. Durations and instants are seconds.

All values are checked when they are created, so that every simulation ends. ``msgspec.convert`` can read each from TOML
or JSON. If there are several kinds of a value, the key ``type`` selects one.
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
    PoissonArrivals,
    Steady,
    Trend,
    demanded,
)
from triclinium_core.tools.fleet.retries import Retries
from triclinium_core.tools.fleet.times import SECONDS_LEAST, SECONDS_MAX, FixedTime, RandomTime

WAITING_MAX = 2_000_000
"""Maximum number of concurrent operations, of a few hundred bytes each."""
BUCKETS_MAX = 100_000
CLIENTS_MAX = 1_000_000


@unique
class OutageKind(StrEnum):
    """Behavior of the service during an outage."""

    REFUSES = "refuses"
    """The service refuses connections, so nothing is sent."""
    CLOSES = "closes"
    """The service accepts requests, and closes the connection without an answer."""
    SILENT = "silent"
    """The service accepts requests, and sends nothing."""
    DENIES = "denies"
    """The service refuses the credentials."""


@unique
class Overload(StrEnum):
    """Behavior of the service when its queue is full."""

    THROTTLES = "throttles"
    """The service answers immediately with a throttling error."""
    SILENT = "silent"
    """The service drops the request without an answer."""


class Fleet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Clients of a service. By default each begins one operation per ``period``, at evenly spread instants.

    A client does not wait for the results of earlier operations. ``arrivals`` and ``trend`` replace this default.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type, or a closed loop's trend is not steady.
    """

    clients: int = 1_000
    period: float = 10.0
    timeout: float = 2.5
    """Timeout of an operation, after which its caller leaves."""
    attempt_timeout: float | None = None
    """Timeout of one attempt, or None. Only Smithy's strategies use it; ``none`` and Couchbase's strategies do not."""
    clients_per_process: int = 100
    """Number of clients that share a strategy and its quota."""
    idempotent: bool = True
    """Whether operations may be applied twice."""
    arrivals: Arrivals = EvenArrivals()
    """Intervals between the operations of a client."""
    trend: Trend = Steady()
    """Changes in the demand over time. With a closed loop, the demand must be steady."""

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
                f"trend={self.trend!r} has no effect on a closed loop, whose clients begin an operation after "
                "each response; use other arrivals",
                parameter="trend",
            )

    @property
    def demand(self) -> float:
        """Number of operations that begin per second at the usual demand."""
        return self.clients / self.period

    @property
    def at_once(self) -> int:
        """Number of operations that begin at 0 in addition to the usual demand."""
        return self.clients if self.arrivals == PoissonArrivals(at_once=True) else 0

    def operations(self, duration: float) -> float:
        """Return the mean number of operations in ``duration``; in a closed loop, the maximum."""
        if isinstance(self.arrivals, ClosedLoop):
            return float(self.clients * self.arrivals.operations)
        return self.at_once + self.demand * demanded(self.trend, duration)


@unique
class Work(StrEnum):
    """Time that the worker of a service takes for a request."""

    CONSTANT = "constant"
    """The same time for each request."""
    EXPONENTIAL = "exponential"
    """An exponentially distributed time with the same mean: the service of an M/M/1 queue."""


class SimulatedService(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="queue"):
    """Service with one queue and one worker, which takes ``1 / capacity`` seconds on average for a request.

    It also serves requests whose callers have left.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    capacity: float
    """Number of requests that the service serves per second."""
    latency: float = 0.01
    """Time from sending a request to its answer, without the wait in the queue and the work."""
    queue: float = 1.0
    """Length of the queue in seconds of work. A request that does not fit counts as overload."""
    overload: Overload = Overload.THROTTLES
    rejection_cost: float = 0.1
    """Cost of rejecting a request, as a share of the cost of serving it."""
    work: Work = Work.CONSTANT

    def __post_init__(self) -> None:
        check_number(self.capacity, "capacity", SECONDS_LEAST)
        check_number(self.latency, "latency", 0.0, SECONDS_MAX)
        check_number(self.queue, "queue", SECONDS_LEAST, SECONDS_MAX)
        check_choice(self.overload, "overload", Overload)
        check_number(self.rejection_cost, "rejection_cost", 0, 1)
        check_choice(self.work, "work", Work)


class ParallelService(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="parallel"):
    """Service that serves all requests concurrently. The more requests there are, the longer each of them takes.

    It also serves requests whose callers have left, and rejects none.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    base: float = 0.0
    """Minimum time of a request, in seconds."""
    growth: float = 0.0
    """Additional seconds per request that is in service when a request begins, including that request."""
    leg: RandomTime = FixedTime(seconds=0.005)
    """Time that a request takes to reach the service, and that its answer takes to return."""

    def __post_init__(self) -> None:
        check_number(self.base, "base", 0.0, SECONDS_MAX)
        check_number(self.growth, "growth", 0.0, SECONDS_MAX)


class ContendedRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="contended_row"):
    """Row that all clients update with optimistic concurrency: an attempt reads the version and writes it back.

    The write is refused if another write came between the read and the write. At the row, reads and writes take no
    time. An attempt counts as one request in the figures, and takes four legs.
    """

    leg: RandomTime = FixedTime(seconds=0.005)
    """Time that a read or a write takes to reach the row, and that its answer takes to return."""


Service = SimulatedService | ParallelService | ContendedRow
"""Any kind of service."""


class Outage(Struct, frozen=True, forbid_unknown_fields=True):
    """Outage from ``start`` until ``end``. The service serves no requests, and queued requests are lost.

    Raises:
        InvalidArgumentException: the end is not after the start, or a value is out of range or of the wrong type.
    """

    start: float
    end: float
    kind: OutageKind = OutageKind.REFUSES

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("end", self.end)):
            check_seconds(value, name)
        if self.end <= self.start:
            raise errors.InvalidArgumentException(
                f"end={self.end!r} of an outage must be later than its start, {self.start!r}", parameter="end"
            )
        check_choice(self.kind, "kind", OutageKind)


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One simulation: operations begin between 0 and ``duration``, and each operation is followed to its end.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type, the outage ends after the duration, two
            strategies have the same name, or the simulation would be too large.
    """

    fleet: Fleet
    service: Service
    outage: Outage | None = None
    failure_rate: float = 0.0
    """Share of requests, drawn at random, that the service answers with an error. A retry may succeed."""
    duration: float = 60.0
    bucket: float = 1.0
    """Width of the steps of the figures, in seconds."""
    strategies: tuple[Retries, ...] = ()
    """Custom strategies besides ``STRATEGIES``; ``simulate`` finds them by name."""

    def __post_init__(self) -> None:
        check_number(self.failure_rate, "failure_rate", 0.0, 1.0)
        check_number(self.duration, "duration", SECONDS_LEAST, SECONDS_MAX)
        check_number(self.bucket, "bucket", SECONDS_LEAST, SECONDS_MAX)
        if self.outage is not None and self.outage.end > self.duration:
            raise errors.InvalidArgumentException(
                f"the outage ends at {self.outage.end:g} s, after the duration of {self.duration:g} s; "
                "end it earlier, or simulate for longer",
                parameter="outage",
            )
        names = [retries.name for retries in self.strategies]
        if len(set(names)) < len(names):
            raise errors.InvalidArgumentException(
                f"strategies has the same name twice: {', '.join(names)}", parameter="strategies"
            )
        operations = self.fleet.operations(self.duration)
        # Only operations that begin within one timeout can be in flight together. The estimate ignores a trend.
        waiting = min(self.fleet.at_once + self.fleet.demand * self.fleet.timeout, operations)
        for parameter, value, name, most, next_step in (
            ("duration", operations, "operations", OPERATIONS_MAX, "simulate fewer clients, or less time"),
            ("timeout", waiting, "operations in flight", WAITING_MAX, "shorten the timeout"),
            ("bucket", self.duration / self.bucket, "buckets", BUCKETS_MAX, "make buckets wider"),
        ):
            if value > most:
                raise errors.InvalidArgumentException(
                    f"{parameter} leads to {value:,.0f} {name}, but the maximum is {most:,}; {next_step}",
                    parameter=parameter,
                )
