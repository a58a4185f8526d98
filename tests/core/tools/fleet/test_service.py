"""Simulated services of a fleet: their schedules, rejections, failures and outages."""

from __future__ import annotations

import math
import random

import pytest

from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.tools.fleet import scenario
from triclinium_core.tools.fleet.service import (
    AttemptOutcome,
    Fate,
    ParallelMachine,
    QueueMachine,
    RowMachine,
    ServiceMachine,
)
from triclinium_core.tools.fleet.times import FixedTime

TEN_A_SECOND = scenario.SimulatedService(capacity=10.0, latency=0.01, queue=0.25, rejection_cost=0.5)


def queue(service: scenario.SimulatedService, outage: scenario.Outage | None) -> QueueMachine:
    """Return the machine of a service without randomness."""
    return QueueMachine(service, outage, rng=ConstantRandom(0.5))


def approximately(fates: list[Fate]) -> list[Fate]:
    """Return the outcomes with rounded instants."""
    return [(outcome, round(at, 9)) for outcome, at in fates]


def test_requests_are_served_one_by_one() -> None:
    """A request waits for all earlier requests, then for its own work and the network latency."""
    machine = queue(TEN_A_SECOND, None)

    assert [
        (AttemptOutcome.ANSWERED, 0.11),
        (AttemptOutcome.ANSWERED, 0.21),
        (AttemptOutcome.ANSWERED, 0.31),
    ] == approximately([machine.receive(0.0) for _ in range(3)])
    assert 3.0 == pytest.approx(machine.waiting(0.0))
    assert 0.0 == machine.waiting(9.0)


def test_full_queue_rejects() -> None:
    """A full queue rejects immediately; rejections delay later requests, by at most one more queue length."""
    machine = queue(TEN_A_SECOND, None)
    fates = [machine.receive(0.0) for _ in range(20)]

    assert [AttemptOutcome.ANSWERED] * 3 + [AttemptOutcome.THROTTLED] * 17 == [outcome for outcome, _ in fates]
    assert (AttemptOutcome.THROTTLED, 0.01) == fates[-1]
    assert 5.0 == pytest.approx(machine.waiting(0.0))
    assert (AttemptOutcome.THROTTLED, 0.25) == machine.receive(0.24)
    assert (AttemptOutcome.ANSWERED, 0.66) == approximately([machine.receive(0.31)])[0]


def test_full_queue_may_be_silent() -> None:
    """With silent overload, a request that finds the queue full never gets a response."""
    machine = queue(scenario.SimulatedService(capacity=1.0, queue=0.5, overload=scenario.Overload.SILENT), None)
    machine.receive(0.0)

    assert (AttemptOutcome.THROTTLED, math.inf) == machine.receive(0.0)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (scenario.OutageKind.REFUSES, (AttemptOutcome.REFUSED, 1.01)),
        (scenario.OutageKind.CLOSES, (AttemptOutcome.CLOSED, 1.01)),
        (scenario.OutageKind.DENIES, (AttemptOutcome.DENIED, 1.01)),
        (scenario.OutageKind.SILENT, (AttemptOutcome.TIMED_OUT, math.inf)),
    ],
)
def test_kinds_of_outages(kind: scenario.OutageKind, expected: tuple[AttemptOutcome, float]) -> None:
    """Each kind of outage gives its outcome until the outage ends; then requests are served without delay."""
    machine = queue(TEN_A_SECOND, scenario.Outage(1.0, 2.0, kind))

    assert expected == machine.receive(1.0)
    assert expected[0] is machine.receive(1.999)[0]
    assert [(AttemptOutcome.ANSWERED, 2.11)] == approximately([machine.receive(2.0)])


def test_outage_drops_queued_requests() -> None:
    """A request still queued when an outage starts ends as closed, or without a response if the outage is silent."""
    closing = queue(TEN_A_SECOND, scenario.Outage(0.15, 0.2, scenario.OutageKind.REFUSES))
    silent = queue(TEN_A_SECOND, scenario.Outage(0.15, 0.2, scenario.OutageKind.SILENT))

    assert [(AttemptOutcome.ANSWERED, 0.11), (AttemptOutcome.CLOSED, 0.15)] == approximately(
        [closing.receive(0.0) for _ in range(2)]
    )
    assert [AttemptOutcome.ANSWERED, AttemptOutcome.TIMED_OUT] == [silent.receive(0.0)[0] for _ in range(2)]
    assert [(AttemptOutcome.ANSWERED, 0.31)] == approximately([closing.receive(0.2)])


