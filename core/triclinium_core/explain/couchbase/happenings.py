"""Failures that a question can name, and for each retry reason a failure that causes it.

Source: SDK-RFC 0049 "RetryReason", "Response Code Retry List".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from triclinium_core.retry.couchbase.events import (
    DispatchFailed,
    HandedOver,
    KvResponse,
    ResponseReceived,
    ServiceResponse,
    SocketClosed,
)
from triclinium_core.retry.couchbase.tables import kv_responses, service_responses
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapEntry
from triclinium_core.retry.couchbase.tables.kv_responses import RETRYABLE_STATUSES, KvVerdict
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_responses import (
    RETRYABLE_ERROR_CODES,
    RETRYABLE_HTTP_STATUSES,
    ServiceVerdict,
)
from triclinium_core.retry.couchbase.unsent import (
    RETRY_PERMITTED,
    UNKNOWN_STATUS,
    error_of_lookup,
    unsent_reasons,
)

NODE = "the node"
"""The node that answered, if no particular node is meant."""

BAD_REQUEST = 400
"""HTTP status of an answer with an error code, where it is left open."""


@dataclass(frozen=True, slots=True)
class KvAnswer:
    """A KV node answered with this status; ``error_map_entry`` is what its error map says of the status."""

    status: int
    error_map_entry: ErrorMapEntry | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP service answered."""

    http_status: int
    body: bytes | str = b""


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """Query or analytics answered with a body whose first error is this one.

    ``http_status`` None leaves open with which HTTP status it came, which decides nothing beside the code.
    """

    code: int
    message: str = ""
    http_status: int | None = None


Happening = KvAnswer | HttpAnswer | ErrorCode | SocketClosed | DispatchFailed
"""What may happen to a request; the last two are the client's own events."""


def event_of(service: Service, operation: str, happened: Happening) -> ResponseReceived | SocketClosed | DispatchFailed:
    """Return what the retry machine of ``operation``, a request to ``service``, hears then."""
    match happened:
        case KvAnswer(status):
            return ResponseReceived(KvResponse(status, NODE))
        case HttpAnswer(http_status, body):
            return ResponseReceived(ServiceResponse(service, http_status, body, operation))
        case ErrorCode(code, message, http_status):
            body = json.dumps({"errors": [{"code": code, "msg": message}]})
            return ResponseReceived(ServiceResponse(service, http_status or BAD_REQUEST, body, operation))
        case DispatchFailed(error=None) as event:
            return replace(event, error=error_of_lookup(event.reason))
        case SocketClosed() | DispatchFailed() as event:
            return event
        case unexpected:
            assert_never(unexpected)


def verdict_of(service: Service, operation: str, happened: Happening) -> KvVerdict | ServiceVerdict | None:
    """Return what the tables say of the answer that ``operation`` got; None where no answer came."""
    match event_of(service, operation, happened), happened:
        case ResponseReceived(KvResponse(status)), KvAnswer(error_map_entry=entry):
            return kv_responses.classify(operation, status, entry)
        case ResponseReceived(ServiceResponse(_, http_status, body)), _:
            return service_responses.classify(service, http_status, body, operation)
        case _:
            return None


def _happenings() -> Iterator[tuple[RetryReason, tuple[Service, Happening]]]:
    for status, line in RETRYABLE_STATUSES.items():
        # What only some operations are retried for stands for no reason.
        if not line.only_of:
            yield line.reason, (Service.KV, KvAnswer(status))
    yield RetryReason.KV_ERROR_MAP_RETRY_INDICATED, (Service.KV, KvAnswer(UNKNOWN_STATUS, RETRY_PERMITTED))
    for (service, code), row in RETRYABLE_ERROR_CODES.items():
        yield row.reason, (service, ErrorCode(code, row.message_contains))
    for (service, http_status), row in RETRYABLE_HTTP_STATUSES.items():
        yield row.reason, (service, HttpAnswer(http_status))
    yield RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, (Service.KV, SocketClosed(HandedOver.ALL))
    # Decision C36: nothing gives the second, so there is no answer to show for it.
    for reason in (*unsent_reasons(Service.KV, DispatchFailed), RetryReason.SERVICE_RESPONSE_CODE_INDICATED):
        yield reason, (Service.KV, DispatchFailed(reason))


HAPPENINGS: Mapping[RetryReason, tuple[Service, Happening]] = dict(reversed([*_happenings()]))
"""For each reason a service, and what happens to a request there; of several answers the first in the list."""
