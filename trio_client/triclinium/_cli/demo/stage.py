"""Runner of the scenarios: a fake node on a port of this machine, and the trio client, which uses it over TCP.

The scenarios run one after the other on the same node, so each begins in the state that the previous one left. They
also share one client, except that the scenario with the wrong password opens its own.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial

import trio

from triclinium import Cluster, PasswordAuthenticator, Scope, TimeoutOptions, open_cluster, retrying
from triclinium._cli.demo.recorder import Play, RecordedNode, Recorder
from triclinium._cli.demo.scenarios import SUCCESS, DemoScenario
from triclinium.testing import FakeCluster, serve_tcp
from triclinium_core import errors
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.testing import FakeNodeOptions

HOST = "127.0.0.1"
OPTIONS = FakeNodeOptions(vbuckets=128)
BUCKET = OPTIONS.buckets[0]

TIMEOUTS = TimeoutOptions(kv=4.0, query=4.0)
"""Timeouts far above the duration of any operation of the demo, even on a slow machine. If a wrong rule retries an
operation endlessly, the timeout ends it, and the demo reports this."""


class Stage:
    """Node and client of the demo, and the recorder of their events.

    Args:
        nursery: runs the node.
        options: options of the node, which must have the first bucket of ``OPTIONS``.
    """

    def __init__(self, nursery: trio.Nursery, options: FakeNodeOptions = OPTIONS) -> None:
        self._nursery = nursery
        self._options = options
        self._recorder = Recorder()
        self._node = RecordedNode(options, self._recorder.entries)
        self._served: FakeCluster | None = None
        """Cluster with the served node; None until the node starts."""
        self._port_holder = _held_port()
        self._port: int = self._port_holder.getsockname()[1]
        self._cluster: Cluster

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open the client, and record its log. The node is not started yet."""
        with self._port_holder, self._recorder.listening():
            async with self._client(self._options.password) as self._cluster:
                yield

    async def play(self, scenario: DemoScenario) -> Play:
        """Run one scenario. An exception that the operation raises is part of the result."""
        if scenario.node_is_late:
            self._nursery.start_soon(self._start_node_after_the_first_decision)
            return await self._perform(scenario, self._cluster)
        await self._start_node()
        if scenario.password_is_wrong:
            async with self._client(f"not {self._options.password}") as cluster:
                return await self._perform(scenario, cluster)
        await self._wait_until_ready()
        return await self._perform(scenario, self._cluster)

    async def _perform(self, scenario: DemoScenario, cluster: Cluster) -> Play:
        scope = cluster.bucket(BUCKET).default_scope()
        answer, error = None, None
        if scenario.arrange is not None:
            _, error = await _attempt(scenario.arrange.perform, scope, scenario.key)
        if scenario.fault is not None:
            self._node.faults.next(scenario.operation.travels_as, scenario.fault, scenario.times)
        if scenario.plans_go_stale and self._served is not None:
            self._served.nodes.plans.go_stale()
        seen = len(self._recorder.entries)
        before = Counter(cluster.statistics().retries_by_reason)
        prepared = self._prepared
        began = trio.current_time()
        if error is None:
            with nullcontext() if scenario.strategy is None else retrying(scenario.strategy):
                answer, error = await _attempt(scenario.operation.perform, scope, scenario.key)
        ended = trio.current_time()
        self._recorder.client_has_decided.set()
        self._node.faults.clear()
        retries = Counter(cluster.statistics().retries_by_reason) - before
        return Play(
            scenario=scenario,
            began=began,
            ended=ended,
            entries=tuple(self._recorder.entries[seen:]),
            outcome=SUCCESS if error is None else type(error).__name__,
            message="" if error is None else str(error),
            answer=answer,
            context=error.context if isinstance(error, errors.CouchbaseException) else None,
            retries_by_reason={str(reason): number for reason, number in retries.items()},
            prepared=self._prepared - prepared,
        )

    def _client(self, password: str) -> AbstractAsyncContextManager[Cluster]:
        return open_cluster(
            f"couchbase://{HOST}:{self._port}",
            PasswordAuthenticator(self._options.username, password),
            timeouts=TIMEOUTS,
        )

    async def _start_node_after_the_first_decision(self) -> None:
        await self._recorder.client_has_decided.wait()
        await self._start_node()

    async def _start_node(self) -> None:
        if self._served is None:
            self._port_holder.close()
            self._served = await self._nursery.start(partial(serve_tcp, self._node, port=self._port))

    @property
    def _prepared(self) -> int:
        return 0 if self._served is None else self._served.nodes.plans.prepared

    async def _wait_until_ready(self) -> None:
        """Wait until all connections of the bucket are ready, because an earlier scenario may have closed one."""
        while not all(
            connection.state == ConnectionState.READY.name
            for connection in self._cluster.statistics().connections
            if connection.bucket == BUCKET
        ):
            await self._recorder.wait_for_news()


async def _attempt(
    work: Callable[[Scope, str], Awaitable[object]], scope: Scope, key: str
) -> tuple[object, Exception | None]:
    """Return the result of an operation, or its exception."""
    try:
        return await work(scope, key), None
    except Exception as error:
        return None, error


def _held_port() -> socket.socket:
    """Return a socket that reserves a port and does not listen: the system refuses connections to it."""
    holder = socket.socket()
    holder.bind((HOST, 0))
    return holder
