"""Scans of the official client in a fake cluster."""

from __future__ import annotations

import pytest

from tests.live.official import official_client
from triclinium.testing import open_tcp_cluster
from triclinium_core.testing import FakeNodeOptions, FakeNodes

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("couchbase_package")]

STORED = {f"key-{number:03}": number for number in range(200)}


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_scans_of_every_type(safety_net: None, concurrency: int) -> None:
    """Ranges, prefixes and samples return documents or only ids."""
    nodes = FakeNodes(FakeNodeOptions(vbuckets=128, replicas=1), nodes=3)
    for key, value in STORED.items():
        nodes.documents.put("default", key, b"%d" % value)
    async with open_tcp_cluster(nodes) as fake, official_client(fake) as official:

        async def scan(kind: str, *arguments: object, ids_only: bool = False) -> dict[str, object]:
            answer = await official.ask(
                do="scan", key="", type=kind, arguments=arguments, ids_only=ids_only, concurrency=concurrency
            )
            return dict(answer["result"])

        assert STORED == await scan("all")
        assert dict.fromkeys(STORED) == await scan("all", ids_only=True)
        assert {f"key-{number:03}": number for number in range(10, 20)} == await scan("range", "key-010", "key-020")
        assert {f"key-{number:03}": number for number in range(100, 200)} == await scan("prefix", "key-1")
        assert {} == await scan("prefix", "nobody")
        sample = await scan("sampling", 20, 7)
        assert 20 == len(sample)
        assert sample.items() <= STORED.items()
