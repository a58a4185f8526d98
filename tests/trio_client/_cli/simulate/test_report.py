"""Description of a scenario in words."""

from __future__ import annotations

from tests.rows import rows
from triclinium._cli.simulate.report import story
from triclinium_core.tools.fleet import ClosedLoop, Fleet, ParallelService, Scenario, Spike


@rows(
    ("fleet", "expected"),
    [
        (Fleet(), "1,000 clients begin an operation every 10 s, for 60 s: 100 operations a second."),
        (
            Fleet(trend=Spike(start=1.0, end=2.0, factor=3.0)),
            "1,000 clients usually begin an operation every 10 s, for 60 s: 100 operations a second.",
        ),
        (
            Fleet(arrivals=ClosedLoop(operations=1)),
            "1,000 clients begin 1 operation each, one after the other, for at most 60 s.",
        ),
        (
            Fleet(arrivals=ClosedLoop(operations=9)),
            "1,000 clients begin 9 operations each, one after the other, for at most 60 s.",
        ),
    ],
)
def test_demand_in_words(fleet: Fleet, expected: str) -> None:
    """A period and a rate are stated only if they apply; a rate that changes is stated as the usual one."""
    assert story(Scenario(fleet=fleet, service=ParallelService())).startswith(expected)