def test_queue_is_empty_after_an_outage() -> None:
    """Requests from before an outage do not delay those after it, even if the queue was longer than the outage."""
    machine = queue(scenario.SimulatedService(capacity=1.0, latency=0.01, queue=9.0), scenario.Outage(1.0, 2.0))
    for _ in range(5):
        machine.receive(0.0)

    assert (AttemptOutcome.ANSWERED, 3.01) == machine.receive(2.0)
    assert (AttemptOutcome.ANSWERED, 4.01) == machine.receive(2.0)


def carried_on(machine: ServiceMachine, now: float) -> tuple[AttemptOutcome, float]:
    """Return the outcome of a request after as many steps as the machine requires."""
    fate, at = machine.receive(now)
    while not isinstance(fate, AttemptOutcome):
        fate, at = machine.ask(fate, at)
    return fate, round(at, 9)


def test_parallel_service_slows_down_with_load() -> None:
    """A request takes longer for each request in service at its start, itself included; completed ones do not count."""
    service = scenario.ParallelService(base=1.0, growth=0.5, leg=FixedTime(seconds=0.25))
    machine = ParallelMachine(service, None, rng=ConstantRandom(0.5))

    assert [(AttemptOutcome.ANSWERED, 2.0), (AttemptOutcome.ANSWERED, 2.5)] == [
        carried_on(machine, 0.0) for _ in range(2)
    ]
    assert (2.0, 1.0, 0.0) == (machine.waiting(0.25), machine.waiting(2.0), machine.waiting(2.25))
    assert (AttemptOutcome.ANSWERED, 7.0) == carried_on(machine, 5.0)


def test_share_of_requests_fails() -> None:
    """A request fails if its random number is below the failure rate."""
    unlucky, lucky = (
        ParallelMachine(scenario.ParallelService(), None, failure_rate=0.5, rng=ConstantRandom(share))
        for share in (0.4, 0.5)
    )

    assert (AttemptOutcome.FAILED, 0.01) == carried_on(unlucky, 0.0)
    assert (AttemptOutcome.ANSWERED, 0.01) == carried_on(lucky, 0.0)


def test_row_takes_the_first_write() -> None:
    """A write conflicts if another write followed its read; after reading again it succeeds."""
    machine = RowMachine(scenario.ContendedRow(leg=FixedTime(seconds=1.0)), None, rng=ConstantRandom(0.5))
    first_read, at = machine.receive(0.0)
    second_read, _ = machine.receive(0.0)
    assert not isinstance(first_read, AttemptOutcome)
    assert not isinstance(second_read, AttemptOutcome)
    first_write, write_at = machine.ask(first_read, at)
    second_write, _ = machine.ask(second_read, at)
    assert not isinstance(first_write, AttemptOutcome)
    assert not isinstance(second_write, AttemptOutcome)

    assert 3.0 == write_at
    assert (AttemptOutcome.ANSWERED, 4.0) == machine.ask(first_write, write_at)
    assert (AttemptOutcome.CONFLICT, 4.0) == machine.ask(second_write, write_at)
    assert (AttemptOutcome.ANSWERED, 8.0) == carried_on(machine, 4.0)


def test_outage_drops_requests_on_their_way() -> None:
    """An outage ends requests at any step, even if a service needs several steps for an outcome."""
    row = RowMachine(
        scenario.ContendedRow(leg=FixedTime(seconds=1.0)), scenario.Outage(2.5, 9.0), rng=ConstantRandom(0.5)
    )
    service = scenario.ParallelService(base=1.0, growth=0.5, leg=FixedTime(seconds=1.0))
    parallel = ParallelMachine(service, scenario.Outage(0.5, 1.0), rng=ConstantRandom(0.5))

    assert (AttemptOutcome.CLOSED, 2.5) == carried_on(row, 0.0)
    assert (AttemptOutcome.REFUSED, 5.0) == carried_on(row, 3.0)
    assert (AttemptOutcome.CLOSED, 0.5) == carried_on(parallel, 0.0)
    assert (AttemptOutcome.ANSWERED, 4.5) == carried_on(parallel, 1.0)


def test_random_work_keeps_its_mean() -> None:
    """Exponential work has the same mean as fixed work, and requests end in the order of their arrival."""
    service = scenario.SimulatedService(capacity=10.0, latency=0.0, queue=1e9, work=scenario.Work.EXPONENTIAL)
    machine = QueueMachine(service, None, rng=random.Random(1))
    ends = [at for _, at in (machine.receive(0.0) for _ in range(10_000))]

    assert ends == sorted(ends)
    assert 1_000.0 == pytest.approx(ends[-1], rel=0.03)
