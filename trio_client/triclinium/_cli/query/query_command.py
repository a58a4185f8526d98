"""``triclinium query``: the command and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple

import click
import msgspec

from triclinium import Cluster, TimeoutOptions, open_cluster
from triclinium._cli._input import DurationParameter, WrongInput
from triclinium._cli._options import option, takes
from triclinium._cli._output import run_trio
from triclinium._cli._target import TargetOptions, authenticator_for, ssl_context_for
from triclinium_core import errors
from triclinium_core.kv.topology.connection_string import Scheme, parse_connection_string
from triclinium_core.retry.couchbase import FailFastRetryStrategy
from triclinium_core.services.statement.parameters import stands_in
from triclinium_core.shown import printable_json, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions(TargetOptions):
    """Options of the command."""

    params: Sequence[str] = option(
        "--param",
        multiple=True,
        metavar="NAME=VALUE",
        help="Named parameter; repeatable. A VALUE that is not JSON is a string.",
    )
    readonly: bool = option(is_flag=True, help="Make the service refuse statements that change data.")
    timeout: float = option(
        type=DurationParameter(min_open=True),
        metavar="SECONDS",
        default=75.0,
        help="Time limit for the first rows, and then for each further piece.",
    )
    as_json: bool = option("--json", is_flag=True, help="Print each row as JSON on one line.")


class QueryFailed(click.ClickException):
    """Error after which rows are missing. The command prints one line and exits with status 1."""


@click.command(short_help="Run a SQL++ statement, and print its rows.")
@click.argument("connstr")
@click.argument("statement")
@click.argument("values", nargs=-1)
@takes(QueryOptions)
def query(*, connstr: str, statement: str, values: Sequence[str], options: QueryOptions) -> None:
    """Run STATEMENT on the query service of CONNSTR, and print its rows as they arrive.

    CONNSTR is couchbase://HOST, or couchbases://HOST for TLS. Add :PORT for a non-default port of KV, and separate
    further hosts with commas. STATEMENT is SQL++. VALUES replace $1, $2 … or each ? in it; --param age=30 replaces
    $age. Write -- before a VALUE that begins with a dash. Nothing is retried: the first error ends the command.

    Exit status: 0 if all rows were printed, 1 after an error, 2 if the arguments are invalid.
    """
    try:
        target = parse_connection_string(connstr)
        if target.scheme is Scheme.MEMCACHED:
            raise WrongInput("memcached:// has no query service; use couchbase://")
        authenticator = authenticator_for(target, options)
        assert authenticator is not None, "only memcached:// has no credentials"
        parameters = Typed(tuple(map(read_value, values)), read_parameters(options.params, statement))
        ssl_context = ssl_context_for(target, options.ca_file)
        opening = open_cluster(
            connstr,
            authenticator,
            ssl_context=ssl_context,
            timeouts=TimeoutOptions(query=options.timeout),
            retry_strategy=FailFastRetryStrategy(),
        )
    except errors.InvalidArgumentException as error:
        raise WrongInput(error.message) from error
    try:
        run_trio(_print_rows, opening, statement, parameters, options)
    except errors.CouchbaseException as error:
        is_mistyped = isinstance(error, errors.InvalidArgumentException) and error.parameter != ""
        raise (WrongInput if is_mistyped else QueryFailed)(error.message) from error


class Typed(NamedTuple):
    """Parameters of a statement."""

    positional: Sequence[object]
    named: Mapping[str, object]


def read_value(text: str) -> object:
    """Return the JSON value of a command-line argument, or the argument itself if it is not JSON.

    Raises:
        WrongInput: the argument is not text in UTF-8.
    """
    # Python turns undecodable bytes of an argument into surrogates, which UTF-8 cannot encode.
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise WrongInput(f"the value {shown(text)} is not UTF-8 text; encode it in UTF-8")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def read_parameters(params: Sequence[str], statement: str) -> Mapping[str, object]:
    """Return the parameters that were typed as ``NAME=VALUE``.

    Raises:
        WrongInput: a parameter is not ``NAME=VALUE``, occurs twice, or is not in the statement, which would run without
            it.
    """
    read: dict[str, object] = {}
    for param in params:
        name, sign, value = param.partition("=")
        name = name.removeprefix("$")
        if not (name and sign):
            raise WrongInput(f"--param {param!r} must be NAME=VALUE, such as age=30")
        if name in read:
            raise WrongInput(f"--param {name} is given twice; keep one")
        if not stands_in(statement, name):
            raise WrongInput(f"--param {name} has no effect: ${name} is not in the statement; rename or omit it")
        read[name] = read_value(value)
    return read


async def _print_rows(
    opening: AbstractAsyncContextManager[Cluster],
    statement: str,
    parameters: Typed,
    options: QueryOptions,
) -> None:
    async with (
        opening as cluster,
        cluster.query(
            statement,
            *parameters.positional,
            named_parameters=parameters.named,
            readonly=options.readonly,
            row_type=bytes,
        ) as result,
    ):
        async for row in result:
            formatted = msgspec.json.format(row, indent=-1 if options.as_json else 2)
            click.echo(printable_json(formatted.decode("utf-8", "replace")))
