"""A fake cluster without a network: streams in memory, and no time but Trio's."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from types import NoneType

import trio

from triclinium.abc import ConnectedStream
from triclinium.testing._fake_cluster import FakeCluster, fake_cluster
from triclinium.testing._memory_stream import memory_stream_pair
from triclinium.testing._node_server import NodeServer, serving
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation.validation import check_type
from triclinium_core.testing import FakeNode, FakeNodeOptions
from triclinium_core.testing.fake_config import HOST_PLACEHOLDER


@asynccontextmanager
async def open_fake_cluster(
    *,
    nodes: int = 1,
    buckets: Sequence[str] | None = None,
    options: FakeNodeOptions | None = None,
    piece_sizes: Sequence[int] | None = None,
) -> AsyncIterator[FakeCluster]:
    """Give the block a cluster inside the process; leaving the block closes it.

    Nothing leaves the process, and all waiting is Trio's: with ``MockClock(autojump_threshold=0)``, pytest-trio's
    ``autojump_clock``, it takes no time. The same test gives the same run, but for the order in which Trio runs tasks
    that are ready at the same moment; its Hypothesis plugin seeds that too.

    Args:
        nodes: 1; there are no larger clusters yet.
        buckets: their names; unless given, those of ``options``.
        options: what the node is like; its defaults unless given. Its wall clock starts at ``wall_seconds_at_zero``,
            whatever the date: it matters to an expiry of more than 30 days, which travels as Unix time.
        piece_sizes: in pieces of how many bytes, used in turn and then from the beginning, both sides receive what
            the other sends; unless given, as it was sent.

    Raises:
        InvalidArgumentException: an argument is wrong.
        InternalError: on leaving: the node crashed, which had cancelled the block.

    Cancellation: reaches the block and not the node, so that a block that is being cancelled can still write from
    within a shielded scope.

    Example::

        async with open_fake_cluster(buckets=["travel"]) as fake, fake.open_client() as cluster:
            people = cluster.bucket("travel").default_collection()
            fake.node.faults.next(Opcode.GET, drop_response())
            ...
    """
    if nodes != 1:
        raise InvalidArgumentException(
            f"nodes={nodes!r} must be 1: a fake cluster of more nodes does not exist yet", parameter="nodes"
        )
    # A lone string is a sequence of letters to Python.
    if isinstance(buckets, str) or not isinstance(buckets, Sequence | NoneType):
        raise InvalidArgumentException(f"buckets={buckets!r} must be a sequence of names", parameter="buckets")
    options = FakeNodeOptions() if options is None else options
    check_type(options, "options", FakeNodeOptions)
    if buckets is not None:
        options = replace(options, buckets=tuple(buckets))
    async with serving(FakeNode(options)) as server:
        connector = FakeConnector(server, piece_sizes=piece_sizes)
        yield fake_cluster(server, connector.host, connector)


class FakeConnector:
    """Connects to a fake node through memory; ``open_fake_cluster`` makes it, as ``FakeCluster.connector``.

    TLS is left out: what would be its bytes arrive in plain, on the port for TLS.
    """

    def __init__(self, server: NodeServer, *, piece_sizes: Sequence[int] | None = None) -> None:
        self._server = server
        self._piece_sizes = _checked(piece_sizes)
        self._connections = count(1)

    @property
    def host(self) -> str:
        """What to call the node in a connection string."""
        host = self._server.node.options.host
        return "127.0.0.1" if host == HOST_PLACEHOLDER else host

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a stream to the node, whatever it is called, if this is its port.

        Raises:
            ConnectionRefusedError: it is not, the node refuses the connection, or is not served any more.
        """
        await trio.lowlevel.checkpoint()
        options = self._server.node.options
        if port != (options.tls_port if tls else options.port) or not self._server.accepts():
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        ours, theirs = memory_stream_pair(self._piece_sizes)
        self._server.start_soon(self._server.serve_stream, theirs)
        return ConnectedStream(ours, f"memory:{next(self._connections)}", f"{host}:{port}")


def _checked(piece_sizes: Sequence[int] | None) -> tuple[int, ...]:
    if piece_sizes is None:
        return ()
    sizes = tuple(piece_sizes) if isinstance(piece_sizes, Sequence) else ()
    if not sizes or not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise InvalidArgumentException(
            f"piece_sizes={piece_sizes!r} must be one or more integers >= 1", parameter="piece_sizes"
        )
    return sizes
