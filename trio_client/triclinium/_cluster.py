"""Client of one cluster, which is open while a block runs."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager

from triclinium import _management
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.hidden_nursery import in_background
from triclinium._cluster_driver.subscriptions import TopologyChanges
from triclinium._collection.collection import Collection
from triclinium._health import Watched, named
from triclinium._keyspace import Bucket
from triclinium._services.analytics import AnalyticsQueries
from triclinium._services.query import Queries
from triclinium._services.search import Searches
from triclinium._tapes.tape import path_of
from triclinium_core.client.health.statistics import ClientStatistics
from triclinium_core.kv.operation.document_operations import Keyspace, Noop
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.operation.results import Done
from triclinium_core.kv.topology.connection_string import check_bucket, parse_connection_string
from triclinium_core.options import Authenticator
from triclinium_core.shown import total_repr


class Cluster(Watched, Queries, AnalyticsQueries, Searches):
    """Client of one cluster, created by ``open_cluster``. Any number of tasks of one trio run may share it."""

    def __init__(self, driver: ClusterDriver, connection_string: str) -> None:
        super().__init__(driver, None)
        self._connection_string = connection_string
        self._scheme = parse_connection_string(connection_string).scheme

    @total_repr
    def __repr__(self) -> str:
        return f"<Cluster {self._connection_string}>"

    def bucket(self, name: str) -> Bucket:
        """Return a bucket. Its first use, such as an operation or a ping, opens its connections.

        Raises:
            InvalidArgumentException: ``name`` is not a valid bucket name, or the scheme is ``memcached://``.
        """
        bucket = Bucket(self._driver, name)
        check_bucket(self._scheme, name)
        return bucket

    def default_collection(self) -> Collection:
        """Return the only collection of a ``memcached://`` cluster, which has no buckets.

        Raises:
            InvalidArgumentException: the scheme is not ``memcached://``, so the cluster has buckets.
        """
        check_bucket(self._scheme, None)
        return Collection(self._driver, Keyspace(None))

    def buckets(self) -> _management.buckets.BucketManager:
        """Return the manager of the cluster's buckets."""
        return _management.buckets.BucketManager(self._driver)

    def users(self) -> _management.users.UserManager:
        """Return the manager of the cluster's users, groups and roles."""
        return _management.users.UserManager(self._driver)

    def query_indexes(self) -> _management.query_indexes.QueryIndexManager:
        """Return the manager of the query indexes of buckets. A collection has its own manager."""
        return _management.query_indexes.QueryIndexManager(self._driver)

    def search_indexes(self) -> _management.search_indexes.SearchIndexManager:
        """Return the manager of the search indexes that belong to no scope."""
        return _management.search_indexes.SearchIndexManager(self._driver)

    def set_authenticator(self, authenticator: Authenticator) -> None:
        """Replace the credentials with those of another user, or with a new password, token or certificate.

        The method does not wait. New connections use the new authenticator. If the new authenticator has a password
        or a token, open connections authenticate again: earlier requests get their responses, and later operations wait
        one to three round trips. Operations that already wait for a new connection use the authenticator with which the
        client began to open it. The client closes a connection whose authentication the node refuses, and operations
        fail with ``AuthenticationFailureException`` until a valid authenticator is set. An open connection keeps the
        certificate that it was opened with.

        A password may replace a password or a token, and so may a token. A certificate may replace only a certificate.

        Raises:
            InvalidArgumentException: the authenticator does not fit the connection string, cannot replace the current
                one, or cannot be read from its files. Nothing has changed.
            trio.ClosedResourceError: the cluster is closed.
            RuntimeError: the caller is outside of the cluster's trio run.
        """
        self._driver.set_authenticator(authenticator)

    def statistics(self) -> ClientStatistics:
        """Return a snapshot of connections and counters; the last snapshot if the cluster is closed."""
        return self._driver.statistics()

    async def save_tape(self, path: str | os.PathLike[str]) -> None:
        """Save the ring of ``DecisionTape.ring()``, with the operations that are open now, to a file. A checkpoint.

        Only the owner can read the file. An existing file is replaced at the end.

        Raises:
            InvalidArgumentException: the cluster was opened without a tape, or with one that writes its own file; or
                ``path`` is not a path.
            OSError: the file cannot be written.

        Cancellation: a write that has begun is completed first.
        """
        await self._driver.recording().save(path_of(path, "path"))

    def tape_pseudonym(self, key: str) -> str:
        """Return the pseudonym of a document's key on this cluster's tape.

        Raises:
            InvalidArgumentException: the cluster was opened without a tape, or with one without pseudonyms; or
                ``key`` is not a string.
        """
        return self._driver.recording().pseudonym(key)

    def diagnostics(self, *, report_id: str | None = None) -> DiagnosticsResult:
        """Return the state of each connection and the time since its last response. Nothing is sent.

        Call it inside ``trio.run``, which provides the clock. After the cluster is closed, the report shows the last
        state.

        Args:
            report_id: name of the report; generated if None.

        Raises:
            InvalidArgumentException: ``report_id`` is not a valid name.
            RuntimeError: the caller is outside of the cluster's trio run.

        Source: SDK-RFC 0061 "The Diagnostics Command".
        """
        return self._driver.diagnostics(named(report_id))

    def subscribe_topology(self) -> AbstractAsyncContextManager[TopologyChanges]:
        """Give a block the changes to the cluster's nodes. The iteration begins with the current nodes.

        ``async with cluster.subscribe_topology() as changes: async for change in changes: ...``. A slow reader misses
        intermediate versions: each change goes from the version that the reader saw last to the newest version. Each
        open bucket has its own sequence of versions. The cluster has another sequence, with ``bucket=None``.

        Raises:
            trio.ClosedResourceError: on entering: the cluster's block was left.
            RuntimeError: on entering: the caller is outside of the cluster's trio run.

        Cancellation: entering is a checkpoint, leaving is not.
        """
        return self._driver.subscriptions.open()

    async def _noop(self, bucket: str | None = None) -> None:
        """Send a NOOP over a connection of ``bucket``, or over one without a bucket, and wait for the response.

        Raises:
            CouchbaseException: there was no response in time, or the NOOP failed and a retry was refused.
            trio.ClosedResourceError: the cluster is closed.

        Cancellation: harmless.
        """
        await self._driver.perform(Done, lambda: Noop(Keyspace(bucket)), None, None)


def running(driver: ClusterDriver, connection_string: str) -> AbstractAsyncContextManager[Cluster]:
    """Run a cluster while a block runs. The cluster's ``repr`` shows the connection string."""
    return in_background(driver, Cluster(driver, connection_string))
