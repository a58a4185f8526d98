"""One request on its way: what the client keeps of it between submission and settlement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from triclinium_core.client.events import StreamId, Token
from triclinium_core.client.timers import TimerId
from triclinium_core.concealment import NO_SECRETS, Secrets
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.address import Address
from triclinium_core.retry.combined.request_tokens import AnyRequestTokens
from triclinium_core.retry.couchbase.machine import RetryMachine
from triclinium_core.services.answer.incoming_answer import IncomingAnswer
from triclinium_core.services.measured import MeasuredRequest
from triclinium_core.services.pool.endpoint import Endpoint
from triclinium_core.services.request import Encoding, HttpAnswer, ServiceRequest, ServiceResult, Steps


@dataclass(slots=True, eq=False)
class LiveRequest:
    """One request, its newest attempt, and what has come of the answer. Instants are monotonic seconds."""

    token: int
    request: ServiceRequest
    retry: RetryMachine
    timeout: float
    """Seconds for the first rows or the whole answer, and then for each further piece that is wanted."""
    message: ServiceRequest
    """What the newest attempt sends: the request itself, or what has to go before it."""
    measured: MeasuredRequest
    answer: IncomingAnswer = field(default_factory=IncomingAnswer)
    context_id: str | None = None
    """Client context id of the first attempt; None if the service repeats no id in its answers."""
    sends: int = 0
    """Number of messages that were sent: attempts, and messages that have to precede the request."""
    tokens: AnyRequestTokens | None = None
    """What a token strategy has lent the request; None under Couchbase's strategies."""
    pinned: Endpoint | None = None
    """Where alone a request of the client's own may go, whatever the breaker says; None for those of users."""
    traced_as: Token | None = None
    """Whose attempts these are to a tracer: the request's own, or those of who pings; None where nobody is told."""
    encoding: Encoding | None = None
    """Has the payload of each attempt encoded; None where nobody measures that."""
    deadline_timer: TimerId | None = None
    retry_timer: TimerId | None = None
    """Of the next attempt, or of the next part of an answer that is being decoded."""
    decoding: tuple[Steps[ServiceResult], HttpAnswer] | None = None
    """Steps that are left of decoding the answer, and the answer; None before."""
    endpoint: Endpoint | None = None
    """Where the newest attempt waits, or travels."""
    stream: StreamId | None = None
    """On which it travels; None while it does not."""
    answered_on: StreamId | None = None
    """Stream of the newest complete answer. The stream may be closed."""
    secrets: Secrets = NO_SECRETS
    """Credentials and passwords in the newest attempt, which no error may repeat."""
    failed_at: Address | None = None
    """Where the newest attempt that failed had gone."""

    @property
    def is_own(self) -> bool:
        """Whether the client asked for itself: nobody is told of it but whoever takes the answer."""
        return self.pinned is not None

    @property
    def deadline(self) -> float:
        """When the request, or its first rows, are due."""
        return self.retry.annotation.deadline

    def next_context_id(self) -> str | None:
        """Return the client context id of the attempt that is about to be sent.

        An id of the user is sent with all attempts. Otherwise each later attempt has a variant, so that the answer to
        an earlier attempt does not count.
        """
        self.sends += 1
        if self.sends == 1 or not self.context_id or self.request.client_context_id:
            return self.context_id
        return f"{self.context_id}-{self.sends}"

    def leave_endpoint(self) -> None:
        """Stand nowhere, because the newest attempt has failed, and remember where that was."""
        if self.endpoint is not None:
            self.failed_at = self.endpoint.address
        self.endpoint = None

    def abandoned_context(self, now: float) -> ErrorContext:
        """Return what is known of the request if it is given up now."""
        context = replace(self.retry.error_context(now), state=self.retry.state.value)
        if self.endpoint is not None and self.stream is None:
            context = replace(context, last_dispatch_error=waits_for(self.endpoint))
        elif self.tokens is not None and self.tokens.obstacle is not None:
            context = replace(context, last_dispatch_error=self.tokens.obstacle)
        return context


def waits_for(endpoint: Endpoint | None, *, last_loss: str | None = None) -> str:
    """Return a description of what a request that was not sent waits for.

    Args:
        last_loss: reason why the newest connection that should have brought the first cluster config was lost.
    """
    if endpoint is None:
        why = f" ({last_loss})" if last_loss else ""
        return f"no cluster config with the addresses of the services has arrived yet{why}"
    why = f" ({endpoint.last_error})" if endpoint.last_error else ""
    return f"no connection to {endpoint.node} is {'open' if endpoint.opening else 'free'} yet{why}"
