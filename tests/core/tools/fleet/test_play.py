"""Simulation of a fleet's outage: laws for all outages, and known results of some."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from tests.core.tools.fleet.recorded import Story, recorded
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry.backoff import Random
from triclinium_core.tools.fleet import (
    STRATEGIES,
    ClosedLoop,
    CountedRetries,
    FixedTime,
    Fleet,
    FleetFigures,
    Outage,
    OutageKind,
    Overload,
    ParallelService,
    Scenario,
    SimulatedService,
    simulate,
)
from triclinium_core.tools.fleet.play import PROGRESS_STEPS, play
from triclinium_core.tools.fleet.strategies import Call, Process

SMALL = Scenario(
    fleet=Fleet(clients=20, period=1.0, timeout=1.5, clients_per_process=7),
    service=SimulatedService(capacity=30.0),
    outage=Outage(3.0, 5.0),
    duration=12.0,
    bucket=0.5,
)
"""Twenty operations a second, and an outage of two seconds."""

EVERY_STRATEGY = rows("strategy", STRATEGIES)


def run(scenario: Scenario, strategy: str, seed: int = 7) -> FleetFigures:
    """Return the figures of one simulation."""
    return simulate(scenario, strategy, rng=random.Random(seed))


def scenarios() -> st.SearchStrategy[Scenario]:
    """Return a Hypothesis strategy for small scenarios, with an outage of any kind or without one."""
    service = st.builds(
        SimulatedService,
        capacity=st.floats(5.0, 200.0),
        latency=st.floats(0.0, 0.5),
        queue=st.floats(0.01, 3.0),
        overload=st.sampled_from(Overload),
        rejection_cost=st.floats(0.0, 1.0),
    )
    fleet = st.builds(
        Fleet,
        clients=st.integers(1, 40),
        period=st.floats(0.5, 5.0),
        timeout=st.floats(0.01, 6.0),
        attempt_timeout=st.none() | st.floats(0.01, 2.0),
        clients_per_process=st.integers(1, 50),
        idempotent=st.booleans(),
    )
    outage = st.none() | st.builds(
        lambda start, length, kind: Outage(start, start + length, kind),
        st.floats(0.0, 2.0),
        st.floats(0.1, 2.0),
        st.sampled_from(OutageKind),
    )
    return st.builds(
        Scenario,
        fleet=fleet,
        service=service,
        outage=outage,
        duration=st.just(4.0),
        bucket=st.sampled_from([0.25, 1.0, 3.0]),
    )


@given(scenario=scenarios(), strategy=st.sampled_from(sorted(STRATEGIES)), seed=st.integers(0, 2**32))
def test_laws_of_a_fleet(scenario: Scenario, strategy: str, seed: int) -> None:
    """Each operation ends once, by its deadline, and sends nothing afterwards; the totals agree with the records."""
    stories: list[Story] = []
    make_process = recorded(STRATEGIES[strategy].make_process, stories)
    totals = play(scenario, strategy, make_process, random.Random(seed)).totals
    succeeded = sum(story.ended[0][0] == "succeeded" for story in stories)

    assert [1] * len(stories) == [len(story.ended) for story in stories]
    assert all(story.began <= at <= story.ended[0][1] for story in stories for at in story.sent_at)
    assert all(at < story.deadline for story in stories for at in story.sent_at)
    assert all(story.ended[0][1] <= story.deadline + 1e-9 for story in stories)
    assert (len(stories), succeeded, len(stories) - succeeded) == (totals.begun, totals.succeeded, totals.failed)
    assert sum(len(story.sent_at) for story in stories) == totals.sent


@given(scenario=scenarios(), strategy=st.sampled_from(sorted(STRATEGIES)), seed=st.integers(0, 2**32))
def test_recording_changes_nothing(scenario: Scenario, strategy: str, seed: int) -> None:
    """Recording each operation, success included, does not change the figures; the same seed gives the same figures."""
    recording = play(scenario, strategy, recorded(STRATEGIES[strategy].make_process, []), random.Random(seed))

    assert recording == run(scenario, strategy, seed) == run(scenario, strategy, seed)


@given(scenario=scenarios(), strategy=st.sampled_from(sorted(STRATEGIES)))
def test_laws_of_the_service(scenario: Scenario, strategy: str) -> None:
    """The service answers at most at its capacity, nothing in an outage, and queues at most twice its queue length."""
    figures = run(scenario, strategy)
    service, width = scenario.service, scenario.bucket
    assert isinstance(service, SimulatedService)
    whole = [bucket for bucket in figures.buckets if bucket.start + width <= scenario.duration]

    # The successes of a bucket were served within its time; one request may straddle each end.
    assert all(bucket.succeeded <= service.capacity * width + 2 for bucket in whole)
    assert all(bucket.queue <= 2 * service.capacity * service.queue + 2 for bucket in figures.buckets)
    for bucket in figures.buckets:
        outage = scenario.outage
        if outage is not None and outage.start <= bucket.start and bucket.start + width <= outage.end:
            assert 0 == bucket.succeeded


@EVERY_STRATEGY
def test_everything_succeeds_without_an_outage(strategy: str) -> None:
    """Liveness: with enough capacity and without an outage, each operation succeeds with its first attempt."""
    figures = run(replace(SMALL, outage=None), strategy)
    totals = figures.totals

    assert (240, 240, 240, 0) == (totals.begun, totals.sent, totals.succeeded, totals.failed)
    assert figures.recovered_after is None
    assert all(9 <= bucket.begun <= 11 for bucket in figures.buckets)


@EVERY_STRATEGY
@rows("kind", OutageKind)
def test_recovers_if_rejections_are_free(strategy: str, kind: OutageKind) -> None:
    """If rejections cost nothing, the fleet recovers within two timeouts after the outage."""
    assert SMALL.outage is not None
    scenario = replace(
        SMALL, outage=replace(SMALL.outage, kind=kind), service=replace(SMALL.service, rejection_cost=0.0)
    )
    recovered_after = run(scenario, strategy).recovered_after

    assert recovered_after is not None
    assert recovered_after <= 2 * SMALL.fleet.timeout


def test_seeds_matter() -> None:
    """Another seed gives other figures with the same number of operations."""
    first, second = run(SMALL, "standard", 1), run(SMALL, "standard", 2)

    assert first != second
    assert first.totals.begun == second.totals.begun == 240


def test_retry_storm_of_best_effort() -> None:
    """Best effort sends 13 attempts per operation during a refusing outage, within the timeout of 2.5 s."""
    scenario = replace(SMALL, fleet=replace(SMALL.fleet, timeout=2.5), outage=Outage(3.0, 9.0), duration=12.0)
    buckets = {bucket.start: bucket for bucket in run(scenario, "best_effort").buckets}

    assert 13.0 == pytest.approx(buckets[7.5].amplification, rel=0.1)
    assert 1.0 == buckets[1.0].amplification


def test_wrong_credentials_end_the_default_strategy() -> None:
    """On wrong credentials best effort keeps retrying, and the default strategy fails immediately."""
    assert SMALL.outage is not None
    scenario = replace(SMALL, outage=replace(SMALL.outage, kind=OutageKind.DENIES))
    stubborn, sensible = run(scenario, "best_effort"), run(scenario, "fast_fail_on_terminal_error")

    # Attempts in flight at the start of the outage are sent once more.
    assert 1.0 == pytest.approx(sensible.totals.amplification, abs=0.01)
    assert (stubborn.totals.amplification or 0.0) > 2.0


def test_storm_can_keep_a_service_down() -> None:
    """If rejections cost work, the load of the retries can outlast the outage that started it."""
    scenario = replace(SMALL, fleet=replace(SMALL.fleet, timeout=2.5), outage=Outage(3.0, 9.0), duration=25.0)
    stormy = run(scenario, "best_effort_jittered")
    calm = run(replace(scenario, service=replace(scenario.service, rejection_cost=0.0)), "best_effort_jittered")

    assert stormy.recovered_after is None
    assert calm.recovered_after is not None
    assert 0 == stormy.buckets[-1].succeeded


def test_clients_are_spread_over_processes() -> None:
    """Each process has ``clients_per_process`` clients, whenever they start."""
    begun: list[list[float]] = []

    def count(fleet: Fleet, rng: Random) -> Process:
        own: list[float] = []
        begun.append(own)

        def call(began: float, deadline: float) -> Call:
            own.append(began)
            return Call(began, deadline)

        return call

    fleet = Fleet(clients=6, period=1.0, clients_per_process=2)
    scenario = Scenario(fleet=fleet, service=SimulatedService(capacity=99.0), duration=3.0)
    play(scenario, "counting", count, random.Random(1))

    assert [6, 6, 6] == [len(found) for found in begun]
    assert all(sum(at < 1.0 for at in found) == 2 for found in begun)


def test_late_work_counts_as_wasted() -> None:
    """Requests served after their operations' timeout count as wasted when they are done, here after the duration."""
    fleet = Fleet(clients=3, period=0.3, timeout=0.6)
    service = SimulatedService(capacity=2.0, latency=0.0, queue=9.0)
    figures = run(Scenario(fleet=fleet, service=service, duration=0.3, bucket=0.3), "none")
    totals = figures.totals

    assert (3, 1, 2, 2) == (totals.sent, totals.succeeded, totals.failed, totals.wasted)
    assert [0] == [bucket.wasted for bucket in figures.buckets]


