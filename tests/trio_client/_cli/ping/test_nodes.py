"""``triclinium ping`` tells of all nodes of a cluster, whichever of them it was given."""

from __future__ import annotations

import json
from typing import Any

import trio
from click.testing import CliRunner, Result

from triclinium._cli import main
from triclinium.testing import FakeCluster, open_tcp_cluster
from triclinium_core.testing import FakeNodeOptions

OPTIONS = FakeNodeOptions()
CREDENTIALS = ("--username", OPTIONS.username, "--password", OPTIONS.password)


async def ping(*arguments: str) -> Result:
    """Run the command in a thread, beside the servers of the test."""
    return await trio.to_thread.run_sync(lambda: CliRunner().invoke(main, ["ping", *arguments, *CREDENTIALS, "--json"]))


def nodes_of(result: Result) -> list[dict[str, Any]]:
    """Return what is said of each node."""
    nodes: list[dict[str, Any]] = json.loads(result.stdout)["nodes"]
    return nodes


def seeds(fake: FakeCluster) -> list[str]:
    """Return where the nodes listen."""
    return fake.connection_string.removeprefix("couchbase://").split(",")


async def test_the_nodes_that_a_seed_knows() -> None:
    """They follow it in the order of the map, each with the connections that were asked for."""
    async with open_tcp_cluster(nodes=3) as fake:
        first, second, third = seeds(fake)
        result = await ping(f"couchbase://{second}", "--bucket", "default")

    assert 0 == result.exit_code
    assert [second, first, third] == [node["node"] for node in nodes_of(result)]
    assert [[None, "default"]] * 3 == [[found["bucket"] for found in node["connections"]] for node in nodes_of(result)]


async def test_each_node_once() -> None:
    """Also one that was given under another name than its own, or was given beside one that knows it."""
    async with open_tcp_cluster(nodes=3) as fake:
        first, second, third = seeds(fake)
        renamed = second.replace("127.0.0.1", "localhost")
        result = await ping(f"couchbase://{third},{renamed}")

    assert [third, renamed, first] == [node["node"] for node in nodes_of(result)]


async def test_a_node_of_the_map_that_is_dead() -> None:
    """It is told with what is wrong; the others answer all the same."""
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
