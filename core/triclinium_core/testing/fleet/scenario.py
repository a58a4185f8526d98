"""What is simulated: who asks, who answers, and when nobody does. Durations and instants are seconds.

All of it is checked when it is made, so that a simulation that has begun comes to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique

from triclinium_core.checks import check_choice, check_flag, check_integer, check_number, check_seconds, is_number
from triclinium_core.errors import InvalidArgumentException

OPERATIONS_MAX = 20_000_000
"""Operations that one simulation may begin: half an hour of work, and some gigabytes at the very worst."""
WAITING_MAX = 2_000_000
"""Operations that may be under way at once; each is a few hundred bytes."""
BUCKETS_MAX = 100_000
CLIENTS_MAX = 1_000_000
SECONDS_MAX = 1e9
"""Three decades: no sum of durations leaves what a float holds, nor is it lost beside another."""


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
        _check_seconds(self.period, "period")
        _check_seconds(self.timeout, "timeout")
        if self.attempt_timeout is not None:
            _check_seconds(self.attempt_timeout, "attempt_timeout")
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
        check_number(self.capacity, "capacity", 1 / SECONDS_MAX)
        _check_seconds(self.latency, "latency", least=0.0)
        _check_seconds(self.queue, "queue")
        check_choice(self.overload, "overload", Overload)
        if not (is_number(self.rejection_cost) and 0 <= self.rejection_cost <= 1):
            raise InvalidArgumentException(
                f"rejection_cost={self.rejection_cost!r} must be a share between 0 and 1", parameter="rejection_cost"
            )


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
        _check_seconds(self.duration, "duration")
        _check_seconds(self.bucket, "bucket")
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


def _check_seconds(value: float, parameter: str, *, least: float | None = None) -> None:
    """Raise InvalidArgumentException unless ``value`` is more than 0 or at least ``least``, and no more than the most."""
    if not (is_number(value) and value <= SECONDS_MAX and (value > 0 or (least is not None and value >= least))):
        bound = "more than 0" if least is None else f"at least {least:g}"
        raise InvalidArgumentException(
            f"{parameter}={value!r} must be a finite number of seconds, {bound} and at most {SECONDS_MAX:g}",
            parameter=parameter,
        )
