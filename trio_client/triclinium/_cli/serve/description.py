"""Connection details of ``triclinium serve``: one line of JSON for programs, text for people."""

from __future__ import annotations

from textwrap import indent

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from triclinium._cli._output import plain
from triclinium._cli.serve.control_server import Control
from triclinium.testing import FakeCluster
from triclinium_core.kv.address import Address
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import json_text


def describe_as_json(fake: FakeCluster, seed: int, control: Control | None) -> str:
    """Return the connection details as JSON on one line."""
    options = fake.node.options
    details: dict[str, object] = {
        "connection_string": fake.connection_string,
        "username": options.username,
        "password": options.password,
        "bucket": options.buckets[0],
        "endpoints": endpoints(fake),
        "seed": seed,
    }
    if control is not None:
        details["control"] = {"url": control.url, "token": control.token}
    if fake.tls_connection_string is not None:
        details["tls_connection_string"] = fake.tls_connection_string
        details["tls_endpoints"] = endpoints(fake, tls=True)
    return json_text(details)


def endpoints(fake: FakeCluster, *, tls: bool = False) -> dict[str, list[str]]:
    """Return the URLs of the HTTP services on each node, by service name."""
    scheme, found = "https" if tls else "http", dict[str, list[str]]()
    for node in fake.nodes:
        for service, port in node.options.ports(tls=tls).items():
            if service is not Service.KV:
                found.setdefault(service.value, []).append(f"{scheme}://{Address(node.options.host, port)}")
    return found


def describe(fake: FakeCluster, seed: int, control: Control | None) -> None:
    """Print the connection details for people."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    options = fake.node.options
    nodes = len(fake.nodes)
    console.print(
        Text.assemble(
            "A fake Couchbase node listens on " if nodes == 1 else f"{nodes} fake Couchbase nodes listen on ",
            plain(fake.connection_string, "bold"),
            f"; {'its' if nodes == 1 else 'their'} bucket is {options.buckets[0]!r}, the user {options.username!r}.",
        )
    )
    if fake.tls_connection_string is not None:
        console.print(Text.assemble("Over TLS: ", plain(fake.tls_connection_string, "bold")))
    for tls in (False, True):
        for service, addresses in endpoints(fake, tls=tls).items():
            console.print(Text.assemble(f"{service}: ", plain(" ".join(addresses), "bold")))
    for client, program in (("triclinium", triclinium_program(fake)), ("the official client", official_program(fake))):
        console.print(f"\nWith {client}:\n", style="bold")
        console.print(Syntax("", "python", theme="ansi_dark").highlight(indent(program, "    ")), end="")
    if control is not None:
        console.print("\nControl it, for example:\n", style="bold")
        console.print(Text(indent(curl_command(control), "    ")))
    console.print(f"\nThe seed is {seed}. All data is in memory. Stop it with Control-C.")


def curl_command(control: Control) -> str:
    """Return a shell command that restarts the first node."""
    return f"""\
curl {control.url}/commands -H 'Authorization: Bearer {control.token}' \\
    -H 'Content-Type: application/json' -d '{{"command": "restart", "node": 0}}'"""


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
