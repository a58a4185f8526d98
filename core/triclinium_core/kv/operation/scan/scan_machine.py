"""Scan of all vbuckets: the order of the vbuckets, the next request for each, and the effect of a failure.

Theory of operation. The machine returns no request before the caller wants a document. The first request is a NOOP. Its
response implies that the client has the map, and with it the number of vbuckets. The machine scans up to
``concurrency`` vbuckets at the same time. The scan of a vbucket has one open request, pauses before the next request,
or has one page ready. It requests no further page until the caller has taken the ready page. Except for the cases
below, the first failure ends the complete scan after the ready pages. A sample ends without a failure once it is large
enough.

The machine opens the scan of a vbucket on the node that has the vbucket, and reads the scan page by page. The scan
exists only on that node, so it ends when the vbucket moves, when the node restarts or after a long idle time. Then the
machine opens a new scan, which starts after the last delivered document. Within a vbucket, documents arrive in the
order of their ids, so no document is delivered twice. While a vbucket moves, the client may send the request to
continue to another node than the request to open. Therefore a growing backoff separates repeated attempts without a
document. A sample has no position from which to continue, so the machine does not restart the sample of a vbucket, and
that sample stays smaller.

Source: kv_engine ``docs/range_scans``; decisions C3, C9, C10, C34, D23.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_integer, check_type
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, Keyspace, Noop, Operation
from triclinium_core.kv.operation.mutation_tokens import check_mutation_token
from triclinium_core.kv.operation.results import MutationToken, RangeScanCreated, ScanPage, ScanResult
from triclinium_core.kv.operation.scan import scan_requests
from triclinium_core.kv.operation.scan.scans import Bounds, Sample, SamplingScan, ScanType
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.retry.backoff import controlled
from triclinium_core.retry.couchbase import RetryReason, Status
from triclinium_core.transcoding.transcoder import Transcoder

CONCURRENCY_MAX = 1024

PAGE_ITEMS_MAX = 8_192
"""Maximum number of documents in a page if the caller sets no limit. The client decodes a page in one step. Decision
D65 has the same limit for the rows that a reader gets together."""

PAGE_MS_MAX = 10_000
"""Time after which a node ends a page, in milliseconds. It is much shorter than the default timeout of the request."""

RESTARTS_MAX = 10
"""Maximum number of consecutive restarts of a vbucket's scan without a document."""

