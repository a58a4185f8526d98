"""``triclinium explain smithy``: options of a call under a Smithy strategy, and sentences on its attempts.

The command defines no rules: it builds a case, and shows the answers of the core's strategies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import click

from triclinium._cli._input import DurationParameter, WrongInput, choose, choose_name
from triclinium._cli._options import COUNT, option, takes
from triclinium._cli.explain.explanation_text import print_explanation
from triclinium_core.explain.explanation import Explanation
from triclinium_core.explain.smithy.explain import SmithyCase, explain
from triclinium_core.explain.smithy.script import ScriptedClock, ScriptedResponse
from triclinium_core.retry import smithy
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.tools.vectors.smithy import NUMBERS, RESPONSES, STRATEGIES


@dataclass(frozen=True, slots=True, kw_only=True)
class SmithyOptions:
    """Options of the command; None for an option without a default that was not given, except ``responses``."""

    responses: tuple[str, ...] = option(
        metavar="LIST",
        multiple=True,
        help="Responses to the attempts of an operation, such as E,T,ok; repeat it for further operations.",
    )
    strategy: str = option(metavar="NAME", default="standard", help=f"Retry strategy: {', '.join(STRATEGIES)}.")
    numbers: str | None = option(
        metavar="YEAR", help=f"Year of the costs and delays: {', '.join(NUMBERS)}.  [default: {[*NUMBERS][-1]}]"
    )
    max_attempts: int | None = option(
        **COUNT, help="Maximum number of attempts of an operation, including the first.  [default: 3; 5 for simple]"
    )
    quota: int | None = option(**COUNT, help="Capacity of the shared quota.  [default: 500]")
    random: float = option(
        type=click.FloatRange(0, 1), metavar="SHARE", default=0.5, help="Result of every random draw for a delay."
    )
    retry_after: float | None = option(
        type=DurationParameter(endless=False), metavar="S", help="Delay in seconds that every error requests."
    )


def build_case(options: SmithyOptions) -> SmithyCase:
    """Return the case that the options describe.

    Raises:
        WrongInput: a name is unknown, options are missing, or options contradict each other.
    """
    if not options.responses:
        raise WrongInput("--responses is missing; give the response to each attempt, such as E,T,ok; --help lists them")
    if math.isnan(options.random):
        raise WrongInput("--random nan is not a number from 0 to 1")
    operations = [_operation(text) for text in options.responses]
    clock = ScriptedClock()
    return SmithyCase(
        strategy=_strategy(options, clock), operations=operations, retry_after=options.retry_after, wait=clock.wait
    )


def _operation(text: str) -> Sequence[ScriptedResponse]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise WrongInput(f"--responses {text!r} has an empty name; write it like E,T,ok")
    return [choose(name, RESPONSES, "response") for name in names]


def _strategy(
    options: SmithyOptions, clock: ScriptedClock
) -> smithy.StandardRetryStrategy | smithy.SimpleRetryStrategy:
    name = choose_name(options.strategy, STRATEGIES, "strategy")
    rng, attempts, quota = ConstantRandom(options.random), options.max_attempts, options.quota
    if name == "standard":
        return smithy.StandardRetryStrategy(
            rng=rng, numbers=_numbers(options), max_attempts=attempts, quota_capacity=quota
        )
    if name == "adaptive":
        return smithy.AdaptiveRetryStrategy(
            rng=rng, clock=clock, numbers=_numbers(options), max_attempts=attempts, quota_capacity=quota
        )
    for flag, value in (("--numbers", options.numbers), ("--quota", quota)):
        if value is not None:
            raise WrongInput(f"{flag} does not apply to the strategy {name}; omit it")
    return (
        smithy.SimpleRetryStrategy(rng=rng)
        if attempts is None
        else smithy.SimpleRetryStrategy(rng=rng, max_attempts=attempts)
    )


def _numbers(options: SmithyOptions) -> smithy.AwsRetryNumbers:
    year = options.numbers
    return smithy.AwsRetryNumbers.OF_2026 if year is None else choose(year, NUMBERS, "year of numbers")


def circumstances(explanation: Explanation, random: float) -> str:
    """Return the strategy, its limits and the random numbers as a sentence.

    Args:
        random: result of every random draw.
    """
    facts = explanation.facts
    quota = "no quota" if facts["quota_capacity"] is None else f"a quota of {facts['quota_capacity']}"
    return (
        f"{facts['strategy']}: at most {facts['max_attempts']} attempts, {quota}; every random draw gives {random:g}."
    )


EPILOG = f"""\b
Examples:
  triclinium explain smithy --responses E,T,ok
  triclinium explain smithy --responses E,E,E --numbers 2020 --random 1
  triclinium explain smithy --responses E,E,ok --responses E,ok --quota 30
  triclinium explain smithy --responses E,ok --strategy simple --max-attempts 2
  triclinium explain smithy --responses T,ok --retry-after 3
  triclinium explain smithy --responses T,ok --responses ok --strategy adaptive

\b
Responses:
{chr(10).join(f"  {response:<3} {response.meaning}" for response in ScriptedResponse)}

Clauses: "design page" is the page on the design of Smithy's retries for Python; decisions such as S4 are on the
page "Decisions" of this project's documentation, docs/explanation/decisions.md.

Exit status: 0 if the command prints an explanation, whatever the decision; 2 if the input is invalid.
"""


@click.command("smithy", epilog=EPILOG)
@takes(SmithyOptions)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on one line.")
def explain_smithy(*, as_json: bool, options: SmithyOptions) -> None:
    """Explain how often and when Smithy's clients and the AWS SDKs would attempt an operation.

    Give the responses to its attempts with --responses. The strategies of the core decide. Each step names its section
    of Smithy's design page, or a decision of this project.
    """
    explanation = explain(build_case(options))
    print_explanation(explanation, circumstances(explanation, options.random), as_json=as_json)
