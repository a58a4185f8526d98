"""A collection: documents under string keys. Its operations stand by family in files of their own."""

from __future__ import annotations

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._collection.binary import BinaryCollection
from triclinium._collection.documents import DocumentOperations
from triclinium._collection.replicas import ReplicaOperations
from triclinium._collection.scans import ScanOperations
from triclinium._collection.subdocuments import SubdocumentOperations
from triclinium._management.query_indexes import CollectionQueryIndexManager
from triclinium_core.kv.operation.document_operations import Keyspace


class Collection(DocumentOperations, SubdocumentOperations, ReplicaOperations, ScanOperations):
    """Documents under string keys.

    All operations have in common:

    Args:
        key: 1 to 250 bytes as UTF-8 in the default collection, 246 in others.
        cas: the version that the document must still have; unless given, any.
        expiry: how long the document lives, or the moment (with a time zone) at which it ends; None for ever.
        durability: how many of the document's copies must have a write before it is done; the active one unless given.
        transcoder: turns values into documents and back; JSON unless given.
        retry_strategy: decides about retries of this call, before ``retrying`` and the cluster's own.

    Raises:
        InvalidArgumentException: an argument is wrong; nothing was sent, and ``.parameter`` names it.
        AmbiguousTimeoutException: ``TimeoutOptions.kv`` passed, and the operation may have been applied.
        UnambiguousTimeoutException: ``TimeoutOptions.kv`` passed, and the operation was not applied.
        RequestCanceledException: the connection was lost while a write was in flight, or a retry was refused.
        TemporaryFailureException: the node has no resources just now, and a retry was refused.
        AuthenticationFailureException: the node refused the credentials, the credentials do not permit the operation,
            or the client refused the node, for example because of a wrong server signature.
        CollectionNotFoundException: the scope has no such collection.
        ScopeNotFoundException: the bucket has no such scope.
        FeatureNotAvailableException: the server does not offer what was asked for.
        trio.ClosedResourceError: the cluster's block was left.
        CouchbaseException: any other answer; all of the above derive from it, but for Trio's own.

    Under the default strategy, what meets a lock is retried until the lock is gone, or until the time is up: then it
    raises UnambiguousTimeoutException. DocumentLockedException is for strategies that refuse to wait.

    A durable write is seen by nobody before enough copies have it. It has ``TimeoutOptions.kv_durable`` instead of
    ``TimeoutOptions.kv``, and may raise besides:

        DurabilityAmbiguousException: the server could not complete it in time; it may have been applied, or still be.
        DurabilityImpossibleException: too few copies are there for the level; it was not applied.
        DurabilityLevelNotAvailableException: the bucket does not offer the level; it was not applied.
        FeatureNotAvailableException: the server knows no durable writes; nothing was sent.

    While one is under way, other writes to its document are retried under the default strategy, and so they are while
    it is committed anew after a failover. DurableWriteInProgressException and DurableWriteReCommitInProgressException
    are for strategies that refuse to wait.

    Every coroutine is a checkpoint, also when it raises.

    Cancellation: one that is pending when a coroutine is called is noticed before anything is sent. One that comes later
    abandons the operation and nothing else: the connection stays, and a write may have been applied; ``fail_after``
    tells.

    Source: SDK-RFC 0053.
    """

    def __init__(self, driver: ClusterDriver, keyspace: Keyspace) -> None:
        super().__init__(driver, keyspace)
        self._binary = BinaryCollection(driver, keyspace)

    @property
    def name(self) -> str:
        """The collection's name."""
        return self._keyspace.collection

    @property
    def scope_name(self) -> str:
        """The name of the scope that it belongs to."""
        return self._keyspace.scope

    @property
    def bucket_name(self) -> str | None:
        """The name of the bucket that it belongs to; None over ``memcached://``."""
        return self._keyspace.bucket

    @property
    def binary(self) -> BinaryCollection:
        """Counters and concatenation in the same collection."""
        return self._binary

    def query_indexes(self) -> CollectionQueryIndexManager:
        """Return what manages the collection's query indexes.

        Raises:
            InvalidArgumentException: the collection belongs to no bucket, as over ``memcached://``.
        """
        return CollectionQueryIndexManager(self._driver, self._keyspace)
