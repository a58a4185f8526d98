"""Bucket and scope: the way from a cluster to a collection. Nothing here talks to a server."""

from __future__ import annotations

from triclinium._collection.collection import Collection
from triclinium._collection_manager import CollectionManager
from triclinium._diagnostics import ping, wait_until_ready
from triclinium._driver.driver import Driver
from triclinium_core.kv.operation.reports import ClusterState, PingResult
from triclinium_core.kv.operation.requests import Keyspace
from triclinium_core.kv.operation.validation import DEFAULT_NAME, check_name


class Bucket:
    """A bucket of the cluster. Whether it exists shows in the first operation."""

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver = driver
        self._name = check_name(name, "bucket")
        self._keyspace = Keyspace(name)

    def __repr__(self) -> str:
        return f"<Bucket {self._name}>"

    @property
    def name(self) -> str:
        """The bucket's name."""
        return self._name

    def scope(self, name: str) -> Scope:
        """Return one of the bucket's scopes.

        Raises:
            InvalidArgumentException: this cannot be the name of a scope.
        """
        return Scope(self._driver, self._name, name)

    def default_scope(self) -> Scope:
        """Return the scope that every bucket has."""
        return self.scope(DEFAULT_NAME)

    def collection(self, name: str) -> Collection:
        """Return a collection of the default scope.

        Raises:
            InvalidArgumentException: this cannot be the name of a collection.
        """
        return self.default_scope().collection(name)

    def collections(self) -> CollectionManager:
        """Return what tells the bucket's scopes and collections."""
        return CollectionManager(self._driver, self._name)

    def default_collection(self) -> Collection:
        """Return the collection that every bucket has."""
        return Collection(self._driver, self._keyspace)

    async def ping(self, *, report_id: str | None = None) -> PingResult:
        """Have every connection of this bucket answer a NOOP, all at once.

        They are opened where they are not. What does not answer within ``TimeoutOptions.kv``, cannot be connected to or
        is lost stands in the report; no retry strategy is asked.

        Args:
            report_id: what the report is called; a name of its own unless given.

        Raises:
            InvalidArgumentException: the report cannot be called so.
            trio.ClosedResourceError: the cluster's block was left.

        Cancellation: harmless.

        Source: SDK-RFC 0061 "The ping Command".
        """
        return await ping(self._driver, self._name, report_id)

    async def wait_until_ready(self, *, desired_state: ClusterState = ClusterState.ONLINE) -> None:
        """Open this bucket's connections, and wait until they are ready: those to every node, and the cluster's.

        It waits for as long as it takes; a cancel scope limits it. No retry strategy is asked.

        Args:
            desired_state: ONLINE for all connections, DEGRADED for at least one of this bucket's.

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
        await wait_until_ready(self._driver, self._name, desired_state)


class Scope:
    """A scope of a bucket. Whether it exists shows in the first operation."""

    def __init__(self, driver: Driver, bucket: str, name: str) -> None:
        self._driver = driver
        self._keyspace = Keyspace(bucket, name)

    def __repr__(self) -> str:
        return f"<Scope {self._keyspace.bucket}.{self.name}>"

    @property
    def name(self) -> str:
        """The scope's name."""
        return self._keyspace.scope

    @property
    def bucket_name(self) -> str:
        """The name of the bucket that it belongs to."""
        return self._keyspace.bucket or ""

    def collection(self, name: str) -> Collection:
        """Return one of the scope's collections.

        Raises:
            InvalidArgumentException: this cannot be the name of a collection.
        """
        return Collection(self._driver, Keyspace(self._keyspace.bucket, self._keyspace.scope, name))
