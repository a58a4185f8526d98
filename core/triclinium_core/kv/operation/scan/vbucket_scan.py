"""The scan of one vbucket: which request comes next, and what a failure means. Pure: whoever drives it waits and sends.

Theory of operation. A scan is opened on the node that has the vbucket, and taken page by page. It lives there, so it ends
when the vbucket moves, when the node restarts or when it was left alone for long. Then another one is opened behind the
last document that was delivered; within a vbucket documents come in the order of their ids, so none is told twice. While
a vbucket moves, the node that opens a scan may not be the one that is asked to go on with it, so a scan that is opened
again and again in vain waits longer and longer in between. A sample has no place to go on from, so it is left as small
as it is.

Source: kv_engine ``docs/range_scans``; decisions C3, C9, C10, C34.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

from triclinium_core.checks import check_flag, check_integer, check_type
from triclinium_core.errors import CouchbaseException, DocumentNotFoundException
from triclinium_core.kv.operation.requests import JSON_TRANSCODER, Keyspace
from triclinium_core.kv.operation.results import MutationToken, RangeScanCreated, ScanPage, ScanResult
from triclinium_core.kv.operation.scan.requests import RangeScanCancel, RangeScanContinue, RangeScanCreate
from triclinium_core.kv.operation.scan.types import Bounds, Sample, SamplingScan, ScanType
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.retry.backoff import controlled
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.transcoding.transcoder import Transcoder

PAGE_MS_MAX = 10_000
"""After which a node stops looking for more: long before the time for the request is over."""

RESTARTS_MAX = 10
"""How often a scan is opened again without having brought anything."""

_GONE = frozenset({Status.KEY_NOT_FOUND, Status.NOT_MY_VBUCKET, Status.RANGE_SCAN_CANCELLED})
"""Statuses of a continuation that mean: this scan is over, and another one may be opened."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What is the same for all vbuckets of a scan.

    Raises:
        InvalidArgumentException: an option is wrong.
    """

    keyspace: Keyspace
    scan_type: ScanType
    ids_only: bool = False
    item_limit: int = 50
    """Documents of one page."""
    byte_limit: int = 15_000
    """Bytes of one page, but for its last document, which is whole; 0 for any."""
    tokens: Mapping[int, MutationToken] = field(default_factory=dict)
    """By vbucket, a mutation that the scan must have."""
    transcoder: Transcoder = JSON_TRANSCODER

    def __post_init__(self) -> None:
        check_type(self.scan_type, "scan_type", *ScanType.__args__)
        check_flag(self.ids_only, "ids_only")
        check_integer(self.item_limit, "batch_item_limit", 1, UINT32_MAX)
        check_integer(self.byte_limit, "batch_byte_limit", 0, UINT32_MAX)


class VBucketScan:
    """One vbucket. Wait for ``pause``, send what ``next_request`` returns, and tell what came of it, until ``is_done``.

    Args:
        seed: of a sample that has none of its own.
    """

    def __init__(self, options: ScanOptions, vbucket: int, *, seed: int) -> None:
        self.is_done: bool = False
        self._options = options
        self._vbucket = vbucket
        self._scan_id: bytes | None = None
        self._fruitless = 0
        """How often in a row a scan was opened that brought nothing."""
        scan_type = options.scan_type
        self._selection: Bounds | Sample = (
            Sample(scan_type.limit, seed if scan_type.seed is None else scan_type.seed)
            if isinstance(scan_type, SamplingScan)
            else scan_type.bounds
        )

    @property
    def pause(self) -> float:
        """Seconds to wait before the next request."""
        is_again = self._scan_id is None and self._fruitless > 1
        return controlled(self._fruitless - 2) if is_again else 0.0

    def next_request(self) -> RangeScanCreate | RangeScanContinue:
        """Return what to send now."""
        options = self._options
        if self._scan_id is None:
            token = options.tokens.get(self._vbucket)
            return RangeScanCreate(options.keyspace, self._vbucket, self._selection, options.ids_only, token)
        return RangeScanContinue(
            options.keyspace,
            self._vbucket,
            self._scan_id,
            options.item_limit,
            options.byte_limit,
            PAGE_MS_MAX,
            options.transcoder,
        )

    def cancel_request(self) -> RangeScanCancel | None:
        """Return what ends the scan that is open on the node, or None where none is."""
        if self._scan_id is None:
            return None
        return RangeScanCancel(self._options.keyspace, self._vbucket, self._scan_id)

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

    def failed(self, error: CouchbaseException) -> CouchbaseException | None:
        """Record a failure, and return what the whole scan fails with, or None where it goes on."""
        if self._scan_id is None:
            return self._not_opened(error)
        return self._not_continued(error)

    def _not_opened(self, error: CouchbaseException) -> CouchbaseException | None:
        if isinstance(error, DocumentNotFoundException):
            # There is nothing, or nothing any more, between the bounds.
            self.is_done = True
            return None
        if error.context.status == Status.RANGE_ERROR and isinstance(self._selection, Sample):
            # Older servers refuse a sample of more than there is; newer ones return all.
            self._selection = Bounds()
            return None
        return self._restart(error) if _was_on_its_way(error) else error

    def _not_continued(self, error: CouchbaseException) -> CouchbaseException | None:
        is_gone = error.context.status in _GONE or _was_on_its_way(error)
        if not is_gone:
            return error
        self._scan_id = None
        if isinstance(self._selection, Sample):
            self.is_done = True
            return None
        return self._restart(error)

    def _restart(self, error: CouchbaseException) -> CouchbaseException | None:
        self._fruitless += 1
        return error if self._fruitless > RESTARTS_MAX else None

    def _go_behind(self, last: ScanResult) -> None:
        if isinstance(self._selection, Bounds):
            start = last.id.encode("utf-8", "surrogateescape")
            self._selection = replace(self._selection, start=start, excludes_start=True)


def _was_on_its_way(error: CouchbaseException) -> bool:
    """Tell whether a request may have reached a node whose answer will never come: nobody is harmed by another one."""
    return error.context.refused_reason == RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT


def scan_order(options: ScanOptions, vbuckets: int, *, seed: int) -> Sequence[int]:
    """Return the vbuckets in the order in which they are scanned: for a sample in one that its seed shuffles.

    A sample is complete when it is large enough, so the first vbuckets would be in it more often than the last ones.
    """
    scan_type = options.scan_type
    if not isinstance(scan_type, SamplingScan):
        return range(vbuckets)
    chosen = seed if scan_type.seed is None else scan_type.seed
    return sorted(range(vbuckets), key=lambda vbucket: crc32(vbucket.to_bytes(4, "big"), chosen))


def newest_tokens(tokens: Sequence[MutationToken], keyspace: Keyspace) -> Mapping[int, MutationToken]:
    """Return the newest mutation of each vbucket; those of other buckets are passed over.

    Raises:
        InvalidArgumentException: one is no mutation token.
    """
    newest: dict[int, MutationToken] = {}
    for token in tokens:
        check_type(token, "consistent_with", MutationToken)
        if token.bucket != keyspace.bucket:
            continue
        known = newest.get(token.vbucket)
        if known is None or known.sequence_number < token.sequence_number:
            newest[token.vbucket] = token
    return newest
