"""What the client knows of each bucket: its newest cluster config, and the ids of its collections.

Source: decisions C8 to C10; kv_engine ``docs/Collections.md``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from triclinium_core import decoder_faults
from triclinium_core.contract.couchbase import Action, PublishTopology, TimerKind
from triclinium_core.contract.neutral import ReportConnection, StreamId, Timers
from triclinium_core.decoder_faults import Decoder
from triclinium_core.errors import CouchbaseException, DecodingFailureException, FeatureNotAvailableException
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.manifest.codec import decode_manifest
from triclinium_core.kv.operation.manifest.types import CollectionsManifest
from triclinium_core.kv.operation.requests import DocumentOperation, Keyspace, Operation
from triclinium_core.kv.operation.scan.requests import RangeScanCreate, VBucketOperation
from triclinium_core.kv.topology.bucket_map import BucketMap, addresses_of, map_of, vbucket_of
from triclinium_core.kv.topology.cluster_config import (
    ClusterConfig,
    MalformedClusterConfig,
    NoVBucketsYet,
    UnsupportedBucketType,
    parse_cluster_config,
)
from triclinium_core.kv.topology.collections import DEFAULT_COLLECTION_PREFIX, QUESTION_SECONDS, CollectionIds
from triclinium_core.kv.topology.networks import Network
from triclinium_core.kv.topology.own_addresses import OwnAddresses
from triclinium_core.kv.topology.topology import Topology, TopologyChange, topology_of
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.retry.couchbase.tables import kv_responses
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.terminal_states import TerminalStates
from triclinium_core.retry.couchbase.unsent import OF_A_LOOKUP
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure, FailureKind
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.in_flight import CollectionQuestion, Purpose
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.connection.waiting_line import WAITING_MAX
from triclinium_core.runtime.kv.destinations import Destinations
from triclinium_core.runtime.kv.known_configs import KnownConfigs
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.kv.pool.keepalive import KeepAlive
from triclinium_core.work import CONFIG_BYTES_PER_UNIT

_CONFIG_PROBLEMS: Mapping[FailureKind, str] = {
    FailureKind.PROTOCOL: "sent an invalid cluster config",
    FailureKind.BUCKET_TYPE: "sent a cluster config for an unsupported bucket type",
    FailureKind.NO_VBUCKETS: "sent a cluster config without vbuckets",
}
"""Beginning of the report on a config that the client does not use, by kind."""

_MANIFEST_AND_COLLECTION = struct.Struct(">QI")


@dataclass(frozen=True, slots=True)
class CollectionAnswer:
    """What a GET_COLLECTION_ID answer means for those who waited for it.

    Neither reason nor error: the id is known, dispatch. A reason: the dispatch failed. An error alone: it cannot succeed.
    """

    waiters: Sequence[int]
    reason: RetryReason | None = None
    error: type[CouchbaseException] | None = None
    detail: str = ""
    close_connection: str | None = None
    """Why the connection has to be closed afterwards."""


class Keyspaces:
    """Configs and collection ids, by bucket."""

    def __init__(
        self,
        connections: Connections,
        configs: KnownConfigs,
        keep_alive: KeepAlive,
        *,
        tls: bool,
        network: Network,
        terminal_states: TerminalStates,
        error_maps: ErrorMapStore,
        timers: Timers[TimerKind],
        destinations: Destinations,
        emit: Callable[[Action], None],
    ) -> None:
        self._connections = connections
        self._keep_alive = keep_alive
        self._destinations = destinations
        self._tls = tls
        self._network = network
        self.own_addresses: OwnAddresses = OwnAddresses()
        """What nodes are called in their own network, for those who are told of attempts."""
        self._terminal_states = terminal_states
        self._error_maps = error_maps
        self._timers = timers
        self._emit = emit
        self._configs = configs
        self._maps: dict[str, BucketMap] = {}
        self._topologies: dict[str | None, Topology] = {}
        self._reaches_all_nodes = False
        """Whether there has to be a connection to every node, whatever its buckets."""
        self._global_source: tuple[Connection, Address] | None = None
        """Which connection told the newest global config, and at which address."""
        self._collections: dict[str | None, CollectionIds] = {}

    def map_of(self, bucket: str | None) -> BucketMap | None:
        """Return the newest map of a bucket; None before the first."""
        return self._maps.get(bucket) if bucket is not None else None

    def newest_revision(self) -> int | None:
        """Return the revision of the newest config of all, whatever its bucket."""
        newest = max((config.revision for config in self._configs.all), default=None)
        return newest[1] if newest is not None else None

    @property
    def topologies(self) -> tuple[Topology, ...]:
        """The newest topology of each bucket, and of the cluster, in the order in which they were told first."""
        return tuple(self._topologies.values())

    def reach_all_nodes(self, now: float) -> None:
        """Have a connection to every node of the cluster from now on, beside those of the buckets."""
        self._reaches_all_nodes = True
        self._follow_cluster(now)

    def vbucket_count(self, bucket: str | None) -> int:
        """Return how many vbuckets a bucket has; 0 as long as that is not known."""
        config = self._configs.get(bucket)
        return config.vbucket_count if config is not None else 0

    def replica_count(self, bucket: str | None) -> int | None:
        """Return how many replicas a bucket keeps of each document; None as long as that is not known."""
        config = self._configs.get(bucket)
        servers = config.v_bucket_server_map if config is not None else None
        return servers.num_replicas if servers is not None else None

    def vbucket(self, operation: Operation) -> int:
        """Return the vbucket of an operation, or of its document; 0 where there is none."""
        if isinstance(operation, VBucketOperation):
            return operation.vbucket
        if not isinstance(operation, DocumentOperation):
            return 0
        return vbucket_of(operation.key.encode(), self.vbucket_count(operation.keyspace.bucket))

    def connection_for(
        self, operation: Operation, vbucket: int, now: float, *, forward: bool = False
    ) -> Connection | None:
        """Return the connection to the node that has the document, or the copy of it; None where no node has it now.

        Args:
            vbucket: that of the operation.
            forward: whether to go by the map that a rebalance is to lead to, where there is one.
        """
        bucket = operation.keyspace.bucket
        known = self.map_of(bucket)
        if known is None or not isinstance(operation, DocumentOperation | VBucketOperation):
            return self._connections.of_bucket(bucket, now)
        copy = operation.copy
        address = (known.next_holder(vbucket, copy) if forward else None) or known.holder(vbucket, copy)
        return self._connections.of_address(bucket, address, now) if address is not None else None

    def obstacle(self, operation: Operation, vbucket: int) -> tuple[RetryReason, str]:
        """Return why an operation's document cannot be had from any node now: the reason, and what it is in words.

        Args:
            vbucket: that of the operation.
        """
        known = self.map_of(operation.keyspace.bucket)
        if known is None:
            return RetryReason.NODE_NOT_AVAILABLE, "there is no map"
        reason = RetryReason.SERVICE_NOT_AVAILABLE if known.lacks_service(vbucket) else RetryReason.NODE_NOT_AVAILABLE
        return reason, known.obstacle(vbucket)

    def prefix(self, connection: Connection, operation: Operation) -> bytes | None:
        """Return what stands before the key, or None where a collection's id is not known yet.

        Raises:
            FeatureNotAvailableException: the connection knows no collections, and this is not the default one.
        """
        keyspace = operation.keyspace
        if HelloFeature.COLLECTIONS not in connection.dialect.features:
            if not keyspace.is_default_collection:
                raise FeatureNotAvailableException(
                    f"{keyspace.scope}.{keyspace.collection} is a collection, which this server does "
                    "not offer; use the default collection"
                )
            return b""
        if not isinstance(operation, DocumentOperation | RangeScanCreate):
            return b""
        if keyspace.is_default_collection:
            return DEFAULT_COLLECTION_PREFIX
        ids = self._collections.get(keyspace.bucket)
        return ids.prefix(_path(keyspace.scope, keyspace.collection)) if ids is not None else None

    def wait_for_collection(self, connection: Connection, keyspace: Keyspace, token: int, now: float) -> bool:
        """Have ``token`` wait for a collection's id, which ``connection`` is asked for unless somebody was.

        Returns:
            False where so many wait that another one would not be helped by waiting (decision C37).
        """
        ids = self._collections.setdefault(keyspace.bucket, CollectionIds())
        path = _path(keyspace.scope, keyspace.collection)
        if ids.waiting(path) >= WAITING_MAX:
            return False
        if ids.wait(path, token, now, connection):
            self._ask(connection, CollectionQuestion(keyspace.scope, keyspace.collection), now)
        return True

    def check_capability(self, operation: Operation) -> None:
        """Let an operation pass that the bucket can do, by its newest config.

        A node may have granted what the cluster as a whole, half upgraded, cannot do yet.

        Raises:
            FeatureNotAvailableException: it cannot.
        """
        config = self._configs.get(operation.keyspace.bucket)
        if operation.capability is not None and config and operation.capability not in config.can:
            raise FeatureNotAvailableException(
                f"{operation.name} needs the capability {operation.capability}, which bucket "
                f"{operation.keyspace.bucket!r} does not have; its servers may be too old"
            )

    def question_overdue(self, connection: Connection, question: CollectionQuestion, now: float) -> None:
        """Ask another node for a collection's id, or the same again, where somebody still waits for it."""
        ids = self._collections.get(connection.bucket)
        path = _path(question.scope, question.collection)
        # A node that is silent must not hold up those whose documents others have.
        source = self._connections.routes.ready_after(connection)
        if source is None and connection.state is ConnectionState.AUTHENTICATING and connection.is_in_use:
            self._timers.schedule(now + QUESTION_SECONDS, TimerKind.COLLECTION_QUESTION, (connection, question))
            return
        if ids is None or source is None or not ids.ask_again(path, now, source):
            return
        if self._keep_alive.may_ask_again(source, now):
            self._ask(source, question, now)

    def _ask(self, connection: Connection, question: CollectionQuestion, now: float) -> None:
        path = _path(question.scope, question.collection).encode()
        frame = encode_request(Opcode.GET_COLLECTION_ID, opaque=connection.in_flight.next_opaque, value=path)
        self._connections.send(connection, question, frame)
        self._timers.schedule(now + QUESTION_SECONDS, TimerKind.COLLECTION_QUESTION, (connection, question))

    def take_collection_id(
        self, connection: Connection, question: CollectionQuestion, frame: Frame
    ) -> CollectionAnswer:
        """Take the answer to a question of ours, and return what it means for those who waited.

        Raises:
            MalformedResponse: the answer has neither an id nor a reason for a missing one. The waiters stay queued.
            DecoderFault: the decoder failed. The waiters stay queued.
        """
        connection.questions.reset()
        bucket, scope, collection = connection.bucket, question.scope, question.collection
        ids = self._collections.setdefault(bucket, CollectionIds())
        path = _path(scope, collection)
        entry = self._error_maps.entry(connection.node, frame.status)
        verdict = kv_responses.classify("get_collection_id", frame.status, entry)
        if verdict.error is DecodingFailureException:
            raise MalformedResponse(f"answered get_collection_id with status 0x{frame.status:02x}, which cannot be")
        self._destinations.forget()
        if verdict.is_success:
            collection_id = _collection_id(frame)
            self._terminal_states.collection_found(bucket, scope, collection)
            answer = CollectionAnswer(ids.found(path, collection_id))
            # An earlier answer of the same piece may have closed the stream.
            if connection.state is ConnectionState.READY and ids.has_to_be_reviewed():
                request = encode_request(Opcode.GET_COLLECTIONS_MANIFEST, opaque=connection.in_flight.next_opaque)
                self._connections.send(connection, Purpose.MANIFEST, request)
            return answer
        waiters = ids.missing(path)
        detail = f"{connection.node}: bucket {bucket!r} has no collection {path}"
        if frame.status == Status.UNKNOWN_COLLECTION:
            self._terminal_states.collection_missing(bucket, scope, collection)
            return CollectionAnswer(waiters, RetryReason.COLLECTION_NOT_FOUND, detail=detail)
        if frame.status == Status.UNKNOWN_SCOPE:
            detail = f"{connection.node}: bucket {bucket!r} has no scope {scope}"
            self._terminal_states.scope_missing(bucket, scope)
            return CollectionAnswer(waiters, RetryReason.SCOPE_NOT_FOUND, detail=detail)
        detail = f"{connection.node}: asked for the id of {path}, it answered status 0x{frame.status:02x}"
        # A lookup concerns no document: what is said of one is no reason to ask again.
        reason = verdict.reason if verdict.reason in OF_A_LOOKUP else None
        return CollectionAnswer(waiters, reason, verdict.error, detail, verdict.close_connection)

    def outdated(self, keyspace: Keyspace) -> None:
        """Forget a collection id that a node did not know (decision C9)."""
        self._destinations.forget()
        ids = self._collections.get(keyspace.bucket)
        if ids is not None:
            ids.outdated(_path(keyspace.scope, keyspace.collection))

    def manifest_received(self, connection: Connection, frame: Frame, now: float) -> None:
        """Drop the ids of dropped collections, by the manifest that was fetched for that. Ignore a refusal."""
        if frame.status != Status.SUCCESS:
            return
        try:
            manifest = decode_manifest(frame.value)
        except MalformedResponse as error:
            text = f"sent an invalid collections manifest: {error}"
            self._emit(ReportConnection(StreamId(connection.stream_number), connection.node, text))
        except Exception as error:
            fault = decoder_faults.unexpected(Decoder.COLLECTIONS_MANIFEST, error)
            self._connections.close_after_fault(connection, fault, now)
        else:
            self.take_manifest(connection.bucket, manifest)

    def take_manifest(self, bucket: str | None, manifest: CollectionsManifest) -> None:
        """Forget the collection ids that are others by now, so that no operation has to be refused for that."""
        ids = self._collections.get(bucket)
        if ids is not None:
            self._destinations.forget()
            ids.agree(
                {_path(scope.name, each.name): each.id for scope in manifest.scopes for each in scope.collections}
            )

    def stop_waiting(self, keyspace: Keyspace, token: int) -> None:
        """Let an operation wait no longer for a collection id."""
        ids = self._collections.get(keyspace.bucket)
        if ids is not None:
            ids.stop_waiting(_path(keyspace.scope, keyspace.collection), token)

    def connection_lost(self, connection: Connection) -> Sequence[int]:
        """Give up the questions asked on a connection, and return who waited for their answers."""
        ids = self._collections.get(connection.bucket)
        return ids.connection_lost(connection) if ids is not None else ()

    def take_config(self, connection: Connection, document: bytes | None, now: float) -> BootstrapFailure | None:
        """Keep a config that came from ``connection`` if it is newer, and return what is wrong where it cannot be one.

        Args:
            document: the value of the response; None, and an empty one, mean that there is nothing new.
        """
        if not document or connection.state is ConnectionState.LOST:
            return None
        connection.work += len(document) // CONFIG_BYTES_PER_UNIT
        try:
            config = parse_cluster_config(document, host=connection.address.host)
        except UnsupportedBucketType as error:
            return self._refuse_config(connection, str(error), FailureKind.BUCKET_TYPE)
        except NoVBucketsYet as error:
            return self._refuse_config(connection, str(error), FailureKind.NO_VBUCKETS)
        except MalformedClusterConfig as error:
            return self._refuse_config(connection, str(error))
        except Exception as error:
            fault = decoder_faults.unexpected(Decoder.CLUSTER_CONFIG, error)
            self._connections.close_after_fault(connection, fault, now)
            return BootstrapFailure.of_fault(fault)
        if connection.bucket is not None and config.name != connection.bucket:
            # Its vbuckets say nothing of where our documents are.
            return self._refuse_config(connection, f"it is not the one of bucket {connection.bucket!r}")
        if self._connections.seeds.names(connection.address):
            self._configs.compare(connection.bucket, config, now, spacing=self._keep_alive.config_spacing)
        if self._configs.is_lost(connection.bucket):
            self._network.choose_again()
        if self._configs.take(connection.bucket, config):
            self._destinations.forget()
            self._publish(connection, config)
            if connection.bucket is not None:
                self._follow(connection, connection.bucket, config, now)
            else:
                self._connections.seeds.know(self._nodes_of(connection, config))
                self._global_source = connection, connection.address
                self._follow_cluster(now)
        return None

    def forget_bucket(self, bucket: str) -> None:
        """Drop the config, the topology and the collection ids of a bucket (decision C7)."""
        self._configs.forget(bucket)
        self._maps.pop(bucket, None)
        self._topologies.pop(bucket, None)
        self._collections.pop(bucket, None)
        self.own_addresses.forget(bucket)

    def _nodes_of(self, connection: Connection, config: ClusterConfig) -> Sequence[Address]:
        network = self._network.name(config.nodes_ext, connection.address)
        addresses, _ = addresses_of(config, source=connection.address, tls=self._tls, network=network)
        return addresses

    def search_if_lost(self, bucket: str | None, now: float) -> None:
        """Look for a bucket anew if none of its nodes can be reached any more.

        They may have been replaced, all of them at once, by nodes that begin to count configs anew.
        """
        if bucket in self._configs and self._connections.routes.is_cut_off(bucket):
            self._configs.lose(bucket)
            self._connections.search(bucket, now)

    def _publish(self, connection: Connection, config: ClusterConfig) -> None:
        old, source = self._topologies.get(connection.bucket), connection.address
        network = self._network.name(config.nodes_ext, source)
        new = topology_of(config, bucket=connection.bucket, source=source, network=network)
        self._topologies[connection.bucket] = new
        self.own_addresses.learn(connection.bucket, config, network=network, source=source)
        self._emit(PublishTopology(TopologyChange(old, new)))

    def _follow_cluster(self, now: float) -> None:
        if not self._reaches_all_nodes or self._global_source is None:
            return
        connection, address = self._global_source
        config = self._configs.get(None)
        assert config is not None, "who told it has told it"
        network = self._network.name(config.nodes_ext, address)
        addresses, here = addresses_of(config, source=address, tls=self._tls, network=network)
        # It may be on its way to another address by now.
        here = here if connection.address == address else None
        if addresses:
            self._connections.follow(connection, addresses, here, now)

    def _follow(self, connection: Connection, bucket: str, config: ClusterConfig, now: float) -> None:
        network = self._network.name(config.nodes_ext, connection.address)
        bucket_map = map_of(config, source=connection.address, tls=self._tls, network=network)
        self._maps[bucket] = bucket_map
        # Whoever tells of no node at all is kept: it may tell of some again.
        if bucket_map.addresses:
            self._connections.follow(connection, bucket_map.addresses, bucket_map.here, now)

    def _refuse_config(
        self, connection: Connection, why: str, kind: FailureKind = FailureKind.PROTOCOL
    ) -> BootstrapFailure:
        problem = f"{_CONFIG_PROBLEMS[kind]}: {why}"
        self._emit(ReportConnection(StreamId(connection.stream_number), connection.node, problem))
        return BootstrapFailure(kind, problem)


def _collection_id(frame: Frame) -> int:
    """Return the id in an answer.

    Raises:
        MalformedResponse: it has no id.
        DecoderFault: the decoder failed.
    """
    try:
        return _decode_collection_id(frame)
    except MalformedResponse:
        raise
    except Exception as error:
        raise decoder_faults.unexpected(Decoder.COLLECTION_ID, error) from None


def _decode_collection_id(frame: Frame) -> int:
    if frame.status != Status.SUCCESS or len(frame.extras) != _MANIFEST_AND_COLLECTION.size:
        raise MalformedResponse(
            f"answered get_collection_id with status 0x{frame.status:02x} and {len(frame.extras)} bytes of extras, "
            "which cannot be"
        )
    _, collection_id = _MANIFEST_AND_COLLECTION.unpack(frame.extras)
    return int(collection_id)


def _path(scope: str, collection: str) -> str:
    return f"{scope}.{collection}"
