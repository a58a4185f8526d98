"""JSON documents that nodes send, and a client that waits for each of them.

Each ``play_...`` function feeds a document to the complete client: ``handle`` raises no exception, and every caller gets
exactly one result or exception of the library.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import msgspec

from tests.fuzz.json_mutations import draw, encoded, single_changes
from tests.fuzz.scenes import AUTHENTICATOR, ERROR_MAP, FEATURES
from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.address import PORT_MAX
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.kv.operation.inquiries import WaitForNodes
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_response
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.options import ClientOptions, TimeoutOptions
from triclinium_core.retry.couchbase import FailFastRetryStrategy, Service, Status
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest
from triclinium_core.services.management import buckets, collections, query_indexes, search_indexes, users
from triclinium_core.services.ping_request import PINGS
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.search.queries import MatchAllQuery
from triclinium_core.services.search.result import decode_row as decode_hit
from triclinium_core.services.search.search_request import SearchQueryRequest, SearchRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.views.result import decode_row as decode_view_row
from triclinium_core.services.views.view_request import ViewRequest
from triclinium_core.testing.simulation import MIDPOINT

SERVICES = {
    "kv": 11210,
    "kvSSL": 11207,
    "mgmt": 8091,
    "mgmtSSL": 18091,
    "n1ql": 8093,
    "cbas": 8095,
    "fts": 8094,
    "capi": 8092,
}
CONFIG: Mapping[str, object] = {
    "rev": 3,
    "revEpoch": 1,
    "name": "b",
    "nodeLocator": "vbucket",
    "clusterName": "north",
    "clusterUUID": "5f3a",
    "nodesExt": [
        {
            "services": SERVICES,
            "thisNode": True,
            "hostname": "$HOST",
            "alternateAddresses": {"external": {"hostname": "e", "ports": {"kv": 31210, "n1ql": 31093}}},
        },
        {"services": {"kv": 11210, "fts": 8094}, "hostname": "10.0.0.2"},
    ],
    "vBucketServerMap": {
        "hashAlgorithm": "CRC",
        "numReplicas": 1,
        "serverList": ["$HOST:11210", "10.0.0.2:11210", "10.0.0.3:11210"],
        "vBucketMap": [[0, 1], [1, 2]],
        "vBucketMapForward": [[1, 0], [0, -1]],
    },
    "bucketCapabilities": ["collections", "rangeScan"],
    "clusterCapabilities": {
        "n1ql": ["enhancedPreparedStatements", "readFromReplica"],
        "search": ["vectorSearch", "scopedSearchIndex"],
    },
}
MANIFEST: Mapping[str, object] = {
    "uid": "2",
    "scopes": [
        {"uid": "0", "name": "_default", "collections": [{"uid": "0", "name": "_default"}]},
        {"uid": "8", "name": "s", "collections": [{"uid": "9", "name": "c", "maxTTL": 60, "history": True}]},
    ],
}
BUCKET: Mapping[str, object] = {
    "name": "b",
    "bucketType": "membase",
    "quota": {"rawRAM": 104857600, "ram": 104857600},
    "controllers": {"flush": "/x"},
    "replicaNumber": 1,
    "replicaIndex": False,
    "evictionPolicy": "valueOnly",
    "maxTTL": 0,
    "compressionMode": "passive",
    "durabilityMinLevel": "none",
    "storageBackend": "magma",
    "numVBuckets": 128,
    "historyRetentionCollectionDefault": True,
    "historyRetentionBytes": 2147483648,
    "historyRetentionSeconds": 13,
    "nodes": [{"hostname": "h:8091", "status": "healthy"}],
    "bucketCapabilities": ["collections"],
}
ROLE: Mapping[str, object] = {
    "role": "data_reader",
    "bucket_name": "b",
    "scope_name": "s",
    "collection_name": "c",
    "origins": [{"type": "user"}, {"type": "group", "name": "g"}],
    "name": "Data Reader",
    "desc": "reads",
}
USER: Mapping[str, object] = {
    "id": "ada",
    "domain": "local",
    "name": "Ada",
    "roles": [ROLE],
    "groups": ["g"],
    "external_groups": ["e"],
    "password_change_date": "2024-02-29T12:00:00.000Z",
}
GROUP: Mapping[str, object] = {"id": "g", "description": "d", "roles": [ROLE], "ldap_group_ref": "uid=g"}
INDEX: Mapping[str, object] = {
    "name": "i",
    "using": "gsi",
    "state": "online",
    "keyspace_id": "c",
    "is_primary": True,
    "index_key": ["`a`"],
    "condition": "x > 1",
    "partition": "HASH(`a`)",
    "bucket_id": "b",
    "scope_id": "s",
}
SEARCH_INDEX: Mapping[str, object] = {
    "name": "i",
    "type": "fulltext-index",
    "sourceType": "couchbase",
    "sourceName": "b",
    "uuid": "1",
    "params": {"mapping": {"types": {"t": {"properties": {"v": {"fields": [{"type": "vector"}]}}}}}},
    "sourceUUID": "2",
    "sourceParams": {},
    "planParams": {"indexPartitions": 1},
}
METRICS: Mapping[str, object] = {
    "elapsedTime": "1m3.5s",
    "executionTime": "75000\u00b5s",
    "resultCount": 1,
    "resultSize": 7,
    "sortCount": 1,
    "mutationCount": 0,
    "errorCount": 0,
    "warningCount": 1,
    "processedObjects": 1,
}
STATEMENT: Mapping[str, object] = {
    "requestID": "1",
    "clientContextID": "2",
    "signature": {"*": "*"},
    "results": [{"n": 1}],
    "warnings": [{"code": 1, "msg": "w"}],
    "status": "success",
    "metrics": METRICS,
}
ERRORS: Mapping[str, object] = {
    "requestID": "1",
    "results": [],
    "errors": [
        {"code": 12009, "msg": "DML Error", "reason": {"code": 17014, "msg": "m"}, "retry": True},
        {"code": 5000, "msg": "queryport.indexNotFound"},
    ],
    "status": "errors",
}
HITS: Mapping[str, object] = {
    "status": {"total": 2, "failed": 1, "successful": 1, "errors": {"p1": "down"}},
    "hits": [
        {
            "index": "i_1",
            "id": "a",
            "score": 1.5,
            "sort": ["_score"],
            "explanation": {"value": 1.5},
            "locations": {"f": {"t": [{"pos": 1, "start": 0, "end": 3, "array_positions": [0]}]}},
            "fragments": {"f": ["<mark>t</mark>"]},
            "fields": {"f": "t"},
        }
    ],
    "total_hits": 1,
    "max_score": 1.5,
    "took": 84000,
    "facets": {
        "by": {
            "field": "f",
            "total": 1,
            "missing": 0,
            "other": 0,
            "terms": [{"term": "t", "count": 1}],
            "numeric_ranges": [{"name": "n", "min": 1, "max": 2.5, "count": 1}],
            "date_ranges": [{"name": "d", "start": "2024-01-01T00:00:00Z", "end": "x", "count": 1}],
        }
    },
}
VIEW: Mapping[str, object] = {
    "total_rows": 1,
    "rows": [{"id": "a", "key": [1], "value": None}],
    "debug_info": {"local": {}},
    "errors": [{"from": "h:8092", "reason": "timeout"}],
}
REFUSAL: Mapping[str, object] = {
    "errors": {"name": "taken", "ramQuota": "low"},
    "error": "e",
    "reason": "missing",
    "message": "m",
    "permissions": ["cluster.admin!write"],
}

SEARCHED = SearchQueryRequest(index="i", search=SearchRequest(MatchAllQuery()))
VIEWED = ViewRequest(bucket_name="b", design_document="d", view_name="v")
ASKED: Sequence[tuple[ServiceRequest, int, object]] = (
    (QueryRequest(statement="SELECT 1"), 200, STATEMENT),
    (QueryRequest(statement="SELECT 1"), 200, ERRORS),
    (QueryRequest(statement="SELECT 1", adhoc=False), 200, {**STATEMENT, "prepared": "p"}),
    (AnalyticsRequest(statement="SELECT 1"), 200, STATEMENT),
    (AnalyticsRequest(statement="SELECT 1"), 400, ERRORS),
    (SEARCHED, 200, HITS),
    (SEARCHED, 400, REFUSAL),
    (VIEWED, 200, VIEW),
    (VIEWED, 404, REFUSAL),
    (VIEWED, 500, REFUSAL),
    (buckets.GetAllBuckets(), 200, [BUCKET]),
    (buckets.GetBucket("b"), 200, BUCKET),
    (buckets.DropBucket("b"), 400, REFUSAL),
    (users.GetAllUsers(), 200, [USER]),
    (users.GetUser("ada"), 200, USER),
    (users.GetRoles(), 200, [ROLE]),
    (users.GetAllGroups(), 200, [GROUP]),
    (users.GetGroup("g"), 200, GROUP),
    (users.DropUser("ada"), 403, REFUSAL),
    (collections.GetAllScopes("b"), 200, MANIFEST),
    (collections.CreateScope("b", "s"), 200, {"uid": "1f"}),
    (collections.DropScope("b", "s"), 404, REFUSAL),
    (query_indexes.all_indexes(query_indexes.IndexKeyspace("b")), 200, {**STATEMENT, "results": [INDEX]}),
    (query_indexes.deferred_indexes(query_indexes.IndexKeyspace("b")), 200, {**STATEMENT, "results": ["i"]}),
    (query_indexes.create_primary_index(query_indexes.IndexKeyspace("b")), 200, ERRORS),
    (search_indexes.GetAllSearchIndexes(), 200, {"indexDefs": {"indexDefs": {"i": SEARCH_INDEX}}}),
    (search_indexes.GetSearchIndex(index_name="i"), 200, {"indexDef": SEARCH_INDEX}),
    (search_indexes.GetIndexedDocumentsCount(index_name="i"), 200, {"count": 7}),
    (search_indexes.AnalyzeDocument(index_name="i", document={}), 200, {"analyzed": [{"a": 1}, None]}),
    (search_indexes.DropSearchIndex(index_name="i"), 400, REFUSAL),
    *((ping(), 200, {"a": 1}) for ping in PINGS.values()),
)
"""Requests, with the status and body of a response to each."""

TIMEOUT = 0.004
"""Timeout in seconds of every kind of request, long enough for a few retries."""
STREAMS_MAX = 6
"""Maximum number of streams that the node accepts. It refuses further ones, so that a changed map takes little time."""
STEPS_MAX = 10_000
HTTP_PORTS = frozenset(port for service, port in SERVICES.items() if not service.startswith("kv"))
UNREADABLE_ROW = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
"""Exceptions of row decoders that the client reports as DecodingFailureException."""
ROW_DECODERS: Mapping[Service, Callable[[bytes], object]] = {
    Service.SEARCH: decode_hit,
    Service.VIEWS: decode_view_row,
}
TIMEOUTS = TimeoutOptions(
    kv=TIMEOUT,
    kv_durable=TIMEOUT,
    query=TIMEOUT,
    analytics=TIMEOUT,
    search=TIMEOUT,
    views=TIMEOUT,
    management=TIMEOUT,
    connect=TIMEOUT,
)


class Node:
    """Node that responds to all requests of a client correctly, except for a replaced document.

    Args:
        refusal: status of reads; 0 for a success. NOT_MY_VBUCKET carries ``config_of_refusals``.
    """

    def __init__(self, *, refusal: int = 0) -> None:
        self.config = self.config_of_refusals = msgspec.json.encode(CONFIG)
        self.error_map = msgspec.json.encode(ERROR_MAP)
        self.manifest = msgspec.json.encode(MANIFEST)
        self.refusal = refusal
        self.http_status, self.http_body = 200, b""

    def over_http(self) -> bytes:
        """Return the response to any HTTP request."""
        head = b"HTTP/1.1 %d OK\r\ncontent-length: %d\r\n\r\n" % (self.http_status, len(self.http_body))
        return head + self.http_body

    def answer(self, request: Frame) -> bytes:
        """Return the response to a key-value request."""
        opcode, parts = request.opcode, dict[str, object]()
        match opcode:
            case Opcode.HELLO:
                features = (*FEATURES, HelloFeature.DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP)
                parts = {"value": struct.pack(f">{len(features)}H", *features)}
            case Opcode.GET_ERROR_MAP:
                parts = {"value": self.error_map, "datatype": 1}
            case Opcode.SASL_LIST_MECHS:
                parts = {"value": b"PLAIN"}
            case Opcode.GET_CLUSTER_CONFIG:
                parts = {"value": self.config, "datatype": 1}
            case Opcode.GET_COLLECTION_ID:
                parts = {"extras": struct.pack(">QI", 2, 9)}
            case Opcode.GET_COLLECTIONS_MANIFEST:
                parts = {"value": self.manifest, "datatype": 1}
            case Opcode.GET if self.refusal:
                body = self.config_of_refusals if self.refusal == Status.NOT_MY_VBUCKET else b""
                parts = {"status": self.refusal, "value": body}
            case Opcode.GET:
                parts = {"extras": bytes(4), "value": b"1", "cas": 1}
        return encode_response(opcode, opaque=request.opaque, **parts)  # type: ignore[arg-type]


class Client:
    """Client of one node, without real time or sockets."""

    def __init__(self, node: Node) -> None:
        options = ClientOptions(
            connection_string="couchbase://127.0.0.1",
            authenticator=AUTHENTICATOR,
            retry_strategy=FailFastRetryStrategy(),
            timeouts=TIMEOUTS,
        )
        self.node = node
        self.machine = ClientMachine(options, rng=MIDPOINT)
        self.outcomes: dict[int, object] = {}
        self.submitted = 0
        self.streams_left = 0
        self._now = 0.0
        self._buffers: dict[neutral.StreamId, FrameBuffer | None] = {}
        self._events: list[couchbase.Event] = []
        self._of_service: dict[int, Service] = {}

    def ask(self, *asked: Get | GetCollectionsManifest | WaitForNodes | ServiceRequest) -> None:
        """Submit everything, and wait until each caller has its result or exception."""
        self.streams_left = STREAMS_MAX
        for each in asked:
            self.submitted += 1
            token = neutral.Token(self.submitted)
            if isinstance(each, ServiceRequest):
                self._of_service[token] = each.service
                self._events.append(couchbase.RequestSubmitted(token, each))
            elif isinstance(each, WaitForNodes):
                self._events.append(couchbase.InquirySubmitted(token, each))
            else:
                self._events.append(couchbase.OperationSubmitted(token, each))
        for _ in range(STEPS_MAX):
            if self._events:
                self._feed(self._events.pop(0))
            elif len(self.outcomes) == self.submitted:
                return
            else:
                self._now = max(self._now, self.machine.wakeup)
                self._feed(neutral.TimePassed())
        raise AssertionError(f"the client is still busy after {STEPS_MAX} steps")

    def _feed(self, event: couchbase.Event) -> None:
        for action in self.machine.handle(event, self._now):
            self._carry_out(action)

    def _carry_out(self, action: couchbase.Action) -> None:
        match action:
            case neutral.OpenStream(stream, _, port):
                assert 1 <= port <= PORT_MAX, action
                if not self.streams_left:
                    self._events.append(neutral.StreamLost(stream, neutral.LossCause.REFUSED))
                else:
                    self.streams_left -= 1
                    self._buffers[stream] = None if port in HTTP_PORTS else FrameBuffer(SERVER_ACCEPTS)
                    self._events.append(neutral.StreamOpened(stream, "nonce"))
            case neutral.SendBytes(stream, data):
                buffer = self._buffers[stream]
                frames = buffer.receive(data) if buffer is not None else ()
                answers = [self.node.answer(frame) for frame in frames] or [self.node.over_http()]
                self._events.append(neutral.BytesReceived(stream, b"".join(answers)))
            case neutral.CloseStream(stream):
                self._buffers.pop(stream, None)
                self._events.append(neutral.StreamLost(stream, neutral.LossCause.CLOSED_BY_US))
            case couchbase.RowsReceived(token, rows):
                self._read(self._of_service[token], rows)
                self._events.append(couchbase.RowsWanted(token))
            case couchbase.CompleteOperation(token, result) | couchbase.CompleteRequest(token, result):
                self._settle(token, result)
            case couchbase.FailOperation(token, error):
                assert isinstance(error, errors.CouchbaseException), error
                assert not isinstance(error, errors.InternalError), error
                assert str(error).isprintable(), "an error is one line"
                self._settle(token, error)
            case couchbase.PublishTopology(change):
                assert all(1 <= port <= PORT_MAX for node in change.new.nodes for port in node.ports.values()), change
            case neutral.ReportDecoderFault(_, node, fault):
                raise AssertionError(f"{node}: {fault}") from fault
            case _:
                pass

    def _settle(self, token: int, outcome: object) -> None:
        assert token not in self.outcomes, "a caller gets one outcome"
        self.outcomes[token] = outcome

    def _read(self, service: Service, rows: Iterable[bytes]) -> None:
        decode = ROW_DECODERS.get(service)
        if decode is None:
            return
        for row in rows:
            with suppress(*UNREADABLE_ROW):
                decode(row)


READ, READ_NAMED = Get(Keyspace("b"), "k"), Get(Keyspace("b", "s", "c"), "k")


def play_config(document: bytes) -> None:
    """Play a config that arrives when a connection opens."""
    node = Node()
    node.config = document
    Client(node).ask(READ, READ_NAMED)


def play_later_config(document: bytes) -> None:
    """Play a config in a NOT_MY_VBUCKET response."""
    node = Node()
    client = Client(node)
    client.ask(READ)
    node.refusal, node.config_of_refusals = Status.NOT_MY_VBUCKET, document
    client.ask(READ, READ_NAMED)


def play_manifest(document: bytes) -> None:
    """Play a manifest after the client has learned the id of a collection."""
    node = Node()
    client = Client(node)
    client.ask(READ_NAMED)
    node.manifest = document
    client.ask(WaitForNodes("b", manifest_uid=1), GetCollectionsManifest(Keyspace("b")))
    client.ask(READ_NAMED)


def play_error_map(document: bytes) -> None:
    """Play an error map and a status that it describes."""
    node = Node(refusal=0x7FF0)
    node.error_map = document
    Client(node).ask(READ)


@dataclass(frozen=True, slots=True)
class Answer:
    """Request and the HTTP status of its response. Calling the object with a body plays the response."""

    request: ServiceRequest
    status: int

    def __call__(self, body: bytes) -> None:
        """Play a response to a connected client.

        One client plays many responses, because connecting takes longer than everything else. A client that fails is
        not used again.
        """
        client = _CONNECTED.pop() if _CONNECTED else Client(Node())
        client.ask(READ)
        client.node.http_status, client.node.http_body = self.status, body
        client.ask(self.request)
        _CONNECTED.append(client)


_CONNECTED: list[Client] = []
"""Connected client for HTTP responses, if there is one."""


OF_KEY_VALUE: Sequence[tuple[object, Callable[[bytes], None]]] = (
    (CONFIG, play_config),
    ({**CONFIG, "rev": 4}, play_later_config),
    (MANIFEST, play_manifest),
    (ERROR_MAP, play_error_map),
)
"""Every key-value document, with a function that plays a changed one."""
OF_SERVICES: Sequence[tuple[object, Callable[[bytes], None]]] = tuple(
    (value, Answer(request, status)) for request, status, value in ASKED
)
"""Every document of services, with a function that plays a changed one."""


@cache
def systematic() -> Sequence[tuple[object, Callable[[bytes], None]]]:
    """Return every systematic change to the key-value documents, each of which affects the entire client."""
    return [(bent, play) for document, play in OF_KEY_VALUE for bent in single_changes(document)]


def play_document(rng: random.Random) -> None:
    """Play a document with random changes.

    Raises:
        AssertionError: an invariant is broken.
    """
    document, play = rng.choice(OF_KEY_VALUE if rng.random() < 0.4 else OF_SERVICES)
    play(draw(rng, document))


def play_input(number: int, rng: random.Random) -> None:
    """Play one input of a series: the systematic changes in order, then random ones.

    Raises:
        AssertionError: an invariant is broken.
    """
    if number < len(systematic()):
        bent, play = systematic()[number]
        play(encoded(bent))
    else:
        play_document(rng)
