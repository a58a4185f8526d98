"""Health checks of a cluster or of one bucket: the common part of ``Cluster`` and ``Bucket``."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady
from triclinium_core.kv.operation.reports import ClusterState, PingResult, Ready
from triclinium_core.retry.couchbase import Service
from triclinium_core.telemetry.tracing import RequestSpan


class Watched:
    """Object with connections and services whose health can be checked: a cluster or one bucket."""

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
        """Ping all services of all nodes at the same time: NOOP on each key-value connection, GET for other services.

        A ping of a cluster uses one key-value connection to each node, which it opens if necessary and keeps open, and
        the open connections of buckets. A ping of a bucket uses the connections of the bucket, and opens them if
        necessary. Pings do not use the retry strategy. The report lists as failed each endpoint that does not respond
        within the timeout of its service (``TimeoutOptions.kv``, ``TimeoutOptions.query`` and so on), cannot be
        connected to, is lost, responds with an error such as 503, or has no address in the client's network.

        A GET carries no credentials, so a ping neither reveals nor checks them; 401 and 403 count as success.

        Args:
            report_id: name of the report; generated if None.
            service_types: services to ping; None for all services of the cluster. The report omits services that the
                cluster does not have.

        Raises:
            InvalidArgumentException: ``report_id`` is not a valid name, or ``service_types`` is empty or contains a
                value that is not a service.
            trio.ClosedResourceError: the cluster's block was left.

        Cancellation: harmless; the HTTP connections that the ping waits for are closed.

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
        """Open the key-value connections; wait until they are ready and the other services respond to a ping.

        A cluster needs one connection to each node. A bucket also needs its own connections. There is no time limit;
        use a cancel scope. The retry strategy is not used. Before operations on documents, wait for their bucket:
        ``cluster.bucket(name).wait_until_ready()``.

        Args:
            desired_state: ONLINE, the default, for all nodes; DEGRADED for at least one node of each service, and for a
                bucket at least one of its connections.
            service_types: services to wait for; None for all services of the cluster (views for a bucket only).
                Services that the cluster does not have are skipped.

        Raises:
            InvalidArgumentException: ``desired_state`` is not ONLINE or DEGRADED, or ``service_types`` is empty or
                contains a value that is not a service.
            AuthenticationFailureException: key-value refused the credentials (other services get no credentials),
                or the client refused a node that the wait needs, for example because of a wrong server signature.
            BucketAccessException: the bucket does not exist or is not open to this user.
            TlsException: TLS could not be established.
            UnsupportedOperationException: the client does not support the server, or the type of the bucket.
            trio.ClosedResourceError: the cluster's block was left.

        Cancellation: harmless; the key-value connections are still opened.

        Source: SDK-RFC 0061 "The waitUntilReady Command".
        """
        await self._driver.perform(
            Ready, lambda: WaitUntilReady(self._bucket, desired_state, service_types), None, parent_span
        )


def named(report_id: str | None) -> str:
    """Return the given report id, or a generated one."""
    return str(uuid.uuid4()) if report_id is None else report_id
