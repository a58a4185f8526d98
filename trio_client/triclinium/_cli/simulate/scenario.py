"""From the options of ``triclinium simulate`` to a scenario that the core plays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from triclinium._cli._input import DurationParameter, WrongInput, choose_name
from triclinium._cli._options import option
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.testing.fleet import (
    STRATEGIES,
    Fleet,
    Outage,
    OutageKind,
    Overload,
    Scenario,
    SimulatedService,
)

STRATEGIES_DEFAULT = ("none", "best_effort", "best_effort_jittered", "simple", "standard")
SECONDS: Mapping[str, object] = {"type": DurationParameter(min_open=True, endless=False), "metavar": "SECONDS"}
HEADROOM = 1.5
"""Capacity of a service as a multiple of the demand, where nobody says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOptions:
    """The options of the command that tell a scenario; None for one that was not given."""

    clients: int = option(type=click.IntRange(min=1), metavar="N", default=1_000)
    period: float = option(**SECONDS, default=10.0, help="Each client begins an operation so often.")
    duration: float = option(**SECONDS, default=60.0, help="How long they do.")
    outage: str = option(metavar="FROM-TO", default="20-30", help="Seconds between which the service is away, or none.")
    outage_kind: str = option(
        metavar="KIND", default=str(OutageKind.REFUSES), help=f"What the service does then: {', '.join(OutageKind)}."
    )
    capacity: float | None = option(
        type=SECONDS["type"],
        metavar="RATE",
        help="Requests that the service can serve in a second.  [default: half as many again as clients ask for]",
    )
    latency: float = option(
        type=DurationParameter(endless=False),
        metavar="SECONDS",
        default=0.01,
        help="From a request to its answer, beside the wait in the queue and the work.",
    )
    queue: float = option(**SECONDS, default=1.0, help="How much work may wait at the service.")
    overload: str = option(
        metavar="KIND",
        default=str(Overload.THROTTLES),
        help=f"What it does with a request beyond that: {', '.join(Overload)}.",
    )
    rejection_cost: float = option(
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        default=0.1,
        help="Work of turning a request away, as a share of the work of serving it.",
    )
    timeout: float = option(**SECONDS, default=2.5, help="What an operation may take, retries included.")
    attempt_timeout: float | None = option(
        **SECONDS,
        help="What one attempt may take, for strategies that retry timeouts.  [default: as long as the operation]",
    )
    per_process: int = option(
        type=click.IntRange(min=1), metavar="N", default=100, help="Clients that share a strategy, and so its quota."
    )
    writes: bool = option(is_flag=True, help="Operations must not be applied twice.")
    step: float = option(**SECONDS, default=1.0, help="Width of time steps.")


def choose_strategies(names: Sequence[str]) -> Sequence[str]:
    """Return the names that the core has for the strategies, each once; the default ones where none is named.

    Raises:
        WrongInput: no strategy has one of the names.
    """
    return list(dict.fromkeys(choose_name(name, STRATEGIES, "strategy") for name in names or STRATEGIES_DEFAULT))


def build_scenario(options: ScenarioOptions) -> Scenario:
    """Return the scenario.

    Raises:
        WrongInput: a name is not known, or a value is out of range.
    """
    try:
        fleet = Fleet(
            clients=options.clients,
            period=options.period,
            timeout=options.timeout,
            attempt_timeout=options.attempt_timeout,
            clients_per_process=options.per_process,
            idempotent=not options.writes,
        )
        service = SimulatedService(
            capacity=options.capacity or HEADROOM * fleet.demand,
            latency=options.latency,
            queue=options.queue,
            overload=Overload(choose_name(options.overload, Overload, "kind of overload")),
            rejection_cost=options.rejection_cost,
        )
        return Scenario(
            fleet=fleet,
            service=service,
            outage=_outage(options),
            duration=options.duration,
            bucket=options.step,
        )
    except InvalidArgumentException as error:
        raise WrongInput(error.message) from error


def _outage(options: ScenarioOptions) -> Outage | None:
    kind = OutageKind(choose_name(options.outage_kind, OutageKind, "kind of outage"))
    text = options.outage.strip()
    if text.casefold() == "none":
        return None
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"{number}\s*-\s*{number}", text, re.ASCII)
    if match is None:
        raise WrongInput(f"--outage {text!r} is none: write the seconds between which it lasts, such as 20-30, or none")
    return Outage(float(match[1]), float(match[2]), kind)
