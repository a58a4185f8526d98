"""``triclinium explain cassandra``: why would this be retried, or not, by the Cassandra driver's rules?

It has no rule of its own: it builds a case, and shows what the policies and the request machine of the core answer.
"""

from __future__ import annotations

import json
from typing import Unpack

import click

from triclinium._cli._cassandra_case import EVENTS, LEVELS, WRITE_TYPES, CassandraOptions, build_case
from triclinium._cli._cassandra_explanation import telling_of
from triclinium._cli._telling import show
from triclinium._cli._wrong_input import WrongInput
from triclinium_core.explain.cassandra.error_names import ABORTS, ANSWERS
from triclinium_core.explain.cassandra.explain import explain
from triclinium_core.retry.cassandra.policies import POLICIES

EPILOG = f"""\b
Examples:
  triclinium explain cassandra read-timeout --received 2 --block-for 2 --policy downgrading
  triclinium explain cassandra write-timeout --write-type BATCH_LOG --received 0 --block-for 2 --idempotent
  triclinium explain cassandra unavailable --required 2 --alive 1 --consistency LOCAL_QUORUM
  triclinium explain cassandra request-aborted --error Heartbeat --idempotent
  triclinium explain cassandra error-response --error IS_BOOTSTRAPPING

Consistency levels: {", ".join(LEVELS)}.

Write types: {", ".join(WRITE_TYPES)}.

Errors of request-aborted: {", ".join(ABORTS)}, FrameTooLong, and other for any other.

Errors of error-response: {", ".join(ANSWERS)}, and other for any other.

Clauses: "driver's page" is that of the Cassandra Java driver on retries; "decision A2" is the row A2 of the page
"Decisions" of this project's documentation, docs/explanation/decisions.md.

Exit status: 0 when there is an answer, whatever it says; 2 when something could not be understood.
"""


@click.command("cassandra", epilog=EPILOG)
@click.argument("event", required=False)
@click.option(
    "--policy", metavar="NAME", default="default", show_default=True, help=f"Who decides: {', '.join(POLICIES)}."
)
@click.option("--consistency", metavar="LEVEL", help="The level that the error names.  [default: QUORUM]")
@click.option("--received", type=click.IntRange(min=0), metavar="N", help="Replicas that answered in time.")
@click.option("--block-for", type=click.IntRange(min=0), metavar="N", help="Answers that the level needs.")
@click.option(
    "--data-present/--no-data-present",
    default=None,
    help="Whether one of the answers to a read had the data.  [default: no-data-present]",
)
@click.option("--write-type", metavar="TYPE", help="What kind of write timed out.  [default: SIMPLE]")
@click.option("--required", type=click.IntRange(min=0), metavar="N", help="Replicas that the level needs.")
@click.option("--alive", type=click.IntRange(min=0), metavar="N", help="Replicas that the coordinator believes alive.")
@click.option("--error", metavar="NAME", help="What the coordinator answered, or why its answer is missing.")
@click.option(
    "--retry-count",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Retries that verdicts have asked for already.",
)
@click.option(
    "--idempotent/--not-idempotent",
    default=False,
    show_default=True,
    help="Whether the statement may be executed twice without harm.",
)
@click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object on one line.")
def explain_cassandra(*, event: str | None, as_json: bool, **options: Unpack[CassandraOptions]) -> None:
    """Explain why a statement would be retried, or not, as the Cassandra driver does.

    Name the EVENT (read-timeout, write-timeout, unavailable, request-aborted, error-response) and what it brings
    along. The answer comes from the policies and the request machine of the core; beside each step stands the section
    of the driver's page, or the decision of this project.
    """
    if event is None:
        raise WrongInput(f"name an event: {', '.join(EVENTS)}")
    case = build_case(event, options)
    explanation = explain(case)
    if as_json:
        click.echo(json.dumps(explanation.to_json()))
    else:
        show(telling_of(explanation))
