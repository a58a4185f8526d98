"""The health of a cluster or of one bucket: what ``Cluster`` and ``Bucket`` have in common."""

from __future__ import annotations

import uuid

from triclinium._driver.driver import Driver
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady
from triclinium_core.kv.operation.reports import ClusterState, PingResult, Ready


class Watched:
    """What has connections whose health can be asked for: a cluster, or one bucket."""

    def __init__(self, driver: Driver, bucket: str | None) -> None:
        self._driver = driver
        self._bucket = bucket

    async def ping(self, *, report_id: str | None = None) -> PingResult:
        """Have every connection answer a NOOP, all at once.

        Of a cluster these are one to each node, which are opened where they are not, and stay; and those that buckets
        have. Of a bucket they are its own, which are opened too. What does not answer within ``TimeoutOptions.kv``, cannot
        be connected to or is lost stands in the report; no retry strategy is asked.

        Args:
            report_id: what the report is called; a name of its own unless given.

        Raises:
            InvalidArgumentException: the report cannot be called so.
            trio.ClosedResourceError: the cluster's block was left.

        Cancellation: harmless.

        Source: SDK-RFC 0061 "The ping Command".
        """
        return await self._driver.perform(PingResult, lambda: Ping(self._bucket, named(report_id)), None)

    async def wait_until_ready(self, *, desired_state: ClusterState = ClusterState.ONLINE) -> None:
        """Open the connections, and wait until they are ready.

        Of a cluster these are one to each node. Of a bucket they are its own as well. It waits for as long as it takes; a
        cancel scope limits it. No retry strategy is asked. For documents, wait for their bucket:
        ``cluster.bucket(name).wait_until_ready()``.

        Args:
            desired_state: ONLINE for all of them; DEGRADED for at least one, which is the bucket's where a bucket waits.

        Raises:
            InvalidArgumentException: this is no state that can be waited for.
            AuthenticationFailureException: the server refused the credentials.
            BucketAccessException: the bucket does not exist or is not open to this user.
            TlsException: TLS could not be established.
            UnsupportedOperationException: the peer does not speak Couchbase's protocol.
            trio.ClosedResourceError: the cluster's block was left.

        Cancellation: harmless; the connections go on being opened.

        Source: SDK-RFC 0061 "The waitUntilReady Command".
        """
        await self._driver.perform(Ready, lambda: WaitUntilReady(self._bucket, desired_state), None)


def named(report_id: str | None) -> str:
    """Return what a report is called."""
    return str(uuid.uuid4()) if report_id is None else report_id
