"""Subscriptions to the topology. A subscriber keeps only the newest versions, so a slow reader blocks nothing.

The changes of a bucket that a subscriber has not read yet are merged into one change, from the version that the
subscriber read last to the newest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import trio

from triclinium._trio_run import TrioRun
from triclinium_core.contract.couchbase import PublishTopology
from triclinium_core.kv.topology.topology import Topology, TopologyChange
from triclinium_core.shown import total_repr


class TopologyChanges:
    """Asynchronous iterator of ``Cluster.subscribe_topology``. It ends when the cluster is closed or the block is left.

    Several tasks may read from the iterator; each change goes to one of them.
    """

    def __init__(self, present: Iterable[Topology]) -> None:
        self._unseen = {topology.bucket: TopologyChange(None, topology) for topology in present}
        self._readers = trio.lowlevel.ParkingLot()
        self._is_closed = False
        self._run = TrioRun()

    @total_repr
    def __repr__(self) -> str:
        return f"<TopologyChanges unseen={len(self._unseen)}>"

    def __aiter__(self) -> TopologyChanges:
        return self

    async def __anext__(self) -> TopologyChange:
        """Return an unseen change, and wait for it if necessary.

        Raises:
            StopAsyncIteration: no change is unseen, and the cluster is closed or the subscription's block was left.
            RuntimeError: the caller is in another trio run.

        Cancellation: loses nothing; the next call returns the change.
        """
        self._run.check_caller()
        await trio.lowlevel.checkpoint()
        while not self._unseen:
            if self._is_closed:
                raise StopAsyncIteration
            await self._readers.park()
        return self._unseen.pop(next(iter(self._unseen)))

    def offer(self, change: TopologyChange) -> None:
        """Store a change for the next reader."""
        unseen = self._unseen.get(change.bucket)
        self._unseen[change.bucket] = change if unseen is None else unseen.followed_by(change)
        self._readers.unpark()

    def close(self) -> None:
        """End the iteration after the unseen changes."""
        self._is_closed = True
        self._readers.unpark_all()


class Subscriptions:
    """All subscribers of one client.

    Args:
        present: returns the current topologies.
        check_caller: refuses callers in another trio run.
        changed: receives the number of subscribers after each change.
    """

    def __init__(
        self,
        present: Callable[[], Sequence[Topology]],
        check_caller: Callable[[], None],
        changed: Callable[[int], None],
    ) -> None:
        self._present = present
        self._check_caller = check_caller
        self._changed = changed
        self._subscribers: set[TopologyChanges] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._subscribers)

    def publish(self, action: PublishTopology) -> None:
        """Offer a change to all subscribers."""
        for changes in self._subscribers:
            changes.offer(action.change)

    def close(self) -> None:
        """End all subscriptions, and accept no more."""
        self._is_closed = True
        for changes in self._subscribers:
            changes.close()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TopologyChanges]:
        """Give a block a subscription that begins with the current topologies.

        Raises:
            trio.ClosedResourceError: the client is closed.
            RuntimeError: the caller is in another trio run.
        """
        self._check_caller()
        await trio.lowlevel.checkpoint()
        if self._is_closed:
            raise trio.ClosedResourceError("the cluster is closed; subscribe inside its block only")
        changes = TopologyChanges(self._present())
        self._subscribers.add(changes)
        try:
            self._changed(len(self))
            yield changes
        finally:
            self._subscribers.discard(changes)
            changes.close()
            self._changed(len(self))
