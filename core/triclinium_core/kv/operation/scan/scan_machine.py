"""A scan of all vbuckets: order of the vbuckets, next request of each, and effect of a failure.

Theory of operation. Nothing is asked for before somebody wants a document. The first request is a NOOP: whoever answers
it has brought the map, which says how many vbuckets there are. So many of them are under way at once. Each has one
request open, or rests before the next one, or has one page ready and asks for no further one until that is taken. The
first failure ends the whole, behind the pages that are ready. A sample that is large enough ends it without one.

The scan of a vbucket is opened on the node that has it, and taken page by page. It lives there, so it ends when the
vbucket moves, when the node restarts or when it was left alone for long. Then another one is opened behind the last
document that was delivered; within a vbucket documents come in the order of their ids, so none is told twice. While a
vbucket moves, the node that opens a scan may not be the one that is asked to go on with it, so a scan that is opened
again and again in vain waits longer and longer in between. A sample has no place to go on from, so it is left as small
as it is.

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
"""Maximum number of documents in a page if the caller sets no limit, as for the rows that a reader gets together (decision
D65): the client reads a page in one go."""

PAGE_MS_MAX = 10_000
"""After which a node stops looking for more: long before the time for the request is over."""

RESTARTS_MAX = 10
"""How often a scan is opened again without having brought anything."""

_GONE = frozenset({Status.KEY_NOT_FOUND, Status.NOT_MY_VBUCKET, Status.RANGE_SCAN_CANCELLED})
"""Statuses of a continuation that mean: this scan is over, and another one may be opened."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What is to be scanned, and how fast.

    Raises:
        InvalidArgumentException: an option is wrong.
    """

    keyspace: Keyspace
    scan_type: ScanType
    ids_only: bool = False
    item_limit: int = 50
    """Documents of one page; 0 for as many as the client reads in one go, ``PAGE_ITEMS_MAX``."""
    byte_limit: int = 15_000
    """Bytes of one page, but for its last document, which is whole; 0 for any."""
    tokens: Mapping[int, MutationToken] = field(default_factory=dict)
    """By vbucket, a mutation that the scan must have."""
    transcoder: Transcoder = JSON_TRANSCODER
    concurrency: int = 1
    """How many vbuckets are under way at once."""

    def __post_init__(self) -> None:
        check_type(self.scan_type, "scan_type", *ScanType.__args__)
        check_flag(self.ids_only, "ids_only")
        check_integer(self.item_limit, "batch_item_limit", 0, UINT32_MAX)
        check_integer(self.byte_limit, "batch_byte_limit", 0, UINT32_MAX)
        check_integer(self.concurrency, "concurrency", 1, CONCURRENCY_MAX)

    def selection(self, seed: int) -> Bounds | Sample:
        """Return what each vbucket is asked for; ``seed`` is that of a sample that has none of its own."""
        scan_type = self.scan_type
        if isinstance(scan_type, SamplingScan):
            return Sample(scan_type.limit, seed if scan_type.seed is None else scan_type.seed)
        return scan_type.bounds


def newest_tokens(tokens: Sequence[MutationToken], keyspace: Keyspace) -> Mapping[int, MutationToken]:
    """Return the newest mutation of each vbucket; those of other buckets are passed over.

    Raises:
        InvalidArgumentException: they are no sequence, or one is no mutation token that a server tells.
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
    """One vbucket. Wait for ``pause``, send what ``next_request`` returns, and tell what came of it, until ``is_done``."""

    def __init__(self, options: ScanOptions, vbucket: int, selection: Bounds | Sample) -> None:
        self.vbucket: int = vbucket
        self.is_done: bool = False
        self._options = options
        self._selection = selection
        """What is still to be found."""
        self._scan_id: bytes | None = None
        self._fruitless = 0
        """How often in a row a scan was opened that brought nothing."""

    @property
    def pause(self) -> float:
        """Seconds to wait before the next request."""
        is_again = self._scan_id is None and self._fruitless > 1
        return controlled(self._fruitless - 2) if is_again else 0.0

    def next_request(self) -> scan_requests.RangeScanCreate | scan_requests.RangeScanContinue:
        """Return what to send now."""
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
        """Return what ends the scan that is open on the node, or None where none is."""
        if self._scan_id is None:
            return None
        return scan_requests.RangeScanCancel(self._options.keyspace, self.vbucket, self._scan_id)

    def succeeded(self, result: RangeScanCreated | ScanPage) -> Sequence[ScanResult]:
        """Record a success, and return the documents that it has brought."""
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
        """Record a failure, and return what the whole scan fails with, or None where it goes on."""
        if self._scan_id is None:
            return self._not_opened(error)
        return self._not_continued(error)

    def _not_opened(self, error: errors.CouchbaseException) -> errors.CouchbaseException | None:
        if isinstance(error, errors.DocumentNotFoundException):
            # There is nothing, or nothing any more, between the bounds.
            self.is_done = True
            return None
        if error.context.status == Status.RANGE_ERROR and isinstance(self._selection, Sample):
            # Older servers refuse a sample of more than there is; newer ones return all.
            self._selection = Bounds()
            return None
        return self._restart(error) if _was_on_its_way(error) else error

    def _not_continued(self, error: errors.CouchbaseException) -> errors.CouchbaseException | None:
        is_gone = error.context.status in _GONE or _was_on_its_way(error)
        if not is_gone:
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
    """A ``FanOut`` that scans all vbuckets, and gives the documents that it finds page by page.

    Args:
        seed: of a sample that has none of its own.
    """

    def __init__(self, options: ScanOptions, *, seed: int) -> None:
        self.options: ScanOptions = options
        self.bucket: str | None = options.keyspace.bucket
        self.wakeup: float = math.inf
        self.failure: Exception | None = None
        self._selection = options.selection(seed)
        self._missing = self._selection.size if isinstance(self._selection, Sample) else math.inf
        """How many documents are still wanted."""
        self._is_wanted = False
        self._is_ended = False
        self._first: Sequence[Operation] = (Noop(options.keyspace),)
        """What is asked before all else, until it was."""
        self._unscanned: deque[int] | None = None
        """Vbuckets whose turn has not come; None before there is a map."""
        self._under_way: dict[int, VBucketScan] = {}
        # Of those, the ones that go on, the ones that rest until then, and the ones with a page that nobody has taken.
        self._idle: list[VBucketScan] = []
        self._resting: list[tuple[float, VBucketScan]] = []
        self._ready: deque[tuple[VBucketScan, Sequence[ScanResult]]] = deque()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be scanned."""
        return self._is_ended or (self._unscanned is not None and not self._unscanned and not self._under_way)

    def next_operations(self, now: float, *, replicas: int | None = None) -> Sequence[Operation]:
        """Return what to submit now: one request at most for each vbucket that is under way."""
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
        """Record what became of a request."""
        if isinstance(operation, scan_requests.VBucketOperation):
            self._request_settled(self._under_way[operation.vbucket], outcome)
        elif isinstance(outcome, Exception):
            self._end(outcome)
        else:
            # Where there is no map, as with a memcached, the request for the first one says what is wrong.
            self._unscanned = deque(_order(self._selection, max(vbuckets, 1)))

    def take(self) -> Sequence[ScanResult]:
        """Return the documents of the page that has been ready for longest, and have its vbucket go on."""
        self._is_wanted = True
        if not self._ready:
            return ()
        scan, page = self._ready.popleft()
        self._go_on(scan)
        if len(page) >= self._missing:
            # A sample of each vbucket is larger than the sample of all.
            page = page[: int(self._missing)]
            self._end(None)
            self.failure = None
        self._missing -= len(page)
        return page

    def close(self) -> Sequence[Operation]:
        """End the scan, and return what ends those that are open on nodes."""
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
    """Return the vbuckets in the order in which they are scanned: for a sample in one that its seed shuffles.

    A sample is complete when it is large enough, so the first vbuckets would be in it more often than the last ones.
    """
    if isinstance(selection, Bounds):
        return range(vbuckets)
    return sorted(range(vbuckets), key=lambda vbucket: crc32(vbucket.to_bytes(4, "big"), selection.seed))


def _was_on_its_way(error: errors.CouchbaseException) -> bool:
    """Tell whether a request may have reached a node whose answer will never come: nobody is harmed by another one."""
    return error.context.refused_reason == RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT
