"""What a retry strategy may see of a request.

Source: SDK-RFC 0049 "Request Annotation", "Accessible Context in the RetryStrategy".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapEntry
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.values import lean


@lean
@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequest:
    """A snapshot of a request at the moment of a failure. Durations are seconds."""

    service: Service
    operation: str
    idempotent: bool
    rng: Random
    """Randomness for jitter; draw nothing from elsewhere, or a replay will differ."""
    key: str | None = None
    retry_attempts: int = 0
    """Retries already done, whatever their reasons."""
    retry_reasons: frozenset[RetryReason] = frozenset()
    """Reasons of earlier failures; the present one is passed beside the request."""
    age: float = 0.0
    """Since submission."""
    remaining: float
    """Until the deadline."""
    since_first_failure: float = 0.0
    attempts_this_status: int = 0
    """Retries done since the status last changed (RFC 0013 "Questions"); the schedule of an error map counts these."""
    error_map_entry: ErrorMapEntry | None = None
    """What the node says of the status, where the client does not know it."""
    client_context: Mapping[str, object] = field(default_factory=dict)
    """What the application attached to the request."""
