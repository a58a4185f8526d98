"""Document store of a fake node: documents with CAS, locks and expiry, on injected time.

Source: kv_engine docs/BinaryProtocol.md (0x94, 0x95), docs/Document.md ("Expiry time"); its ep engine for the rules of
locks.
"""

from __future__ import annotations

import heapq
import math
import zlib
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration, check_integer
from triclinium_core.json_depth import shallow
from triclinium_core.kv.operation.validation import RELATIVE_EXPIRY_MAX, UINT32_MAX, check_value
from triclinium_core.kv.wire.constants import Datatype
from triclinium_core.retry.couchbase import Status
from triclinium_core.shown import total_repr
from triclinium_core.testing.fakes.answers import CommandRefused
from triclinium_core.testing.fakes.store.histories import Histories, History
from triclinium_core.transcoding.flags import JSON_FLAGS

LOCKED_CAS = 0xFFFF_FFFF_FFFF_FFFF
"""CAS of a locked document that readers see: only the lock's holder knows the real CAS."""

LOCK_SECONDS_DEFAULT = 15
LOCK_SECONDS_MAX = 30
"""Maximum lock time in seconds; the node silently replaces a longer time with the default."""

REMAINS_MAX = 250
"""Maximum number of removed and expired documents whose remains the node keeps, unless replication is held back.

A real node purges them after days; a test reads only the newest few.
"""
REMAINS_SIZE_BYTES_MAX = 4 * 1024 * 1024
"""Maximum total size of the attributes of all remains: one document may leave one megabyte."""
EXPIRIES_MIN = 64
"""Minimum length at which the heap of expiries is rebuilt; rebuilding a shorter heap saves too little."""

_CAS_LOW_BITS = 0xFFFF


class DocumentAddress(NamedTuple):
    """Address of a document. A client that computes another vbucket for a key looks at another address."""

    bucket: str
    vbucket: int
    collection_id: int
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One version of a document. Times are on the node's clock, like ``now``."""

    value: bytes
    flags: int
    cas: int
    sequence_number: int
    datatype: Datatype
    expires_at: float = math.inf
    locked_until: float = -math.inf
    is_deleted: bool = False
    xattrs: Mapping[str, bytes] = field(default_factory=dict)
    """Extended attributes, as JSON by key."""


Snapshot = Mapping[DocumentAddress, Document]
"""Documents at one moment, including the remains of removed documents."""


