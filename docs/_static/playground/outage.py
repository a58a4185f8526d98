"""Simulation of an outage: figures and pictures of each strategy. ``triclinium simulate`` has the same figures."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from docs._static.playground.story import Html, tag
from triclinium_core.argument_error import ArgumentError
from triclinium_core.tools.fleet import STRATEGIES, FleetFigures, Scenario, TimeStep, play
from triclinium_core.tools.fleet.strategies import MakeProcess

WIDTH, HEIGHT, ROW = 300, 64, 88
CURVES: Sequence[tuple[str, str, Callable[[TimeStep], float]]] = (
    ("load", "offered load, requests/s", lambda step: step.sent),
    ("goodput", "goodput, operations/s", lambda step: step.succeeded),
    ("amplification", "amplification, attempts/operation", lambda step: step.amplification or 0.0),
)
"""Name and title of each curve, and its value in a time step of a second."""


def played(choice: Mapping[str, str], fleets: Mapping[str, MakeProcess], on_progress: Callable[[float], None]) -> Html:
    """Return the figures and pictures of strategies, or raise ValueError. ``on_progress`` gets the finished share."""
    for name in ("clients", "capacity", "start", "end", "seed"):
        if not re.fullmatch(r"\d{1,9}(\.\d+)?", str(choice[name])):
            raise ArgumentError(
                f"{name}={choice[name]!r} must be a number without a sign, with at most nine digits before its point",
                parameter=name,
            )
    service = {"type": "queue", "capacity": choice["capacity"], "overload": choice["overload"]}
    outage = {"start": choice["start"], "end": choice["end"], "kind": choice["kind"]}
    fields = {"fleet": {"clients": choice["clients"]}, "service": service, "outage": outage}
    scenario, seed = msgspec.convert(fields, Scenario, strict=False), int(float(choice["seed"]))
    figures: list[FleetFigures] = []
    for name, make_process in fleets.items():
        figures.append(play(scenario, name, make_process, random.Random(seed)))
        on_progress(len(figures) / len(fleets))
    tops = [max([1.0, *(value(step) for each in figures for step in each.buckets)]) for _, _, value in CURVES]
    return tag("div", *(_figure(scenario, found, tops) for found in figures), class_="fleet")


def _figure(scenario: Scenario, found: FleetFigures, tops: Sequence[float]) -> Html:
    """Return the figures of a strategy, and a panel for each curve, whose scale is the same for all strategies."""
    totals, second, shapes = found.totals, WIDTH / scenario.duration, []
    for row, ((name, title, value), top) in enumerate(zip(CURVES, tops, strict=True), 1):
        steps = "".join(f"V{row * ROW - value(step) / top * HEIGHT:.1f}h{second:g}" for step in found.buckets)
        if outage := scenario.outage:
            box = {"x": outage.start * second, "width": (outage.end - outage.start) * second, "height": HEIGHT}
            shapes.append(tag("rect", **box, y=row * ROW - HEIGHT, class_="outage"))
        shapes.append(tag("path", d=f"M0 {row * ROW}{steps}V{row * ROW}z", class_=name))
        shapes.append(tag("text", f"{title}: at most {top:,.4g}", x=0, y=row * ROW - HEIGHT - 6))
    meaning = STRATEGIES[found.strategy].meaning if found.strategy in STRATEGIES else "has your code"
    after = "does not recover" if found.recovered_after is None else f"recovers after {found.recovered_after:g} s"
    words = (
        f"{totals.succeeded / totals.begun:.1%} succeeded, {totals.amplification:.2f} attempts per operation, {after}"
    )
    caption = tag("figcaption", tag("strong", found.strategy), f" {meaning}: {words}.")
    picture = tag(
        "svg", *shapes, viewBox=f"0 0 {WIDTH} {ROW * 3 + 4}", role="img", aria_label=f"{found.strategy}: {words}"
    )
    return tag("figure", caption, picture)
