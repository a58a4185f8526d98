"""State behind the five terminal reasons, from reports on connections.

It never stops a request that can be dispatched; it replaces SOCKET_NOT_AVAILABLE and NODE_NOT_AVAILABLE by a reason
that shows the user the problem (decision C6).

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
"""Maximum number of missing scopes, and of missing collections, in memory: three times as many as a cluster can have.
Beyond that only the names requested most recently are kept; for others the node gets another request."""


class TerminalStates:
    """Current terminal conditions.

    Connections are identified by any hashable value of the caller. A connection that does not track the topology
    (opened for bootstrap, polled, or granted push) is reported with ``tracks_topology=False`` and changes nothing. All
    connections of this release track it.
    """

    def __init__(self) -> None:
        self._refused_credentials: set[Hashable] = set()
        self._failed_tls: set[Hashable] = set()
        self._inaccessible_buckets: set[str] = set()
        self._missing_scopes: dict[tuple[str | None, str], None] = {}
        self._missing_collections: dict[tuple[str | None, str, str], None] = {}

    def sasl_answered(self, connection: Hashable, status: int, *, tracks_topology: bool = True) -> None:
        """Record the status of a SASL exchange: success clears the condition, 0x20 sets it, others keep it."""
        if status == Status.SUCCESS:
            self._refused_credentials.discard(connection)
        elif status == Status.AUTH_ERROR and tracks_topology:
            self._refused_credentials.add(connection)

    def authenticator_changed(self) -> None:
        """Clear all refusals, because the client has other credentials.

        One user may be able to open or see what another cannot.
        """
        self._refused_credentials.clear()
        self._inaccessible_buckets.clear()
        self._missing_scopes.clear()
        self._missing_collections.clear()

    def tls_failed(self, connection: Hashable, *, tracks_topology: bool = True) -> None:
        """Record that the TLS library refused the server, or the server refused the client."""
        if tracks_topology:
            self._failed_tls.add(connection)

    def tls_established(self, connection: Hashable) -> None:
        """Clear the connection's TLS failure, because its handshake is complete."""
        self._failed_tls.discard(connection)

    def connection_removed(self, connection: Hashable) -> None:
        """Clear the conditions of a closed connection."""
        self._refused_credentials.discard(connection)
        self._failed_tls.discard(connection)

    def bucket_selected(self, bucket: str, status: int) -> None:
        """Record the status of a SELECT_BUCKET: success clears, NO_ACCESS sets, NOT_FOUND keeps (decision C7)."""
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
        """Record that the bucket's collection map was fetched and lacks ``scope``."""
        _remember(self._missing_scopes, (bucket, scope))

    def collection_missing(self, bucket: str | None, scope: str, collection: str) -> None:
        """Record that the map was fetched and has ``scope`` without ``collection``."""
        self._missing_scopes.pop((bucket, scope), None)
        _remember(self._missing_collections, (bucket, scope, collection))

    def collection_found(self, bucket: str | None, scope: str, collection: str) -> None:
        """Record that the map was fetched and has the collection."""
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
            service: the last three reasons hold for KV only.
            bucket, scope, collection: keyspace of the request, as far as given.
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
    """Move or add a name to the end of ``names``, and drop the first name if there are too many."""
    names.pop(name, None)
    names[name] = None
    if len(names) > MISSING_MAX:
        del names[next(iter(names))]
