"""State that the nodes of a fake cluster share, and state of one node, one connection and one scan."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from struct import Struct

from triclinium_core.checks import check_integer
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.kv.wire.framing_extras import MalformedFramingExtras, RequestFrameInfo, parse_framing_extras
from triclinium_core.kv.wire.leb128 import encode_unsigned
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection.scram import ScramServer
from triclinium_core.testing.fakes.answers import CommandRefused
from triclinium_core.testing.fakes.fault_conditions import FaultClock
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.schedule import Schedule
from triclinium_core.testing.fakes.services.state import ServicesStore
from triclinium_core.testing.fakes.store.buckets import FakeBucket, FakeBuckets
from triclinium_core.testing.fakes.store.cluster_map import ConfigVersion, FakeMap, dealt_replicas
from triclinium_core.testing.fakes.store.collections import FakeCollections, FakeManifest
from triclinium_core.testing.fakes.store.config import encode_config
from triclinium_core.testing.fakes.store.documents import Document, DocumentAddress, FakeDocuments, Snapshot, newest_in
from triclinium_core.testing.fakes.store.pipeline import REORDERABLE_OPCODES, Pipeline
from triclinium_core.testing.fakes.store.sync_writes import SyncWrites

_SCANNED = Struct(">IIQQB")
"""Flags, expiry, sequence number, CAS, datatype."""

Found = tuple[bytes, Document]
"""A key, and its document at the time when the scan was opened."""


class ClientConnection:
    """One client's connection, with the number that the driver has assigned."""

    def __init__(self, number: int, unsent_size_max: float = math.inf) -> None:
        self.number: int = number
        self.frames: FrameBuffer = FrameBuffer(SERVER_ACCEPTS)
        self.features: frozenset[HelloFeature] = frozenset()
        self.is_authenticated: bool = False
        self.has_certificate: bool = False
        """Whether TLS has authenticated the client, so that the client needs no SASL."""
        self.bucket: str | None = None
        self.exchange: ScramServer | None = None
        """SCRAM exchange in progress; None without one."""
        self.known_config: ConfigVersion | None = None
        """Version of the config that the node last sent to the client, or the client reported; None if unknown."""
        self.backlog: deque[Frame] = deque()
        """Commands that are not carried out yet."""
        self.pipeline: Pipeline = Pipeline()
        self.unsent_size: int = 0
        """Bytes of replies that the driver has not written yet."""
        self._unsent_size_max = unsent_size_max
        """Number of unsent bytes at which commands wait."""

    def has(self, feature: HelloFeature) -> bool:
        """Return whether the last HELLO granted this feature."""
        return feature in self.features

    def may_reorder(self, frame: Frame) -> bool:
        """Return whether a command may start while others are in flight."""
        return (
            self.has(HelloFeature.UNORDERED_EXECUTION)
            and frame.opcode in REORDERABLE_OPCODES
            and not _has_barrier(frame.framing_extras)
        )

    @property
    def has_room(self) -> bool:
        """Whether the number of unsent bytes permits another command."""
        return self.unsent_size < self._unsent_size_max


def _has_barrier(framing_extras: bytes) -> bool:
    try:
        return RequestFrameInfo.BARRIER in parse_framing_extras(framing_extras)
    except MalformedFramingExtras:
        # The command will be refused.
        return False


@dataclass(slots=True)
class FakeScan:
    """One range scan, of the documents at the time when it was opened."""

    vbucket: int
    ids_only: bool
    left: deque[Found]
    """Remaining documents, by key."""
    closes_at: float

    def take(self, item_limit: int, byte_limit: int, unix_expiry: Callable[[Document], int]) -> list[bytes]:
        """Return the next documents or keys in wire format, at least one if any are left; 0 means no limit."""
        taken: list[bytes] = []
        size = 0
        while self.left and not (item_limit and len(taken) >= item_limit) and not (byte_limit and size >= byte_limit):
            key, document = self.left.popleft()
            item = encode_unsigned(len(key)) + key
            if not self.ids_only:
                meta = (
                    document.flags,
                    unix_expiry(document),
                    document.sequence_number,
                    document.cas,
                    document.datatype,
                )
                item = _SCANNED.pack(*meta) + item + encode_unsigned(len(document.value)) + document.value
            taken.append(item)
            size += len(item)
        return taken


