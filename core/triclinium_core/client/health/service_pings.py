"""Endpoints that a ping of the HTTP services covers, and descriptions of the results of the ping.

Source: SDK-RFC 0061 "The ping Command".
"""

from __future__ import annotations

from collections.abc import Iterator

from triclinium_core import errors
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.reports import PingState
from triclinium_core.retry.couchbase import Service, subject
from triclinium_core.runtime.services.pings import PingOutcome
from triclinium_core.runtime.services.pool import Endpoint, Pool


def endpoints_of(inquiry: Inquiry, pool: Pool) -> Iterator[Endpoint]:
    """Yield the HTTP endpoints of an inquiry in the newest topology. Yield nothing before the first topology."""
    for service in inquiry.services:
        if service is not Service.KV:
            yield from pool.endpoints_of(service, namespace_of(service, inquiry))


def namespace_of(service: Service, inquiry: Inquiry) -> str | None:
    """Return the bucket that a pinged node must have: the bucket of the inquiry for views, otherwise None."""
    return inquiry.bucket if service is Service.VIEWS else None


def state_of(outcome: PingOutcome) -> PingState:
    """Return the state of an outcome in reports."""
    if outcome.error is None:
        return PingState.OK
    return PingState.TIMEOUT if isinstance(outcome.error, errors.TimeoutException) else PingState.ERROR


def error_text(endpoint: Endpoint, error: errors.CouchbaseException) -> str:
    """Return, in words, the endpoint's address and the reason why the ping failed."""
    text = error.message.removeprefix(f"{subject(error.context)}: ")
    detail = error.context.last_dispatch_error
    if detail is not None and not isinstance(error, errors.TimeoutException):
        text = detail
    return text if text.startswith(endpoint.node) else f"{endpoint.node}: {text}"


def unanswered_text(endpoint: Endpoint) -> str:
    """Return the text for an endpoint that has not responded to a ping yet."""
    return f"{endpoint.node}: the {endpoint.service} service has not responded to a ping"
