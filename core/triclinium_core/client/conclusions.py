"""Handling of lost connections, and of the events that connections report, except responses.

Source: decisions C6, C10 and C24.
"""

from __future__ import annotations

from triclinium_core.client.wiring import Parts
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.runtime.kv.connection import connection_events
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure, FailureKind
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.known_configs import KnownConfigs
from triclinium_core.runtime.kv.pool.connections import Loss


class Conclusions:
    """Handler of lost connections and of events other than responses. It passes each to the parts that use it."""

    def __init__(self, parts: Parts, configs: KnownConfigs) -> None:
        self._connections = parts.connections
        self._keep_alive = parts.keep_alive
        self._collections = parts.collections
        self._follower = parts.follower
        self._operations = parts.operations
        self._requests = parts.requests
        self._inquiries = parts.inquiries
        self._configs = configs

    def draw(self, connection: Connection, item: connection_events.News, now: float) -> None:
        """Process an event that a connection reports, other than a response."""
        match item:
            case connection_events.SaslAnswered(status):
                self._connections.sasl_answered(connection, status)
            case connection_events.BucketSelected(bucket, status):
                self._connections.bucket_selected(connection, bucket, status)
            case connection_events.ConfigAnnounced():
                self._keep_alive.fetch_announced(connection, now)
            case connection_events.BecameReady(losses):
                self._on_ready(connection, losses, now)
            case connection_events.AuthenticatedAgain():
                self._connections.authenticated_again(connection)
                self._operations.resume_waiting(connection, now)
                self._keep_alive.fetch_announced(connection, now)
                self._connections.catch_up(connection, now)
            case connection_events.BecameUnusable(text, failure):
                self._connections.close(connection, text, now, failure=failure)

    def lost(self, loss: Loss, now: float) -> None:
        """Retry or fail the operations queued for a lost connection. Dispatch them again if its node left the map."""
        connection = loss.connection
        if not connection.is_leaving:
            # A leaving connection starts no search: the client may be applying a new map, and may not have created the
            # connections to the new nodes yet.
            self._follower.search_if_lost(connection.bucket, now)
        waiting = [*loss.waiting, *self._collections.connection_lost(connection)]
        is_refused = connection.history.last_end.is_refused
        reason = RetryReason.AUTHENTICATION_ERROR if is_refused else RetryReason.NODE_NOT_AVAILABLE
        self._requests.cluster_not_found(reason, loss.detail, now)
        if connection.history.last_end.is_unsupported:
            self._inquiries.unsupported(connection, loss.detail, now)
        for token in waiting:
            self._operations.connection_lost(token, connection, loss.detail, now)

    def _on_ready(self, connection: Connection, losses: int, now: float) -> None:
        """Start using a connection that has become ready. Close it if its config, or the lack of one, prevents that.

        Args:
            losses: number of streams that were lost, or could not be opened, since the connection was last ready.
        """
        self._keep_alive.begin(connection, now)
        self._connections.became_ready(connection, losses)
        failure = self._follower.take(connection, connection.negotiated.config, now)
        has_map = connection.bucket is None or connection.bucket in self._configs
        if failure is None and not has_map:
            failure = BootstrapFailure(FailureKind.PROTOCOL, "sent no cluster config")
        # If the client has an earlier config, a config without vbuckets neither replaces it nor closes the connection.
        if failure is not None and not (has_map and failure.kind is FailureKind.NO_VBUCKETS):
            self._connections.close(connection, failure.text, now, failure=failure)
            return
        if self._configs.is_lost(connection.bucket):
            self._keep_alive.refresh_config(connection, now)
        self._operations.resume_waiting(connection, now)
        self._connections.catch_up(connection, now)
