"""In-process cluster, as the tests of an application use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.testing.raw_client import get, open_raw_client
from triclinium import Cluster, Collection, PasswordAuthenticator, TimeoutOptions, errors, open_cluster
from triclinium.testing import FakeCluster, open_fake_cluster, open_tcp_cluster
from triclinium_core.kv.wire.constants import HelloFeature, Magic, Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import FakeNode, FakeNodeOptions, hang_up_mid_reply, refuse_connection, temporary_failure


def default_collection(cluster: Cluster) -> Collection:
    """Return the collection of the tests."""
    return cluster.bucket("default").default_collection()


async def test_documents_are_stored_in_their_buckets(autojump_clock: MockClock) -> None:
    """``open_fake_cluster`` stores documents in the requested buckets without a delay in virtual time."""
    async with open_fake_cluster(buckets=["travel", "hotels"]) as fake, fake.open_client() as cluster:
        for bucket in ("travel", "hotels"):
            people = cluster.bucket(bucket).default_collection()
            await people.upsert("ada", {"bucket": bucket})
            assert {"bucket": bucket} == (await people.get("ada")).content
        stored = fake.node.documents.get("travel", "ada")

        assert stored is not None
        assert b'{"bucket":"travel"}' == stored.value
        assert 0 == trio.current_time()


@rows(
    ("options", "strings"),
    [
        (
            FakeNodeOptions(host="node.test", port=12000, tls_port=12001, username="app", password="secret"),
            ("couchbase://node.test:12000", "couchbases://node.test:12001"),
        ),
        (FakeNodeOptions(host="$HOST"), ("couchbase://127.0.0.1:11210", None)),
    ],
)
async def test_options_configure_the_node(options: FakeNodeOptions, strings: tuple[str, str | None]) -> None:
    """The node has the address and user of its options; ``buckets`` overrides its buckets; ``$HOST`` is 127.0.0.1."""
    async with open_fake_cluster(options=options, buckets=("travel",)) as fake, fake.open_client() as cluster:
        await cluster.bucket("travel").default_collection().upsert("ada", 1)

    assert strings == (fake.connection_string, fake.tls_connection_string)
    assert PasswordAuthenticator(options.username, options.password) == fake.authenticator


@rows("piece_sizes", [(3,), (24, 7, 1000)])
async def test_split_bytes_change_nothing(piece_sizes: Sequence[int]) -> None:
    """A client works if bytes arrive in small pieces or in pieces of different sizes."""
    options, timeouts = FakeNodeOptions(vbuckets=128), TimeoutOptions(kv=60.0)
    async with (
        open_fake_cluster(options=options, piece_sizes=piece_sizes) as fake,
        fake.open_client(timeouts=timeouts) as cluster,
    ):
        store = default_collection(cluster)
        await store.upsert("ada", {"born": 1815})

        assert {"born": 1815} == (await store.get("ada")).content


async def test_a_half_closed_connection_is_closed(autojump_clock: MockClock) -> None:
    """A connection that the node has half closed is closed completely after a time, even if the client ignores it."""
    async with open_fake_cluster() as fake, open_raw_client(fake) as client:
        fake.node.faults.next(Opcode.NOOP, hang_up_mid_reply())
        await client.get_ready()
        await client.ask(Opcode.NOOP)
        await trio.sleep(10)

        with pytest.raises(trio.BrokenResourceError):
            await client.stream.send_all(b"whatever")


@rows(
    ("port", "tls", "tls_port"),
    [(11211, False, None), (11210, True, None), (11210, True, 11207), (11207, False, 11207)],
)
async def test_other_ports_refuse_connections(port: int, tls: bool, tls_port: int | None) -> None:
    """A wrong port is refused, and so are TLS on the plain port and a plain connection to the TLS port."""
    async with open_fake_cluster(options=FakeNodeOptions(tls_port=tls_port)) as fake:
        with pytest.raises(ConnectionRefusedError):
            await fake.connector.connect("127.0.0.1", port, tls=tls)


async def test_the_tls_port_is_served_without_tls() -> None:
    """On the TLS port of an in-memory cluster, the client behaves as with TLS, although nothing is encrypted."""
    async with open_fake_cluster(options=FakeNodeOptions(tls_port=11207)) as fake:
        assert fake.tls_connection_string is not None
        async with open_cluster(fake.tls_connection_string, fake.authenticator, connector=fake.connector) as cluster:
            await default_collection(cluster).upsert("ada", 1)
            mechanisms = {connection.sasl_mechanism for connection in cluster.statistics().connections}

    assert {"PLAIN"} == mechanisms


async def test_streams_end_with_the_block() -> None:
    """When the block ends, its streams end and further connections are refused."""
    async with open_fake_cluster() as fake:
        connected = await fake.connector.connect("127.0.0.1", 11210, tls=False)

    assert b"" == await connected.stream.receive_some()
    with pytest.raises(ConnectionRefusedError):
        await fake.connector.connect("127.0.0.1", 11210, tls=False)


@rows(
    ("arguments", "parameter"),
    [
        ({"nodes": 0}, "nodes"),
        ({"nodes": "127.0.0.1"}, "nodes"),
        ({"buckets": "travel"}, "buckets"),
        ({"replicas": 4}, "replicas"),
        ({"buckets": 5}, "buckets"),
        ({"buckets": ["travel", ""]}, "bucket"),
        ({"options": 5}, "options"),
        ({"options": 5, "buckets": ["travel"]}, "options"),
        ({"piece_sizes": 5}, "piece_sizes"),
        ({"piece_sizes": []}, "piece_sizes"),
        ({"piece_sizes": [1, 0]}, "piece_sizes"),
        ({"piece_sizes": ["1"]}, "piece_sizes"),
    ],
)
async def test_wrong_arguments_are_refused(arguments: dict[str, Any], parameter: str) -> None:
    """A wrong argument raises with its name before anything is served."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        async with open_fake_cluster(**arguments):
            raise AssertionError

    assert parameter == caught.value.parameter


