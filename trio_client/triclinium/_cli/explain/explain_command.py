"""``triclinium explain``: the command, its subcommands for other kinds of clients, and batches of questions.

The command defines no rules: it builds a case, or reads questions, and shows the answers of the client's objects.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, BinaryIO

import click
from click.core import ParameterSource

from triclinium._cli._input import WrongInput, choose_name
from triclinium._cli._options import completing, takes
from triclinium._cli.explain import couchbase
from triclinium._cli.explain.couchbase import NAMED_OPERATIONS, OPERATION_OF, OPERATIONS
from triclinium._cli.explain.explanation_text import print_explanation
from triclinium_core import errors
from triclinium_core.explain.couchbase.explain import explain as explain_case
from triclinium_core.retry.couchbase import DispatchFailed, Service, unsent_reasons
from triclinium_core.tools.vectors.couchbase import SERVICES
from triclinium_core.tools.vectors.questions import answer_lines

FAMILIES: Mapping[str, str] = {
    "cassandra": "triclinium._cli.explain.cassandra",
    "smithy": "triclinium._cli.explain.smithy",
}
"""Kinds of clients other than Couchbase's, and the module of the command for each."""


class ExplainCommand(click.Command):
    """Command that passes its other arguments to another command if the first argument is in ``FAMILIES``."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of this command, or of the command that the first argument names."""
        family = args[0].casefold() if args else ""
        if family not in FAMILIES:
            return super().make_context(info_name, args, parent, **extra)
        return family_command(family).make_context(f"{info_name} {family}", args[1:], parent, **extra)


def family_command(family: str) -> click.Command:
    """Return the command of one of ``FAMILIES``."""
    command = getattr(import_module(FAMILIES[family]), f"explain_{family}")
    assert isinstance(command, click.Command)
    return command


class QuestionFile(click.File):
    """Parameter type for a file, or - for standard input. A closed standard input is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the open file.

        Raises:
            click.BadParameter: the file cannot be opened, or standard input is closed.
        """
        if value == "-" and sys.stdin is None:
            self.fail("standard input is closed.", param, ctx)
        return super().convert(value, param, ctx)


def _operations_of_service(ctx: click.Context) -> Sequence[str]:
    names = {**NAMED_OPERATIONS, Service.KV: OPERATIONS}
    return {str(service): names[service] for service in names}.get(ctx.params["service"], ())


QUESTION = '{"family": "couchbase", "ask": "reason", "service": "kv", "op": "get", "status": "0x86"}'

EPILOG = f"""\b
Examples:
  triclinium explain kv upsert --status 0x86
  triclinium explain kv get --event socket-closed --handed-over part
  triclinium explain kv get --event dispatch-failed --reason NODE_NOT_AVAILABLE
  triclinium explain kv get --status 0x7ff0 --error-map-entry @entry.json
  triclinium explain query --code 4040 --message "unrecognizable plan"
  triclinium explain search --http-status 429 --body "too many requests"
  triclinium explain management get_bucket --http-status 404 --method GET
  triclinium explain cassandra read-timeout --received 2 --block-for 2
  triclinium explain smithy --responses E,T,ok
  triclinium explain --batch decisions.jsonl

\b
Example of a line in such a file:
  {QUESTION}

\b
The other two traditions of the core have other options:
  triclinium explain cassandra --help
  triclinium explain smithy --help

Operations of kv: {", ".join(OPERATIONS)}; and any name that begins with dcp. The operation of another service may be
omitted: {", ".join(f"{service} {operation}" for service, operation in OPERATION_OF.items())}. Some responses have a
special meaning for these: {"; ".join(f"{service} {', '.join(names)}" for service, names in NAMED_OPERATIONS.items())}.

Reasons why a kv request is not sent: {", ".join(unsent_reasons(Service.KV, DispatchFailed))}.

Clauses: this project decides the questions that the RFCs leave open. Decisions such as C24 are on the page "Decisions"
of its documentation, docs/explanation/decisions.md.

Exit status: 0 if the command prints an explanation, whatever the decision; 2 if the input is invalid.
"""


@click.command(cls=ExplainCommand, epilog=EPILOG)
@click.argument("service", required=False, shell_complete=completing(lambda ctx: (*SERVICES, *FAMILIES)))
@click.argument("operation", required=False, shell_complete=completing(_operations_of_service))
@takes(couchbase.CaseOptions)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on one line.")
@click.option(
    "--batch",
    type=QuestionFile("rb"),
    metavar="FILE",
    help="Answer the questions in FILE instead: one JSON object per line, in and out; - for standard input.",
)
@click.pass_context
def explain(
    ctx: click.Context,
    *,
    service: str | None,
    operation: str | None,
    as_json: bool,
    batch: BinaryIO | None,
    options: couchbase.CaseOptions,
) -> None:
    """Explain why a request would or would not be retried.

    Name the SERVICE (kv, query, analytics, search, views, management), the OPERATION of kv or management, and the
    failure: --status, --event, --code or --http-status. The command runs the objects that decide in the client, so the
    client would decide the same. Each step names its clause of an SDK-RFC, or a decision of this project.
    """
    if batch is not None:
        _refuse_options_beside_batch(ctx)
        answer_batch(ctx, batch)
    elif service is None:
        raise WrongInput(
            f"SERVICE is missing; choose from {', '.join(SERVICES)}, or give a file of questions with --batch"
        )
    else:
        if choose_name(service, [*SERVICES, *FAMILIES], "service") in FAMILIES:
            raise WrongInput(f"{service} must come before its options; see triclinium explain {service} --help")
        case = couchbase.build_case(service, operation, options)
        try:
            explanation = explain_case(case)
        except errors.InvalidArgumentException as error:
            raise WrongInput(f"--{error.message}") from error
        print_explanation(explanation, couchbase.circumstances(case), as_json=as_json)


def answer_batch(ctx: click.Context, questions: BinaryIO) -> None:
    """Answer questions line by line. At the end, exit with status 2 if a question was invalid.

    Each answer is flushed immediately, because the caller may wait for it before it sends the next question.

    Raises:
        WrongInput: the questions cannot be read completely.
    """
    all_understood = True
    try:
        for line, understood in answer_lines(questions):
            click.echo(line)
            all_understood &= understood
    except OSError as error:
        raise WrongInput(f"--batch {questions.name} cannot be read: {error.strerror or error}") from error
    if not all_understood:
        ctx.exit(WrongInput.exit_code)


def _refuse_options_beside_batch(ctx: click.Context) -> None:
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in {"batch", "as_json"} or ctx.get_parameter_source(name) in {None, ParameterSource.DEFAULT}:
            continue
        raise WrongInput(f"--batch reads complete questions from a file; omit {parameter.opts[0]}")
