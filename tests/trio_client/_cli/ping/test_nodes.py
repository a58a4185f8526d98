"""Report of ``triclinium ping`` on all nodes of a cluster, from any seed node."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import trio
from click.testing import CliRunner, Result

from tests.rows import rows
from triclinium._cli import main
from triclinium._cli.ping.pinging import Plan, ping_node, written
from triclinium.testing import FakeCluster, open_tcp_cluster
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.testing import FakeNodeOptions

OPTIONS = FakeNodeOptions()
CREDENTIALS = ("--username", OPTIONS.username, "--password", OPTIONS.password)


async def ping(*arguments: str) -> Result:
    """Run the command in a thread, next to the servers of the test."""
    return await trio.to_thread.run_sync(lambda: CliRunner().invoke(main, ["ping", *arguments, *CREDENTIALS, "--json"]))


def nodes_of(result: Result) -> list[dict[str, Any]]:
    """Return the report on each node."""
    nodes: list[dict[str, Any]] = json.loads(result.stdout)["nodes"]
    return nodes


def seeds(fake: FakeCluster) -> list[str]:
    """Return the addresses of the nodes."""
    return fake.connection_string.removeprefix("couchbase://").split(",")


async def test_ping_reports_the_other_nodes() -> None:
    """Ping reports the seed node and then the others in the order of the map, each with the requested connections."""
    async with open_tcp_cluster(nodes=3) as fake:
        first, second, third = seeds(fake)
        result = await ping(f"couchbase://{second}", "--bucket", "default")

    assert 0 == result.exit_code
    assert [second, first, third] == [node["node"] for node in nodes_of(result)]
    assert [[None, "default"]] * 3 == [[found["bucket"] for found in node["connections"]] for node in nodes_of(result)]


async def test_each_node_once() -> None:
    """Ping reports each node once, even if a connection string lists several nodes, or a node by another name."""
    async with open_tcp_cluster(nodes=3) as fake:
        first, second, third = seeds(fake)
        renamed = second.replace("127.0.0.1", "localhost")
        result = await ping(f"couchbase://{third},{renamed}")

    assert [third, renamed, first] == [node["node"] for node in nodes_of(result)]


@rows("host", ["a b", "x@y", "h/?kv_timeout=1ns&network=evil", "h,127.0.0.1", "h?", "[red]"])
async def test_an_ambiguous_host_is_not_contacted(host: str) -> None:
    """Ping reports, and does not contact, a host of the map that would have another meaning in a connection string."""
    target = parse_connection_string("couchbase://127.0.0.1?kv_timeout=3s")
    strange = replace(target, addresses=(Address(host, 11210),))
    found = await ping_node(strange, Plan(None, None, None, 1.0))

    assert () == found.connections
    assert "not pinged" in (found.problem or "")


@rows("host", ["10.0.0.1", "node-1.example.com", "::1", "cb_1"])
async def test_a_host_can_be_written_and_parsed(host: str) -> None:
    """A host of the map, written into a connection string with the target's options, is parsed as the same host."""
    target = parse_connection_string("couchbases://127.0.0.1?kv_timeout=3s")
    other = replace(target, addresses=(Address(host, 11207),))

    assert parse_connection_string(written(other)).addresses == other.addresses


async def test_a_node_of_the_map_that_is_dead() -> None:
    """A dead node is reported with its error; the other nodes are reported as usual."""
    async with open_tcp_cluster(nodes=3) as fake:
        fake.nodes.kill(2)
        first, second, third = seeds(fake)
        result = await ping(f"couchbase://{first}", "--timeout", "5")

    assert 1 == result.exit_code
    assert [(first, 1), (second, 1), (third, 0)] == [
        (node["node"], len(node["connections"])) for node in nodes_of(result)
    ]
    assert [None, None] == [node["error"] for node in nodes_of(result)[:2]]
    assert nodes_of(result)[2]["error"].startswith(f"{third}: ")
