"""Facts of an ended operation: the properties that SDK-RFC 0067 lists for the log.

Source: SDK-RFC 0067 "ThresholdLoggingTracer", "Orphaned Response Reporting".
"""

from __future__ import annotations

import math

import msgspec

from triclinium_core.retry.couchbase import Service


class OperationFacts(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One operation that was slow, or whose answer came when nobody waited for it any more.

    Durations are whole microseconds. None means not measured, or not applicable. The names come from the RFC, except
    ``abandoned``.
    """

    service: Service
    operation_name: str
    """As the outer span is named."""
    total_duration_us: int
    """From the call to the end, or to the late answer."""
    encode_duration_us: int | None = None
    """Of a value before it was submitted, or of all attempts of a request together. Whoever submits measures it."""
    last_dispatch_duration_us: int | None = None
    """From the newest attempt to its answer, or to the end."""
    total_dispatch_duration_us: int | None = None
    """Of all attempts together."""
    last_server_duration_us: int | None = None
    """What the node says that the newest attempt took."""
    total_server_duration_us: int | None = None
    last_local_id: str | None = None
    """Of the connection: ``66388CF5BFCF7522/18CC8791579B567C``."""
    operation_id: str | None = None
    """The opaque of the newest attempt in hexadecimal, ``0x23``, or the client context id of a statement."""
    last_local_socket: str | None = None
    """``host:port`` of our end."""
    last_remote_socket: str | None = None
    """``host:port`` of the node."""
    timeout_ms: int | None = None
    """What the operation may have taken; None for no limit."""
    abandoned: str | None = None
    """Reason why the caller left before the end: ``timeout`` or ``cancelled``; None if the operation ended (D75)."""


MICROSECONDS = 1_000_000
"""In a second: what the RFC counts durations in."""
MILLISECONDS = 1_000
"""In a second: what it counts timeouts in."""


def microseconds(seconds: float) -> int:
    """Return a duration as the RFC has it."""
    return round(seconds * MICROSECONDS)


def milliseconds(seconds: float) -> int | None:
    """Return a timeout as the RFC has it; None for ``inf``."""
    return round(seconds * MILLISECONDS) if math.isfinite(seconds) else None
