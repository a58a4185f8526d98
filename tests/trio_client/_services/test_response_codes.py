"""Responses in the RFC's retry list, each over real sockets."""

from __future__ import annotations

import trio

from tests.core.services.response_codes import ListedAnswer, listed_answers
from tests.rows import rows
from triclinium.testing import FakeNodeOptions, open_tcp_cluster
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes

OPTIONS = FakeNodeOptions(host="127.0.0.1", buckets=("travel",), vbuckets=128)


@rows("listed", listed_answers())
async def test_each_row_of_the_retry_list(listed: ListedAnswer) -> None:
    """A request that gets a response of the list is retried, with the retry reason of the row, until it succeeds."""
    with trio.fail_after(60):
        async with open_tcp_cluster(FakeNodes(OPTIONS, nodes=1)) as fake, fake.open_client() as cluster:
            await cluster.bucket("travel").default_collection().upsert("a", 1)
            fake.nodes.script.answer(listed.said, *listed.answers, service=listed.line.service)

            opened = await cluster._driver.open_rows(listed.request, None, None)

        assert 1 == len(opened.rows)
        assert {listed.line.reason: 2} == cluster.statistics().retries_by_reason
        asked = [each for each in fake.nodes[0].request_log if each.service is listed.line.service]
        assert 3 == len(asked)
