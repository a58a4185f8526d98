"""The state behind the five terminal reasons, from reports of connections.

It never stops a request that can be dispatched; it replaces SOCKET_NOT_AVAILABLE and NODE_NOT_AVAILABLE by a reason that
tells the user what is wrong (decision C6).

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
"""Scopes, and collections, that are known to be missing: three times as many as a cluster can have. Beyond that, only
the names asked for most recently are kept; for the others, the node is asked again."""


class TerminalStates:
    """Which terminal conditions hold now.

    Connections are named by any hashable value of the caller's; one that is not topology-tracking (opened for
    bootstrap, polled, or granted push) is reported with ``tracks_topology=False`` and changes nothing.
    """

    def __init__(self) -> None:
        self._refused_credentials: set[Hashable] = set()
        self._failed_tls: set[Hashable] = set()
        self._inaccessible_buckets: set[str] = set()
        self._missing_scopes: dict[tuple[str | None, str], None] = {}
        self._missing_collections: dict[tuple[str | None, str, str], None] = {}

    def sasl_answered(self, connection: Hashable, status: int, *, tracks_topology: bool = True) -> None:
        """Record the outcome of a SASL exchange: success clears, 0x20 sets, any other status does neither."""
        if status == Status.SUCCESS:
            self._refused_credentials.discard(connection)
        elif status == Status.AUTH_ERROR and tracks_topology:
            self._refused_credentials.add(connection)

    def authenticator_changed(self) -> None:
        """Forget what was refused: the client has other credentials now.

        What one user may not open, and cannot see, another one may.
        """
        self._refused_credentials.clear()
        self._inaccessible_buckets.clear()
        self._missing_scopes.clear()
        self._missing_collections.clear()

    def tls_failed(self, connection: Hashable, *, tracks_topology: bool = True) -> None:
        """Record that the TLS library refused the peer, or the peer refused us."""
        if tracks_topology:
            self._failed_tls.add(connection)

    def tls_established(self, connection: Hashable) -> None:
        """Clear the connection's TLS failure: its handshake is complete."""
        self._failed_tls.discard(connection)

    def connection_removed(self, connection: Hashable) -> None:
        """Forget a connection that is closed."""
        self._refused_credentials.discard(connection)
        self._failed_tls.discard(connection)

    def bucket_selected(self, bucket: str, status: int) -> None:
        """Record the answer to a SELECT_BUCKET: success clears, NO_ACCESS sets, NOT_FOUND does neither (decision C7)."""
        if status == Status.SUCCESS:
            self._inaccessible_buckets.discard(bucket)
        elif status == Status.NO_ACCESS:
            self._inaccessible_buckets.add(bucket)

    def bucket_forgotten(self, bucket: str) -> None:
        """Clear all reasons of a bucket (decision C7)."""
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
            bucket, scope, collection: what the request is about, as far as given.
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
    """Put a name at the end of those that are remembered, and forget the first if there are too many."""
    names.pop(name, None)
    names[name] = None
    if len(names) > MISSING_MAX:
        del names[next(iter(names))]
