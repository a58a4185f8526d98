"""How long an operation and its attempts took, kept apart from the operation: an answer may come when that is gone."""

from __future__ import annotations

from copy import copy

import msgspec

from triclinium_core.kv.operation.link import Link
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.telemetry.facts import OperationFacts, microseconds, milliseconds
from triclinium_core.telemetry.past_attempts import PastAttempts
from triclinium_core.telemetry.span_names import SPAN_NAMES


class MeasuredOperation(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What was measured of one operation. Instants are monotonic seconds."""

    name: str
    encode_seconds: float
    """Before it was submitted; 0 where nothing was encoded, or nobody measured that."""
    submitted_at: float
    deadline: float
    opaque: int | None
    """Of the newest attempt."""
    link: Link | None
    """On which that was sent."""
    dispatched_at: float | None
    """When it was sent; None where it is over, or there was none."""
    past: PastAttempts
    """Those that are over."""

    def facts(self, now: float, server_seconds: float | None = None, *, abandoned: str | None = None) -> OperationFacts:
        """Return what is told of the operation that is over now.

        Args:
            server_seconds: what the answer tells that has just come, where an attempt was not over.
            abandoned: reason, if the caller left before the operation ended.
        """
        past, link = copy(self.past), self.link
        if self.dispatched_at is not None:
            past.add(now - self.dispatched_at, server_seconds)
        was_sent = link is not None
        return OperationFacts(
            service=Service.KV,
            operation_name=SPAN_NAMES[self.name],
            total_duration_us=microseconds(now - self.submitted_at + self.encode_seconds),
            encode_duration_us=_known(self.encode_seconds or None),
            last_dispatch_duration_us=microseconds(past.last) if was_sent else None,
            total_dispatch_duration_us=microseconds(past.total) if was_sent else None,
            last_server_duration_us=_known(past.last_server),
            total_server_duration_us=_known(past.total_server),
            last_local_id=link.local_id if link is not None else None,
            operation_id=f"0x{self.opaque:x}" if self.opaque is not None else None,
            last_local_socket=link.local_address if link is not None else None,
            last_remote_socket=(link.remote_address or link.node) if link is not None else None,
            timeout_ms=milliseconds(self.deadline - self.submitted_at),
            abandoned=abandoned,
        )


def _known(seconds: float | None) -> int | None:
    return None if seconds is None else microseconds(seconds)
