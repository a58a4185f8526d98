"""Choice of a strategy based on invented figures."""

from __future__ import annotations

from tests.rows import rows
from triclinium._cli.simulate.advice import Advice, advise
from triclinium_core.tools.fleet import Fleet, FleetFigures, Outage, Scenario, SimulatedService, Totals

CALM = Scenario(fleet=Fleet(), service=SimulatedService(capacity=100.0))
STORMY = Scenario(fleet=Fleet(), service=SimulatedService(capacity=100.0), outage=Outage(20.0, 30.0))


def found(
    strategy: str, succeeded: int, peak: float, recovered_after: float | None = 0.0, begun: int = 1000
) -> FleetFigures:
    """Return the figures of a strategy under which ``succeeded`` of ``begun`` operations succeeded."""
    totals = Totals(begun=begun, sent=begun, succeeded=succeeded, failed=begun - succeeded, throttled=0, wasted=0)
    return FleetFigures(
        strategy=strategy,
        buckets=(),
        totals=totals,
        peak_sent=peak,
        recovered_after=recovered_after,
        latencies=(),
        latency_mean=0.1,
        finished_at=60.0,
    )


def advised(scenario: Scenario, *figures: FleetFigures) -> Advice:
    """Return the advice, which must not be None."""
    advice = advise(scenario, figures)
    assert advice is not None
    return advice


@rows(
    ("figures", "expected"),
    [
        # The advice is the strategy under which more operations succeed.
        ((found("simple", 900, 50.0), found("standard", 990, 80.0)), "standard"),
        # The advice is the strategy with much less load, although slightly fewer operations succeed.
        ((found("best_effort", 855, 654.0), found("standard", 833, 145.0)), "standard"),
        # A strategy with a third more failures is not advised, however low its load is.
        ((found("best_effort", 850, 654.0), found("standard", 800, 145.0)), "best_effort"),
        # A strategy that does not recover is not advised, however many of its operations succeed.
        ((found("best_effort", 950, 654.0, None), found("standard", 600, 145.0)), "standard"),
        # If as many operations succeed with retries as without, the advice is to retry.
        ((found("none", 833, 50.0), found("standard", 833, 145.0)), "standard"),
        # If fewer operations succeed with retries than without, the advice is not to retry.
        ((found("none", 833, 50.0), found("simple", 352, 316.0)), "none"),
        # If no strategy recovers, the one under which more operations succeed is advised.
        ((found("simple", 352, 316.0, None), found("best_effort", 500, 940.0, None)), "best_effort"),
        # The advice ignores a difference of a thousandth.
        ((found("simple", 1000, 316.0), found("standard", 999, 145.0)), "standard"),
    ],
)
def test_advised_strategy(figures: tuple[FleetFigures, ...], expected: str) -> None:
    """The advice is the expected strategy, in either order of the strategies."""
    assert expected == advised(STORMY, *figures).strategy
    assert expected == advised(STORMY, *reversed(figures)).strategy


def test_without_an_outage_all_of_them_count() -> None:
    """If the scenario has no outage, the advice ignores whether a strategy recovers."""
    assert "adaptive" == advised(CALM, found("adaptive", 796, 56.0, None), found("simple", 496, 217.0, None)).strategy


def test_the_reason_has_the_figures() -> None:
    """The reason gives the figures of the choice, of a better strategy with more load, and of one without recovery."""
    reason = advised(
        STORMY,
        found("best_effort", 855, 654.0),
        found("standard", 833, 145.0, 2.0),
        found("best_effort_jittered", 395, 940.0, None),
    ).reason

    figures = ("83.3%", "145", "2 s", "best_effort reaches 85.5%", "654/s", "6.5 times", "best_effort_jittered does")
    assert [] == [figure for figure in figures if figure not in reason]


def test_no_advice_without_a_choice() -> None:
    """A single strategy, or a fleet that sent no request, gets no advice."""
    assert advise(CALM, [found("simple", 900, 50.0)]) is None
    assert advise(CALM, [found("simple", 900, 50.0), found("none", 0, 0.0, begun=0)]) is None
