"""Replica reads of the official client from a fake cluster of three nodes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.official import Official, official_client
from triclinium.testing import Opcode, open_tcp_cluster
from triclinium_core.testing import FakeNodeOptions, FakeNodes

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("couchbase_package")]


async def all_replicas(official: Official, do: str = "get_all_replicas", **arguments: str) -> list[tuple[Any, bool]]:
    """Return content and origin of all copies, the active one first."""
    answer = await official.ask(do=do, key="ada", **arguments)
    return sorted(((copy["content"], copy["is_replica"]) for copy in answer["result"]), key=lambda copy: copy[::-1])


async def test_replicas_are_read(safety_net: None) -> None:
    """The client reads each copy, current or stale, from its node; if the active node is dead, it reads a replica."""
    nodes = FakeNodes(FakeNodeOptions(replicas=2), nodes=3)
    async with open_tcp_cluster(nodes) as fake, official_client(fake) as official:
        await official.ask(do="upsert", key="ada", value=1)
        owner, holders = nodes.owner_of("ada"), nodes.replica_holders_of("ada")
        assert owner is not None
        assert [(1, False), (1, True), (1, True)] == await all_replicas(official)
        assert all(nodes[index].command_log[-1].opcode == Opcode.GET_REPLICA for index in holders)

        nodes.hold_replication(holders[1])
        await official.ask(do="upsert", key="ada", value=2)
        assert [(2, False), (1, True), (2, True)] == await all_replicas(official)

        nodes.release_replication(holders[1])
        nodes.kill(owner)
        found = await official.ask(do="get_any_replica", key="ada")
        assert {"result": {"content": 2, "is_replica": True}} == found


async def test_parts_of_replicas_are_read(safety_net: None) -> None:
    """Parts are read from the nodes with a copy, current or stale."""
    nodes = FakeNodes(FakeNodeOptions(replicas=2), nodes=3)
    async with open_tcp_cluster(nodes) as fake, official_client(fake) as official:
        await official.ask(do="upsert", key="ada", value={"a": 1})
        nodes.hold_replication(nodes.replica_holders_of("ada")[0])
        await official.ask(do="upsert", key="ada", value={"a": 2})

        assert [(2, False), (1, True), (2, True)] == await all_replicas(official, "lookup_in_all_replicas", field="a")


async def test_a_document_without_any_copy(safety_net: None) -> None:
    """If no node has a copy, the official client raises its exception for an unretrievable document."""
    async with open_tcp_cluster(nodes=2, replicas=1) as fake, official_client(fake) as official:
        found = await official.ask(do="get_any_replica", key="nobody")

        assert {"error": "DocumentUnretrievableException"} == found
