"""Retry reasons that a client may report for a request if it has sent no part of it.

Source: SDK-RFC 0049 "Client Dispatch", "RetryReason", "Fail Fast (Terminal Errors)"; decisions C6 and C8.
"""

from __future__ import annotations

from triclinium_core.retry.couchbase.events import DispatchFailed, SocketClosed
from triclinium_core.retry.couchbase.tables.error_map import Attribute, ErrorMapEntry
from triclinium_core.retry.couchbase.tables.kv_responses import RETRYABLE_STATUSES, classify
from triclinium_core.retry.couchbase.tables.kv_status import ErrorClass
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service

_OF_ANY_CONNECTION = (RetryReason.SOCKET_NOT_AVAILABLE, RetryReason.AUTHENTICATION_ERROR, RetryReason.TLS_ERROR)

# RFC 0049 §Fail Fast (Terminal Errors): "These three apply only to KV operations".
_OF_A_KEYSPACE = (RetryReason.BUCKET_ACCESS_ERROR, RetryReason.SCOPE_NOT_FOUND, RetryReason.COLLECTION_NOT_FOUND)

_OF_A_DISPATCH = (
    RetryReason.NODE_NOT_AVAILABLE,
    RetryReason.SERVICE_NOT_AVAILABLE,
    RetryReason.CIRCUIT_BREAKER_OPEN,
    RetryReason.UNKNOWN,
)

OF_A_LOOKUP = (RetryReason.KV_TEMPORARY_FAILURE, RetryReason.KV_ERROR_MAP_RETRY_INDICATED)
"""Reasons that a response to GET_COLLECTION_ID may cause. The client sends that request before the first operation on a
collection."""

UNKNOWN_STATUS = 0xFFFF
"""Status that is unknown to the client, so that an error map decides."""

RETRY_PERMITTED = ErrorMapEntry("", "", frozenset({Attribute.AUTO_RETRY}))
"""Entry of an error map that permits a retry and contains nothing else."""


def unsent_reasons(service: Service, event: type[SocketClosed | DispatchFailed]) -> tuple[RetryReason, ...]:
    """Return the retry reasons that are possible if no part of a request to ``service`` was sent.

    Args:
        event: ``DispatchFailed``, or ``SocketClosed`` for a socket that closed before any byte was handed to it.
    """
    keyspace = _OF_A_KEYSPACE if service is Service.KV else ()
    if event is SocketClosed:
        return (*_OF_ANY_CONNECTION, *keyspace)
    return (*_OF_ANY_CONNECTION, *keyspace, *_OF_A_DISPATCH, *(OF_A_LOOKUP if service is Service.KV else ()))


def error_of_lookup(reason: RetryReason) -> ErrorClass | None:
    """Return the error of a GET_COLLECTION_ID response that causes ``reason``; None if no response causes it."""
    answers = [*((status, None) for status in RETRYABLE_STATUSES), (UNKNOWN_STATUS, RETRY_PERMITTED)]
    verdicts = (classify("get_collection_id", *answer) for answer in answers)
    return next((verdict.error for verdict in verdicts if verdict.reason is reason), None)
