"""``triclinium explain smithy``: how often would this operation be tried, and when, by Smithy's rules?

It has no rule of its own: it builds a case, and shows what the strategies of the core answer.
"""

from __future__ import annotations

import json
from typing import Unpack

import click

from triclinium._cli._durations import Duration
from triclinium._cli._smithy_case import SmithyOptions, build_case
from triclinium._cli._smithy_explanation import telling_of
from triclinium._cli._telling import show
from triclinium_core.explain.smithy.explain import explain
from triclinium_core.explain.smithy.script import Response
from triclinium_core.explain.vectors.smithy import NUMBERS, STRATEGIES

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
{chr(10).join(f"  {response:<3} {response.meaning}" for response in Response)}

Clauses: "design page" is that of Smithy's retries for Python; "decision S4" is the row S4 of the page "Decisions" of
this project's documentation, docs/explanation/decisions.md.

Exit status: 0 when there is an answer, whatever it says; 2 when something could not be understood.
"""


@click.command("smithy", epilog=EPILOG)
@click.option(
    "--responses",
    metavar="LIST",
    multiple=True,
    help="What the attempts of an operation end with, such as E,T,ok; once more for an operation after it.",
)
@click.option("--strategy", metavar="NAME", default="standard", show_default=True, help=f"{', '.join(STRATEGIES)}.")
@click.option(
    "--numbers", metavar="YEAR", help=f"Whose costs and delays: {', '.join(NUMBERS)}.  [default: {[*NUMBERS][-1]}]"
)
@click.option(
    "--max-attempts",
    type=click.IntRange(min=0),
    metavar="N",
    help="Attempts of one operation, the first among them.  [default: 3; 5 for simple]",
)
@click.option(
    "--quota", type=click.IntRange(min=0), metavar="N", help="What the shared quota begins with.  [default: 500]"
)
@click.option(
    "--random",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    default=0.5,
    show_default=True,
    help="What every draw for a jittered delay gives.",
)
@click.option("--retry-after", type=Duration(endless=False), metavar="S", help="Seconds that every error asks for.")
@click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object on one line.")
def explain_smithy(*, as_json: bool, **options: Unpack[SmithyOptions]) -> None:
    """Explain how often an operation would be tried, and when, as Smithy's clients and the AWS SDKs do.

    Say with --responses what its attempts end with. The answer comes from the strategies of the core; beside each step
    stands the section of Smithy's design page, or the decision of this project.
    """
    case = build_case(options)
    explanation = explain(case)
    if as_json:
        click.echo(json.dumps(explanation.to_json()))
    else:
        show(telling_of(explanation, options["random"]))
