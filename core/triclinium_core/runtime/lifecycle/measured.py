"""Measurements of one operation or request. After the caller abandons it, a report of a late response needs them."""

from __future__ import annotations

from copy import copy

import msgspec

from triclinium_core.retry.couchbase import Service
from triclinium_core.runtime.lifecycle.link import Link
from triclinium_core.telemetry.facts import OperationFacts, microseconds, milliseconds
from triclinium_core.telemetry.past_attempts import PastAttempts
from triclinium_core.telemetry.span_names import SPAN_NAMES


class Measured(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Measurements of one operation or request. Times are monotonic seconds."""

    service: Service
    name: str
    began_at: float
    """Start of the call. For an operation with a value, this is before the encoding, which precedes the submission."""
    timeout: float
    """Timeout in seconds."""
    encode_seconds: float | None
    """Duration of the encoding in seconds; None if nothing was encoded, or if the duration was not measured."""
    operation_id: str | None
    """Opaque of the newest attempt in hexadecimal, or the client context id of a statement (SDK-RFC 0067). None if the
    operation has neither."""
    link: Link | None
    """Stream of the newest attempt; None before the first attempt."""
    dispatched_at: float | None
    """Time at which the attempt in flight was sent; None without one."""
    past: PastAttempts
    """Attempts that have ended."""

    def facts(self, now: float, server_seconds: float | None = None, *, abandoned: str | None = None) -> OperationFacts:
        """Return the facts of an operation that ends now.

        Args:
            server_seconds: duration that the server reported in its response to the attempt in flight.
            abandoned: reason why the caller abandoned the operation; None if the caller did not.
        """
        past, link = copy(self.past), self.link
        if self.dispatched_at is not None:
            past.add(now - self.dispatched_at, server_seconds)
        was_sent = link is not None
        return OperationFacts(
            service=self.service,
            operation_name=SPAN_NAMES[self.name],
            total_duration_us=microseconds(now - self.began_at),
            encode_duration_us=_known(self.encode_seconds),
            last_dispatch_duration_us=microseconds(past.last) if was_sent else None,
            total_dispatch_duration_us=microseconds(past.total) if was_sent else None,
            last_server_duration_us=_known(past.last_server),
            total_server_duration_us=_known(past.total_server),
            last_local_id=link.local_id if link is not None else None,
            operation_id=self.operation_id,
            last_local_socket=link.local_address if link is not None else None,
            last_remote_socket=(link.remote_address or link.node) if link is not None else None,
            timeout_ms=milliseconds(self.timeout),
            abandoned=abandoned,
        )


def _known(seconds: float | None) -> int | None:
    return None if seconds is None else microseconds(seconds)
