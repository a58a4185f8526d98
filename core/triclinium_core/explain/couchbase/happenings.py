"""Responses and failures that ``explain`` accepts, and for each retry reason an example that causes it.

Source: SDK-RFC 0049 "RetryReason", "Response Code Retry List".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from triclinium_core.retry import couchbase
from triclinium_core.retry.couchbase.tables import kv_responses, service_responses

NODE = "the node"
"""Name of the node in a response that does not name a particular node."""

BAD_REQUEST = 400
"""HTTP status of an ``ErrorCode`` that has no ``http_status``."""


@dataclass(frozen=True, slots=True)
class KvAnswer:
    """Response of a key-value node. ``error_map_entry`` is the entry for ``status`` in the node's error map."""

    status: int
    error_map_entry: couchbase.ErrorMapEntry | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Response of an HTTP service."""

    http_status: int
    body: bytes | str = b""


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """Response of the query or analytics service with this error as the first in its body.

    ``http_status`` may be None, because the error alone determines the decision.
    """

    code: int
    message: str = ""
    http_status: int | None = None


Happening = KvAnswer | HttpAnswer | ErrorCode | couchbase.SocketClosed | couchbase.DispatchFailed
"""Response to a request, or a failure without a response: ``SocketClosed`` or ``DispatchFailed``."""


def event_of(
    service: couchbase.Service, operation: str, happened: Happening
) -> couchbase.ResponseReceived | couchbase.SocketClosed | couchbase.DispatchFailed:
    """Return the event for the retry machine of ``operation``, a request to ``service``."""
    match happened:
        case KvAnswer(status):
            return couchbase.ResponseReceived(couchbase.KvResponse(status, NODE))
        case HttpAnswer(http_status, body):
            return couchbase.ResponseReceived(couchbase.ServiceResponse(service, http_status, body, operation))
        case ErrorCode(code, message, http_status):
            body = json.dumps({"errors": [{"code": code, "msg": message}]})
            return couchbase.ResponseReceived(
                couchbase.ServiceResponse(service, http_status or BAD_REQUEST, body, operation)
            )
        case couchbase.DispatchFailed(error=None) as event:
            return replace(event, error=couchbase.error_of_lookup(event.reason))
        case couchbase.SocketClosed() | couchbase.DispatchFailed() as event:
            return event
        case unexpected:
            assert_never(unexpected)


def verdict_of(
    service: couchbase.Service, operation: str, happened: Happening
) -> couchbase.KvVerdict | couchbase.ServiceVerdict | None:
    """Return how the tables classify the response to ``operation``; None without a response."""
    match event_of(service, operation, happened), happened:
        case couchbase.ResponseReceived(couchbase.KvResponse(status)), KvAnswer(error_map_entry=entry):
            return kv_responses.classify(operation, status, entry)
        case couchbase.ResponseReceived(couchbase.ServiceResponse(_, http_status, body)), _:
            return service_responses.classify(service, http_status, body, operation)
        case _:
            return None


def _happenings() -> Iterator[tuple[couchbase.RetryReason, tuple[couchbase.Service, Happening]]]:
    for status, line in couchbase.RETRYABLE_STATUSES.items():
        # Skip a status that is retried only for some operations: it does not represent its reason.
        if not line.only_of:
            yield line.reason, (couchbase.Service.KV, KvAnswer(status))
    yield (
        couchbase.RetryReason.KV_ERROR_MAP_RETRY_INDICATED,
        (couchbase.Service.KV, KvAnswer(couchbase.UNKNOWN_STATUS, couchbase.RETRY_PERMITTED)),
    )
    for (service, code), row in couchbase.RETRYABLE_ERROR_CODES.items():
        yield row.reason, (service, ErrorCode(code, row.message_contains))
    for (service, http_status), row in couchbase.RETRYABLE_HTTP_STATUSES.items():
        yield row.reason, (service, HttpAnswer(http_status))
    yield (
        couchbase.RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT,
        (couchbase.Service.KV, couchbase.SocketClosed(couchbase.HandedOver.ALL)),
    )
    # Decision C36: no response causes SERVICE_RESPONSE_CODE_INDICATED, so a failed dispatch is its example.
    for reason in (
        *couchbase.unsent_reasons(couchbase.Service.KV, couchbase.DispatchFailed),
        couchbase.RetryReason.SERVICE_RESPONSE_CODE_INDICATED,
    ):
        yield reason, (couchbase.Service.KV, couchbase.DispatchFailed(reason))


HAPPENINGS: Mapping[couchbase.RetryReason, tuple[couchbase.Service, Happening]] = dict(reversed([*_happenings()]))
"""Example for each reason: a service, and a failure of a request to it. Of several examples, the first is used."""