class FakeDocuments:
    """Documents of all buckets.

    ``now`` is the time of the nodes' last event. ``changes`` counts writes, removals, locks and unlocks.

    Tests identify a document by bucket name, key and collection id; the node uses addresses.
    """

    def __init__(self, *, vbuckets: int, wall_seconds_at_zero: float) -> None:
        self.now: float = 0.0
        self.changes: int = 0
        self._vbuckets = vbuckets
        self._wall_seconds_at_zero = wall_seconds_at_zero
        self._documents: dict[DocumentAddress, Document] = {}
        self._addresses: defaultdict[tuple[str, int, int], set[DocumentAddress]] = defaultdict(set)
        """Addresses of all documents, by bucket, vbucket and collection, so that a scan reads no other documents."""
        self.prepared: dict[DocumentAddress, Document] = {}
        """Versions that durable writes have prepared and not committed yet, by address."""
        self._hidden: list[Document] | None = None
        """Versions written while writes are hidden; None while they are visible."""
        self.histories: Histories = Histories()
        self._remains: OrderedDict[DocumentAddress, int] = OrderedDict()
        """Size of the attributes of each removed document, in order of removal."""
        self._remains_size = 0
        self._expiries: list[tuple[float, DocumentAddress]] = []
        """Heap of the expiry times of documents. Entries of earlier versions stay in the heap."""
        self._last_cas = 0

    @total_repr
    def __repr__(self) -> str:
        return f"<FakeDocuments: {len(self._documents)} documents>"

    # Interface for tests.

    def get(self, bucket: str, key: str | bytes, *, collection_id: int = 0) -> Document | None:
        """Return the current document, with its real CAS even while it is locked; None if it does not exist."""
        return self.find(self.address(bucket, key, collection_id=collection_id))

    def get_prepared(self, bucket: str, key: str | bytes, *, collection_id: int = 0) -> Document | None:
        """Return the version of a durable write that is not committed yet; None if there is no such write."""
        return self.prepared.get(self.address(bucket, key, collection_id=collection_id))

    def put(
        self,
        bucket: str,
        key: str | bytes,
        value: bytes,
        *,
        flags: int = JSON_FLAGS,
        expires_after: Duration = math.inf,
        collection_id: int = 0,
        xattrs: Mapping[str, bytes] | None = None,
    ) -> Document:
        """Write a document, regardless of locks, and return it.

        Args:
            expires_after: lifetime in seconds; 0 for a document that has expired already. Default: no expiry.
            xattrs: extended attributes, as JSON by key. Default: keep the attributes of the existing document.

        Raises:
            InvalidArgumentException: an argument is invalid.
            ValueTooLargeException: the value exceeds the size limit of a server.
        """
        check_value(value)
        check_integer(flags, "flags", 0, UINT32_MAX)
        check_integer(collection_id, "collection_id", 0, UINT32_MAX)
        lifetime = check_duration(expires_after, "expires_after", endless=True)
        _check_attributes(xattrs or {})
        address = self.address(bucket, key, collection_id=collection_id)
        expires_at = self.now + lifetime
        if xattrs is None:
            return self.write(address, value, flags=flags, expires_at=expires_at)
        return self.rewrite(address, value, lambda *_: dict(xattrs), flags=flags, expires_at=expires_at)

    def lock(
        self, bucket: str, key: str | bytes, *, seconds: Duration = LOCK_SECONDS_DEFAULT, collection_id: int = 0
    ) -> int:
        """Lock a document as another client would, and return the CAS that only the holder knows.

        Raises:
            KeyError: the document does not exist.
            InvalidArgumentException: ``seconds`` is not a duration.
        """
        address = self.address(bucket, key, collection_id=collection_id)
        if self.find(address) is None:
            raise KeyError(f"cannot lock {key!r}, which does not exist in bucket {bucket!r}; put it first")
        return self.lock_at(address, check_duration(seconds, "seconds", endless=True)).cas

    def remove(self, bucket: str, key: str | bytes, *, collection_id: int = 0) -> None:
        """Remove a document, regardless of locks.

        Raises:
            KeyError: the document does not exist.
        """
        address = self.address(bucket, key, collection_id=collection_id)
        if self.find(address) is None:
            raise KeyError(f"cannot remove {key!r}, which does not exist in bucket {bucket!r}")
        self.erase(address)

    def address(self, bucket: str, key: str | bytes, *, collection_id: int = 0) -> DocumentAddress:
        """Return the address at which a correct client looks for a key."""
        raw_key = key.encode() if isinstance(key, str) else key
        return DocumentAddress(bucket, vbucket_of(raw_key, self._vbuckets), collection_id, raw_key)

    # Interface for the node.

    def find(self, address: DocumentAddress, snapshot: Snapshot | None = None) -> Document | None:
        """Return the document now, or as of ``snapshot``; None if it does not exist, was removed or has expired."""
        document = (self._documents if snapshot is None else snapshot).get(address)
        return None if document is None or document.is_deleted or document.expires_at <= self.now else document

    def find_remains(self, address: DocumentAddress, snapshot: Snapshot | None = None) -> Document | None:
        """Return the remains of a document now, or as of ``snapshot``; None if the node has no remains."""
        document = (self._documents if snapshot is None else snapshot).get(address)
        if document is None:
            return None
        return _remains_of(document)

    def find_for_writing(self, address: DocumentAddress, cas: int) -> Document | None:
        """Return the document to write with this CAS (0 for any), or None; raise CommandRefused on mismatch or lock."""
        document = self.find(address)
        if document is None or cas == document.cas:
            return document
        if self.is_locked(document):
            raise CommandRefused(Status.LOCKED)
        if cas:
            raise CommandRefused(Status.KEY_EXISTS)
        return document

    @contextmanager
    def hiding(self) -> Iterator[list[Document]]:
        """Yield a list that receives all writes, which stay invisible to readers."""
        hidden: list[Document] = []
        self._hidden = hidden
        try:
            yield hidden
        finally:
            self._hidden = None

    def store(self, address: DocumentAddress, document: Document) -> Document:
        """Make a version of a document visible, unless writes are hidden, and return it."""
        if self._hidden is not None:
            self._hidden.append(document)
            return document
        self._put(address, document)
        self.changes += 1
        return document

    def purge(self) -> None:
        """Reduce expired documents to their remains, and drop the oldest remains beyond their limits."""
        while self._expiries and self._expiries[0][0] <= self.now:
            _, address = heapq.heappop(self._expiries)
            document = self._documents.get(address)
            if document is not None and not document.is_deleted and document.expires_at <= self.now:
                self._put(address, _remains_of(document))
        if len(self._expiries) > max(EXPIRIES_MIN, 2 * len(self._documents)):
            self._expiries = [(each.expires_at, address) for address, each in self._documents.items() if _expires(each)]
            heapq.heapify(self._expiries)
        while len(self._remains) > REMAINS_MAX or self._remains_size > REMAINS_SIZE_BYTES_MAX:
            address, size = self._remains.popitem(last=False)
            self._remains_size -= size
            del self._documents[address]
            places = self._addresses[address[:3]]
            places.discard(address)
            if not places:
                del self._addresses[address[:3]]

    def _put(self, address: DocumentAddress, document: Document) -> None:
        """Store a version of a document, and the data that ``purge`` needs."""
        self._documents[address] = document
        self._addresses[address[:3]].add(address)
        self._remains_size -= self._remains.pop(address, 0)
        if document.is_deleted:
            self._remains[address] = size = sum(map(len, document.xattrs.values()))
            self._remains_size += size
        elif _expires(document):
            heapq.heappush(self._expiries, (document.expires_at, address))

    def in_vbucket(self, bucket: str, vbucket: int, collection_id: int) -> list[tuple[bytes, Document]]:
        """Return the visible documents of a collection in one vbucket, by key."""
        found = (
            (address.key, self.find(address)) for address in self._addresses.get((bucket, vbucket, collection_id), ())
        )
        return sorted(((key, document) for key, document in found if document is not None), key=lambda each: each[0])

    def count(self, bucket: str, collection_ids: Collection[int]) -> int:
        """Return the number of visible documents in some collections of a bucket."""
        places = (
            addresses
            for (of, _, collection_id), addresses in self._addresses.items()
            if of == bucket and collection_id in collection_ids
        )
        return sum(self.find(address) is not None for addresses in places for address in addresses)

    def sequence_number(self, bucket: str, vbucket: int) -> int:
        """Return the sequence number of the newest write in a vbucket; 0 if there was none."""
        return self.histories.newest(bucket, vbucket)

    def snapshot(self) -> Snapshot:
        """Return all documents, including the remains of removed documents."""
        return dict(self._documents)

    def progress_of(self, snapshot: Snapshot) -> Mapping[int, int]:
        """Return the number of document versions written in each vbucket when ``snapshot`` was taken."""
        progress: Counter[int] = Counter()
        for (_, vbucket), sequence_number in newest_in(snapshot).items():
            progress[vbucket] += sequence_number
        return progress

    def renewed(self, snapshot: Snapshot, vbuckets: Collection[int]) -> Snapshot:
        """Return ``snapshot`` with some vbuckets replaced by their current state."""
        now = {address: document for address, document in self._documents.items() if address.vbucket in vbuckets}
        return now | {address: document for address, document in snapshot.items() if address.vbucket not in vbuckets}

    def roll_back(self, snapshot: Snapshot, vbuckets: Collection[int]) -> None:
        """Discard all writes in some vbuckets since ``snapshot`` was taken."""
        there = {address: document for address, document in snapshot.items() if address.vbucket in vbuckets}
        self._replace_all(
            there
            | {address: document for address, document in self._documents.items() if address.vbucket not in vbuckets}
        )
        self.histories.roll_back(newest_in(snapshot), vbuckets)

    def release_locks(self, vbuckets: Collection[int]) -> None:
        """Release the locks of all documents in some vbuckets."""
        locked = [address for address, document in self._documents.items() if self.is_locked(document)]
        for address in locked:
            if address.vbucket in vbuckets:
                self.unlock_at(address)

    def forget_collection(self, collection_id: int, buckets: Collection[str]) -> None:
        """Discard the documents of a dropped collection in these buckets: they are unreachable."""
        self._forget(lambda bucket, of: bucket in buckets and of == collection_id)

    def forget_bucket(self, bucket: str) -> None:
        """Discard the documents of a bucket."""
        self._forget(lambda of, _: of == bucket)

    def _forget(self, is_gone: Callable[[str, int], bool]) -> None:
        self._replace_all(
            {
                address: document
                for address, document in self._documents.items()
                if not is_gone(address.bucket, address.collection_id)
            }
        )

    def _replace_all(self, documents: Mapping[DocumentAddress, Document]) -> None:
        self._documents, self._remains_size = {}, 0
        self._addresses.clear()
        self._remains.clear()
        self._expiries.clear()
        for address, document in documents.items():
            self._put(address, document)

    def is_locked(self, document: Document) -> bool:
        """Return whether this version is locked."""
        return document.locked_until > self.now

    def visible_cas(self, document: Document) -> int:
        """Return the CAS that readers see."""
        return LOCKED_CAS if self.is_locked(document) else document.cas

    def write(self, address: DocumentAddress, value: bytes, *, flags: int, expires_at: float) -> Document:
        """Store and return a new, unlocked version of a document, which keeps its extended attributes."""
        known = self.find(address)
        xattrs = {} if known is None else known.xattrs
        return self.rewrite(address, value, lambda *_: xattrs, flags=flags, expires_at=expires_at)

    def rewrite(
        self,
        address: DocumentAddress,
        value: bytes,
        xattrs: Callable[[int, int], Mapping[str, bytes]],
        *,
        flags: int,
        expires_at: float,
        is_deleted: bool = False,
    ) -> Document:
        """Store and return a new, unlocked version; ``xattrs`` returns its attributes from CAS and sequence number."""
        cas, sequence_number = self._next_cas(), self.histories.advance(address.bucket, address.vbucket)
        return self.store(
            address,
            Document(
                value=value,
                flags=flags,
                cas=cas,
                sequence_number=sequence_number,
                datatype=Datatype.JSON if is_json(value) else Datatype.RAW,
                expires_at=expires_at,
                is_deleted=is_deleted,
                xattrs=xattrs(cas, sequence_number),
            ),
        )

    def erase(self, address: DocumentAddress) -> Document:
        """Remove a document and return its remains: the system attributes."""
        known = self._documents.get(address)
        xattrs = {} if known is None else system_attributes(known.xattrs)
        return self.rewrite(address, b"", lambda *_: xattrs, flags=0, expires_at=math.inf, is_deleted=True)

    @property
    def wall_seconds(self) -> float:
        """Current Unix time."""
        return self._wall_seconds_at_zero + self.now

    def lock_at(self, address: DocumentAddress, seconds: float) -> Document:
        """Lock the document at ``address`` under a new CAS and return it."""
        document = self._documents[address]
        return self.store(address, replace(document, cas=self._next_cas(), locked_until=self.now + seconds))

    def unlock_at(self, address: DocumentAddress) -> Document:
        """Unlock the document at ``address``, which keeps the CAS of the lock, and return it."""
        return self.store(address, replace(self._documents[address], locked_until=-math.inf))

    def expires_at(self, expiry: int) -> float:
        """Return an expiry in wire format as a time on the node's clock."""
        if expiry == 0:
            return math.inf
        if expiry <= RELATIVE_EXPIRY_MAX:
            return self.now + expiry
        return expiry - self._wall_seconds_at_zero

    def unix_expiry(self, document: Document) -> int:
        """Return the expiry of a document as Unix time, rounded up to seconds; 0 for never."""
        if document.expires_at == math.inf:
            return 0
        return min(max(math.ceil(self._wall_seconds_at_zero + document.expires_at), 1), UINT32_MAX)

    def _next_cas(self) -> int:
        # Like a real node, use the time in nanoseconds; the low bits count writes at the same moment.
        moment = int((self._wall_seconds_at_zero + self.now) * 1_000_000_000) & ~_CAS_LOW_BITS
        self._last_cas = max(self._last_cas + 1, moment)
        return self._last_cas


