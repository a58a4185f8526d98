"""Open pings and waits, from submission to completion. Each completes exactly once, unless its caller abandons it.

After each event that changes the states of connections, the client machine calls ``review`` with those connections.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import assert_never, cast

from triclinium_core.client.health.node_waits import NodeWaits, OpenNodeWait
from triclinium_core.client.health.pings import OpenPing, Pings
from triclinium_core.client.health.readiness import OpenWait, Readiness
from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.contract.neutral import Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.inquiries import Ping, WaitForNodes, WaitUntilReady
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.couchbase import Service
from triclinium_core.runtime.kv.config_follower import ConfigFollower
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.in_flight import ManifestQuestion, Probe
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.services.pings import PingOutcome
from triclinium_core.runtime.services.pool import Endpoint


class Inquiries:
    """All open inquiries of a client, by token."""

    def __init__(
        self,
        connections: Connections,
        follower: ConfigFollower,
        pings: Pings,
        readiness: Readiness,
        node_waits: NodeWaits,
    ) -> None:
        self._connections = connections
        self._follower = follower
        self._pings = pings
        self._readiness = readiness
        self._node_waits = node_waits
        self.tables: tuple[Mapping[int, object], ...] = self._pings.open, self._readiness.open, self._node_waits.open
        """Open inquiries of each kind, by token."""

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    def __contains__(self, token: object) -> bool:
        return any(token in table for table in self.tables)

    def use(self, bucket: str) -> bool:
        """Return whether an open ping or wait concerns a bucket."""
        pings, waits, node_waits = self._pings.open, self._readiness.open, self._node_waits.open
        buckets = [
            *(each.request.bucket for each in pings.values()),
            *(each.request.bucket for each in waits.values()),
            *(each.request.bucket for each in node_waits.values()),
        ]
        return bucket in buckets

    def submit(
        self, token: Token, inquiry: Ping | WaitUntilReady | WaitForNodes, now: float, *, is_traced: bool
    ) -> None:
        """Begin an inquiry, and open the connections that it concerns."""
        if inquiry.bucket is None and Service.KV in inquiry.services:
            self._follower.reach_all_nodes(now)
        self._connections.of_bucket(inquiry.bucket, now)
        for connection in self._connections.routes.all_of(inquiry.bucket):
            self._connections.expect(connection, now)
        # The new inquiry has seen no connection, so the next review must include all connections.
        self._connections.routes.fresh = dict.fromkeys(self._connections.all)
        match inquiry:
            case Ping():
                self._pings.submit(token, inquiry, now, is_traced=is_traced)
            case WaitUntilReady():
                self._readiness.submit(token, inquiry, is_traced=is_traced)
            case WaitForNodes():
                self._node_waits.submit(token, inquiry, now, is_traced=is_traced)
            case _:
                assert_never(inquiry)

    def abandon(self, token: int, now: float) -> None:
        """Forget an inquiry. Ignore an unknown token."""
        self._pings.abandon(token, now)
        self._readiness.abandon(token, now)
        self._node_waits.abandon(token)

    def is_ambiguous(self, token: int) -> bool:
        """Return whether an inquiry belongs to a call that may have changed the cluster: only waits for nodes do.

        Return False for an unknown token.
        """
        return token in self._node_waits.open

    def error_context(self, token: int) -> ErrorContext | None:
        """Return the error context of an inquiry that is abandoned now; None for an unknown token."""
        found = self._pings.open.get(token) or self._readiness.open.get(token) or self._node_waits.open.get(token)
        if found is None:
            return None
        inquiry = found.request
        return ErrorContext(
            service=str(Service.KV),
            operation=inquiry.name,
            idempotent=inquiry.idempotent,
            bucket=inquiry.bucket,
            # Remove duplicates: several connections to one node may have the same text.
            connections=tuple(
                dict.fromkeys(
                    [
                        *self._pings.unreported(token),
                        *self._readiness.not_ready(token),
                        *self._node_waits.behind(token),
                    ]
                )
            ),
        )

    def review(self, fresh: Collection[Connection], now: float) -> None:
        """Update all open inquiries with connections whose state changed."""
        self._pings.review(fresh, now)
        self._readiness.review(now)
        self._node_waits.review(fresh, now)

    def answered(self, connection: Connection, probe: Probe, frame: Frame, now: float) -> bool:
        """Record the response to a ping's NOOP. Return False if the ping was no longer waiting for the response."""
        return self._pings.answered(connection, probe, frame, now)

    def manifest_received(self, connection: Connection, question: ManifestQuestion, frame: Frame, now: float) -> bool:
        """Record the manifest of a node. Return False if the wait that requested it no longer needs it."""
        return self._node_waits.answered(connection, question, frame, now)

    def service_answered(self, outcome: PingOutcome, now: float) -> None:
        """Pass the outcome of an endpoint's ping to the ping or wait that sent it."""
        if isinstance(outcome.owner, OpenPing):
            self._pings.service_answered(outcome.owner, outcome, now)
        else:
            self._readiness.service_answered(cast(OpenWait, outcome.owner), outcome, now)

    def on_timer(self, kind: TimerKind, subject: object, now: float) -> None:
        """End a ping's wait for key-value connections, repeat the request of a wait, or end a wait at its deadline."""
        match kind:
            case TimerKind.PING:
                self._pings.deadline_passed(cast(int, subject), now)
            case TimerKind.READINESS:
                self._readiness.ping_again(*cast(tuple[OpenWait, Endpoint], subject), now)
            case TimerKind.NODES_DEADLINE:
                self._node_waits.deadline_passed(cast(int, subject), now)
            case TimerKind.MANIFEST_QUESTION:
                self._node_waits.request_again(*cast(tuple[OpenNodeWait, Connection], subject), now)
            case _:
                raise AssertionError(f"{kind} is not a timer of an inquiry")

    def unsupported(self, connection: Connection, detail: str, now: float) -> None:
        """Fail the waits for a connection whose server or bucket type the client does not support."""
        self._readiness.unsupported(connection, detail, now)
        self._node_waits.unsupported(connection, detail)
