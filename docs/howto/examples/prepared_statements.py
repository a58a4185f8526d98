"""Plan a statement once, and execute it often."""

from __future__ import annotations

import json

import trio
import trio.testing

from triclinium import Cluster
from triclinium.testing import FakeCluster, open_fake_cluster

STATEMENT = "SELECT $first AS first, $last AS last"


async def ask(cluster: Cluster, first: str, last: str) -> object:
    """Return the only row of the result."""
    async with cluster.query(STATEMENT, first=first, last=last, adhoc=False, readonly=True) as result:
        (row,) = await result.rows()
    return row


def what_was_sent(fake: FakeCluster) -> list[str]:
    """Return for each request whether it prepared the statement or executed its plan."""
    sent = [json.loads(request.body) for request in fake.node.request_log]
    return ["plan" if "prepared" in request else "statement, to be prepared" for request in sent]


async def main() -> None:
    """Query twice, and again after the node has dropped the plan."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        print(await ask(cluster, "Ada", "Lovelace"))
        print(await ask(cluster, "Grace", "Hopper"))

        fake.nodes.plans.forget()
        print(await ask(cluster, "Annie", "Easley"))
        print(*what_was_sent(fake), sep="\n")


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
