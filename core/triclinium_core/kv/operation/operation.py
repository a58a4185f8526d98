"""One operation on its way: what the client keeps of it between submission and settlement.

The retry machine is made at the first failure, so that an operation that succeeds allocates nothing for retrying
(decision C38).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import msgspec

from triclinium_core.client.timers import TimerId
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.durability import DURABLE_TIMEOUT_MIN, DurabilityLevel
from triclinium_core.kv.operation.link import Link
from triclinium_core.kv.operation.measured import MeasuredOperation
from triclinium_core.kv.operation.requests import Operation
from triclinium_core.kv.operation.results import ScanPage, ScanResult
from triclinium_core.kv.operation.scan.requests import RangeScanContinue
from triclinium_core.kv.topology.bucket_map import BucketMap
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.request_tokens import AnyRequestTokens
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import strategy as couchbase
from triclinium_core.retry.couchbase.machine import RequestAnnotation, RetryMachine
from triclinium_core.retry.couchbase.states import RequestState
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.telemetry.past_attempts import PastAttempts

_NONE = DurabilityLevel.NONE


def context_of(
    request: Operation, *, opaque: int | None = None, node: str | None = None, sender: str | None = None
) -> ErrorContext:
    """Return what errors tell of an operation, and of an attempt at it."""
    keyspace = request.keyspace
    return ErrorContext(
        service=str(Service.KV),
        operation=request.name,
        idempotent=request.idempotent,
        bucket=keyspace.bucket,
        scope=keyspace.scope,
        collection=keyspace.collection,
        key=request.key or None,
        opaque=opaque,
        last_dispatched_to=node,
        last_dispatched_from=sender,
    )


def timeout_of(operation: Operation, timeouts: TimeoutOptions) -> float:
    """Return the seconds that an operation may take with all its retries."""
    if operation.durability is not _NONE:
        return max(timeouts.kv_durable, DURABLE_TIMEOUT_MIN)
    return timeouts.kv_scan if operation.is_scan else timeouts.kv


PAGE_SIZE_FACTOR_MAX = 32
"""Maximum ratio of the bytes of a scan page, without its last document, to the bytes that were requested. A node may
count documents as snappy blocks, which inflate to 21 times their size."""

PAGE_SIZE_BYTES_FREE = 1024 * 1024
"""Bytes that a page may have in addition to that."""


class LiveOperation(msgspec.Struct, eq=False):
    """One operation, its newest attempt, and its retry machine once there is one. Instants are monotonic seconds."""

    token: int
    request: Operation
    strategy: AnyRetryStrategy
    client_context: Mapping[str, object] | None
    is_traced: bool
    """Whether the attempts are told for a tracer."""
    submitted_at: float
    deadline: float
    deadline_timer: TimerId | None = None
    """None where the deadline is that of most operations, which need none."""
    retry_timer: TimerId | None = None
    retry: RetryMachine | None = None
    link: Link | None = None
    """On which the newest attempt was sent."""
    opaque: int | None = None
    """Of the attempt that is in flight; None while there is none."""
    vbucket: int = 0
    map: BucketMap | None = None
    """By which the newest attempt was sent."""
    wrong_node_count: int = 0
    """How many nodes in turn said that the vbucket is not theirs, although that map says so."""
    tokens: AnyRequestTokens | None = None
    """What a token strategy has lent the operation; None under Couchbase's strategies."""
    dispatched_at: float | None = None
    """When the attempt was sent that is not over; None while there is none."""
    last_opaque: int | None = None
    """Of the newest attempt that is over."""
    past: PastAttempts | None = None
    """The attempts that are over; None before there is one."""
    found: list[ScanResult] | None = None
    """What the answers to a scan have brought of a page that is not whole yet."""
    found_size: int = 0
    """Total size of those documents in bytes."""
    is_part: bool = False
    """Whether the meter counts the call that the operation is a part of, and not the operation."""

    def gather(self, page: ScanPage) -> Sequence[ScanResult]:
        """Return what has come of a page of a scan, with what this answer has brought of it.

        Raises:
            MalformedResponse: the page has more than was asked for.
        """
        assert isinstance(self.request, RangeScanContinue)
        self.found = self.found or []
        self.found += page.items
        self.found_size += sum(len(item.stored or b"") for item in page.items)
        limit = self.request.byte_limit
        # The last document of a page is whole, however large it is.
        before_last = self.found_size - len(self.found[-1].stored or b"") if self.found else 0
        if limit and before_last > PAGE_SIZE_BYTES_FREE + PAGE_SIZE_FACTOR_MAX * limit:
            raise MalformedResponse(f"{before_last} bytes precede the last item; requested: {limit}")
        if len(self.found) > self.request.item_limit:
            raise MalformedResponse(f"{len(self.found)} items came, and {self.request.item_limit} were asked for")
        return self.found

    def end_attempt(self, now: float, server_seconds: float | None) -> bool:
        """Measure the attempt that is over; return whether there was one.

        Args:
            server_seconds: for how long the node says it has worked on it; None where it did not tell, or not answer.
        """
        if self.dispatched_at is None:
            return False
        self.last_opaque = self.opaque
        self.past = self.past or PastAttempts()
        self.past.add(now - self.dispatched_at, server_seconds)
        self.dispatched_at = None
        return True

    def measured(self) -> MeasuredOperation:
        """Return what was measured so far."""
        return MeasuredOperation(
            name=self.request.name,
            encode_seconds=self.request.encode_seconds,
            submitted_at=self.submitted_at,
            deadline=self.deadline,
            opaque=self.opaque if self.opaque is not None else self.last_opaque,
            link=self.link,
            dispatched_at=self.dispatched_at,
            past=self.past or PastAttempts(),
        )

    @property
    def stream(self) -> int | None:
        """The stream on which an attempt is in flight; None while there is none."""
        return self.link.stream if self.link is not None and self.opaque is not None else None

    @property
    def obstacle(self) -> str | None:
        """Why a token strategy has not let the operation begin yet, in words; None where it has, or there is none."""
        return self.tokens.obstacle if self.tokens is not None else None

    @property
    def idempotent(self) -> bool:
        """Whether the operation may be sent again at any stage."""
        return self.request.idempotent

    @property
    def is_ambiguous(self) -> bool:
        """Whether the operation, given up now, may still be applied or have been (decision C25)."""
        if self.retry is not None:
            return self.retry.is_ambiguous
        return self.opaque is not None and not self.idempotent

    def retry_machine(self, *, rng: Random, error_maps: ErrorMapStore) -> RetryMachine:
        """Return the operation's retry machine, made now if this is its first failure."""
        if self.retry is None:
            annotation = RequestAnnotation(
                operation=self.request.name,
                idempotent=self.idempotent,
                # A token strategy is asked through the tokens of the operation, which have this shape.
                strategy=cast(couchbase.AnyRetryStrategy, self.strategy),
                submitted_at=self.submitted_at,
                deadline=self.deadline,
                client_context=self.client_context or {},
                error_context=self.error_context(),
            )
            self.retry = RetryMachine(annotation, rng=rng, error_maps=error_maps, state=self._first_state)
        return self.retry

    def abandoned_context(self, now: float) -> ErrorContext:
        """Return what is known of the operation if it is given up now."""
        if self.retry is not None:
            return replace(self.retry.error_context(now), state=self.retry.state.value)
        return replace(
            self.error_context(),
            state=self._first_state.value,
            elapsed=now - self.submitted_at,
            timeout=self.deadline - self.submitted_at if self.deadline < math.inf else None,
            last_dispatch_error=self.obstacle,
        )

    @property
    def _first_state(self) -> RequestState:
        """Where the first attempt stands."""
        return RequestState.PENDING if self.opaque is None else RequestState.IN_FLIGHT

    def error_context(self) -> ErrorContext:
        """Return what is known of the operation without a retry machine."""
        link = self.link
        if link is None:
            return context_of(self.request, opaque=self.opaque)
        return context_of(self.request, opaque=self.opaque, node=link.node, sender=link.local_address)
