"""Pings, reports and waits for readiness, as a caller uses them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from inspect import signature
from itertools import product

import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.pair import OPTIONS
from triclinium import Cluster, PasswordAuthenticator, Service, errors, fail_after
from triclinium.health import ClusterState, EndpointPingReport, EndpointState, PingResult, PingState
from triclinium.testing import FakeCluster, Opcode, delay, drop_response, open_fake_cluster
from triclinium_core.testing.fakes.services.faults import http_status

WRONG = PasswordAuthenticator("Administrator", "wrong")
NODES = ["127.0.0.1:11210", "127.0.0.1:11212", "127.0.0.1:11214"]


def reports(result: PingResult, namespace: str | None = "travel") -> dict[str, EndpointPingReport]:
    """Return the reports on the connections of a bucket, by node."""
    return {found.remote: found for found in result.endpoints[Service.KV] if found.namespace == namespace}


def states(result: PingResult, namespace: str | None = "travel") -> list[PingState]:
    """Return the states of all nodes, in the order of their ports."""
    found = reports(result, namespace)
    return [found[node].state for node in sorted(found)]


async def mute(fake: FakeCluster, cluster: Cluster, node: int) -> None:
    """Wait until all connections of the bucket are ready, and then make a node ignore NOOPs."""
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
        assert [PingState.OK] * 3 == states(result)
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
        assert {PingState.OK} == {*states(result), *states(result, None)}


async def test_a_silent_node(autojump_clock: MockClock) -> None:
    """A ping reports a node that does not respond within the timeout as timed out, and raises no exception."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        await mute(fake, cluster, 1)
        began = trio.current_time()
        result = await cluster.bucket("travel").ping()
        took = trio.current_time() - began

        assert [PingState.OK, PingState.TIMEOUT, PingState.OK] == states(result)
        assert [2.5, 2.5] == pytest.approx([reports(result)[NODES[1]].latency, took])


async def test_a_dead_node(autojump_clock: MockClock) -> None:
    """A dead node is reported immediately with its error, and the cluster is degraded."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        await cluster.bucket("travel").wait_until_ready()
        fake.nodes.kill(1)
        await trio.sleep(0.1)
        began = trio.current_time()
        result = await cluster.bucket("travel").ping()

        assert [PingState.OK, PingState.ERROR, PingState.OK] == states(result)
        assert "127.0.0.1:11212: connection refused" in (reports(result)[NODES[1]].error or "")
        assert trio.current_time() - began < 1.0
        assert ClusterState.DEGRADED is cluster.diagnostics().state


async def test_a_ping_with_a_wrong_password(autojump_clock: MockClock) -> None:
    """A ping with a wrong password reports the error without waiting for the timeout."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client(authenticator=WRONG) as cluster:
        began = trio.current_time()
        (report,) = (await cluster.ping()).endpoints[Service.KV]

        assert PingState.ERROR is report.state
        assert "'Administrator'" in (report.error or "")
        assert trio.current_time() - began < 1.0


async def test_diagnostics_follow_the_connections(autojump_clock: MockClock) -> None:
    """Diagnostics report the state of each connection."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        first = cluster.diagnostics(report_id="morning")
        await cluster.bucket("travel").wait_until_ready()
        ready = cluster.diagnostics()
        fake.nodes.kill(2)
        await trio.sleep(0.1)
        (lost,) = [
            found
            for found in cluster.diagnostics().endpoints[Service.KV]
            if found.remote == NODES[2] and found.namespace == "travel"
        ]

        assert ("morning", "morning") == (first.id, json.loads(first.as_json())["id"])
        assert ClusterState.OFFLINE is first.state
        assert [(EndpointState.CONNECTING, None)] == [
            (found.state, found.last_activity) for found in first.endpoints[Service.KV]
        ]
        assert ClusterState.ONLINE is ready.state
        assert {EndpointState.CONNECTED} == {found.state for found in ready.endpoints[Service.KV]}
        assert 4 == len({found.id for found in ready.endpoints[Service.KV]})
        assert EndpointState.DISCONNECTED is lost.state
        assert "connection refused" in (lost.details or "")
        assert 0.1 == pytest.approx(lost.last_activity)


async def test_a_bucket_is_ready_with_all_its_nodes(autojump_clock: MockClock) -> None:
    """``wait_until_ready`` opens the connections and returns when the slowest is ready."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        fake.nodes[2].faults.next(Opcode.SELECT_BUCKET, delay(0.75))
        began = trio.current_time()
        await cluster.bucket("travel").wait_until_ready()

        assert 0.75 == pytest.approx(trio.current_time() - began)
        assert ClusterState.ONLINE is cluster.diagnostics().state


