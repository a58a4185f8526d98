"""Record of the conditions for the five terminal retry reasons, as connections report them.

The record never stops a request that can be dispatched. If a request cannot be dispatched, the record replaces a reason
such as SOCKET_NOT_AVAILABLE or NODE_NOT_AVAILABLE with one that shows the user the problem (decision C6).

Source: SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)"; decisions C6 to C8.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service

K = TypeVar("K", bound=Hashable)

MISSING_MAX = 4096
"""Maximum number of missing scopes in memory, and also of missing collections: over three times the number that a
cluster can have. The names that were added most recently are kept. For others, the client requests the id again."""


class TerminalStates:
    """Terminal conditions that currently hold.

    The caller identifies a connection by any hashable value. A connection tracks the topology if it was opened for the
    bootstrap, is polled for cluster configs, or receives them by push. For any other connection, the caller passes
    ``tracks_topology=False``, and its failures are not recorded. All connections of this release track the topology.
    """

    def __init__(self) -> None:
        self._refused_credentials: set[Hashable] = set()
        self._failed_tls: set[Hashable] = set()
        self._inaccessible_buckets: set[str] = set()
        self._missing_scopes: dict[tuple[str | None, str], None] = {}
        self._missing_collections: dict[tuple[str | None, str, str], None] = {}

    def sasl_answered(self, connection: Hashable, status: int, *, tracks_topology: bool = True) -> None:
        """Record the status of a SASL exchange: success clears the condition, AUTH_ERROR sets it, others keep it."""
        if status == Status.SUCCESS:
            self._refused_credentials.discard(connection)
        elif status == Status.AUTH_ERROR and tracks_topology:
            self._refused_credentials.add(connection)

    def authenticator_changed(self) -> None:
        """Clear all conditions that depend on the user, because the client has new credentials.

        The new user may have access to buckets, scopes and collections that the previous user could not open or see.
        """
        self._refused_credentials.clear()
        self._inaccessible_buckets.clear()
        self._missing_scopes.clear()
        self._missing_collections.clear()

    def tls_failed(self, connection: Hashable, *, tracks_topology: bool = True) -> None:
        """Record that a TLS handshake failed, for example because one side refused the other's certificate."""
        if tracks_topology:
            self._failed_tls.add(connection)

    def tls_established(self, connection: Hashable) -> None:
        """Clear the TLS failure of a connection, because its handshake is complete."""
        self._failed_tls.discard(connection)

    def connection_removed(self, connection: Hashable) -> None:
        """Clear the conditions of a connection that the client will not open again."""
        self._refused_credentials.discard(connection)
        self._failed_tls.discard(connection)

    def bucket_selected(self, bucket: str, status: int) -> None:
        """Record the status of a SELECT_BUCKET: success clears the condition, NO_ACCESS sets it.

        NOT_FOUND, like any other status, keeps the condition (decision C7).
        """
        if status == Status.SUCCESS:
            self._inaccessible_buckets.discard(bucket)
        elif status == Status.NO_ACCESS:
            self._inaccessible_buckets.add(bucket)

    def bucket_forgotten(self, bucket: str) -> None:
        """Clear all conditions of a bucket (decision C7)."""
        self._inaccessible_buckets.discard(bucket)
        for scope in [each for each in self._missing_scopes if each[0] == bucket]:
            del self._missing_scopes[scope]
        for collection in [each for each in self._missing_collections if each[0] == bucket]:
            del self._missing_collections[collection]

    def scope_missing(self, bucket: str | None, scope: str) -> None:
        """Record that the fetched collection map of the bucket lacks ``scope``."""
        _remember(self._missing_scopes, (bucket, scope))

    def collection_missing(self, bucket: str | None, scope: str, collection: str) -> None:
        """Record that the fetched collection map of the bucket has ``scope``, but not ``collection`` in it."""
        self._missing_scopes.pop((bucket, scope), None)
        _remember(self._missing_collections, (bucket, scope, collection))

    def collection_found(self, bucket: str | None, scope: str, collection: str) -> None:
        """Record that the fetched collection map of the bucket has the collection."""
        self._missing_scopes.pop((bucket, scope), None)
        self._missing_collections.pop((bucket, scope, collection), None)

    def reason_for(
        self,
        service: Service,
        *,
        bucket: str | None = None,
        scope: str | None = None,
        collection: str | None = None,
    ) -> RetryReason | None:
        """Return the terminal reason that applies to a request, or None.

        Args:
            service: service of the request. Only key-value requests have a reason about a bucket, scope or collection.
            bucket, scope, collection: keyspace of the request. None for a part that the request does not name.
        """
        if self._refused_credentials:
            return RetryReason.AUTHENTICATION_ERROR
        if self._failed_tls:
            return RetryReason.TLS_ERROR
        if service is not Service.KV:
            return None
        if bucket in self._inaccessible_buckets:
            return RetryReason.BUCKET_ACCESS_ERROR
        if scope is not None and (bucket, scope) in self._missing_scopes:
            return RetryReason.SCOPE_NOT_FOUND
        if scope is not None and collection is not None and (bucket, scope, collection) in self._missing_collections:
            return RetryReason.COLLECTION_NOT_FOUND
        return None


def _remember(names: dict[K, None], name: K) -> None:
    """Add a name at the end of ``names``, or move it there, and drop the first name if there are too many."""
    names.pop(name, None)
    names[name] = None
    if len(names) > MISSING_MAX:
        del names[next(iter(names))]