async def test_a_crash_of_the_node_ends_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of the node fails the block with InternalError, and not the client's operations."""

    def crash(self: FakeNode, connection: int, data: bytes, now: float) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(FakeNode, "bytes_received", crash)
    with pytest.raises(errors.InternalError) as caught:
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            await default_collection(cluster).upsert("ada", 1)

    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert caught.value.__cause__.subgroup(KeyError) is not None
    with pytest.raises(ConnectionRefusedError):
        await fake.connector.connect("127.0.0.1", 11210, tls=False)


def play(seed: int) -> list[tuple[int, bytes, int, float]]:
    """Return the commands, with their times, that a node with faults receives from a client with this seed."""

    async def script() -> list[tuple[int, bytes, int, float]]:
        async with open_fake_cluster() as fake, fake.open_client(seed=seed) as cluster:
            fake.node.faults.next(None, refuse_connection(), times=5)
            fake.node.faults.next(Opcode.SET, temporary_failure(), times=2)
            fake.node.faults.next(Opcode.GET, hang_up_mid_reply())
            for key in ("ada", "bob"):
                await default_collection(cluster).upsert(key, 1)
                await default_collection(cluster).get(key)
        return [(command.opcode, command.key, command.opaque, command.now) for command in fake.node.command_log]

    return trio.run(script, clock=MockClock(autojump_threshold=0))


def test_the_same_seed_gives_the_same_run() -> None:
    """Runs with the same seed have the same commands, times and opaques; another seed gives different ones."""
    same = play(1) == play(1)
    other = play(1) != play(2)

    assert same
    assert other


