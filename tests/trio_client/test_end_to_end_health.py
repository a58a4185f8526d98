"""Pings, reports and waits for readiness, as a caller uses them."""

from __future__ import annotations

import json

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.pair import OPTIONS, PATIENCE
from triclinium import errors
from triclinium.testing import FakeCluster, Opcode, delay, drop_response, open_fake_cluster
from triclinium_core.testing.fakes.services.faults import http_status

WRONG = triclinium.PasswordAuthenticator("Administrator", "wrong")
NODES = ["127.0.0.1:11210", "127.0.0.1:11212", "127.0.0.1:11214"]


def reports(
    result: triclinium.health.PingResult, namespace: str | None = "travel"
) -> dict[str, triclinium.health.EndpointPingReport]:
    """Return the reports on the connections of a bucket, by node."""
    return {found.remote: found for found in result.endpoints[triclinium.Service.KV] if found.namespace == namespace}


def states(result: triclinium.health.PingResult, namespace: str | None = "travel") -> list[triclinium.health.PingState]:
    """Return the states of all nodes, in the order of their ports."""
    found = reports(result, namespace)
    return [found[node].state for node in sorted(found)]


async def mute(fake: FakeCluster, cluster: triclinium.Cluster, node: int) -> None:
    """Wait until all connections are ready, and then make a node ignore NOOPs."""
    await cluster.bucket("travel").wait_until_ready()
    fake.nodes[node].faults.always(Opcode.NOOP, drop_response())


async def test_a_ping_of_a_bucket(autojump_clock: MockClock) -> None:
    """A ping of a bucket opens connections to all nodes and reports the latency of each."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        fake.nodes[2].faults.always(Opcode.NOOP, delay(0.25))
        result = await cluster.bucket("travel").ping(report_id="morning")
        found = reports(result)

        assert ("morning", 2, 1) == (result.id, result.version, result.config_rev)
        assert result.sdk.startswith("triclinium/")
        assert NODES == sorted(found)
        assert [triclinium.health.PingState.OK] * 3 == states(result)
        assert [0.0, 0.0, 0.25] == [found[node].latency for node in NODES]
        assert all(report.local and report.error is None for report in found.values())


async def test_a_ping_of_the_cluster(autojump_clock: MockClock) -> None:
    """A ping of the cluster covers connections without a bucket to all nodes, and the connections of open buckets."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        alone = await cluster.ping()
        await cluster.bucket("travel").wait_until_ready()
        result = await cluster.ping()

        assert NODES == sorted(reports(alone, None))
        assert {} == reports(alone)
        assert NODES == sorted(reports(result, None)) == sorted(reports(result))
        assert {triclinium.health.PingState.OK} == {*states(result), *states(result, None)}


async def test_a_silent_node(autojump_clock: MockClock) -> None:
    """A ping reports a node that does not respond within the timeout as timed out, and raises no exception."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        await mute(fake, cluster, 1)
        began = trio.current_time()
        result = await cluster.bucket("travel").ping()
        took = trio.current_time() - began

        assert [
            triclinium.health.PingState.OK,
            triclinium.health.PingState.TIMEOUT,
            triclinium.health.PingState.OK,
        ] == states(result)
        assert [2.5, 2.5] == pytest.approx([reports(result)[NODES[1]].latency, took])


async def test_a_dead_node(autojump_clock: MockClock) -> None:
    """A dead node is reported immediately with its error, and the cluster is degraded."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        await cluster.bucket("travel").wait_until_ready()
        fake.nodes.kill(1)
        await trio.sleep(0.1)
        began = trio.current_time()
        result = await cluster.bucket("travel").ping()

        assert [
            triclinium.health.PingState.OK,
            triclinium.health.PingState.ERROR,
            triclinium.health.PingState.OK,
        ] == states(result)
        assert "127.0.0.1:11212: connection refused" in (reports(result)[NODES[1]].error or "")
        assert trio.current_time() - began < 1.0
        assert triclinium.health.ClusterState.DEGRADED is cluster.diagnostics().state


async def test_a_first_ping_tries_every_seed(autojump_clock: MockClock) -> None:
    """If the first seed node is dead, a ping still reports the other nodes."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake:
        fake.nodes.kill(0)
        async with fake.open_client() as cluster:
            result = await cluster.bucket("travel").ping()

            assert [
                triclinium.health.PingState.ERROR,
                triclinium.health.PingState.OK,
                triclinium.health.PingState.OK,
            ] == states(result)


async def test_a_ping_with_a_wrong_password(autojump_clock: MockClock) -> None:
    """A ping with a wrong password reports the error without waiting for the timeout."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client(authenticator=WRONG) as cluster:
        began = trio.current_time()
        (report,) = (await cluster.ping()).endpoints[triclinium.Service.KV]

        assert triclinium.health.PingState.ERROR is report.state
        assert "'Administrator'" in (report.error or "")
        assert trio.current_time() - began < 1.0


