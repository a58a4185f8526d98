"""What is fixed about a request when it is submitted.

Source: SDK-RFC 0049 "Request Annotation".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy
from triclinium_core.retry.couchbase.tables.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnnotation:
    """One request, as its owner hands it to the retry machine. Instants are monotonic seconds."""

    operation: str
    idempotent: bool
    strategy: AnyRetryStrategy
    submitted_at: float
    deadline: float
    service: Service = Service.KV
    client_context: Mapping[str, object] = field(default_factory=dict)
    error_context: ErrorContext = field(default_factory=ErrorContext)
    """What is known of the request already: bucket, scope, collection, key."""