@pytest.mark.parametrize("open_cluster_of", [open_fake_cluster, open_tcp_cluster])
async def test_seed_of_faults(open_cluster_of: Callable[..., AbstractAsyncContextManager[FakeCluster]]) -> None:
    """The seed of a cluster determines which requests a fault with a probability strikes; a negative one is refused."""

    async def struck(seed: int) -> list[bool]:
        async with open_cluster_of(seed=seed) as fake:
            fake.node.faults.always(Opcode.GET, temporary_failure(), probability=0.5)
            return [fake.node.faults.take(Opcode.GET) is not None for _ in range(20)]

    first, again, other = await struck(1), await struck(1), await struck(2)

    assert first == again
    assert first != other
    with pytest.raises(errors.InvalidArgumentException, match="seed=-1"):
        await struck(-1)


async def test_restart_in_virtual_time(autojump_clock: MockClock) -> None:
    """Commands in memory take virtual time: a client waits for a node that is down for minutes."""
    async with open_fake_cluster() as fake, fake.open_client(timeouts=TimeoutOptions(kv=600.0)) as cluster:
        fake.nodes.restart(0, at_seconds=10, for_seconds=300)
        await trio.sleep(11)
        await default_collection(cluster).upsert("ada", 1)
        took = trio.current_time()
    began, ended = fake.nodes.changes

    assert (10, 310) == (began.now, ended.now)
    assert 310 <= took < 400


async def test_a_client_refuses_wrong_arguments() -> None:
    """``open_client`` refuses wrong arguments like ``open_cluster``, before anything is opened."""
    async with open_fake_cluster() as fake:
        with pytest.raises(errors.InvalidArgumentException) as caught:
            fake.open_client(redact_logs="yes")  # type: ignore[arg-type]

    assert "redact_logs" == caught.value.parameter


async def test_several_nodes() -> None:
    """Each of several nodes has its own address and serves only the vbuckets that the map assigns to it."""
    options = FakeNodeOptions(port=12000, tls_port=12001)
    async with open_fake_cluster(nodes=3, options=options, buckets=["default"]) as fake:
        fake.node.documents.put("default", "ada", b"1")
        assert () == fake.nodes.map.replicas
        fake.nodes.move(range(1024), to=2)
        answers = []
        for index in range(3):
            async with open_raw_client(fake, index) as client:
                await client.get_ready(HelloFeature.XERROR)
                await client.stream.send_all(get("ada"))
                answers.append(await client.hear())

    assert [Status.NOT_MY_VBUCKET, Status.NOT_MY_VBUCKET, Status.SUCCESS] == [
        answer.status for answer in answers if answer is not None
    ]
    assert fake.node is fake.nodes[0]
    assert ("couchbase://127.0.0.1:12000,127.0.0.1:12002,127.0.0.1:12004", 12003) == (
        fake.connection_string,
        fake.nodes[1].options.tls_port,
    )


async def test_nodes_by_name() -> None:
    """Nodes on several hosts may have the same port, and other hosts and ports are refused."""
    async with open_fake_cluster(nodes=[("a.test", 11210), ("b.test", 11210)]) as fake:
        fake.nodes[0].faults.always(None, refuse_connection())
        connected = await fake.connector.connect("b.test", 11210, tls=False)
        for host, port in (("a.test", 11210), ("c.test", 11210), ("b.test", 11211)):
            with pytest.raises(ConnectionRefusedError):
                await fake.connector.connect(host, port, tls=False)

    await connected.stream.aclose()


async def test_a_config_change_is_pushed_by_every_node(autojump_clock: MockClock) -> None:
    """Every node pushes a changed config immediately; a node with a held config does so only when it is released."""
    wanted = (HelloFeature.DUPLEX, HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF)
    async with (
        open_fake_cluster(nodes=2) as fake,
        open_raw_client(fake, 0) as first,
        open_raw_client(fake, 1) as second,
    ):
        for client in (first, second):
            await client.get_ready(*wanted)
        fake.nodes.hold_config(1)
        fake.nodes.rebalance()
        notified = [await first.hear()]
        with trio.move_on_after(60):
            await second.hear()
        waited = trio.current_time()
        fake.nodes.release_config(1)
        notified.append(await second.hear())

        assert [Magic.SERVER_REQUEST] * 2 == [frame.magic for frame in notified if frame is not None]
        assert (60, 60) == (waited, trio.current_time())
