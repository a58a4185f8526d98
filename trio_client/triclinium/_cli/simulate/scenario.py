"""Options of ``triclinium simulate`` as a scenario, or as changes to a scenario from a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import msgspec

from triclinium._cli._input import DurationParameter, WholeNumber, WrongInput, choose_name
from triclinium._cli._options import option
from triclinium._cli.simulate.conversion import convert
from triclinium_core import errors
from triclinium_core.tools.fleet import STRATEGIES, Fleet, OutageKind, Overload, Scenario, SimulatedService

STRATEGIES_DEFAULT = ("none", "best_effort", "best_effort_jittered", "simple", "standard")
SECONDS: Mapping[str, object] = {"type": DurationParameter(min_open=True, endless=False), "metavar": "SECONDS"}
HEADROOM = 1.5
"""Default capacity of a service as a multiple of the demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOptions:
    """Options of the command that describe a scenario; None for a default that depends on other options."""

    clients: int = option(type=WholeNumber(min=1), metavar="N", default=1_000, help="Number of clients.")
    period: float = option(**SECONDS, default=10.0, help="Seconds between the operations of a client.")
    duration: float = option(**SECONDS, default=60.0, help="Seconds during which clients begin operations.")
    outage: str = option(metavar="FROM-TO", default="20-30", help="Start and end of the outage in seconds, or none.")
    outage_kind: str = option(
        metavar="KIND",
        default=str(OutageKind.REFUSES),
        help=f"Behaviour of the service during the outage: {', '.join(OutageKind)}.",
    )
    capacity: float | None = option(
        type=SECONDS["type"],
        metavar="RATE",
        help="Requests that the service can serve per second.  [default: 1.5 times the demand]",
    )
    latency: float = option(
        type=DurationParameter(endless=False),
        metavar="SECONDS",
        default=0.01,
        help="Seconds from a request to its response, without the queue and the work.",
    )
    queue: float = option(**SECONDS, default=1.0, help="Maximum work in the queue of the service, in seconds.")
    overload: str = option(
        metavar="KIND",
        default=str(Overload.THROTTLES),
        help=f"Behaviour of the service when its queue is full: {', '.join(Overload)}.",
    )
    rejection_cost: float = option(
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        default=0.1,
        help="Work of rejecting a request, as a share of the work of serving it.",
    )
    timeout: float = option(**SECONDS, default=2.5, help="Timeout of an operation in seconds, including its retries.")
    attempt_timeout: float | None = option(
        **SECONDS,
        help="Timeout of an attempt in seconds, for strategies that retry timeouts.  [default: that of the operation]",
    )
    per_process: int = option(
        type=WholeNumber(min=1), metavar="N", default=100, help="Number of clients that share a strategy and its quota."
    )
    writes: bool = option(is_flag=True, help="Make the operations not idempotent.")
    step: float = option(**SECONDS, default=1.0, help="Width of a time step in seconds.")


def choose_strategies(names: Sequence[str], scenario: Scenario) -> Sequence[str]:
    """Return the names of strategies as the core and the scenario spell them, without duplicates.

    Without names, return the default strategies and those of the scenario.

    Raises:
        WrongInput: a name is unknown.
    """
    own = [retries.name for retries in scenario.strategies]
    known = list(dict.fromkeys([*own, *STRATEGIES]))
    return list(dict.fromkeys(choose_name(name, known, "strategy") for name in names or (*STRATEGIES_DEFAULT, *own)))


def capacity_of(scenario: Scenario) -> float | None:
    """Return the capacity of the service in requests per second; None for a service without a fixed capacity."""
    service = scenario.service
    return service.capacity if isinstance(service, SimulatedService) else None


COPIED_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "clients": ("fleet", "clients"),
    "period": ("fleet", "period"),
    "timeout": ("fleet", "timeout"),
    "attempt_timeout": ("fleet", "attempt_timeout"),
    "per_process": ("fleet", "clients_per_process"),
    "capacity": ("service", "capacity"),
    "latency": ("service", "latency"),
    "queue": ("service", "queue"),
    "rejection_cost": ("service", "rejection_cost"),
    "duration": ("duration",),
    "step": ("bucket",),
}
"""Path in ``Scenario`` of each option whose value is copied unchanged. ``_change`` converts the other options."""

Table = dict[str, Any]


def build_scenario(options: ScenarioOptions) -> Scenario:
    """Return the scenario that the options and their defaults describe.

    Raises:
        WrongInput: a name is unknown, or a value is malformed or out of range.
    """
    table: Table = {"fleet": {}, "service": {}, "outage": None}
    _change(table, options, frozenset(options.__dataclass_fields__))
    try:
        fleet = convert(table["fleet"], Fleet)
        if options.capacity is None:
            table["service"]["capacity"] = HEADROOM * fleet.demand
        service = convert(table.pop("service"), SimulatedService)
        return convert({**table, "service": msgspec.to_builtins(service)}, Scenario)
    except errors.InvalidArgumentException as error:
        raise WrongInput(error.message) from error


def change_scenario(scenario: Scenario, options: ScenarioOptions, given: Collection[str]) -> Scenario:
    """Return the scenario with the changes that the given options describe.

    Raises:
        WrongInput: a name is unknown, a value is invalid, or an option does not apply to this scenario.
    """
    table: Table = msgspec.to_builtins(scenario)
    _change(table, options, given)
    try:
        return convert(table, Scenario)
    except errors.InvalidArgumentException as error:
        raise WrongInput(error.message) from error
    except msgspec.ValidationError as error:
        raise WrongInput(f"the options do not fit the scenario: {error}") from error


def _change(table: Table, options: ScenarioOptions, given: Collection[str]) -> None:
    """Write the values of the given options into a scenario's table."""
    for name, (*path, key) in COPIED_OPTIONS.items():
        value = getattr(options, name)
        if name in given and value is not None:
            (table[path[0]] if path else table)[key] = value
    if "writes" in given:
        table["fleet"]["idempotent"] = not options.writes
    if "overload" in given:
        table["service"]["overload"] = str(Overload(choose_name(options.overload, Overload, "kind of overload")))
    if "outage" in given:
        table["outage"] = _read_outage(options.outage, table["outage"] or {})
    if "outage_kind" in given:
        kind = choose_name(options.outage_kind, OutageKind, "kind of outage")
        if table["outage"] is not None:
            table["outage"]["kind"] = kind


def _read_outage(text: str, before: Table) -> Table | None:
    text = text.strip()
    if text.casefold() == "none":
        return None
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"{number}\s*-\s*{number}", text, re.ASCII)
    if match is None:
        raise WrongInput(f"--outage {text!r} must be its start and end in seconds, such as 20-30, or none")
    return {**before, "start": float(match[1]), "end": float(match[2])}
