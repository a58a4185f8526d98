"""Bucket and scope, the path from a cluster to a collection. Creating these objects sends nothing."""

from __future__ import annotations

from triclinium import _management
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._collection.collection import Collection
from triclinium._health import Watched
from triclinium._services.analytics import AnalyticsQueries
from triclinium._services.query import Queries
from triclinium._services.search import Searches
from triclinium._services.views import ViewQueries
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.operation.validation import DEFAULT_NAME, check_bucket_name
from triclinium_core.services.statement.statement_request import QueryContext
from triclinium_core.shown import total_repr


class Bucket(Watched, ViewQueries):
    """Bucket of the cluster. If the bucket does not exist, its operations fail."""

    def __init__(self, driver: ClusterDriver, name: str) -> None:
        super().__init__(driver, check_bucket_name(name))
        self._name = name
        self._keyspace = Keyspace(name)

    @total_repr
    def __repr__(self) -> str:
        return f"<Bucket {self._name}>"

    @property
    def name(self) -> str:
        """Name of the bucket."""
        return self._name

    def scope(self, name: str) -> Scope:
        """Return one of the bucket's scopes.

        Raises:
            InvalidArgumentException: ``name`` is not a valid scope name.
        """
        return Scope(self._driver, self._name, name)

    def default_scope(self) -> Scope:
        """Return the default scope, which every bucket has."""
        return self.scope(DEFAULT_NAME)

    def collection(self, name: str) -> Collection:
        """Return a collection of the default scope.

        Raises:
            InvalidArgumentException: ``name`` is not a valid collection name.
        """
        return self.default_scope().collection(name)

    def collections(self) -> _management.collections.CollectionManager:
        """Return the manager of the bucket's scopes and collections."""
        return _management.collections.CollectionManager(self._driver, self._name)

    def default_collection(self) -> Collection:
        """Return the default collection of the default scope. Every bucket has it unless it was dropped."""
        return Collection(self._driver, self._keyspace)


class Scope(Queries, AnalyticsQueries, Searches):
    """Scope of a bucket. If the scope does not exist, its operations fail."""

    def __init__(self, driver: ClusterDriver, bucket: str, name: str) -> None:
        self._driver = driver
        self._keyspace = Keyspace(bucket, name)
        self._query_context = QueryContext(bucket, name)

    @total_repr
    def __repr__(self) -> str:
        return f"<Scope {self._keyspace.bucket}.{self.name}>"

    @property
    def name(self) -> str:
        """Name of the scope."""
        return self._keyspace.scope

    @property
    def bucket_name(self) -> str:
        """Name of the scope's bucket."""
        return self._keyspace.bucket or ""

    def collection(self, name: str) -> Collection:
        """Return one of the scope's collections.

        Raises:
            InvalidArgumentException: ``name`` is not a valid collection name.
        """
        return Collection(self._driver, Keyspace(self._keyspace.bucket, self._keyspace.scope, name))

    def search_indexes(self) -> _management.search_indexes.SearchIndexManager:
        """Return the manager of the scope's search indexes."""
        return _management.search_indexes.SearchIndexManager(self._driver, self._query_context)