def test_bucket_reports_its_longest_queue() -> None:
    """A bucket reports its longest queue, not its last one: an outage empties the queue."""
    fleet, service = Fleet(clients=10, period=1.0), SimulatedService(capacity=2.0, queue=9.0)
    (bucket,) = run(Scenario(fleet=fleet, service=service, outage=Outage(0.5, 0.9), duration=1.0), "none").buckets

    assert 4.0 < bucket.queue < 5.0


def test_unknown_strategy_is_named() -> None:
    """An unknown strategy raises InvalidArgumentException, which names it and the known ones."""
    with pytest.raises(errors.InvalidArgumentException, match="'hope'.*best_effort"):
        run(SMALL, "hope")


def test_progress_is_virtual_time() -> None:
    """Progress grows in virtual time up to the duration, in a bounded number of steps, and changes no figure."""
    received: list[float] = []
    found = simulate(SMALL, "best_effort", rng=random.Random(7), on_progress=received.append)

    assert received == sorted(received)
    assert SMALL.duration == received[-1]
    assert 100 < len(received) <= PROGRESS_STEPS
    assert run(SMALL, "best_effort") == found


def test_closed_loop() -> None:
    """Each client repeats its operation after the previous one's response, or failure, and a pause."""
    arrivals = ClosedLoop(operations=4, pause=FixedTime(seconds=1.0))
    scenario = Scenario(
        fleet=Fleet(clients=3, timeout=0.2, arrivals=arrivals, clients_per_process=1),
        service=SimulatedService(capacity=10.0, latency=0.0),
        outage=Outage(1.0, 2.0, OutageKind.SILENT),
        duration=9.0,
    )
    figures = run(scenario, "none")

    # At 0 s, the response to the third client would take 0.3 s, so its operation times out. The second operation of
    # each client gets no response. Then the clients queue again, so that further operations time out.
    assert (12, 12) == (figures.totals.begun, figures.totals.sent)
    assert 0 < figures.totals.failed < 12
    assert figures.totals.succeeded + figures.totals.failed == 12
    assert 3.0 < figures.finished_at < 6.0
    assert 3 == run(replace(scenario, outage=None, duration=0.5), "none").totals.begun


def test_service_works_for_timed_out_attempts() -> None:
    """An attempt that has timed out is still served in all its steps, and counts as wasted when it is done."""
    scenario = Scenario(
        fleet=Fleet(clients=1, timeout=0.5, attempt_timeout=0.2, arrivals=ClosedLoop()),
        service=ParallelService(base=1.0, growth=0.1, leg=FixedTime(seconds=0.3)),
        duration=9.0,
        strategies=(CountedRetries(name="twice", max_attempts=2),),
    )
    totals = run(scenario, "twice").totals

    assert (2, 0, 1, 2) == (totals.sent, totals.succeeded, totals.failed, totals.wasted)


def test_mean_is_exact() -> None:
    """The mean latency is exact, while percentiles are rounded to buckets; a run without a success has no mean."""
    scenario = Scenario(
        fleet=Fleet(clients=4, period=4.0), service=ParallelService(leg=FixedTime(seconds=0.125)), duration=4.0
    )
    figures = run(scenario, "none")

    assert 0.25 == pytest.approx(figures.latency_mean, rel=1e-12)
    assert 3.25 <= figures.finished_at <= 4.25
    assert run(replace(scenario, failure_rate=1.0), "none").latency_mean is None
