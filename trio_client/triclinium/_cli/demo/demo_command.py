"""``triclinium demo``: several kinds of failures, the client's decisions, and their check against the RFC."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

import click
import trio

from triclinium._cli._output import run_trio
from triclinium._cli.demo.checks import Check, check
from triclinium._cli.demo.recorder import Play
from triclinium._cli.demo.scenarios import SCENARIOS, DemoScenario
from triclinium._cli.demo.show import Judged, Screen
from triclinium._cli.demo.stage import Stage
from triclinium._cli.demo.timeline import rows_of

LIMIT_SECONDS = 60.0
"""Time limit of the demo in seconds. The demo takes about a second, but may not end if a retry rule is wrong."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def demo(ctx: click.Context, *, as_json: bool) -> None:
    """Watch the client decide while everything goes wrong.

    A fake node listens on a free port of 127.0.0.1, and the client uses it over TCP: the node refuses and closes
    connections, returns errors, and rejects a wrong password. For each operation, the command shows the events, the
    decisions, the delays and the result.

    Exit status: 0 if the client's reports, the node's log and RFC 0049 agree in every detail, else 1.
    """
    screen = None if as_json else Screen()
    judged: list[Judged] = []

    def on_play(play: Play) -> None:
        judged.append((play, check(play)))
        if screen is not None:
            screen.scenario(len(judged), *judged[-1])

    if screen is not None:
        screen.opening()
    seconds = run_trio(play_all, SCENARIOS, on_play)
    missing = len(SCENARIOS) - len(judged)
    document = as_document(judged, seconds, missing)
    if screen is not None:
        screen.summary(judged, seconds, missing)
    else:
        click.echo(json.dumps(document))
    if not document["ok"]:
        ctx.exit(1)


async def play_all(scenarios: Sequence[DemoScenario], on_play: Callable[[Play], None]) -> float:
    """Run scenarios one after the other within the time limit, and return the seconds that they took."""
    began = trio.current_time()
    with trio.move_on_after(LIMIT_SECONDS):
        async with trio.open_nursery() as nursery:
            stage = Stage(nursery)
            async with stage.open():
                for scenario in scenarios:
                    on_play(await stage.play(scenario))
            nursery.cancel_scope.cancel()
    return trio.current_time() - began


def as_document(judged: Sequence[Judged], seconds: float, missing: int) -> dict[str, object]:
    """Return the demo as JSON values."""
    scenarios = [_scenario_as_document(play, checks) for play, checks in judged]
    return {
        "ok": not missing and all(scenario["ok"] for scenario in scenarios),
        "seconds": round(seconds, 3),
        "not_played": missing,
        "scenarios": scenarios,
    }


def _scenario_as_document(play: Play, checks: Sequence[Check]) -> dict[str, object]:
    scenario = play.scenario
    return {
        "name": scenario.name,
        "title": scenario.title,
        "operation": scenario.operation.name,
        "key": scenario.key,
        "clause": scenario.clause,
        "ok": all(check.holds for check in checks),
        "outcome": play.outcome,
        "message": play.message or None,
        "timeline": [asdict(row) for row in rows_of(play)],
        "checks": [asdict(check) for check in checks],
    }