async def test_waiting_for_a_degraded_cluster(autojump_clock: MockClock) -> None:
    """If one of three nodes is dead, a wait for DEGRADED returns, and a wait for ONLINE lasts until its revival."""
    async with open_fake_cluster(options=OPTIONS, nodes=3) as fake, fake.open_client() as cluster:
        bucket = cluster.bucket("travel")
        fake.nodes.kill(1)
        await bucket.wait_until_ready(desired_state=ClusterState.DEGRADED)
        await cluster.wait_until_ready(desired_state=ClusterState.DEGRADED)
        with pytest.raises(errors.UnambiguousTimeoutException) as caught, fail_after(5.0):
            await bucket.wait_until_ready(service_types=[Service.KV])
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
    """If services hang or fail, a ping and a wait for all services end at the caller's limits; no connection is left."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        fake.node.faults.always(Service.QUERY, drop_response())
        fake.node.faults.always(Service.SEARCH, http_status(500))
        await cluster.wait_until_ready(service_types={Service.KV, Service.MANAGEMENT})
        began = trio.current_time()
        with trio.move_on_after(1.0) as pinging:
            await cluster.ping()
        with pytest.raises(errors.UnambiguousTimeoutException) as caught, fail_after(5.0):
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


async def test_a_closed_cluster(autojump_clock: MockClock) -> None:
    """After the block, pings and waits raise ClosedResourceError, and diagnostics have the last state."""
    async with open_fake_cluster(options=OPTIONS) as fake:
        async with fake.open_client() as cluster:
            await cluster.wait_until_ready()
        for ask in (cluster.ping, cluster.wait_until_ready, cluster.bucket("travel").ping):
            with pytest.raises(trio.ClosedResourceError):
                await ask()

        assert ClusterState.ONLINE is cluster.diagnostics().state


@rows(
    ("parameter", "values"),
    [
        ("service_types", [[], "query", [None]]),
        ("report_id", ["", "x" * 251, 7, b"id", 10**5000, ["id"]]),
        # RFC 0061 makes OFFLINE an error.
        ("desired_state", [ClusterState.OFFLINE, "online", None, EndpointState.CONNECTED]),
    ],
)
async def test_invalid_arguments(autojump_clock: MockClock, parameter: str, values: Sequence[object]) -> None:
    """An invalid argument raises with the name of the parameter, before anything is sent."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        await cluster.wait_until_ready()
        before = len(fake.node.command_log)
        for place in (cluster, cluster.bucket("travel")):
            calls: list[Callable[..., Awaitable[object]]] = [place.ping, place.wait_until_ready]
            for call, value in product([call for call in calls if parameter in signature(call).parameters], values):
                with trio.testing.assert_checkpoints(), pytest.raises(errors.InvalidArgumentException) as caught:
                    await call(**{parameter: value})

                assert parameter == caught.value.parameter
        for value in values if parameter == "report_id" else ():
            with pytest.raises(errors.InvalidArgumentException, match="report_id="):
                cluster.diagnostics(report_id=value)  # type: ignore[arg-type]

        assert before == len(fake.node.command_log)
