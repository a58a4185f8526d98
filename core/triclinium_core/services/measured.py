"""How long a request and its attempts took, and between which ends the newest one travelled."""

from __future__ import annotations

from typing import NamedTuple

from triclinium_core.client.events import StreamId
from triclinium_core.services.request import ServiceRequest
from triclinium_core.shown import beginning
from triclinium_core.telemetry.facts import OperationFacts, microseconds, milliseconds
from triclinium_core.telemetry.past_attempts import PastAttempts
from triclinium_core.telemetry.span_names import SPAN_NAMES

OPERATION_ID_MAX = 200
"""Maximum length of an operation id in logs and spans: the services keep 64 bytes of a client context id."""


def bounded_operation_id(context_id: str | None) -> str | None:
    """Return the part of a client context id that logs and spans show; None for an empty id."""
    return beginning(context_id, OPERATION_ID_MAX) if context_id else None


class Sent(NamedTuple):
    """How an attempt left the client."""

    stream: StreamId
    local_address: str | None
    """Our end of the stream, where the driver told."""
    remote: str
    """The node's end, ``host:port``."""
    at: float
    """When, in monotonic seconds."""


class MeasuredRequest:
    """What is measured of one request. Instants are monotonic seconds.

    Args:
        submitted_at: when it was submitted.
        timeout: seconds that it may take.
        operation_id: name of a statement in the server's logs; None for other requests (SDK-RFC 0067 "Operation ID").
    """

    def __init__(
        self, request: ServiceRequest, submitted_at: float, timeout: float, operation_id: str | None = None
    ) -> None:
        self.submitted_at: float = submitted_at
        self.operation_id: str | None = bounded_operation_id(operation_id)
        self.sent: Sent | None = None
        """The newest attempt; None before the first."""
        self._request = request
        self._timeout = timeout
        self._is_under_way = False
        self._past: PastAttempts | None = None
        self._encode_seconds: float | None = None

    def add_encoding(self, seconds: float) -> None:
        """Add how long the payload of an attempt took to encode, which somebody has measured."""
        self._encode_seconds = (self._encode_seconds or 0.0) + seconds

    def begin_attempt(self, sent: Sent) -> None:
        """Measure an attempt from now on."""
        self.sent, self._is_under_way = sent, True

    def end_attempt(self, now: float) -> Sent | None:
        """Measure the attempt that is over, and return it; None where there was none."""
        if self.sent is None or not self._is_under_way:
            return None
        self._is_under_way = False
        self._past = self._past or PastAttempts()
        self._past.add(now - self.sent.at, None)
        return self.sent

    def facts(self, now: float, *, abandoned: str | None = None) -> OperationFacts:
        """Return the facts of a request that ends now.

        Args:
            abandoned: reason, if the caller left before the answer was complete.
        """
        past, sent, encode_seconds = self._past, self.sent, self._encode_seconds
        return OperationFacts(
            service=self._request.service,
            operation_name=SPAN_NAMES[self._request.name],
            total_duration_us=microseconds(now - self.submitted_at),
            encode_duration_us=microseconds(encode_seconds) if encode_seconds is not None else None,
            last_dispatch_duration_us=microseconds(past.last) if past is not None else None,
            total_dispatch_duration_us=microseconds(past.total) if past is not None else None,
            operation_id=self.operation_id,
            last_local_socket=sent.local_address if sent is not None else None,
            last_remote_socket=sent.remote if sent is not None else None,
            timeout_ms=milliseconds(self._timeout),
            abandoned=abandoned,
        )
