"""Wait until a cluster is ready, check its health, and follow its nodes."""

from __future__ import annotations

import trio
import trio.testing

import triclinium
from triclinium import Cluster, PasswordAuthenticator
from triclinium.errors import AuthenticationFailureException
from triclinium.health import ClusterState
from triclinium.testing import FakeCluster, open_fake_cluster


async def report(cluster: Cluster) -> None:
    """Ping the bucket, and print the result of each key-value connection and the state of all connections together."""
    result = await cluster.bucket("travel").ping()
    for endpoint in result.endpoints[triclinium.Service.KV]:
        what_is_wrong = f" ({endpoint.error})" if endpoint.error else ""
        print(f"  {endpoint.remote}: {endpoint.state.value}{what_is_wrong}")
    print("  together:", cluster.diagnostics().state.value)


async def watch(cluster: Cluster) -> None:
    """Print each change of the bucket's nodes, until the cluster is closed."""
    async with cluster.subscribe_topology() as changes:
        async for change in changes:
            if change.bucket == "travel":
                added, removed = ([node.name for node in nodes] for nodes in (change.added, change.removed))
                print(f"  now at revision {change.new.revision}: added {added}, removed {removed}")


async def work(fake: FakeCluster) -> None:
    """Lose a node, and remove it from the cluster."""
    async with fake.open_client() as cluster, trio.open_nursery() as nursery:
        with triclinium.fail_after(5):
            await cluster.bucket("travel").wait_until_ready()
        print("ready")
        await report(cluster)
        nursery.start_soon(watch, cluster)
        await trio.sleep(1)
        print("a node dies")
        fake.nodes.kill(2)
        await trio.sleep(1)
        await report(cluster)
        await cluster.bucket("travel").wait_until_ready(desired_state=ClusterState.DEGRADED)
        print("it is taken out")
        fake.nodes.remove_node(2)
        await trio.sleep(1)
        await report(cluster)
        nursery.cancel_scope.cancel()


async def main() -> None:
    """Watch a cluster of three nodes, then try a wrong password."""
    async with open_fake_cluster(nodes=3, buckets=["travel"]) as fake:
        await work(fake)
        async with fake.open_client(authenticator=PasswordAuthenticator("Administrator", "guess")) as cluster:
            try:
                await cluster.wait_until_ready()
            except AuthenticationFailureException as error:
                print(error)


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
