"""Facts of an ended operation: the properties that SDK-RFC 0067 lists for the log.

Source: SDK-RFC 0067 "ThresholdLoggingTracer", "Orphaned Response Reporting".
"""

from __future__ import annotations

import math

import msgspec

from triclinium_core.retry.couchbase import Service


class OperationFacts(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Facts of one slow operation or one orphan.

    Durations are whole microseconds. None means not measured or not applicable. The names come from the RFC, except
    ``abandoned``.
    """

    service: Service
    operation_name: str
    """Name of the outer span."""
    total_duration_us: int
    """Time from the call to the end, or to the late response."""
    encode_duration_us: int | None = None
    """Encoding time of the value before submission, or of all attempts of a request together. The submitter measures
    it."""
    last_dispatch_duration_us: int | None = None
    """Time from the newest attempt to its response, or to the end."""
    total_dispatch_duration_us: int | None = None
    """Time of all attempts together."""
    last_server_duration_us: int | None = None
    """Time of the newest attempt as reported by the node."""
    total_server_duration_us: int | None = None
    last_local_id: str | None = None
    """Id of the connection, such as ``66388CF5BFCF7522/18CC8791579B567C``."""
    operation_id: str | None = None
    """Opaque of the newest attempt in hexadecimal, such as ``0x23``, or the client context id of a statement."""
    last_local_socket: str | None = None
    """Local ``host:port`` of the connection."""
    last_remote_socket: str | None = None
    """``host:port`` of the node."""
    timeout_ms: int | None = None
    """Timeout of the operation; None for no limit."""
    abandoned: str | None = None
    """Reason why the caller abandoned it: ``timeout`` or ``cancelled``; None if the operation ended (D75)."""


MICROSECONDS = 1_000_000
"""Microseconds per second, the unit of durations in the RFC."""
MILLISECONDS = 1_000
"""Milliseconds per second, the unit of timeouts in the RFC."""


def microseconds(seconds: float) -> int:
    """Return a duration in the unit of the RFC."""
    return round(seconds * MICROSECONDS)


def milliseconds(seconds: float) -> int | None:
    """Return a timeout in the unit of the RFC; None for ``inf``."""
    return round(seconds * MILLISECONDS) if math.isfinite(seconds) else None
