"""``triclinium ping``: the command, its options, and the order of its steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import click
import trio

from triclinium import Service
from triclinium._cli._input import DurationParameter, WrongInput
from triclinium._cli._options import option, takes
from triclinium._cli._output import run_trio
from triclinium._cli._target import TargetOptions, authenticator_for, ssl_context_for
from triclinium._cli.ping.pinging import PingedCluster, PingedNode, Plan, ping_node, ping_services
from triclinium._cli.ping.report import as_json, show
from triclinium_core import errors
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.topology.connection_string import ConnectionString, Scheme, parse_connection_string
from triclinium_core.runtime.kv.pool.authentication import check_authenticator
from triclinium_core.shown import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class PingOptions(TargetOptions):
    """Options of the command."""

    bucket: str | None = option(metavar="NAME", help="Also connect to this bucket.")
    timeout: float = option(
        type=DurationParameter(min_open=True),
        metavar="SECONDS",
        default=10.0,
        help="Time limit for each node and each service.",
    )
    service: tuple[str, ...] = option(
        multiple=True,
        type=click.Choice([service.value for service in Service]),
        help="Ping only this service; repeatable.  [default: all services of the cluster]",
    )
    as_json: bool = option("--json", is_flag=True, help="Print one JSON object on one line.")


@click.command(short_help="Ping each node and each service of CONNSTR.")
@click.argument("connstr")
@takes(PingOptions)
@click.pass_context
def ping(ctx: click.Context, *, connstr: str, options: PingOptions) -> None:
    """Connect to the nodes of CONNSTR, show the features they negotiate, and ping their services.

    CONNSTR is couchbase://HOST, couchbases://HOST for TLS, or memcached://HOST for a plain memcached. Add :PORT for a
    non-default port, and separate further hosts with commas. The command pings each of these nodes, then the other
    nodes in their cluster configs, and then every HTTP service of every node.

    Exit status: 0 if every node and service answered, 1 if one did not, 2 if the arguments are invalid.
    """
    try:
        target = parse_connection_string(connstr)
        # Check names and passwords before anything is sent.
        Keyspace(options.bucket)
        if options.bucket is not None and target.scheme is Scheme.MEMCACHED:
            raise WrongInput(
                "--bucket has no effect with memcached://, which has no buckets; omit it, or use couchbase://"
            )
        authenticator = authenticator_for(target, options)
        check_authenticator(authenticator, target)
    except errors.InvalidArgumentException as error:
        raise WrongInput(error.message) from error
    plan = Plan(authenticator, options.bucket, ssl_context_for(target, options.ca_file), options.timeout)
    services = {Service(name) for name in options.service} or set(Service)
    if target.scheme is Scheme.MEMCACHED and Service.KV not in services:
        raise WrongInput("--service must include kv, the only service of memcached://; add it, or use couchbase://")
    found = run_trio(_ping_all, target, plan, services)
    if options.as_json:
        click.echo(as_json(found))
    else:
        show(found)
    problems = found.problems
    for problem in problems:
        click.echo(f"Error: {printable(problem)}", err=True)
    if problems:
        ctx.exit(1)


async def _ping_all(target: ConnectionString, plan: Plan, services: Collection[Service]) -> PingedCluster:
    """Ping the nodes, then the HTTP services unless no node answered, and return the results."""
    nodes = await _ping_nodes(target, plan) if Service.KV in services else []
    over_http = [service for service in Service if service in services and service is not Service.KV]
    # Without a connection to a node, the addresses of the services are unknown.
    is_there = not nodes or any(node.connections for node in nodes)
    if target.scheme is Scheme.MEMCACHED or not over_http or not is_there:
        return PingedCluster(nodes)
    return PingedCluster(nodes, await ping_services(target, plan, over_http))


async def _ping_nodes(target: ConnectionString, plan: Plan) -> list[PingedNode]:
    """Return the results of the connection string's nodes, in its order, then of the other nodes in their configs."""
    answers = await _ping_each(target, target.addresses, plan)
    asked = {*target.addresses, *(answer.itself for answer in answers)}
    listed = dict.fromkeys(address for answer in answers for address in answer.cluster)
    return [*answers, *await _ping_each(target, [address for address in listed if address not in asked], plan)]


async def _ping_each(target: ConnectionString, addresses: Sequence[Address], plan: Plan) -> list[PingedNode]:
    """Ping the nodes at these addresses at the same time, and return their results in this order."""
    answers: dict[int, PingedNode] = {}

    async def ask(number: int, one: ConnectionString) -> None:
        answers[number] = await ping_node(one, plan)

    async with trio.open_nursery() as nursery:
        for number, address in enumerate(addresses):
            nursery.start_soon(ask, number, replace(target, addresses=(address,)))
    return [answers[number] for number in sorted(answers)]
