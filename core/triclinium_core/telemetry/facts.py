"""Facts about an ended operation: the properties that SDK-RFC 0067 lists for the log, and why it was abandoned.

Source: SDK-RFC 0067 "Default Implementation: ThresholdLoggingTracer", "Orphaned Response Reporting".
"""

from __future__ import annotations

import math

import msgspec

from triclinium_core.retry.couchbase import Service


class OperationFacts(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Facts about one slow operation or one orphan.

    Durations are whole microseconds, except ``timeout_ms``. None means that a fact was not measured or does not apply.
    All names except ``abandoned`` come from the RFC.
    """

    service: Service
    operation_name: str
    """Name of the outer span."""
    total_duration_us: int
    """Time from the start of the call to its end, or to the late response."""
    encode_duration_us: int | None = None
    """Time to encode the value of an operation, or the payloads of all attempts of a request together. The driver
    measures it."""
    last_dispatch_duration_us: int | None = None
    """Time from the dispatch of the newest attempt to its response, or to the end of the operation."""
    total_dispatch_duration_us: int | None = None
    """Total time of all attempts, from dispatch to response or end."""
    last_server_duration_us: int | None = None
    """Time that the node reported for the newest attempt."""
    total_server_duration_us: int | None = None
    last_local_id: str | None = None
    """Id of the connection, such as ``66388CF5BFCF7522/18CC8791579B567C``."""
    operation_id: str | None = None
    """Opaque of the newest attempt in hexadecimal, such as ``0x23``, or the client context id of a statement."""
    last_local_socket: str | None = None
    """Local ``host:port`` of the connection."""
    last_remote_socket: str | None = None
    """Remote ``host:port`` of the connection, or of the node if the driver does not report it."""
    timeout_ms: int | None = None
    """Timeout of the operation; None for no limit."""
    abandoned: str | None = None
    """Reason why the caller abandoned the operation: ``timeout`` or ``cancelled``. None if the caller did not (D75)."""


MICROSECONDS = 1_000_000
"""Microseconds per second. The RFC uses microseconds for durations."""
MILLISECONDS = 1_000
"""Milliseconds per second. The RFC uses milliseconds for timeouts."""


def microseconds(seconds: float) -> int:
    """Return a duration in whole microseconds."""
    return round(seconds * MICROSECONDS)


def milliseconds(seconds: float) -> int | None:
    """Return a timeout in whole milliseconds; None for ``inf``."""
    return round(seconds * MILLISECONDS) if math.isfinite(seconds) else None