_LOST = frozenset({Status.KEY_NOT_FOUND, Status.NOT_MY_VBUCKET, Status.RANGE_SCAN_CANCELLED})
"""Statuses of a request to continue which mean that the scan no longer exists. The machine may open another scan."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """Documents to scan, and limits for pages and concurrency.

    Raises:
        InvalidArgumentException: an option is invalid.
    """

    keyspace: Keyspace
    scan_type: ScanType
    ids_only: bool = False
    item_limit: int = 50
    """Maximum number of documents in a page; 0 for ``PAGE_ITEMS_MAX``."""
    byte_limit: int = 15_000
    """Maximum number of bytes in a page, which the last document may exceed; 0 for no limit."""
    tokens: Mapping[int, MutationToken] = field(default_factory=dict)
    """Mutation that the scan of each vbucket must include, by vbucket."""
    transcoder: Transcoder = JSON_TRANSCODER
    concurrency: int = 1
    """Maximum number of vbuckets to scan at the same time."""

    def __post_init__(self) -> None:
        check_type(self.scan_type, "scan_type", *ScanType.__args__)
        check_flag(self.ids_only, "ids_only")
        check_integer(self.item_limit, "batch_item_limit", 0, UINT32_MAX)
        check_integer(self.byte_limit, "batch_byte_limit", 0, UINT32_MAX)
        check_integer(self.concurrency, "concurrency", 1, CONCURRENCY_MAX)

    def selection(self, seed: int) -> Bounds | Sample:
        """Return the selection for each vbucket. A sample without a seed uses ``seed``."""
        scan_type = self.scan_type
        if isinstance(scan_type, SamplingScan):
            return Sample(scan_type.limit, seed if scan_type.seed is None else scan_type.seed)
        return scan_type.bounds


def newest_tokens(tokens: Sequence[MutationToken], keyspace: Keyspace) -> Mapping[int, MutationToken]:
    """Return the newest mutation of each vbucket. Ignore mutations of other buckets.

    Raises:
        InvalidArgumentException: ``tokens`` is not a sequence, or an element is not a valid mutation token.
    """
    check_type(tokens, "consistent_with", Sequence)
    newest: dict[int, MutationToken] = {}
    for token in tokens:
        check_mutation_token(token, "consistent_with")
        if token.bucket != keyspace.bucket:
            continue
        known = newest.get(token.vbucket)
        if known is None or known.sequence_number < token.sequence_number:
            newest[token.vbucket] = token
    return newest


class VBucketScan:
    """Scan of one vbucket.

    Until ``is_done``: wait for ``pause``, send the request that ``next_request`` returns, and pass its outcome to
    ``succeeded`` or ``failed``.
    """

    def __init__(self, options: ScanOptions, vbucket: int, selection: Bounds | Sample) -> None:
        self.vbucket: int = vbucket
        self.is_done: bool = False
        self._options = options
        self._selection = selection
        """Selection of the documents that the scan has not delivered yet."""
        self._scan_id: bytes | None = None
        self._fruitless = 0
        """Number of consecutive restarts of the scan without a document."""

    @property
    def pause(self) -> float:
        """Seconds to wait before the next request."""
        is_again = self._scan_id is None and self._fruitless > 1
        return controlled(self._fruitless - 2) if is_again else 0.0

    def next_request(self) -> scan_requests.RangeScanCreate | scan_requests.RangeScanContinue:
        """Return the request to send now."""
        options = self._options
        if self._scan_id is None:
            token = options.tokens.get(self.vbucket)
            return scan_requests.RangeScanCreate(
                options.keyspace, self.vbucket, self._selection, options.ids_only, token
            )
        return scan_requests.RangeScanContinue(
            options.keyspace,
            self.vbucket,
            self._scan_id,
            options.item_limit or PAGE_ITEMS_MAX,
            options.byte_limit,
            PAGE_MS_MAX,
            options.transcoder,
        )

    def cancel_request(self) -> scan_requests.RangeScanCancel | None:
        """Return the request that cancels the open scan on the node, or None if no scan is open."""
        if self._scan_id is None:
            return None
        return scan_requests.RangeScanCancel(self._options.keyspace, self.vbucket, self._scan_id)

    def succeeded(self, result: RangeScanCreated | ScanPage) -> Sequence[ScanResult]:
        """Record a successful response, and return its documents."""
        if isinstance(result, RangeScanCreated):
            self._scan_id = result.scan_id
            return ()
        if result.items:
            self._fruitless = 0
            self._go_behind(result.items[-1])
        if result.is_complete:
            self.is_done, self._scan_id = True, None
        return result.items

    def failed(self, error: errors.CouchbaseException) -> errors.CouchbaseException | None:
        """Record a failure. Return the error that ends the complete scan, or None if the scan continues."""
        if self._scan_id is None:
            return self._not_opened(error)
        return self._not_continued(error)

    def _not_opened(self, error: errors.CouchbaseException) -> errors.CouchbaseException | None:
        if isinstance(error, errors.DocumentNotFoundException):
            # The vbucket has no document, or no further document, between the bounds.
            self.is_done = True
            return None
        if error.context.status == Status.RANGE_ERROR and isinstance(self._selection, Sample):
            # The sample is larger than the vbucket, which older servers refuse. Scan all documents, as newer servers
            # do.
            self._selection = Bounds()
            return None
        return self._restart(error) if _was_on_its_way(error) else error

    def _not_continued(self, error: errors.CouchbaseException) -> errors.CouchbaseException | None:
        is_lost = error.context.status in _LOST or _was_on_its_way(error)
        if not is_lost:
            return error
        self._scan_id = None
        if isinstance(self._selection, Sample):
            self.is_done = True
            return None
        return self._restart(error)

    def _restart(self, error: errors.CouchbaseException) -> errors.CouchbaseException | None:
        self._fruitless += 1
        return error if self._fruitless > RESTARTS_MAX else None

    def _go_behind(self, last: ScanResult) -> None:
        if isinstance(self._selection, Bounds):
            start = last.id.encode("utf-8", "surrogateescape")
            self._selection = replace(self._selection, start=start, excludes_start=True)


class ScanMachine:
    """``FanOut`` that scans all vbuckets, and delivers the documents page by page.

    Args:
        seed: seed for a sample whose options have no seed.
    """

    def __init__(self, options: ScanOptions, *, seed: int) -> None:
        self.options: ScanOptions = options
        self.bucket: str | None = options.keyspace.bucket
        self.wakeup: float = math.inf
        self.failure: Exception | None = None
        self._selection = options.selection(seed)
        self._missing = self._selection.size if isinstance(self._selection, Sample) else math.inf
        """Number of documents that the sample still lacks; ``inf`` for a scan that is not a sample."""
        self._is_wanted = False
        self._is_ended = False
        self._first: Sequence[Operation] = (Noop(options.keyspace),)
        """Operations to submit before all others. Empty once ``next_operations`` has returned them."""
        self._unscanned: deque[int] | None = None
        """Vbuckets whose scan has not started; None before the number of vbuckets is known."""
        self._under_way: dict[int, VBucketScan] = {}
        # Scans of ``_under_way``: those that may send a request, those that pause until a time, and those whose page
        # was not taken.
        self._idle: list[VBucketScan] = []
        self._resting: list[tuple[float, VBucketScan]] = []
        self._ready: deque[tuple[VBucketScan, Sequence[ScanResult]]] = deque()

    @property
    def is_over(self) -> bool:
        """Whether the scan has ended, or no vbucket is left to scan."""
        return self._is_ended or (self._unscanned is not None and not self._unscanned and not self._under_way)

    def next_operations(self, now: float, *, replicas: int | None = None) -> Sequence[Operation]:
        """Return the operations to submit now: first a NOOP, then at most one request for each vbucket under way."""
        if not self._is_wanted or self._is_ended:
            return ()
        while self._unscanned and len(self._under_way) < self.options.concurrency:
            vbucket = self._unscanned.popleft()
            scan = self._under_way[vbucket] = VBucketScan(self.options, vbucket, self._selection)
            self._idle.append(scan)
        waiting = [*self._resting, *((now + scan.pause, scan) for scan in self._idle)]
        self._idle.clear()
        self._resting = [(due, scan) for due, scan in waiting if due > now]
        self.wakeup = min((due for due, _ in self._resting), default=math.inf)
        first, self._first = self._first, ()
        return [*first, *(scan.next_request() for due, scan in waiting if due <= now)]

    def settled(self, operation: Operation, outcome: object, *, vbuckets: int, replicas: int | None) -> None:
        """Record the outcome of a request."""
        if isinstance(operation, scan_requests.VBucketOperation):
            self._request_settled(self._under_way[operation.vbucket], outcome)
        elif isinstance(outcome, Exception):
            self._end(outcome)
        else:
            # Without a map, as with a plain memcached, scan vbucket 0: the request fails with the reason.
            self._unscanned = deque(_order(self._selection, max(vbuckets, 1)))

    def take(self) -> Sequence[ScanResult]:
        """Return the documents of the oldest ready page; nothing if no page is ready.

        The scan of the page's vbucket can then continue.
        """
        self._is_wanted = True
        if not self._ready:
            return ()
        scan, page = self._ready.popleft()
        self._go_on(scan)
        if len(page) >= self._missing:
            # Cut the page: the samples of all vbuckets together may be larger than the requested sample.
            page = page[: int(self._missing)]
            self._end(None)
            self.failure = None
        self._missing -= len(page)
        return page

    def close(self) -> Sequence[Operation]:
        """End the scan, and return the requests that cancel the open scans on the nodes."""
        self._end(None)
        cancels = [scan.cancel_request() for scan in self._under_way.values()]
        return [cancel for cancel in cancels if cancel is not None]

    def _request_settled(self, scan: VBucketScan, outcome: object) -> None:
        page: Sequence[ScanResult] = ()
        if isinstance(outcome, Exception):
            failure = scan.failed(outcome) if isinstance(outcome, errors.CouchbaseException) else outcome
            if failure is not None:
                self._end(failure)
        else:
            assert isinstance(outcome, RangeScanCreated | ScanPage)
            page = scan.succeeded(outcome)
        if self._is_ended:
            return
        if page:
            self._ready.append((scan, page))
        else:
            self._go_on(scan)

    def _go_on(self, scan: VBucketScan) -> None:
        if scan.is_done:
            del self._under_way[scan.vbucket]
        else:
            self._idle.append(scan)

    def _end(self, failure: Exception | None) -> None:
        if not self._is_ended:
            self._is_ended, self.failure, self.wakeup = True, failure, math.inf


def _order(selection: Bounds | Sample, vbuckets: int) -> Sequence[int]:
    """Return the vbuckets in the order of the scan. For a sample, shuffle them with its seed.

    A sample ends once it is large enough, so in a fixed order it would prefer documents of the first vbuckets.
    """
    if isinstance(selection, Bounds):
        return range(vbuckets)
    return sorted(range(vbuckets), key=lambda vbucket: crc32(vbucket.to_bytes(4, "big"), selection.seed))


def _was_on_its_way(error: errors.CouchbaseException) -> bool:
    """Return whether the stream closed while the request was in flight. The client can then repeat a scan request."""
    return error.context.refused_reason == RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT
