"""Collection: documents under string keys. Other modules define its operations, grouped by kind."""

from __future__ import annotations

from triclinium import _management
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._collection.binary import BinaryCollection
from triclinium._collection.bulk import BulkOperations
from triclinium._collection.replicas import ReplicaOperations
from triclinium._collection.scans import ScanOperations
from triclinium._collection.subdocuments import SubdocumentOperations
from triclinium_core.kv.operation.document_operations import Keyspace


class Collection(BulkOperations, SubdocumentOperations, ReplicaOperations, ScanOperations):
    """Collection of documents under string keys.

    Common to all operations:

    Args:
        key: 1 to 250 bytes in UTF-8 in the default collection, 1 to 246 bytes in other collections.
        cas: version that the document must still have; default: any version.
        expiry: lifetime of the document, or the moment (with a time zone) at which it ends; None for no expiry.
        durability: copies of the document that must have a write before the call returns; default: the active copy.
        transcoder: converts values to documents and back; default: JSON.
        retry_strategy: decides about retries of this call. None, the default, uses the strategy of ``retrying`` or of
            the cluster.
        parent_span: parent of the call's span. None, the default, lets the tracer choose; OpenTelemetry's uses the
            current span of the calling task.

    Raises:
        InvalidArgumentException: an argument is wrong. Unless the server refused it, nothing was sent, and
            ``.parameter`` names the argument.
        AmbiguousTimeoutException: ``TimeoutOptions.kv`` passed, and the operation may have been applied.
        UnambiguousTimeoutException: ``TimeoutOptions.kv`` passed, and the operation was not applied.
        RequestCanceledException: the connection was lost while an operation that is not idempotent was in flight, or a
            retry was refused for a reason without its own exception.
        TemporaryFailureException: the node temporarily lacks resources, and a retry was refused.
        AuthenticationFailureException: the node refused the credentials, the credentials do not permit the operation,
            or the client refused the node, for example because of a wrong server signature.
        CollectionNotFoundException: the scope has no such collection.
        ScopeNotFoundException: the bucket has no such scope.
        FeatureNotAvailableException: the server does not support the requested feature.
        trio.ClosedResourceError: the cluster's block was left.
        CouchbaseException: any other failure. All of the above derive from it, except Trio's own.
        RuntimeError: the caller is outside of the cluster's trio run.

    Under the default strategy, an operation that a lock prevents is retried until the lock ends or the timeout passes.
    After the timeout, the operation raises UnambiguousTimeoutException. DocumentLockedException occurs with strategies
    that refuse to wait.

    A durable write is not visible to readers before enough copies have it. The timeout is ``TimeoutOptions.kv_durable``
    instead of ``TimeoutOptions.kv``, and a durable write may also raise:

        DurabilityAmbiguousException: the write was not completed in time; it may have been or may still be applied.
        DurabilityImpossibleException: the level needs more copies than are available; the write was not applied.
        DurabilityLevelNotAvailableException: the bucket does not support the level; the write was not applied.
        FeatureNotAvailableException: the server does not support durable writes; nothing was sent.

    While a durable write is in progress, or is committed again after a failover, the default strategy retries other
    writes to the same document. DurableWriteInProgressException and DurableWriteReCommitInProgressException occur with
    strategies that refuse to wait.

    Every coroutine is a checkpoint, even when it raises one of these exceptions other than RuntimeError.

    Cancellation: a cancellation that is pending at the call takes effect before anything is sent. A later cancellation
    abandons only the operation: the connection stays, and a write may have been or may still be applied;
    ``fail_after`` reports such writes.

    Source: SDK-RFC 0053.
    """

    def __init__(self, driver: ClusterDriver, keyspace: Keyspace) -> None:
        super().__init__(driver, keyspace)
        self._binary = BinaryCollection(driver, keyspace)

    @property
    def name(self) -> str:
        """Name of the collection."""
        return self._keyspace.collection

    @property
    def scope_name(self) -> str:
        """Name of the collection's scope."""
        return self._keyspace.scope

    @property
    def bucket_name(self) -> str | None:
        """Name of the collection's bucket; None over ``memcached://``."""
        return self._keyspace.bucket

    @property
    def binary(self) -> BinaryCollection:
        """Counters and concatenation in the same collection."""
        return self._binary

    def query_indexes(self) -> _management.query_indexes.CollectionQueryIndexManager:
        """Return the manager of the collection's query indexes.

        Raises:
            InvalidArgumentException: the collection has no bucket, as over ``memcached://``.
        """
        return _management.query_indexes.CollectionQueryIndexManager(self._driver, self._keyspace)