class ClusterStore:
    """State of the cluster. Initially all nodes are members, and the first one provides the settings."""

    def __init__(self, nodes: Sequence[FakeNodeOptions], rng: Random | None = None) -> None:
        first, members = nodes[0], tuple(range(len(nodes)))
        self.nodes: list[FakeNodeOptions] = list(nodes)
        owners = tuple(vbucket % len(members) for vbucket in range(first.vbuckets))
        self.map: FakeMap = FakeMap(
            ConfigVersion(first.config_epoch, first.config_revision),
            members,
            owners,
            dealt_replicas(owners, members, first.replicas),
        )
        self.documents: FakeDocuments = FakeDocuments(
            vbuckets=first.vbuckets, wall_seconds_at_zero=first.wall_seconds_at_zero
        )
        self.buckets: FakeBuckets = FakeBuckets(first, self.documents)
        self.collections: FakeCollections = self.buckets.shared
        self.sync_writes: SyncWrites = SyncWrites(self.documents)
        self.services: ServicesStore = ServicesStore()
        self.dead: set[int] = set()
        """Indexes of killed nodes."""
        self.held_replicas: dict[int, Snapshot] = {}
        """Contents of the replicas on nodes whose replication is held back."""
        self.fault_clock: FaultClock = FaultClock(rng)
        """Time and randomness for the conditions of faults and node commands."""
        self.schedule: Schedule = Schedule(self.fault_clock)
        """Node commands that wait for their start or end."""
        self.alarm: Callable[[], None] | None = None
        """Function that wakes a sleeping driver when some node has something new to do, now or later."""
        self._now = -math.inf

    def see(self, now: float) -> None:
        """Record the time, and carry out the node commands that are due; raise ValueError if the time goes back."""
        if now < self._now:
            raise ValueError(f"now={now!r} is before the current time, {self._now!r}")
        self._now = self.documents.now = self.fault_clock.now = now
        # A failover compares held replicas by ``progress_of``, which needs the remains of removed documents.
        if not self.held_replicas:
            self.documents.purge()
        self.sync_writes.expire(now)
        self.schedule.run_due()

    def review_sync_writes(self) -> None:
        """Advance durable writes as far as possible."""
        self.sync_writes.review(self.map, dead=self.dead, held=self.held_replicas)

    def take_map(self, new: FakeMap) -> None:
        """Switch to another map. New replicas are current, even if replication to their node is held back."""
        for node, snapshot in self.held_replicas.items():
            gained = {
                vbucket
                for vbucket in range(len(new.owners))
                if node in new.replica_holders(vbucket) and node not in self.map.replica_holders(vbucket)
            }
            self.held_replicas[node] = self.documents.renewed(snapshot, gained)
        self.map = new
        self.ring()

    def set_version(self, revision: int, epoch: int | None) -> None:
        """Set the version of the map; None keeps the epoch."""
        version = ConfigVersion(
            check_integer(self.map.version.epoch if epoch is None else epoch, "epoch", 1, UINT32_MAX),
            check_integer(revision, "revision", 1, UINT32_MAX),
        )
        self.take_map(replace(self.map, version=version))

    def ring(self) -> None:
        """Advance the durable writes that wait for a change in the cluster, and wake the driver."""
        self.review_sync_writes()
        if self.alarm is not None:
            self.alarm()