async def test_a_ping_as_json(autojump_clock: MockClock) -> None:
    """The JSON report has the form of RFC 0061."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        await cluster.wait_until_ready(service_types=[triclinium.Service.KV])
        result = await cluster.bucket("travel").ping(
            report_id="0xdeadbeef", service_types=[triclinium.Service.KV, triclinium.Service.QUERY]
        )
        (kv,), (query,) = result.endpoints.values()

        assert {
            "version": 2,
            "id": "0xdeadbeef",
            "config_rev": 1,
            "sdk": result.sdk,
            "services": {
                "kv": [
                    {
                        "id": "0x2",
                        "latency_us": 0,
                        "remote": "127.0.0.1:11210",
                        "local": kv.local,
                        "state": "ok",
                        "namespace": "travel",
                    }
                ],
                "query": [
                    {
                        "id": query.id,
                        "latency_us": 0,
                        "remote": "127.0.0.1:8093",
                        "local": query.local,
                        "state": "ok",
                    }
                ],
            },
        } == json.loads(result.as_json())


async def test_diagnostics_follow_the_connections(autojump_clock: MockClock) -> None:
    """Diagnostics report the state of each connection without sending anything."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        first = cluster.diagnostics()
        await cluster.bucket("travel").wait_until_ready()
        ready = cluster.diagnostics()
        fake.nodes.kill(2)
        await trio.sleep(0.1)
        (lost,) = [
            found
            for found in cluster.diagnostics().endpoints[triclinium.Service.KV]
            if found.remote == NODES[2] and found.namespace == "travel"
        ]

        assert triclinium.health.ClusterState.OFFLINE is first.state
        assert [(triclinium.health.EndpointState.CONNECTING, None)] == [
            (found.state, found.last_activity) for found in first.endpoints[triclinium.Service.KV]
        ]
        assert triclinium.health.ClusterState.ONLINE is ready.state
        assert {triclinium.health.EndpointState.CONNECTED} == {
            found.state for found in ready.endpoints[triclinium.Service.KV]
        }
        assert 4 == len({found.id for found in ready.endpoints[triclinium.Service.KV]})
        assert triclinium.health.EndpointState.DISCONNECTED is lost.state
        assert "connection refused" in (lost.details or "")
        assert 0.1 == pytest.approx(lost.last_activity)


async def test_diagnostics_as_json(autojump_clock: MockClock) -> None:
    """The JSON report has the form of RFC 0061."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        await cluster.wait_until_ready(service_types=[triclinium.Service.KV])
        await trio.sleep(1.5)
        result = cluster.diagnostics(report_id="0xdeadbeef")

        assert {
            "version": 2,
            "id": "0xdeadbeef",
            "sdk": result.sdk,
            "services": {
                "kv": [
                    {
                        "id": "0x1",
                        "last_activity_us": 1_500_000,
                        "remote": "127.0.0.1:11210",
                        "local": "memory:1",
                        "state": "connected",
                    }
                ]
            },
        } == json.loads(result.as_json())


async def test_a_bucket_is_ready_with_all_its_nodes(autojump_clock: MockClock) -> None:
    """``wait_until_ready`` opens the connections and returns when the slowest is ready."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        fake.nodes[2].faults.next(Opcode.SELECT_BUCKET, delay(0.75))
        began = trio.current_time()
        await cluster.bucket("travel").wait_until_ready()

        assert 0.75 == pytest.approx(trio.current_time() - began)
        assert triclinium.health.ClusterState.ONLINE is cluster.diagnostics().state


async def test_waiting_for_a_degraded_cluster(autojump_clock: MockClock) -> None:
    """If one of three nodes is dead, a wait for DEGRADED returns, and a wait for ONLINE lasts until its revival."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        bucket = cluster.bucket("travel")
        fake.nodes.kill(1)
        await bucket.wait_until_ready(desired_state=triclinium.health.ClusterState.DEGRADED)
        await cluster.wait_until_ready(desired_state=triclinium.health.ClusterState.DEGRADED)
        with pytest.raises(errors.UnambiguousTimeoutException) as caught, triclinium.fail_after(5.0):
            await bucket.wait_until_ready(service_types=[triclinium.Service.KV])
        with trio.move_on_after(5.0) as scope:
            await cluster.wait_until_ready()
        fake.nodes.revive(1)
        await bucket.wait_until_ready()
        await cluster.wait_until_ready()

        assert isinstance(caught.value, trio.TooSlowError)
        assert ("127.0.0.1:11212: connection refused",) == caught.value.context.connections
        assert scope.cancelled_caught
        assert 0 == cluster.statistics().open_operations


async def test_silent_services(autojump_clock: MockClock) -> None:
    """A ping reports silent services. A wait for these services lasts until they respond; a wait for others returns."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        fake.node.faults.always(triclinium.Service.QUERY, drop_response())
        fake.node.faults.always(triclinium.Service.SEARCH, http_status(500))
        await cluster.wait_until_ready(service_types={triclinium.Service.KV, triclinium.Service.MANAGEMENT})
        began = trio.current_time()
        with trio.move_on_after(1.0) as pinging:
            await cluster.ping()
        with pytest.raises(errors.UnambiguousTimeoutException) as caught, triclinium.fail_after(5.0):
            await cluster.wait_until_ready()
        await trio.sleep(2.0)
        left = [found for found in cluster.statistics().endpoints if found.open or found.opening or found.waiting]
        fake.node.faults.clear()
        await cluster.wait_until_ready()

        assert pinging.cancelled_caught
        assert 2 == len(caught.value.context.connections)
        assert "query service" in caught.value.context.connections[0]
        assert [] == left
        assert 8.0 == pytest.approx(trio.current_time() - began)


