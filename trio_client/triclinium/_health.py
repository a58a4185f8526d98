"""The health of a cluster or of one bucket: what ``Cluster`` and ``Bucket`` have in common."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady
from triclinium_core.kv.operation.reports import ClusterState, PingResult, Ready
from triclinium_core.retry.couchbase import Service
from triclinium_core.telemetry.tracing import RequestSpan


class Watched:
    """What has connections and services whose health can be asked for: a cluster, or one bucket."""

    def __init__(self, driver: ClusterDriver, bucket: str | None) -> None:
        self._driver = driver
        self._bucket = bucket

    async def ping(
        self,
        *,
        report_id: str | None = None,
        service_types: Collection[Service] | None = None,
        parent_span: RequestSpan | None = None,
    ) -> PingResult:
        """Have every service of every node answer, all at once: key-value a NOOP on each connection, the others a GET.

        Connections of a cluster are one to each node, which are opened where they are not, and stay; and those that
        buckets have. Of a bucket they are its own, which are opened too. No retry strategy is asked. The report lists
        as failed each endpoint that does not answer within the timeout of its service (``TimeoutOptions.kv``,
        ``TimeoutOptions.query`` and so on), cannot be connected to, is lost, answers with an error such as 503, or has
        no address in the client's network.

        A GET carries no credentials, so a ping neither reveals nor checks them; 401 and 403 count as answered.

        Args:
            report_id: the name of the report; generated unless given.
            service_types: which services; all that the cluster has unless given. Services that it does not have are not
                reported.

        Raises:
            InvalidArgumentException: the report cannot be called so, or these are no services.
            trio.ClosedResourceError: the cluster's block was left.

        Cancellation: harmless; the connections over HTTP that the ping waits for are closed.

        Source: SDK-RFC 0061 "The ping Command".
        """
        return await self._driver.perform(
            PingResult, lambda: Ping(self._bucket, named(report_id), service_types), None, parent_span
        )

    async def wait_until_ready(
        self,
        *,
        desired_state: ClusterState = ClusterState.ONLINE,
        service_types: Collection[Service] | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Open the connections of key-value, and wait until they are ready and the other services have answered a ping.

        Connections of a cluster are one to each node. Of a bucket they are its own as well. It waits for as long as it
        takes; a cancel scope limits it. No retry strategy is asked. For documents, wait for their bucket:
        ``cluster.bucket(name).wait_until_ready()``.

        Args:
            desired_state: ONLINE for all nodes; DEGRADED for at least one of each service, over a connection of the bucket
                where a bucket waits.
            service_types: which services; unless given, all that the cluster has, views for a bucket only. A service that
                it does not have is not waited for.

        Raises:
            InvalidArgumentException: this is no state that can be waited for, or these are no services.
            AuthenticationFailureException: key-value refused the credentials (pings of the other services carry none),
                or the client refused a node that the wait needs, for example because of a wrong server signature.
            BucketAccessException: the bucket does not exist or is not open to this user.
            TlsException: TLS could not be established.
            UnsupportedOperationException: the peer does not speak Couchbase's protocol.
            trio.ClosedResourceError: the cluster's block was left.

        Cancellation: harmless; the connections of key-value are still opened.

        Source: SDK-RFC 0061 "The waitUntilReady Command".
        """
        await self._driver.perform(
            Ready, lambda: WaitUntilReady(self._bucket, desired_state, service_types), None, parent_span
        )


def named(report_id: str | None) -> str:
    """Return what a report is called."""
    return str(uuid.uuid4()) if report_id is None else report_id
