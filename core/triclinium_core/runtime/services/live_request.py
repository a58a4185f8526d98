"""Open request over HTTP and its newest attempt."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from triclinium_core.concealment import NO_SECRETS, Secrets
from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.contract.neutral import StreamId, Token
from triclinium_core.decision_tape.recorder import Place
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.address import Address
from triclinium_core.runtime.lifecycle.live import Live
from triclinium_core.runtime.lifecycle.measured import Measured
from triclinium_core.runtime.services.pool import Endpoint
from triclinium_core.services.answer.incoming_answer import IncomingAnswer
from triclinium_core.services.service_request import Encoding, HttpResponse, ServiceRequest, ServiceResult, Steps
from triclinium_core.shown import beginning
from triclinium_core.telemetry.past_attempts import PastAttempts

OPERATION_ID_MAX = 200
"""Maximum length of an operation id in logs and spans. The services keep 64 bytes of a client context id."""


class LiveRequest(Live[ServiceRequest], eq=False, kw_only=True):
    """Open request with the received part of its response."""

    message: ServiceRequest
    """Message of the newest attempt: the request itself, the execution of its plan, or a preparation that precedes the
    execution."""
    timeout: float
    """Maximum number of seconds until the first rows or the complete response, and then until each further piece that
    the reader wants."""
    answer: IncomingAnswer = msgspec.field(default_factory=IncomingAnswer)
    context_id: str | None = None
    """Client context id of the first attempt; None if the responses of the service contain no such id."""
    sends: int = 0
    """Number of messages that were sent for the request, including messages that must precede it."""
    pinned: Endpoint | None = None
    """Endpoint for a request of the client itself, used even if the endpoint's breaker is open; None for a request of a
    user."""
    traced_as: Token | None = None
    """Token of the request or ping with which to report the attempts to a tracer; None to report none."""
    encoding: Encoding | None = None
    """Function that measures the encoding of the payload of each attempt; None to measure none."""
    encode_seconds: float | None = None
    """Total duration of the measured encodings in seconds; None without a measured encoding."""
    decoding: tuple[Steps[ServiceResult], HttpResponse] | None = None
    """Remaining steps of decoding the response, and the response; None before the decoding begins."""
    endpoint: Endpoint | None = None
    """Endpoint of the newest attempt; None before the first attempt, and after a failed attempt."""
    stream: StreamId | None = None
    """Stream of the attempt in flight; None without one."""
    answered_on: StreamId | None = None
    """Stream on which the newest complete response arrived, or that was lost during the newest attempt; None before. It
    may be closed."""
    secrets: Secrets = NO_SECRETS
    """Credentials and passwords that the newest attempt contains. No error may contain them."""
    failed_at: Address | None = None
    """Address of the endpoint at which an attempt last failed; None if no attempt has failed at an endpoint."""

    @property
    def bucket(self) -> str | None:
        """Bucket whose nodes process the request; None for any node."""
        return self.request.bucket

    @property
    def has_given_rows(self) -> bool:
        """Whether the caller has received rows."""
        return self.answer.has_given_rows

    @property
    def is_ambiguous(self) -> bool:
        """Whether the request, if abandoned now, may have been or may still be applied."""
        # The service may have applied a request whose rows have arrived, whatever follows the rows.
        return super().is_ambiguous or (self.has_given_rows and not self.request.idempotent)

    @property
    def place(self) -> Place:
        """Bucket, scope, collection and index that the request names."""
        context = self.request.error_context()
        return Place(context.bucket, context.scope, context.collection, context.index)

    def is_measured_if_left(self, reason: AbandonReason) -> bool:
        """Return whether this is a user's request with an unknown outcome.

        Telemetry has already measured a request with a known outcome.
        """
        return self.answer.outcome is None and not self.is_own

    def first_context(self) -> ErrorContext:
        """Return the context of the request and of the newest attempt."""
        context = self.request.error_context()
        if self.context_id is not None:
            context = replace(context, client_context_id=self.context_id)
        if self.link is not None:
            context = replace(context, last_dispatched_to=self.link.node, last_dispatched_from=self.link.local_address)
        return context

    def measured(self) -> Measured:
        """Return the measurements so far."""
        return Measured(
            service=self.request.service,
            name=self.request.name,
            began_at=self.submitted_at,
            timeout=self.timeout,
            encode_seconds=self.encode_seconds,
            operation_id=bounded_operation_id(self.context_id),
            link=self.link,
            dispatched_at=self.dispatched_at,
            past=self.past or PastAttempts(),
        )

    def next_context_id(self) -> str | None:
        """Return the client context id of the next attempt; None if the service uses no such ids.

        All attempts have the same id if the user passed one. Otherwise each further message has a different suffix, so
        that the client can recognise the response to an earlier message.
        """
        self.sends += 1
        if self.sends == 1 or not self.context_id or self.request.client_context_id:
            return self.context_id
        return f"{self.context_id}-{self.sends}"

    def leave_endpoint(self) -> None:
        """Forget the endpoint of the newest attempt, which has failed, and record its address."""
        if self.endpoint is not None:
            self.failed_at = self.endpoint.address
        self.endpoint = None


def bounded_operation_id(context_id: str | None) -> str | None:
    """Return the part of a client context id that logs and spans show; None without an id."""
    return beginning(context_id, OPERATION_ID_MAX) if context_id else None


def waits_for(endpoint: Endpoint | None, *, last_loss: str | None = None) -> str:
    """Return, in words, the reason why a request was not sent yet.

    Args:
        endpoint: endpoint at which the request is queued; None before the first cluster config.
        last_loss: reason why the client last lost a connection while it waited for that config.
    """
    if endpoint is None:
        why = f" ({last_loss})" if last_loss else ""
        return f"no cluster config with the addresses of the services has arrived yet{why}"
    why = f" ({endpoint.last_error})" if endpoint.last_error else ""
    return f"no connection to {endpoint.node} is {'open' if endpoint.opening else 'free'} yet{why}"
