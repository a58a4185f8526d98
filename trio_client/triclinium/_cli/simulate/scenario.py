"""From the options of ``triclinium simulate`` to a scenario that the core plays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict

from triclinium._cli._input import WrongInput, choose_name
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
HEADROOM = 1.5
"""Capacity of a service as a multiple of the demand, where nobody says otherwise."""


class ScenarioOptions(TypedDict):
    """The options of the command that tell a scenario; None for one that was not given."""

    clients: int
    period: float
    duration: float
    outage: str
    outage_kind: str
    capacity: float | None
    latency: float
    queue: float
    overload: str
    rejection_cost: float
    timeout: float
    attempt_timeout: float | None
    per_process: int
    writes: bool
    step: float


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
            clients=options["clients"],
            period=options["period"],
            timeout=options["timeout"],
            attempt_timeout=options["attempt_timeout"],
            clients_per_process=options["per_process"],
            idempotent=not options["writes"],
        )
        service = SimulatedService(
            capacity=options["capacity"] or HEADROOM * fleet.demand,
            latency=options["latency"],
            queue=options["queue"],
            overload=Overload(choose_name(options["overload"], Overload, "kind of overload")),
            rejection_cost=options["rejection_cost"],
        )
        return Scenario(
            fleet=fleet,
            service=service,
            outage=_outage(options),
            duration=options["duration"],
            bucket=options["step"],
        )
    except InvalidArgumentException as error:
        raise WrongInput(error.message) from error


def _outage(options: ScenarioOptions) -> Outage | None:
    kind = OutageKind(choose_name(options["outage_kind"], OutageKind, "kind of outage"))
    text = options["outage"].strip()
    if text.casefold() == "none":
        return None
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"{number}\s*-\s*{number}", text, re.ASCII)
    if match is None:
        raise WrongInput(f"--outage {text!r} is none: write the seconds between which it lasts, such as 20-30, or none")
    return Outage(float(match[1]), float(match[2]), kind)
