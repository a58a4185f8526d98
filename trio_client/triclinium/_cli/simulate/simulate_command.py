"""``triclinium simulate``: the command, its options, and the choice of the output.

The command defines no rules: the strategies and the simulation are in the core. The command chooses the scenario,
distributes the work over processes, and shows the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from triclinium._cli._input import WholeNumber, WrongInput
from triclinium._cli._options import takes
from triclinium._cli.simulate.report import figures_as_json, show_fleet
from triclinium._cli.simulate.running import simulate_all
from triclinium._cli.simulate.scenario import ScenarioOptions, build_scenario, change_scenario, choose_strategies
from triclinium._cli.simulate.scenario_file import read_scenario
from triclinium._cli.simulate.validation import count_runs, rows_as_json, show_rows, validate
from triclinium_core.shown import json_text
from triclinium_core.tools.fleet import STRATEGIES

EPILOG = f"""\b
Examples:
  triclinium simulate
  triclinium simulate --strategy best_effort --strategy none --outage 20-40
  triclinium simulate --outage-kind silent --attempt-timeout 0.5 --plot outage.svg
  triclinium simulate --clients 100000 --strategy standard --json
  triclinium simulate --scenario outage.toml --plot outage.svg --theme both
  triclinium simulate --validate

Strategies: {"; ".join(f"{name} {strategy.meaning}" for name, strategy in STRATEGIES.items())}.

Time is virtual, and the same seed gives the same figures. This command simulates load; to search for bugs in the
client, run python -m triclinium_core.testing.simulation.

Exit status: 0 if the command prints figures, whatever they show; 1 if --validate finds different figures; 2 if the
input is invalid.
"""

PLOTS = (".svg", ".png")
THEMES: Mapping[str, Sequence[str]] = {"light": ("light",), "dark": ("dark",), "both": ("light", "dark")}


@click.command(epilog=EPILOG, short_help="Simulate an outage for many clients that retry.")
@click.option(
    "--scenario",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read the scenario from a TOML file; other options override it.",
)
@takes(ScenarioOptions)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="Retry strategy of all clients; repeatable: each is simulated separately, with the same clients.",
)
@click.option("--seed", type=int, metavar="SEED", default=1, help="Seed of all random numbers.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Also draw a picture: .svg or .png. Requires triclinium[plot].",
)
@click.option(
    "--theme",
    type=click.Choice(list(THEMES)),
    metavar="THEME",
    default="light",
    help="Theme of the picture: light, dark, or both; of both, the dark one has -dark in its file name.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on one line.")
@click.option(
    "--validate",
    "validates",
    is_flag=True,
    help="Repeat published simulations instead, and compare the figures. It takes a minute or two, and supports only "
    "--seed, --plot, --theme, --json and --jobs.",
)
@click.option("--jobs", type=WholeNumber(min=1), metavar="N", help="Number of processes.  [default: one per processor]")
def simulate(
    *,
    file: Path | None,
    strategies: tuple[str, ...],
    seed: int,
    plot: Path | None,
    theme: str,
    as_json: bool,
    validates: bool,
    jobs: int | None,
    options: ScenarioOptions,
) -> None:
    """Simulate many clients during an outage of their service.

    Each client begins operations, by default at an interval. The retry strategies are those that real clients use. The
    command shows the demand, the offered load, the goodput, the attempts per operation, and the time to recover.
    """
    if validates:
        validate_simulator(seed=seed, jobs=jobs, plot=plot, themes=THEMES[theme], as_json=as_json)
        return
    scenario = (
        change_scenario(read_scenario(file), options, typed_options()) if file is not None else build_scenario(options)
    )
    chosen = choose_strategies(strategies, scenario)
    # Fail before the simulation if something needed for the picture is missing.
    draw = None if plot is None else drawing_to(plot, THEMES[theme])
    with showing_progress(scenario.duration * len(chosen), "s") as on_progress:
        figures = simulate_all(scenario, chosen, seed=seed, jobs=jobs, on_progress=on_progress)
    try:
        if draw is not None:
            draw(scenario, figures)
    except OSError as error:
        raise click.ClickException(f"--plot {str(plot)!r} cannot be written: {error.strerror}") from error
    finally:
        # Show the figures even if the picture cannot be written.
        if as_json:
            click.echo(json_text(figures_as_json(scenario, seed, figures)))
        else:
            show_fleet(scenario, figures)


def typed_options() -> Collection[str]:
    """Return the names of the running command's options that the user typed."""
    context = click.get_current_context()
    return [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


VALIDATION_OPTIONS = {"validates", "seed", "plot", "theme", "as_json", "jobs"}
"""Options that apply to a validation."""


def validate_simulator(*, seed: int, jobs: int | None, plot: Path | None, themes: Sequence[str], as_json: bool) -> None:
    """Run the reference experiments, show the comparison, and exit with 1 if figures differ.

    Raises:
        WrongInput: an option of a scenario was given, or the picture cannot be drawn.
        click.ClickException: a process died, or the picture cannot be written.
    """
    others = {*typed_options()} - VALIDATION_OPTIONS
    for parameter in click.get_current_context().command.params:
        if parameter.name in others:
            raise WrongInput(f"--validate has its scenarios built in; omit {parameter.opts[0]}, or --validate")
    draw = None if plot is None else drawing_to(plot, themes, "validation_plot", "draw_validation")
    with showing_progress(count_runs(), "runs") as on_run:
        rows = validate(seed=seed, jobs=jobs, on_run=on_run or (lambda runs: None))
    try:
        if draw is not None:
            draw(rows)
    except OSError as error:
        raise click.ClickException(f"--plot {str(plot)!r} cannot be written: {error.strerror}") from error
    finally:
        if as_json:
            for line in rows_as_json(rows):
                click.echo(line)
        else:
            show_rows(rows)
    if not all(row.ok for row in rows):
        click.get_current_context().exit(1)


@contextmanager
def showing_progress(total: float, unit: str) -> Iterator[Callable[[float], None] | None]:
    """Show the progress on a terminal until the block ends. The block gets a callback; None without a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("simulating"),
        BarColumn(bar_width=None),
        TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, completed=done)


def drawing_to(path: Path, themes: Sequence[str], module: str = "plot", function: str = "draw") -> Callable[..., None]:
    """Return a function that draws a picture for each theme, each into its own file, with ``function`` of ``module``.

    Raises:
        WrongInput: the file name has no known suffix, its folder does not exist, or matplotlib cannot be imported.
    """
    if path.suffix.lower() not in PLOTS:
        raise WrongInput(f"--plot {str(path)!r} must end in {' or '.join(PLOTS)}")
    if not path.parent.is_dir():
        raise WrongInput(f"--plot {str(path)!r}: {str(path.parent)!r} is not an existing folder; create it first")
    try:
        draw = getattr(import_module(f"triclinium._cli.simulate.{module}"), function)
    except ImportError as error:
        raise WrongInput(f"--plot requires matplotlib; run: pip install 'triclinium[plot]' ({error})") from error

    def draw_all(*shown: object) -> None:
        for number, theme in enumerate(themes):
            draw(*shown, path if number == 0 else path.with_stem(f"{path.stem}-{theme}"), theme=theme)

    return draw_all
