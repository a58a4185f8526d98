"""A client of one cluster, while its block lasts."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.hidden_nursery import in_background
from triclinium._cluster_driver.subscriptions import TopologyChanges
from triclinium._collection.collection import Collection
from triclinium._health import Watched, named
from triclinium._keyspace import Bucket
from triclinium._management.buckets import BucketManager
from triclinium._management.query_indexes import QueryIndexManager
from triclinium._management.search_indexes import SearchIndexManager
from triclinium._management.users import UserManager
from triclinium._services.analytics import AnalyticsQueries
from triclinium._services.query import Queries
from triclinium._services.search import Searches
from triclinium_core.client.health.statistics import ClientStatistics
from triclinium_core.kv.operation.document_operations import Keyspace, Noop
from triclinium_core.kv.operation.reports import DiagnosticsResult
from triclinium_core.kv.operation.results import Done
from triclinium_core.kv.topology.connection_string import check_bucket, parse_connection_string
from triclinium_core.options import Authenticator
from triclinium_core.shown import total_repr


class Cluster(Watched, Queries, AnalyticsQueries, Searches):
    """A client of one cluster; ``open_cluster`` makes it. Any number of tasks may share it."""

    def __init__(self, driver: ClusterDriver, connection_string: str) -> None:
        super().__init__(driver, None)
        self._connection_string = connection_string
        self._scheme = parse_connection_string(connection_string).scheme

    @total_repr
    def __repr__(self) -> str:
        return f"<Cluster {self._connection_string}>"

    def bucket(self, name: str) -> Bucket:
        """Return a bucket; its connection is opened by its first operation.

        Raises:
            InvalidArgumentException: this cannot be the name of a bucket, or the scheme is ``memcached://``.
        """
        bucket = Bucket(self._driver, name)
        check_bucket(self._scheme, name)
        return bucket

    def default_collection(self) -> Collection:
        """Return the only collection over ``memcached://``, which has no buckets.

        Raises:
            InvalidArgumentException: the cluster has buckets: the scheme is not ``memcached://``.
        """
        check_bucket(self._scheme, None)
        return Collection(self._driver, Keyspace(None))

    def buckets(self) -> BucketManager:
        """Return what manages the cluster's buckets."""
        return BucketManager(self._driver)

    def users(self) -> UserManager:
        """Return what manages the cluster's users, groups and roles."""
        return UserManager(self._driver)

    def query_indexes(self) -> QueryIndexManager:
        """Return what manages the query indexes of buckets; those of a collection are managed through that."""
        return QueryIndexManager(self._driver)

    def search_indexes(self) -> SearchIndexManager:
        """Return what manages the search indexes that belong to no scope."""
        return SearchIndexManager(self._driver)

    def set_authenticator(self, authenticator: Authenticator) -> None:
        """Use other credentials from now on: another user, or a new password, token or certificate.

        It waits for nothing. New connections use the authenticator. Live ones authenticate again with a password or a
        token: what was sent before is answered, what is called now waits until that is over, for two round trips or three.
        What already waits for a connection that is being opened uses the authenticator that the opening began with.
        A connection whose authentication is refused is closed, and operations fail with
        ``AuthenticationFailureException`` until a right authenticator is set. A live connection keeps the certificate
        that it was opened with.

        A password may follow a token and the other way round; a certificate only another one.

        Raises:
            InvalidArgumentException: it does not go with the connection string, cannot follow the present one, or
                cannot be read from its files; nothing has changed.
            trio.ClosedResourceError: the cluster is closed.
        """
        self._driver.set_authenticator(authenticator)

    def statistics(self) -> ClientStatistics:
        """Return a snapshot of connections and counters; after the cluster is closed, the last one."""
        return self._driver.statistics()

    def diagnostics(self, *, report_id: str | None = None) -> DiagnosticsResult:
        """Return how the connections stand, and how long ago each was heard of. Nothing is sent.

        Call it inside ``trio.run``, which has the clock; after the cluster is closed, it describes its last moment.

        Args:
            report_id: the name of the report; generated unless given.

        Raises:
            InvalidArgumentException: the report cannot be called so.

        Source: SDK-RFC 0061 "The Diagnostics Command".
        """
        return self._driver.diagnostics(named(report_id))

    def subscribe_topology(self) -> AbstractAsyncContextManager[TopologyChanges]:
        """Give the block the changes of the cluster's nodes, beginning with those that are known now.

        ``async with cluster.subscribe_topology() as changes: async for change in changes: ...``. A reader that is slow
        misses the versions in between: each change leads from what it saw last to the newest. There is one sequence of
        versions for each bucket that was opened, and one for the cluster, whose ``bucket`` is None.

        Raises:
            trio.ClosedResourceError: on entering: the cluster's block was left.

        Cancellation: entering is a checkpoint, leaving is not.
        """
        return self._driver.subscriptions.open()

    async def _noop(self, bucket: str | None = None) -> None:
        """Have a node answer nothing: over the connection of ``bucket``, or over the one that belongs to none.

        Raises:
            CouchbaseException: there is no such connection, and a retry was refused or came too late.
            trio.ClosedResourceError: the cluster is closed.

        Cancellation: harmless.
        """
        await self._driver.perform(Done, lambda: Noop(Keyspace(bucket)), None, None)


def running(driver: ClusterDriver, connection_string: str) -> AbstractAsyncContextManager[Cluster]:
    """Give the block a cluster at work, which is shown with its connection string."""
    return in_background(driver, Cluster(driver, connection_string))
