"""``triclinium serve``: fake Couchbase nodes on this machine, until the command is interrupted."""

from __future__ import annotations

import random
import secrets
import signal
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TypeVar

import click
import trio

from triclinium._cli._input import WholeNumber, WrongInput, spelled
from triclinium._cli._options import option, takes
from triclinium._cli._output import run_trio
from triclinium._cli.serve.control_server import open_control
from triclinium._cli.serve.description import describe, describe_as_json
from triclinium._cli.serve.log import LAST_LINES_SECONDS, ServeLog
from triclinium._cli.serve.standard_input import follow_standard_input, reading_in_background
from triclinium.testing import open_tcp_cluster
from triclinium_core import errors
from triclinium_core.kv.operation.validation import REPLICAS_MAX
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNodeOptions, FakeNodes
from triclinium_core.testing.fakes.control.command_text import (
    COMMAND_GRAMMAR,
    CONDITION_GRAMMAR,
    apply_command,
    spelled_command,
)
from triclinium_core.testing.fakes.control.commands import COMMAND_KINDS
from triclinium_core.testing.fakes.fault_names import COMMAND_FAULTS, REFUSAL, SERVICE_FAULTS, spelled_call
from triclinium_core.testing.fakes.options import HTTP_SERVICES, NODES_MAX, PORT_STRIDE
from triclinium_core.testing.fakes.services.script_file import load_script

DEFAULTS = FakeNodeOptions()
SEED_MAX = 2**32 - 1
TOKEN_BYTES = 32
"""Number of random bytes in the token of the control API: too many to guess."""

