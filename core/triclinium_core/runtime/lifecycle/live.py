"""One open operation or request, from submission to settlement.

A key-value operation whose first attempt succeeds has no retry machine (decision C38). A request over HTTP gets a retry
machine with its first failure or complete response.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar, cast

import msgspec

from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.contract.neutral import TimerId, Token
from triclinium_core.decision_tape.recorder import DecisionRecorder, Place, RecordedCall
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.permits import AnyPermit
from triclinium_core.retry.combined.strategies import Decider
from triclinium_core.retry.couchbase.retry_machine import RequestAnnotation, RetryMachine
from triclinium_core.retry.couchbase.states import RetryState
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore
from triclinium_core.runtime.lifecycle.carrier import Submittable
from triclinium_core.runtime.lifecycle.link import Link
from triclinium_core.runtime.lifecycle.measured import Measured
from triclinium_core.runtime.lifecycle.stages import Stage
from triclinium_core.telemetry.past_attempts import PastAttempts

R = TypeVar("R", bound=Submittable)


class Live(msgspec.Struct, Generic[R], eq=False):
    """Base of open operations and requests. Times are monotonic seconds.

    The garbage collector tracks these objects, because they refer to objects of users. Subclasses override the members
    that raise NotImplementedError: Struct and ABC have different metaclasses, so these members cannot be abstract.
    """

    token: Token
    request: R
    strategy: Decider | AnyPermit
    """Retry strategy, or the permit of a token strategy, which has the same interface."""
    client_context: Mapping[str, object] | None
    submitted_at: float
    deadline: float
    deadline_timer: TimerId | None = None
    """Timer of the deadline; None if ``Lifecycle.next_deadline`` covers the deadline."""
    retry_timer: TimerId | None = None
    retry: RetryMachine | None = None
    permit: AnyPermit | None = None
    """Permit of a token strategy; None with a Couchbase strategy."""
    stage: Stage = Stage.WAITING
    link: Link | None = None
    """Stream of the newest attempt; None before the first."""
    dispatched_at: float | None = None
    """Time at which the attempt in flight was sent; None without an attempt in flight."""
    ended_dispatched_at: float | None = None
    """Time at which the newest ended attempt was sent; None without one."""
    past: PastAttempts | None = None
    """Attempts that have ended; None without any."""
    is_part: bool = False
    """Whether the meter counts the enclosing call instead of this operation."""
    is_own: bool = False
    """Whether the client itself submitted the request. Metrics and the decision tape then leave it out."""

    @property
    def bucket(self) -> str | None:
        """Bucket whose nodes process the operation or request; None for any node."""
        raise NotImplementedError

    @property
    def has_given_rows(self) -> bool:
        """Whether the caller has received a part of the result."""
        return False

    @property
    def is_ambiguous(self) -> bool:
        """Whether the operation or request, if abandoned now, may have been or may still be applied (decision C25)."""
        if self.retry is not None:
            return self.retry.is_ambiguous
        return self.stage is Stage.IN_FLIGHT and not self.request.idempotent

    @property
    def obstacle(self) -> str | None:
        """Reason, in words, why the token strategy has not permitted the first attempt yet; None otherwise."""
        return self.permit.obstacle if self.permit is not None else None

    def is_measured_if_left(self, reason: AbandonReason) -> bool:
        """Return whether telemetry measures the operation or request if its caller abandons it now."""
        raise NotImplementedError

    def first_context(self) -> ErrorContext:
        """Return the error context with which a retry machine starts."""
        raise NotImplementedError

    def seconds_taken(self, now: float) -> float:
        """Return the duration of the call in seconds, up to now."""
        return now - self.submitted_at

    def measured(self) -> Measured:
        """Return the measurements so far."""
        raise NotImplementedError

    def end_attempt(self, now: float, server_seconds: float | None = None) -> bool:
        """Record the duration of the attempt that has ended. Return whether there was an attempt.

        Args:
            server_seconds: duration that the node reported; None if it reported none.
        """
        if self.dispatched_at is None:
            return False
        self.past = self.past or PastAttempts()
        self.past.add(now - self.dispatched_at, server_seconds)
        self.ended_dispatched_at, self.dispatched_at = self.dispatched_at, None
        return True

    @property
    def key(self) -> str:
        """Key of the document; empty without one."""
        return ""

    @property
    def place(self) -> Keyspace | Place:
        """Bucket, scope, collection and index that the request names."""
        raise NotImplementedError

    @property
    def newest_opaque(self) -> int | None:
        """Opaque of the newest attempt; None without an attempt, or for a request over HTTP."""
        return None

    def recorded(
        self, ended_at: float | None = None, error: type | None = None, abandoned: AbandonReason | None = None
    ) -> RecordedCall:
        """Return the facts for a decision tape.

        Args:
            ended_at: time of the end in monotonic seconds; None for an open operation or request.
            error: class of the exception; None without one.
            abandoned: reason why the caller abandoned the call; None if the caller did not.
        """
        link, request = self.link, self.request
        return RecordedCall(
            self.token,
            request.name,
            request.service,
            request.idempotent,
            self.place,
            self.key,
            self.permit.strategy if self.permit is not None else self.strategy,
            self.submitted_at,
            self.deadline,
            self.dispatched_at if self.dispatched_at is not None else self.ended_dispatched_at,
            link.node if link is not None else None,
            link.stream if link is not None else None,
            self.newest_opaque,
            self.retry,
            ended_at,
            error,
            abandoned,
        )

    def make_retry_machine(
        self, *, rng: Random, error_maps: ErrorMapStore, recorder: DecisionRecorder | None = None
    ) -> RetryMachine:
        """Create and return the retry machine of the request. With a recorder, the machine records its decisions."""
        annotation = RequestAnnotation(
            operation=self.request.name,
            idempotent=self.request.idempotent,
            # The cast is safe: a permit has the interface of a Couchbase strategy.
            strategy=cast(couchbase.AnyRetryStrategy, self.strategy),
            submitted_at=self.submitted_at,
            deadline=self.deadline,
            service=self.request.service,
            client_context=self.client_context or {},
            error_context=self.first_context(),
        )
        state = RetryState.IN_FLIGHT if self.stage is Stage.IN_FLIGHT else RetryState.PENDING
        if recorder is None or self.is_own:
            self.retry = RetryMachine(annotation, rng=rng, error_maps=error_maps, state=state)
        else:
            self.retry = recorder.retry_machine(
                annotation, rng=rng, error_maps=error_maps, state=state, call=self.recorded()
            )
        return self.retry
