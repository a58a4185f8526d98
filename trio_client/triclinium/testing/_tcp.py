"""Fake nodes on local ports, with TLS ports if requested."""

from __future__ import annotations

import random
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import NoneType

import trio

from triclinium._driver.connector import TcpConnector
from triclinium.testing._fake_cluster import FakeCluster, fake_cluster, with_buckets
from triclinium.testing._node_server import serving
from triclinium.testing._tcp_port import TcpPort
from triclinium_core import errors
from triclinium_core.checks import check_integer, check_type
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNode, FakeNodeOptions, FakeNodes
from triclinium_core.testing.fakes.options import NODES_MAX, PORT_STRIDE

HOST = "127.0.0.1"
LOOPBACK = (HOST, "::1")
"""Addresses of this machine. Other addresses are not allowed, because the credentials of a fake node are not secret."""


@asynccontextmanager
async def open_tcp_cluster(
    node: FakeNode | FakeNodes | None = None,
    *,
    nodes: int = 1,
    buckets: Sequence[str] | None = None,
    replicas: int = 0,
    host: str = HOST,
    port: int = 0,
    tls_port: int = 0,
    ssl_context: ssl.SSLContext | None = None,
    seed: int = 0,
) -> AsyncIterator[FakeCluster]:
    """Give the block a cluster on this machine for any client; leaving the block closes it.

    The configs contain the ports. The ports of a killed node are closed; ``revive`` opens the same ports again. The
    fault ``refuse_connection`` accepts a connection and then resets it.

    With a context that verifies clients (``CERT_REQUIRED`` or ``CERT_OPTIONAL``), a client can authenticate with its
    certificate, without SASL: the node compares the names in the certificate with
    ``FakeNodeOptions.certificate_users``.

    Args:
        node: a node, or all nodes of a cluster; None for new nodes with default options.
        nodes: number of new nodes, 1 to 128. Default: 1.
        buckets: names of the buckets of new nodes. None, the default, is the bucket of ``FakeNodeOptions``.
        replicas: number of replicas of each vbucket, 0 to 3, for new nodes. Default: 0.
        host: address to listen on, 127.0.0.1 (the default) or ::1; the configs list new nodes under it.
        port: port of the first node; each further node's port is two higher. 0, the default, picks free ports.
        tls_port: TLS port of the first node, like ``port``; ignored without an ``ssl_context``. Default: 0.
        ssl_context: a server's context, with its certificate. None, the default, disables TLS.
        seed: integer of at least 0, the seed of faults with a probability, for new nodes. Default: 0.

    Raises:
        InvalidArgumentException: an argument is wrong.
        OSError: a port is in use, or the user may not use it.
        InternalError: on leaving: a node crashed and cancelled the block.

    Cancellation: cancels the block, not the nodes.
    """
    if host not in LOOPBACK:
        raise errors.InvalidArgumentException(f"host={host!r} must be one of {', '.join(LOOPBACK)}", parameter="host")
    cluster = _cluster_of(node, nodes=nodes, buckets=buckets, replicas=replicas, host=host, seed=seed)
    most = 0xFFFF - PORT_STRIDE * (len(cluster) - 1)
    check_integer(port, "port", 0, most)
    check_integer(tls_port, "tls_port", 0, most)
    check_type(ssl_context, "ssl_context", ssl.SSLContext, NoneType)
    async with AsyncExitStack() as stack:
        ports: list[TcpPort] = []
        for number, place in enumerate(cluster):
            plain = await _listen_for(place, stack, host, port and port + PORT_STRIDE * number, None)
            secure = []
            if ssl_context is not None:
                at = tls_port and tls_port + PORT_STRIDE * number
                secure = await _listen_for(place, stack, host, at, ssl_context)
            _set_ports(place, plain, secure)
            ports += plain + secure
        server = await stack.enter_async_context(serving(cluster))
        for each in ports:
            server.watch(each.follow_node)
            server.start_soon(each.serve, server)
        yield fake_cluster(server, TcpConnector(), host=host)


async def serve_tcp(
    node: FakeNode | FakeNodes | None = None,
    *,
    nodes: int = 1,
    buckets: Sequence[str] | None = None,
    replicas: int = 0,
    host: str = HOST,
    port: int = 0,
    tls_port: int = 0,
    ssl_context: ssl.SSLContext | None = None,
    seed: int = 0,
    task_status: trio.TaskStatus[FakeCluster] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve a cluster in your own nursery: ``fake = await nursery.start(serve_tcp, node)``.

    The cluster runs until the task is cancelled. The arguments and exceptions are those of ``open_tcp_cluster``.

    Cancellation: closes all connections immediately.
    """
    async with open_tcp_cluster(
        node,
        nodes=nodes,
        buckets=buckets,
        replicas=replicas,
        host=host,
        port=port,
        tls_port=tls_port,
        ssl_context=ssl_context,
        seed=seed,
    ) as fake:
        task_status.started(fake)
        await trio.sleep_forever()


def _cluster_of(
    node: FakeNode | FakeNodes | None,
    *,
    nodes: int,
    buckets: Sequence[str] | None,
    replicas: int,
    host: str,
    seed: int,
) -> FakeNodes:
    """Return a new cluster, or that of a given node. With a given node, refuse the arguments for new nodes."""
    check_integer(nodes, "nodes", 1, NODES_MAX)
    if node is None:
        rng = random.Random(check_integer(seed, "seed"))
        return FakeNodes(with_buckets(FakeNodeOptions(host=host, replicas=replicas), buckets), nodes=nodes, rng=rng)
    check_type(node, "node", FakeNode, FakeNodes)
    for is_given, name, instead in (
        (nodes != 1, "nodes", "omit it if node is given"),
        (buckets is not None, "buckets", "set FakeNodeOptions(buckets=...) for those of node"),
        (replicas, "replicas", "set FakeNodeOptions(replicas=...) for those of node"),
        (seed, "seed", "pass rng=random.Random(seed) to FakeNodes"),
    ):
        if is_given:
            raise errors.InvalidArgumentException(f"{name} applies to new nodes; {instead}", parameter=name)
    return FakeNodes.around(node) if isinstance(node, FakeNode) else node


async def _listen_for(
    node: FakeNode, stack: AsyncExitStack, host: str, kv_port: int, ssl_context: ssl.SSLContext | None
) -> list[TcpPort]:
    """Listen on a port for each service: KV on ``kv_port`` (0 picks a free port), other services on free ports."""
    ports = []
    for service in (service for service in Service if service in node.options.services):
        (listener,) = await trio.open_tcp_listeners(kv_port if service is Service.KV else 0, host=host)
        ports.append(TcpPort(node, service, listener, ssl_context))
        stack.callback(ports[-1].close)
    return ports


def _set_ports(node: FakeNode, plain: Sequence[TcpPort], secure: Sequence[TcpPort]) -> None:
    """Put the ports of a node into its configs."""
    ports, tls_ports = ({each.service: each.port for each in those} for those in (plain, secure))
    # Nothing listens on the KV ports of a node without KV, but set_ports needs them: keep the configured ones.
    port = ports.pop(Service.KV, node.options.port)
    tls_port = tls_ports.pop(Service.KV, (node.options.tls_port or node.options.port + 1) if secure else None)
    node.set_ports(port, tls_port, services=ports, tls_services=tls_ports)
