"""What is simulated: who asks, who answers, and when nobody does. Durations and instants are seconds.

All of it is checked when it is made, so that a simulation that has begun comes to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique

from triclinium_core.checks import check_choice, check_flag, check_integer, check_number, check_seconds
from triclinium_core.errors import InvalidArgumentException

OPERATIONS_MAX = 20_000_000
"""Operations that one simulation may begin: half an hour of work, and some gigabytes at the very worst."""
WAITING_MAX = 2_000_000
"""Operations that may be under way at once; each is a few hundred bytes."""
BUCKETS_MAX = 100_000
CLIENTS_MAX = 1_000_000
SECONDS_LEAST, SECONDS_MAX = 1e-9, 1e9
"""A nanosecond to three decades: no sum of durations leaves what a float holds, nor is it lost beside another."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Clients that begin an operation every ``period``, evenly spread over it, whatever became of the one before.

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

    def __post_init__(self) -> None:
        check_integer(self.clients, "clients", 1, CLIENTS_MAX)
        check_integer(self.clients_per_process, "clients_per_process", 1, CLIENTS_MAX)
        check_number(self.period, "period", SECONDS_LEAST, SECONDS_MAX)
        check_number(self.timeout, "timeout", SECONDS_LEAST, SECONDS_MAX)
        if self.attempt_timeout is not None:
            check_number(self.attempt_timeout, "attempt_timeout", SECONDS_LEAST, SECONDS_MAX)
        check_flag(self.idempotent, "idempotent")

    @property
    def demand(self) -> float:
        """Operations that begin in a second."""
        return self.clients / self.period


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedService:
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

    def __post_init__(self) -> None:
        check_number(self.capacity, "capacity", SECONDS_LEAST)
        check_number(self.latency, "latency", 0.0, SECONDS_MAX)
        check_number(self.queue, "queue", SECONDS_LEAST, SECONDS_MAX)
        check_choice(self.overload, "overload", Overload)
        check_number(self.rejection_cost, "rejection_cost", 0, 1)


@dataclass(frozen=True, slots=True)
class Outage:
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
            raise InvalidArgumentException(
                f"end={self.end!r} of an outage must come after its start, {self.start!r}", parameter="end"
            )
        check_choice(self.kind, "kind", OutageKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One simulation: operations begin from 0 up to ``duration``, and each is followed to its end.

    Raises:
        InvalidArgumentException: a value is out of range, or all of them together ask for too much.
    """

    fleet: Fleet
    service: SimulatedService
    outage: Outage | None = None
    duration: float = 60.0
    bucket: float = 1.0
    """Width of the steps in which figures are given."""

    def __post_init__(self) -> None:
        check_number(self.duration, "duration", SECONDS_LEAST, SECONDS_MAX)
        check_number(self.bucket, "bucket", SECONDS_LEAST, SECONDS_MAX)
        if self.outage is not None and self.outage.end > self.duration:
            raise InvalidArgumentException(
                f"the outage ends at {self.outage.end:g} s, after the duration of {self.duration:g} s; "
                "let it end earlier, or simulate for longer",
                parameter="outage",
            )
        demand, timeout = self.fleet.demand, self.fleet.timeout
        for parameter, value, name, most, next_step in (
            ("duration", demand * self.duration, "operations", OPERATIONS_MAX, "simulate fewer clients, or less time"),
            ("timeout", demand * timeout, "operations under way", WAITING_MAX, "shorten the timeout"),
            ("bucket", self.duration / self.bucket, "buckets", BUCKETS_MAX, "make buckets wider"),
        ):
            if value > most:
                raise InvalidArgumentException(
                    f"these are {value:,.0f} {name}, and {most:,} at most; {next_step}", parameter=parameter
                )