def vbucket_of(key: bytes, vbuckets: int) -> int:
    """Return the vbucket of a key; the key has no collection prefix.

    Source: kv_engine docs/BinaryProtocol.md; couchbase clients' CRC locator.
    """
    return (zlib.crc32(key) >> 16 & 0x7FFF) % vbuckets


def newest_in(snapshot: Snapshot) -> Mapping[History, int]:
    """Return the newest sequence number in ``snapshot`` by bucket and vbucket."""
    newest: Counter[History] = Counter()
    for address, document in snapshot.items():
        history = (address.bucket, address.vbucket)
        newest[history] = max(newest[history], document.sequence_number)
    return newest


def system_attributes(xattrs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the extended attributes that survive the removal of their document."""
    return {key: value for key, value in xattrs.items() if key.startswith("_")}


def _remains_of(document: Document) -> Document:
    """Return a document without its value, and without its user attributes unless it was stored as deleted with them.

    Source: kv_engine docs/BinaryProtocol.md, CreateAsDeleted: since version 6.6, removed documents may have both kinds.
    """
    xattrs = document.xattrs if document.is_deleted else system_attributes(document.xattrs)
    return replace(document, is_deleted=True, value=b"", datatype=Datatype.RAW, xattrs=xattrs)


def _expires(document: Document) -> bool:
    return document.expires_at < math.inf and not document.is_deleted


def _check_attributes(xattrs: Mapping[str, bytes]) -> None:
    for key, value in xattrs.items():
        if not isinstance(key, str) or not isinstance(value, bytes) or not is_json(value):
            raise errors.InvalidArgumentException(
                f"xattrs[{key!r}]={value!r} must have a string as its key and JSON in bytes as its value",
                parameter="xattrs",
            )


def is_json(value: bytes) -> bool:
    """Return whether a document is JSON."""
    try:
        msgspec.json.decode(shallow(value.decode()), type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True