async def test_a_ready_cluster_does_not_wait(autojump_clock: MockClock) -> None:
    """A second wait sends nothing and returns immediately, after a checkpoint."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        await cluster.bucket("travel").wait_until_ready()
        before = len(fake.node.command_log)
        with trio.testing.assert_checkpoints():
            await cluster.bucket("travel").wait_until_ready()

        assert before == len(fake.node.command_log)


@rows("service_types", [[], "query", [None]])
async def test_invalid_services(autojump_clock: MockClock, service_types: list[triclinium.Service]) -> None:
    """Invalid services raise with the name of the parameter, before anything is sent."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        for ask in (cluster.ping, cluster.bucket("travel").wait_until_ready):
            with trio.testing.assert_checkpoints(), pytest.raises(errors.InvalidArgumentException) as caught:
                await ask(service_types=service_types)

            assert "service_types" == caught.value.parameter


async def test_waiting_with_a_wrong_password(autojump_clock: MockClock) -> None:
    """Waiting with a wrong password raises immediately, and the error names the node and the user."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client(authenticator=WRONG) as cluster:
        began = trio.current_time()
        with pytest.raises(errors.AuthenticationFailureException) as of_cluster:
            await cluster.wait_until_ready()
        with pytest.raises(errors.AuthenticationFailureException) as of_bucket:
            await cluster.bucket("travel").wait_until_ready(desired_state=triclinium.health.ClusterState.DEGRADED)

        assert began == trio.current_time()
        context = of_cluster.value.context
        assert "AUTHENTICATION_ERROR" == context.refused_reason
        assert all(fact in (context.last_dispatch_error or "") for fact in ("127.0.0.1:11210", "'Administrator'"))
        assert "travel" == of_bucket.value.context.bucket


async def test_waiting_for_a_missing_bucket(autojump_clock: MockClock) -> None:
    """Waiting for a missing bucket raises BucketAccessException, and the cluster is ready nevertheless."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        with (
            trio.fail_after(PATIENCE),
            pytest.raises(errors.BucketAccessException, match="check that the bucket exists") as caught,
        ):
            await cluster.bucket("nowhere").wait_until_ready()
        await cluster.wait_until_ready()

        assert "BUCKET_ACCESS_ERROR" == caught.value.context.refused_reason


async def test_a_closed_cluster(autojump_clock: MockClock) -> None:
    """After the block, pings and waits raise ClosedResourceError, and diagnostics have the last state."""
    async with open_fake_cluster(options=OPTIONS) as fake:
        async with fake.open_client() as cluster:
            await cluster.wait_until_ready()
        for ask in (cluster.ping, cluster.wait_until_ready, cluster.bucket("travel").ping):
            with pytest.raises(trio.ClosedResourceError):
                await ask()

        assert triclinium.health.ClusterState.ONLINE is cluster.diagnostics().state


@rows("report_id", ["", "x" * 251, 7, b"id", 10**5000, ["id"]])
async def test_invalid_report_ids(autojump_clock: MockClock, report_id: str) -> None:
    """An invalid report id raises with the name of the parameter, before anything is sent."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        await cluster.wait_until_ready()
        before = len(fake.node.command_log)
        for ask in (cluster.ping, cluster.bucket("travel").ping):
            with trio.testing.assert_checkpoints(), pytest.raises(errors.InvalidArgumentException) as caught:
                await ask(report_id=report_id)

            assert "report_id" == caught.value.parameter
        with pytest.raises(errors.InvalidArgumentException, match="report_id="):
            cluster.diagnostics(report_id=report_id)

        assert before == len(fake.node.command_log)


@rows("state", [triclinium.health.ClusterState.OFFLINE, "online", None, triclinium.health.EndpointState.CONNECTED])
async def test_invalid_desired_states(autojump_clock: MockClock, state: triclinium.health.ClusterState) -> None:
    """An invalid desired state raises with the name of the parameter; RFC 0061 makes OFFLINE an error."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        for wait in (cluster.wait_until_ready, cluster.bucket("travel").wait_until_ready):
            with trio.testing.assert_checkpoints(), pytest.raises(errors.InvalidArgumentException) as caught:
                await wait(desired_state=state)

            assert "desired_state" == caught.value.parameter
