"""Fake cluster without a network: streams in memory, and only Trio's time."""

from __future__ import annotations

import errno
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

import trio

from triclinium.abc import ConnectedStream
from triclinium.testing._fake_cluster import FakeCluster, fake_cluster, with_buckets
from triclinium.testing._memory_stream import memory_stream_pair
from triclinium.testing._node_server import NodeServer, serving
from triclinium_core import errors
from triclinium_core.checks import check_integer, check_type
from triclinium_core.shown import total_repr
from triclinium_core.testing import FakeNodeOptions, FakeNodes, NodePort


@asynccontextmanager
async def open_fake_cluster(
    *,
    nodes: int | Sequence[tuple[str, int]] = 1,
    buckets: Sequence[str] | None = None,
    replicas: int | None = None,
    options: FakeNodeOptions | None = None,
    piece_sizes: Sequence[int] | None = None,
    seed: int = 0,
) -> AsyncIterator[FakeCluster]:
    """Give the block a cluster inside the process; leaving the block closes it.

    The cluster does not use the network, and all waits are Trio's: with ``MockClock(autojump_threshold=0)``,
    pytest-trio's ``autojump_clock``, they take no time. With ``FakeCluster.open_client`` as well, a
    test is reproducible, except that Trio runs tasks that are ready at the same moment in random order. In Hypothesis
    tests, that order is reproducible, too.

    Args:
        nodes: number of nodes, 1 to 128, with ports two apart, or host and port of each. Default: 1.
        buckets: names of the buckets; default: those of ``options``.
        replicas: number of replicas of each vbucket, 0 to 3; default: that of ``options``.
        options: options of each node. The nodes' wall clock starts at their ``wall_seconds_at_zero``, not at the
            current time. This matters for an expiry sent as Unix time: a ``datetime``, or more than 30 days. Default:
            ``FakeNodeOptions()``.
        piece_sizes: maximum sizes in bytes of the pieces that both sides receive, used in turn; None, the default, for
            no limit.
        seed: integer of at least 0, the seed of faults with a probability. Default: 0.

    Raises:
        InvalidArgumentException: an argument is wrong.
        InternalError: on leaving: a node crashed and cancelled the block.

    Cancellation: cancels the block, not the nodes. Cleanup code can still write from a shielded scope.

    Example::

        async with open_fake_cluster(buckets=["travel"]) as fake, fake.open_client() as cluster:
            people = cluster.bucket("travel").default_collection()
            fake.node.faults.next(Opcode.GET, drop_response())
            ...
    """
    options = FakeNodeOptions() if options is None else options
    check_type(options, "options", FakeNodeOptions)
    options = with_buckets(options, buckets)
    if replicas is not None:
        options = replace(options, replicas=replicas)
    async with serving(FakeNodes(options, nodes, rng=random.Random(check_integer(seed, "seed")))) as server:
        yield fake_cluster(server, FakeConnector(server, piece_sizes=piece_sizes))


class FakeConnector:
    """Connector to fake nodes through memory. ``open_fake_cluster`` creates it as ``FakeCluster.connector``.

    It has no TLS: data on the TLS port is not encrypted.
    """

    def __init__(self, server: NodeServer, *, piece_sizes: Sequence[int] | None = None) -> None:
        self._server = server
        self._piece_sizes = _checked(piece_sizes)
        self._connections = count(1)

    @total_repr
    def __repr__(self) -> str:
        return f"<FakeConnector {self._server.nodes!r}>"

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a stream to the node at this address. A single node accepts any host name, but only its own ports.

        Raises:
            ConnectionRefusedError: there is no such node, or it refuses the connection or is not served any more.
        """
        await trio.lowlevel.checkpoint()
        found = self._port_at(host, port, tls=tls)
        if found is None or not self._server.accepts(found.node):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        ours, theirs = memory_stream_pair(self._piece_sizes)
        self._server.start_soon(self._server.serve_stream, theirs, *found)
        return ConnectedStream(ours, f"memory:{next(self._connections)}", f"{host}:{port}")

    def _port_at(self, host: str, port: int, *, tls: bool) -> NodePort | None:
        nodes = self._server.nodes
        known = nodes.find(host, port, tls=tls)
        return nodes.find(nodes[0].options.host, port, tls=tls) if known is None and len(nodes) == 1 else known


def _checked(piece_sizes: Sequence[int] | None) -> tuple[int, ...]:
    if piece_sizes is None:
        return ()
    sizes = tuple(piece_sizes) if isinstance(piece_sizes, Sequence) else ()
    if not sizes or not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise errors.InvalidArgumentException(
            f"piece_sizes={piece_sizes!r} must be one or more integers >= 1", parameter="piece_sizes"
        )
    return sizes