class NodeState:
    """State of one node, independent of connections; ``index`` is its index in the cluster."""

    def __init__(self, cluster: ClusterStore, index: int) -> None:
        self.cluster: ClusterStore = cluster
        self.index: int = index
        self.collections: FakeCollections = cluster.collections
        self.documents: FakeDocuments = cluster.documents
        self.held_map: FakeMap | None = None
        """Map at which the node is frozen; None if the node follows the cluster's map."""
        self.scans: dict[bytes, FakeScan] = {}
        """Range scans by id. Some may have ended; ``open_scans`` returns the open scans."""
        self._exchanges = 0
        self._scans = 0

    @property
    def options(self) -> FakeNodeOptions:
        """Options of the node."""
        return self.cluster.nodes[self.index]

    @property
    def map(self) -> FakeMap:
        """Map that the node uses."""
        return self.cluster.map if self.held_map is None else self.held_map

    def collections_of(self, bucket: str | None) -> FakeManifest:
        """Return the collections of a bucket as the node sees them; without such a bucket, the shared collections."""
        found = self.cluster.buckets.get(bucket)
        collections = self.collections if found is None else found.collections
        return collections.as_of(self.cluster.buckets.lateness.learned_until(self.index))

    def has_learned_of(self, bucket: FakeBucket) -> bool:
        """Return whether the node has learned of a bucket of the cluster."""
        return bucket.created_at <= self.cluster.buckets.lateness.learned_until(self.index)

    def owns(self, vbucket: int) -> bool:
        """Return whether the node serves a vbucket, according to its map."""
        owners = self.map.owners
        return vbucket < len(owners) and owners[vbucket] == self.index

    def has_replica(self, vbucket: int) -> bool:
        """Return whether the node has a replica of a vbucket, according to its map."""
        return vbucket < len(self.map.owners) and self.index in self.map.replica_holders(vbucket)

    def newest_sequence_number(self, bucket: str, vbucket: int) -> int:
        """Return the sequence number of the newest write that this node has in a vbucket, active or replica."""
        snapshot = self.cluster.held_replicas.get(self.index)
        if snapshot is None or self.owns(vbucket):
            return self.documents.histories.newest(bucket, vbucket)
        return newest_in(snapshot).get((bucket, vbucket), 0)

    def read(self, address: DocumentAddress, *, in_replica: bool, with_remains: bool = False) -> Document:
        """Return a visible document, active or replica, or else its remains if wanted; raise CommandRefused if none."""
        snapshot = self.cluster.held_replicas.get(self.index) if in_replica else None
        document = self.documents.find(address, snapshot)
        if document is None and with_remains:
            document = self.documents.find_remains(address, snapshot)
        if document is None:
            raise CommandRefused(Status.KEY_NOT_FOUND)
        return document

    def open_scans(self) -> dict[bytes, FakeScan]:
        """Return the open range scans, and forget scans that are too old or whose vbucket has moved."""
        now = self.documents.now
        self.scans = {
            scan_id: scan for scan_id, scan in self.scans.items() if now < scan.closes_at and self.owns(scan.vbucket)
        }
        return self.scans

    def new_scan_id(self) -> bytes:
        """Return the id of a new range scan; ids count up, so that runs are reproducible."""
        self._scans += 1
        return b"scan%04d%08d" % (self.index, self._scans)

    def new_exchange(self, mechanism: str, username: str) -> ScramServer:
        """Return the server side of a SCRAM exchange, with reproducible nonces and one salt.

        The exchange is for the user of the options, unless ``username`` is another user with a password.
        """
        self._exchanges += 1
        own = self.options.username
        password = None if username == own else self.cluster.services.users.password_of(username)
        return ScramServer(
            mechanism,
            username=own if password is None else username,
            password=self.options.password if password is None else password,
            nonce=f"fakenode{self._exchanges:08}",
            salt=b"salt of the user",
            iterations=self.options.scram_iterations,
        )

    def config_for(self, connection: ClientConnection) -> bytes:
        """Return the config for a connection, and remember that the client has it."""
        connection.known_config = self.map.version
        return encode_config(self.map, self.cluster.nodes, self.index, self.cluster.buckets.get(connection.bucket))

    def not_my_vbucket(self, connection: ClientConnection) -> CommandRefused:
        """Return the refusal for a vbucket; if deduplication is negotiated, without a config that the client has."""
        dedupes = connection.has(HelloFeature.DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP)
        if dedupes and connection.known_config == self.map.version:
            return CommandRefused(Status.NOT_MY_VBUCKET)
        return CommandRefused(Status.NOT_MY_VBUCKET, body=self.config_for(connection))
