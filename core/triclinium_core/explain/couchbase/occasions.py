"""For each retry reason something that gives it, as an event: who asks about a reason names it and nothing more.

Where several answers give one reason, it is that of the first line in the list.

Source: SDK-RFC 0049 "RetryReason", "Response Code Retry List".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from triclinium_core.retry.couchbase.events import (
    DispatchFailed,
    HandedOver,
    KvResponse,
    RequestEvent,
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
from triclinium_core.retry.couchbase.unsent import RETRY_PERMITTED, UNKNOWN_STATUS, unsent_reasons

NODE = "the node"
"""Who answered, where nobody in particular is meant."""

BAD_REQUEST = 400
"""HTTP status of an answer with an error code, where it is left open."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """What happened to a request; ``entry`` is what the error map of its node says of the status that it was answered."""

    service: Service
    event: RequestEvent
    entry: ErrorMapEntry | None = None

    def verdict(self, operation: str) -> KvVerdict | ServiceVerdict | None:
        """Return what the tables say of the answer that ``operation`` got; None where no answer came."""
        match self.event:
            case ResponseReceived(KvResponse(status)):
                return kv_responses.classify(operation, status, self.entry)
            case ResponseReceived(ServiceResponse(service, http_status, body)):
                return service_responses.classify(service, http_status, body)
            case _:
                return None


def kv_answered(status: int, entry: ErrorMapEntry | None = None) -> Occasion:
    """Return that a node answered with ``status``."""
    return Occasion(Service.KV, ResponseReceived(KvResponse(status, NODE)), entry)


def service_answered(service: Service, http_status: int, body: bytes | str) -> Occasion:
    """Return that an HTTP service answered."""
    return Occasion(service, ResponseReceived(ServiceResponse(service, http_status, body)))


def service_answered_code(service: Service, code: int, message: str, http_status: int = BAD_REQUEST) -> Occasion:
    """Return that query or analytics answered with a body whose first error is ``code``."""
    return service_answered(service, http_status, json.dumps({"errors": [{"code": code, "msg": message}]}))


def _of_answers() -> Iterator[tuple[RetryReason, Occasion]]:
    for status, line in RETRYABLE_STATUSES.items():
        # What only some operations are retried for stands for no reason.
        if not line.only_of:
            yield line.reason, kv_answered(status)
    yield RetryReason.KV_ERROR_MAP_RETRY_INDICATED, kv_answered(UNKNOWN_STATUS, RETRY_PERMITTED)
    for (service, code), row in RETRYABLE_ERROR_CODES.items():
        yield row.reason, service_answered_code(service, code, row.message_contains)
    for (service, http_status), row in RETRYABLE_HTTP_STATUSES.items():
        yield row.reason, service_answered(service, http_status, "")


def _without_answers() -> Iterator[tuple[RetryReason, Occasion]]:
    yield RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, Occasion(Service.KV, SocketClosed(HandedOver.ALL))
    # Decision C36: nothing gives the second; who has it from elsewhere has no answer to show for it.
    for reason in (*unsent_reasons(Service.KV, DispatchFailed), RetryReason.SERVICE_RESPONSE_CODE_INDICATED):
        yield reason, Occasion(Service.KV, DispatchFailed(reason))


def _first_of_each() -> dict[RetryReason, Occasion]:
    occasions: dict[RetryReason, Occasion] = {}
    for reason, occasion in (*_of_answers(), *_without_answers()):
        occasions.setdefault(reason, occasion)
    return occasions


OCCASIONS: Mapping[RetryReason, Occasion] = _first_of_each()