T = TypeVar("T")
FILE = click.Path(exists=True, dir_okay=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Options of the command."""

    nodes: int = option(
        type=WholeNumber(1, NODES_MAX), metavar="N", default=1, help="Number of nodes. They share one vbucket map."
    )
    replicas: int = option(
        type=WholeNumber(0, REPLICAS_MAX),
        metavar="N",
        default=0,
        help="Number of replicas of each vbucket; less than the number of nodes.",
    )
    port: int = option(
        type=WholeNumber(0, 0xFFFF),
        metavar="PORT",
        default=0,
        help="Port of the first node; each further node's port is two higher. 0 picks free ports.",
    )
    username: str = option(metavar="NAME", default=DEFAULTS.username, help="User name the nodes accept.")
    password: str = option(metavar="SECRET", default=DEFAULTS.password, help="Password of that user.")
    bucket: str = option(metavar="NAME", default=DEFAULTS.buckets[0], help="Bucket that exists from the start.")
    tokens: tuple[str, ...] = option(
        "--token", metavar="TOKEN", multiple=True, help="JSON Web Token that the nodes also accept; repeatable."
    )
    tls_cert: str | None = option(
        type=FILE, help="PEM file with the nodes' certificate; the nodes then listen with TLS too."
    )
    tls_key: str | None = option(
        type=FILE, help="PEM file with its private key.  [default: the file of the certificate]"
    )
    tls_port: int = option(
        type=WholeNumber(0, 0xFFFF),
        metavar="PORT",
        default=0,
        help="TLS port of the first node; each further node's port is two higher. 0 picks free ports.",
    )
    client_ca: str | None = option(
        type=FILE, help="PEM file of a CA; over TLS, clients must then present a certificate from it."
    )
    services: str = option(
        default=",".join(Service),
        show_default=True,
        metavar="NAMES",
        help="Services of every node, separated by commas; kv is required.",
    )
    script: str | None = option(
        type=FILE, help="JSON file with the responses of the services; the page on the command line describes it."
    )
    faults: tuple[str, ...] = option(
        "--fault",
        multiple=True,
        metavar="FAULT",
        help="Inject a fault or plan a command, as described below; repeatable. Faults apply in turn.",
    )
    seed: int | None = option(
        type=WholeNumber(0, SEED_MAX),
        metavar="N",
        help="Seed of faults with a probability.  [default: random, printed]",
    )
    control: bool = option(
        "--control/--no-control", default=True, help="Serve the control API on a local port.", show_default=True
    )
    control_port: int = option(
        type=WholeNumber(0, 0xFFFF), metavar="PORT", default=0, help="Port of the control API. 0 picks a free port."
    )
    stdin: bool = option(
        "--stdin/--no-stdin", default=True, help="Read commands from standard input.", show_default=True
    )
    log: bool = option(
        "--log",
        is_flag=True,
        help="Print a line for each command and each request, with its response; with --json, a JSON object.",
    )
    as_json: bool = option("--json", is_flag=True, help="Print the connection details as one line of JSON.")


def _fault_help() -> str:
    """Return the part of ``--help`` about faults, each with its arguments."""

    def listed(names: Sequence[str], spell: Callable[[str], str] = spelled_call) -> str:
        return fill(", ".join(map(spell, names)), 78, initial_indent="  ", subsequent_indent="  ")

    shared = [name for name in COMMAND_FAULTS if name in SERVICE_FAULTS]
    return f"""\b
Faults: --fault '{COMMAND_GRAMMAR}'
  --fault 'get: delay(0.4)'            the next get is delayed by 0.4 s
  --fault 'upsert: hang_up x2'         two writes lose their connection
  --fault 'query: http_status(503) x3' three queries get HTTP status 503
  --fault 'set@1: locked always'       the second node refuses every write
  --fault 'temporary_failure'          the next command on any document
TARGET is a command of the protocol, an operation that uses it, or a service:
{", ".join(sorted(HTTP_SERVICES))}.

\b
Conditions: {CONDITION_GRAMMAR}
  --fault 'get: delay(1) at 5 seconds for 2 seconds'
  --fault 'any: hang_up after 100 requests'
  --fault 'set: locked with probability 0.1'
Seconds count from the printed address. With "for" or "with probability", a
fault strikes always unless it has a number of times.

\b
Faults of commands and of services:
{listed(shared)}
Of commands only:
{listed([name for name in COMMAND_FAULTS if name not in shared])}
Of services only:
{listed([name for name in SERVICE_FAULTS if name not in shared])}
Of connections, without a TARGET: {REFUSAL}

\b
Commands for nodes, without a TARGET, such as
--fault '@1: restart after 1000 requests for 2 seconds':
{listed(tuple(COMMAND_KINDS), spelled_command)}

\b
Standard input takes the same faults and commands, one per line. An invalid
line is reported and ignored; the end of the input changes nothing. The
control API takes them too: GET its /commands, with the printed token.

\b
Exit status:
  0    interrupted by Control-C or SIGTERM
  1    a port cannot be opened
  2    an option, a fault or a file is invalid
"""


@click.command(epilog=_fault_help())
@takes(ServeOptions)
def serve(*, options: ServeOptions) -> None:
    """Serve a fake Couchbase node, or a cluster, on 127.0.0.1.

    Any Couchbase client can read and write documents in it, and manage buckets, collections, users and indexes.
    Statements on documents, searches and views get the responses in a script. All data is in memory and is lost when
    the command ends. Stop it with Control-C or SIGTERM.
    """
    replicas = options.replicas
    if replicas >= options.nodes:
        raise WrongInput(f"--replicas {replicas} requires at least {replicas + 1} nodes: use --nodes {replicas + 1}")
    if options.control_port and not options.control:
        raise click.UsageError("--control-port has no effect with --no-control; omit one of them")
    try:
        of_each = FakeNodeOptions(
            username=options.username,
            password=options.password,
            tokens=options.tokens,
            buckets=(options.bucket,),
            replicas=replicas,
            services=read_services(options.services),
            wall_seconds_at_zero=time.time(),
        )
        seed = secrets.randbelow(SEED_MAX + 1) if options.seed is None else options.seed
        nodes = FakeNodes(of_each, options.nodes, rng=random.Random(seed))
        if options.script is not None:
            load_script(nodes.script, Path(options.script).read_bytes())
        place_faults(nodes, options.faults)
    except errors.InvalidArgumentException as error:
        raise click.UsageError(error.message) from error
    except OSError as error:
        raise click.UsageError(f"--script {options.script} cannot be read: {error.strerror or error}") from error
    with reading_in_background():
        run_trio(_serve, nodes, server_context(options), options, seed)


def place_faults(nodes: FakeNodes, texts: Sequence[str]) -> None:
    """Set the faults, and carry out or plan the commands, in the given order.

    Raises:
        WrongInput: a fault or a command is invalid, or has no effect on these nodes.
    """
    for text in texts:
        try:
            apply_command(nodes, text)
        except errors.InvalidArgumentException as error:
            raise WrongInput(f"--fault {text!r}: {error.message}") from error


def read_services(names: str) -> frozenset[Service]:
    """Return the services that ``--services`` names.

    Raises:
        WrongInput: a service is unknown, or kv is missing.
    """
    services = set()
    for name in names.split(","):
        if name.strip() not in list(Service):
            raise WrongInput(f"--services has an unknown service: {name.strip()!r}; choose from {', '.join(Service)}")
        services.add(Service(name.strip()))
    if Service.KV not in services:
        raise WrongInput(f"--services {names} lacks kv, which every client uses first; add it")
    return frozenset(services)


def server_context(options: ServeOptions) -> ssl.SSLContext | None:
    """Return the TLS context of the nodes from PEM files; None without TLS.

    Raises:
        click.UsageError: a file cannot be read, or another TLS option was given without ``--tls-cert``.
    """
    cert, key, client_ca = options.tls_cert, options.tls_key, options.client_ca
    if cert is None:
        for name in ("tls_key", "client_ca", "tls_port"):
            if getattr(options, name):
                raise click.UsageError(f"{spelled(name)} has no effect without --tls-cert; pass both, or omit it")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password argument, OpenSSL prompts on the terminal if the key is encrypted.
        context.load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        files = cert if key is None else f"{cert} and {key}"
        raise click.UsageError(f"cannot read a certificate and its key from {files}: {error}") from error
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ValueError) as error:
            raise click.UsageError(f"cannot read a CA certificate from {client_ca}: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def _serve(nodes: FakeNodes, ssl_context: ssl.SSLContext | None, options: ServeOptions, seed: int) -> None:
    port, tls_port = options.port, options.tls_port
    taken = [first + PORT_STRIDE * number for first in (port, tls_port) if first for number in range(len(nodes))]
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with AsyncExitStack() as stack:
            opening = open_tcp_cluster(nodes, port=port, tls_port=tls_port, ssl_context=ssl_context)
            fake = await _opened(stack, opening, taken)
            control = None
            if options.control:
                token = secrets.token_urlsafe(TOKEN_BYTES)
                opened = open_control(nodes, token=token, seed=seed, port=options.control_port)
                control = await _opened(stack, opened, [options.control_port])
            if options.as_json:
                click.echo(describe_as_json(fake, seed, control))
            else:
                describe(fake, seed, control)
            nodes.start_clock()
            log = ServeLog(nodes, as_json=options.as_json, failures_only=not options.log)
            async with trio.open_nursery() as log_nursery:
                log_nursery.start_soon(log.print_lines)
                async with trio.open_nursery() as nursery:
                    if options.stdin:
                        follow = partial(follow_standard_input, nodes, log.print_line, as_json=options.as_json)
                        nursery.start_soon(follow)
                    await anext(signals)
                    nursery.cancel_scope.cancel()
                log.end()
                log_nursery.cancel_scope.deadline = trio.current_time() + LAST_LINES_SECONDS


async def _opened(stack: AsyncExitStack, opening: AbstractAsyncContextManager[T], ports: Sequence[int]) -> T:
    """Enter the context of a server on ``stack``, and return its value.

    Raises:
        click.ClickException: an option is invalid, or the server cannot listen on its ports.
    """
    try:
        return await stack.enter_async_context(opening)
    except errors.InvalidArgumentException as error:
        raise click.UsageError(error.message) from error
    except OSError as error:
        chosen = [str(port) for port in ports if port]
        where = f"127.0.0.1:{', '.join(chosen)}" if chosen else "a free port of 127.0.0.1"
        advice = "; port 0 picks a free port" if chosen else ""
        raise click.ClickException(f"cannot listen on {where}: {error.strerror or error}{advice}") from error
