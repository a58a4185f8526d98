"""Removal of unused buckets that the nodes refuse.

Source: decision C7.
"""

from __future__ import annotations

from triclinium_core.client.wiring import Parts
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.known_configs import KnownConfigs


class UnusedBuckets:
    """Rule by which the client forgets an unused bucket.

    The client forgets a bucket with its config, topology, collection ids and terminal states if at least one node has
    refused the bucket (SELECT_BUCKET with status 0x24 or 0x01), all connections of the bucket are lost, and the backoff
    is over for those that it reopens only on demand. So the client does not forget a bucket because of an outage alone,
    and does not keep a bucket because of a dead node.

    The client keeps a bucket that an operation, a request, a ping or a wait uses. It keeps a bucket whose topology a
    subscriber may have received (decision D22), and a bucket whose topology is the only one that the client has. The
    next use of a forgotten bucket opens the bucket again. A program that keeps using the bucket causes one connection
    attempt per backoff, not one per call.
    """

    def __init__(self, parts: Parts, configs: KnownConfigs) -> None:
        self._connections = parts.connections
        self._collections = parts.collections
        self._follower = parts.follower
        self._lifecycle = parts.lifecycle
        self._inquiries = parts.inquiries
        self._configs = configs
        self._subscribers = 0
        """Number of subscribers to topology changes."""

    def subscribers_changed(self, count: int, now: float) -> None:
        """Record the number of subscribers. Look for unused buckets when the last subscriber leaves."""
        self._subscribers = count
        if not count:
            for bucket in self._connections.routes.buckets:
                self._forget_if_unused(bucket, now)

    def timer_passed(self, connection: Connection, now: float) -> None:
        """Forget a connection's bucket if the nodes refuse the bucket and nothing uses it."""
        self._connections.unused_timer_passed(connection)
        if connection.bucket is not None and not connection.is_leaving:
            self._forget_if_unused(connection.bucket, now)

    def _forget_if_unused(self, bucket: str, now: float) -> None:
        if not self._connections.can_forget(bucket, now):
            self._connections.keep_bucket(bucket, now)
            return
        is_known = bucket in self._configs
        if is_known and self._subscribers:
            # Keep the bucket: a subscriber may have received its topology. The client checks again when the last
            # subscriber leaves.
            return
        # If this config is the only one, the client has no other list of the HTTP services.
        is_needed = is_known and len(self._configs.all) == 1
        if is_needed or self._lifecycle.use(bucket) or self._inquiries.use(bucket):
            self._connections.keep_bucket(bucket, now)
            return
        self._connections.forget_bucket(bucket)
        self._follower.forget_bucket(bucket)
        self._collections.forget_bucket(bucket)
