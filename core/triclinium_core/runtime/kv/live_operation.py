"""Open key-value operation and its newest attempt."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.document_operations import Keyspace, Operation
from triclinium_core.kv.operation.operation import context_of
from triclinium_core.kv.operation.results import ScanPage, ScanResult
from triclinium_core.kv.operation.scan.scan_requests import RangeScanContinue
from triclinium_core.kv.topology.bucket_map import BucketMap
from triclinium_core.runtime.lifecycle.live import Live
from triclinium_core.runtime.lifecycle.measured import Measured
from triclinium_core.telemetry.past_attempts import PastAttempts

PAGE_SIZE_FACTOR_MAX = 32
"""Maximum ratio of the size of a scan page, without its last document, to the requested size. A node may count the
compressed size of documents, and snappy blocks inflate to up to 21 times their size."""

PAGE_SIZE_BYTES_FREE = 1024 * 1024
"""Bytes that a scan page may have in addition to ``PAGE_SIZE_FACTOR_MAX`` times the requested size."""


class LiveOperation(Live[Operation], eq=False):
    """Open key-value operation."""

    is_traced: bool = False
    """Whether the attempts are reported to a tracer."""
    opaque: int | None = None
    """Opaque of the attempt in flight; None without one."""
    vbucket: int = 0
    map: BucketMap | None = None
    """Map in which the client found the node of the newest attempt; None without a map."""
    wrong_node_count: int = 0
    """Number of attempts in which a node refused the vbucket, although ``map`` names the node for it."""
    last_opaque: int | None = None
    """Opaque of the newest attempt that has ended; None before."""
    found: list[ScanResult] | None = None
    """Documents of a scan page that have arrived so far; None before the first response."""
    found_size: int = 0
    """Total size of the documents in ``found``, in bytes."""

    @property
    def bucket(self) -> str | None:
        """Bucket of the operation; None for an operation without a bucket."""
        return self.request.keyspace.bucket

    @property
    def stream(self) -> int | None:
        """Stream of the attempt in flight; None without one."""
        return self.link.stream if self.link is not None and self.opaque is not None else None

    @property
    def key(self) -> str:
        """Key of the document; empty without one."""
        return self.request.key

    @property
    def place(self) -> Keyspace:
        """Bucket, scope and collection of the operation."""
        return self.request.keyspace

    @property
    def newest_opaque(self) -> int | None:
        """Opaque of the newest attempt; None without an attempt."""
        return self.opaque if self.opaque is not None else self.last_opaque

    def is_measured_if_left(self, reason: AbandonReason) -> bool:
        """Return whether the user's call ends with this operation.

        The call continues if it does not need or await the result.
        """
        return self.request.is_awaited and reason is not AbandonReason.NOT_NEEDED

    def first_context(self) -> ErrorContext:
        """Return the context of the operation and of its newest attempt."""
        link = self.link
        if link is None:
            return context_of(self.request, opaque=self.opaque)
        return context_of(self.request, opaque=self.opaque, node=link.node, sender=link.local_address)

    def seconds_taken(self, now: float) -> float:
        """Return the duration of the call so far, including the encoding before the operation was submitted."""
        return now - self.submitted_at + self.request.encode_seconds

    def end_attempt(self, now: float, server_seconds: float | None = None) -> bool:
        """Record the duration of the attempt that has ended. Return whether there was an attempt.

        Args:
            server_seconds: duration that the node reported; None if it reported none.
        """
        is_over = super().end_attempt(now, server_seconds)
        if is_over:
            self.last_opaque = self.opaque
        return is_over

    def measured(self) -> Measured:
        """Return the measurements so far."""
        opaque, encode_seconds = self.newest_opaque, self.request.encode_seconds
        return Measured(
            service=self.request.service,
            name=self.request.name,
            began_at=self.submitted_at - encode_seconds,
            timeout=self.deadline - self.submitted_at,
            encode_seconds=encode_seconds or None,
            operation_id=f"0x{opaque:x}" if opaque is not None else None,
            link=self.link,
            dispatched_at=self.dispatched_at,
            past=self.past or PastAttempts(),
        )

    def gather(self, page: ScanPage) -> Sequence[ScanResult]:
        """Add the documents of a response to those of a scan page, and return all of them.

        Raises:
            MalformedResponse: the page has more documents, or far more bytes, than the client requested.
        """
        assert isinstance(self.request, RangeScanContinue)
        self.found = self.found or []
        self.found += page.items
        self.found_size += sum(len(item.stored or b"") for item in page.items)
        limit = self.request.byte_limit
        # A node ends a page with a complete document, so the last document may exceed the limit by any number of bytes.
        before_last = self.found_size - len(self.found[-1].stored or b"") if self.found else 0
        if limit and before_last > PAGE_SIZE_BYTES_FREE + PAGE_SIZE_FACTOR_MAX * limit:
            raise MalformedResponse(f"{before_last} bytes of the page precede its last item; requested: {limit}")
        if len(self.found) > self.request.item_limit:
            raise MalformedResponse(f"{len(self.found)} items received; requested: {self.request.item_limit}")
        return self.found
