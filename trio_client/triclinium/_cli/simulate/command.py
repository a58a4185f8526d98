"""``triclinium simulate``: what does a retry strategy do to a service that was away?

It has no rule of its own: strategies are the core's, and so is the simulation. It chooses the scenario, spreads the
work over processes, and shows the figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from triclinium._cli._input import WrongInput
from triclinium._cli._options import takes
from triclinium._cli.simulate.report import figures_as_json, show_fleet, story
from triclinium._cli.simulate.running import simulate_all
from triclinium._cli.simulate.scenario import ScenarioOptions, build_scenario, choose_strategies
from triclinium_core.testing.fleet import STRATEGIES, FleetFigures, Scenario

EPILOG = f"""\b
Examples:
  triclinium simulate
  triclinium simulate --strategy best_effort --strategy none --outage 20-40
  triclinium simulate --outage-kind silent --attempt-timeout 0.5 --plot outage.svg
  triclinium simulate --clients 100000 --strategy standard --json

Strategies: {"; ".join(f"{name}, which {strategy.meaning}" for name, strategy in STRATEGIES.items())}.

Time is virtual, and the same seed gives the same figures. This looks at load; python -m
triclinium_core.testing.simulation, which looks for bugs in the client, is another thing.

Exit status: 0 when there are figures, whatever they say; 2 when something could not be understood.
"""

PLOTS = (".svg", ".png")


@click.command(epilog=EPILOG)
@takes(ScenarioOptions)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="Of all clients; several are played each by itself, with the same clients.",
)
@click.option("--seed", type=int, metavar="SEED", default=1)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Draw a picture as well: .svg or .png. Needs triclinium[plot].",
)
@click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object on one line.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: one for each processor]")
def simulate(
    *,
    strategies: tuple[str, ...],
    seed: int,
    plot: Path | None,
    as_json: bool,
    jobs: int | None,
    options: ScenarioOptions,
) -> None:
    """Simulate many clients over an outage of the service that they ask.

    Each client begins an operation every so often, and retries as its strategy says, through the very objects that a
    client runs. Shown are the demand, the load that the service is offered, the goodput, how many attempts there were
    for each operation, and how long it took to recover.
    """
    chosen = choose_strategies(strategies)
    scenario = build_scenario(options)
    # What is missing for the picture shows before the work is done.
    draw = None if plot is None else drawing_to(plot)
    with showing_work(f"{story(scenario)} Simulating {', '.join(chosen)} …"):
        figures = simulate_all(scenario, chosen, seed=seed, jobs=jobs)
    try:
        if draw is not None:
            draw(scenario, figures)
    except OSError as error:
        raise click.ClickException(f"--plot {str(plot)!r} cannot be written: {error.strerror}") from error
    finally:
        # The figures of a picture that could not be drawn are worth as much.
        if as_json:
            click.echo(json.dumps(figures_as_json(scenario, seed, figures)))
        else:
            show_fleet(scenario, figures)


def showing_work(words: str) -> AbstractContextManager[object]:
    """Return a context that shows on a terminal what is being done; it leaves nothing behind."""
    console = Console(stderr=True)
    return console.status(Text(words)) if console.is_terminal else nullcontext()


def drawing_to(path: Path) -> Callable[[Scenario, Sequence[FleetFigures]], None]:
    """Return what draws figures into a file.

    Raises:
        WrongInput: its name does not say which kind it is, its folder is missing, or matplotlib is.
    """
    if path.suffix.lower() not in PLOTS:
        raise WrongInput(f"--plot {str(path)!r} must end in {' or '.join(PLOTS)}")
    if not path.parent.is_dir():
        raise WrongInput(f"--plot {str(path)!r}: there is no folder {str(path.parent)!r}; make it first")
    try:
        return partial(import_module("triclinium._cli.simulate.plot").draw, path=path)
    except ImportError as error:
        raise WrongInput(f"--plot needs matplotlib; install it with triclinium[plot] ({error})") from error
