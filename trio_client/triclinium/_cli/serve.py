"""``triclinium serve``: fake Couchbase nodes on this machine, until it is interrupted."""

from __future__ import annotations

import json
import signal
import ssl
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import click
import trio
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from triclinium._cli._input import WrongInput, spelled
from triclinium._cli._options import option, takes
from triclinium.testing import FakeCluster, open_tcp_cluster
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.validation import REPLICAS_MAX
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.testing import FakeNodeOptions, FakeNodes
from triclinium_core.testing.fakes.options import NODES_MAX, PORT_STRIDE
from triclinium_core.testing.fakes.services.script_file import load_script

DEFAULTS = FakeNodeOptions()
FILE = click.Path(exists=True, dir_okay=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How many nodes, where, and whom they let in."""

    nodes: int = option(type=click.IntRange(1, NODES_MAX), default=1, help="How many; they share one map of vbuckets.")
    replicas: int = option(
        type=click.IntRange(0, REPLICAS_MAX),
        default=0,
        help="How many of each vbucket; no more than there are other nodes.",
    )
    port: int = option(
        type=click.IntRange(0, 0xFFFF),
        default=0,
        help="Of the first node, the others' two apart after it; 0 for any that are free.",
    )
    username: str = option(default=DEFAULTS.username)
    password: str = option(default=DEFAULTS.password)
    bucket: str = option(default=DEFAULTS.buckets[0])
    tokens: tuple[str, ...] = option(
        "--token", multiple=True, help="A JSON Web Token that is accepted too; may be repeated."
    )
    tls_cert: str | None = option(
        type=FILE, help="Speak TLS as well: a file in PEM format with the nodes' certificate."
    )
    tls_key: str | None = option(type=FILE, help="Its private key; unless given, that is in the same file.")
    tls_port: int = option(
        type=click.IntRange(0, 0xFFFF),
        default=0,
        help="For TLS, of the first node, the others' two apart after it; 0 for any that are free.",
    )
    client_ca: str | None = option(type=FILE, help="Demand certificates of clients over TLS, signed by this authority.")
    services: str = option(
        default=",".join(Service),
        show_default=True,
        metavar="NAMES",
        help="Of every node, with commas between them; kv has to be among them.",
    )
    script: str | None = option(
        type=FILE, help="What the services answer: a file in JSON, as the page on the command line describes it."
    )
    as_json: bool = option("--json", is_flag=True, help="Print one line of JSON that tells how to connect.")


@click.command()
@takes(ServeOptions)
def serve(*, options: ServeOptions) -> None:
    """Serve a fake Couchbase node, or a cluster, on 127.0.0.1.

    Any client of Couchbase can read and write documents in it, manage buckets and collections, and ask the services
    over HTTP, which answer constants and what a script says. All of it lives in memory and ends with it. Stop it with
    Control-C or SIGTERM.
    """
    replicas = options.replicas
    if replicas >= options.nodes:
        raise WrongInput(f"--replicas {replicas} needs as many nodes beside the first: add --nodes {replicas + 1}")
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
        nodes = FakeNodes(of_each, options.nodes)
        if options.script is not None:
            load_script(nodes.script, Path(options.script).read_bytes())
    except InvalidArgumentException as error:
        raise click.UsageError(error.message) from error
    except OSError as error:
        raise click.UsageError(f"{options.script} cannot be read: {error.strerror or error}") from error
    trio.run(_serve, nodes, server_context(options), options)


def read_services(names: str) -> frozenset[Service]:
    """Return the services that ``--services`` names.

    Raises:
        WrongInput: one of them is unknown, or kv is missing.
    """
    services = set()
    for name in names.split(","):
        if name.strip() not in list(Service):
            raise WrongInput(f"--services has {name.strip()!r}; there is {', '.join(Service)}")
        services.add(Service(name.strip()))
    if Service.KV not in services:
        raise WrongInput(f"--services {names} lacks kv, where every client begins: add it")
    return frozenset(services)


def server_context(options: ServeOptions) -> ssl.SSLContext | None:
    """Return the context of the nodes, out of files in PEM format; None where they speak no TLS.

    Raises:
        click.UsageError: a file cannot be read, or makes no sense without the certificate.
    """
    cert, key, client_ca = options.tls_cert, options.tls_key, options.client_ca
    if cert is None:
        for name in ("tls_key", "client_ca", "tls_port"):
            if getattr(options, name):
                raise click.UsageError(f"{spelled(name)} has no effect without --tls-cert")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without any password OpenSSL would ask for it on the terminal.
        context.load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        files = cert if key is None else f"{cert} and {key}"
        raise click.UsageError(f"a certificate and its key cannot be read from {files}: {error}") from error
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ValueError) as error:
            raise click.UsageError(f"no authority can be read from {client_ca}: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def _serve(nodes: FakeNodes, ssl_context: ssl.SSLContext | None, options: ServeOptions) -> None:
    port, tls_port = options.port, options.tls_port
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with AsyncExitStack() as stack:
            try:
                fake = await stack.enter_async_context(
                    open_tcp_cluster(nodes, port=port, tls_port=tls_port, ssl_context=ssl_context)
                )
            except InvalidArgumentException as error:
                raise click.UsageError(error.message) from error
            except OSError as error:
                taken = [
                    first + PORT_STRIDE * number for first in (port, tls_port) if first for number in range(len(nodes))
                ]
                ports = ", ".join(map(str, taken or [0]))
                raise click.ClickException(
                    f"cannot listen on 127.0.0.1:{ports}: {error.strerror or error}; port 0 takes any that is free"
                ) from error
            if options.as_json:
                click.echo(describe_as_json(fake))
            else:
                _describe(fake)
            await anext(signals)


def describe_as_json(fake: FakeCluster) -> str:
    """Return how to connect, on one line."""
    options = fake.node.options
    said: dict[str, object] = {
        "connection_string": fake.connection_string,
        "username": options.username,
        "password": options.password,
        "bucket": options.buckets[0],
        "endpoints": endpoints(fake),
    }
    if fake.tls_connection_string is not None:
        said["tls_connection_string"] = fake.tls_connection_string
        said["tls_endpoints"] = endpoints(fake, tls=True)
    return json.dumps(said)


def endpoints(fake: FakeCluster, *, tls: bool = False) -> dict[str, list[str]]:
    """Return where the services over HTTP are reached, on each node, by their names."""
    scheme, found = "https" if tls else "http", dict[str, list[str]]()
    for node in fake.nodes:
        for service, port in node.options.ports(tls=tls).items():
            if service is not Service.KV:
                found.setdefault(service.value, []).append(f"{scheme}://{Address(node.options.host, port)}")
    return found


def _describe(fake: FakeCluster) -> None:
    """Print how to connect, for people."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    options = fake.node.options
    nodes = len(fake.nodes)
    console.print(
        Text.assemble(
            "A fake Couchbase node listens on " if nodes == 1 else f"{nodes} fake Couchbase nodes listen on ",
            (fake.connection_string, "bold"),
            f"; {'its' if nodes == 1 else 'their'} bucket is {options.buckets[0]!r}, the user {options.username!r}.",
        )
    )
    if fake.tls_connection_string is not None:
        console.print(Text.assemble("Over TLS: ", (fake.tls_connection_string, "bold")))
    for tls in (False, True):
        for service, addresses in endpoints(fake, tls=tls).items():
            console.print(Text.assemble(f"{service}: ", (" ".join(addresses), "bold")))
    for client, program in (("triclinium", triclinium_program(fake)), ("the official client", official_program(fake))):
        console.print(f"\nWith {client}:\n", style="bold")
        console.print(Syntax("", "python", theme="ansi_dark").highlight(indent(program, "    ")), end="")
    console.print("\nAll of it lives in memory. Stop it with Control-C.")


def triclinium_program(fake: FakeCluster) -> str:
    """Return a program that writes and reads a document with this client."""
    options = fake.node.options
    return f"""\
import trio
from triclinium import PasswordAuthenticator, open_cluster

async def main():
    authenticator = PasswordAuthenticator({options.username!r}, {options.password!r})
    async with open_cluster({fake.connection_string!r}, authenticator) as cluster:
        people = cluster.bucket({options.buckets[0]!r}).default_collection()
        await people.upsert("ada", {{"born": 1815}})
        print((await people.get("ada")).content)

trio.run(main)
"""


def official_program(fake: FakeCluster) -> str:
    """Return a program that writes and reads a document with the ``couchbase`` package."""
    options = fake.node.options
    return f"""\
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.options import ClusterOptions

authenticator = PasswordAuthenticator({options.username!r}, {options.password!r})
cluster = Cluster.connect({fake.connection_string!r}, ClusterOptions(authenticator))
people = cluster.bucket({options.buckets[0]!r}).default_collection()
people.upsert("ada", {{"born": 1815}})
print(people.get("ada").content_as[dict])
"""
