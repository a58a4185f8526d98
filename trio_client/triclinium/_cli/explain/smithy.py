"""``triclinium explain smithy``: options of a call under a Smithy strategy, and sentences on its attempts.

It defines no rules: it builds a case, and shows the answers of the core's strategies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import click

from triclinium._cli._input import DurationParameter, WrongInput, choose, choose_name
from triclinium._cli._options import COUNT, option, takes
from triclinium._cli.explain.telling import tell
from triclinium_core.explain.explanation import Explanation
from triclinium_core.explain.smithy.explain import SmithyCase, explain
from triclinium_core.explain.smithy.script import ScriptedClock, ScriptedResponse
from triclinium_core.retry import smithy
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.tools.vectors.smithy import NUMBERS, RESPONSES, STRATEGIES


@dataclass(frozen=True, slots=True, kw_only=True)
class SmithyOptions:
    """Options of the command; None for an option that was not given."""

    responses: tuple[str, ...] = option(
        metavar="LIST",
        multiple=True,
        help="What the attempts of an operation end with, such as E,T,ok; once more for an operation after it.",
    )
    strategy: str = option(metavar="NAME", default="standard", help=f"{', '.join(STRATEGIES)}.")
    numbers: str | None = option(
        metavar="YEAR", help=f"Whose costs and delays: {', '.join(NUMBERS)}.  [default: {[*NUMBERS][-1]}]"
    )
    max_attempts: int | None = option(
        **COUNT, help="Attempts of one operation, the first among them.  [default: 3; 5 for simple]"
    )
    quota: int | None = option(**COUNT, help="What the shared quota begins with.  [default: 500]")
    random: float = option(
        type=click.FloatRange(0, 1), metavar="SHARE", default=0.5, help="What every draw for a jittered delay gives."
    )
    retry_after: float | None = option(
        type=DurationParameter(endless=False), metavar="S", help="Seconds that every error asks for."
    )


def build_case(options: SmithyOptions) -> SmithyCase:
    """Return the case.

    Raises:
        WrongInput: a name is unknown, options are missing, or options contradict each other.
    """
    if not options.responses:
        raise WrongInput("say with --responses what the attempts end with, such as E,T,ok; --help says what they are")
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
        raise WrongInput(f"--responses {text!r} has an empty place; write it like E,T,ok")
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
            raise WrongInput(f"{flag} says nothing about the strategy {name}, which has none; leave it out")
    return (
        smithy.SimpleRetryStrategy(rng=rng)
        if attempts is None
        else smithy.SimpleRetryStrategy(rng=rng, max_attempts=attempts)
    )


def _numbers(options: SmithyOptions) -> smithy.AwsRetryNumbers:
    year = options.numbers
    return smithy.AwsRetryNumbers.OF_2026 if year is None else choose(year, NUMBERS, "year of numbers")


def circumstances(explanation: Explanation, random: float) -> str:
    """Return the other circumstances of the decisions as a sentence.

    Args:
        random: result of every draw.
    """
    facts = explanation.facts
    quota = "no quota" if facts["quota_capacity"] is None else f"a quota of {facts['quota_capacity']}"
    return f"{facts['strategy']}: {facts['max_attempts']} attempts at most, {quota}; every draw gives {random:g}."


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

Clauses: "design page" is that of Smithy's retries for Python; "decision S4" has the heading S4 on the page "Decisions"
of this project's documentation, docs/explanation/decisions.md.

Exit status: 0 when there is an answer, whatever it says; 2 when something could not be understood.
"""


@click.command("smithy", epilog=EPILOG)
@takes(SmithyOptions)
@click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object on one line.")
def explain_smithy(*, as_json: bool, options: SmithyOptions) -> None:
    """Explain how often an operation would be tried, and when, as Smithy's clients and the AWS SDKs do.

    Say with --responses what its attempts end with. The answer comes from the strategies of the core; beside each step
    stands the section of Smithy's design page, or the decision of this project.
    """
    explanation = explain(build_case(options))
    tell(explanation, circumstances(explanation, options.random), as_json=as_json)
