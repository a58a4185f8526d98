"""Full events, with the maximum amount of data in one ``BytesReceived``, and in the document that it completes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import cramjam

from tests.core.kv.topology.test_cluster_config import changed
from tests.core.runtime.kv.simulated import TRAVEL, get, ready
from tests.core.runtime.services.asking import Asking, asking
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.couchbase import Action
from triclinium_core.contract.neutral import BytesReceived, SendBytes, StreamId, TimePassed
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.manifest.manifest_codec import MANIFEST_LIMITS
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.operation.scan.scan_codec import INFLATED_SIZE_BYTES_MAX
from triclinium_core.kv.operation.scan.scan_requests import SCAN_ID_SIZE, RangeScanContinue
from triclinium_core.kv.topology.cluster_config import HOLDERS_MAX, NODES_MAX, VBUCKETS_MAX
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX, Datatype, Magic, Opcode, ServerOpcode
from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.runtime.services.connection import HEAD_LINES_MAX, LINE_SIZE_BYTES_MAX, TRAILER_SIZE_BYTES_MAX
from triclinium_core.services.answer import decoded_limits
from triclinium_core.services.answer.incoming_answer import BODY_LIMITS
from triclinium_core.services.answer.rows import MEMBERS_MAX, REST_LIMITS, ROW_SIZE_BYTES_MAX
from triclinium_core.services.management.buckets import GetAllBuckets
from triclinium_core.services.management.users import GetAllUsers, GetUser
from triclinium_core.services.received import ITEMS_MAX, ROWS_MAX
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.testing.simulation import Simulation
from triclinium_core.work import PIECE_SIZE_BYTES_MAX

PIECE = PIECE_SIZE_BYTES_MAX
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
REFUSED = b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n"
ROWS = b'{"results":['
SURROGATE = rb"\ud800"
HEADER = struct.Struct(">BBHBBHIIQ")


class FullEvent(NamedTuple):
    """One event, ready to be handled."""

    simulation: Simulation
    event: BytesReceived | TimePassed

    @property
    def machine(self) -> ClientMachine:
        """Client machine that handles the event."""
        return self.simulation.clients[0]

    def handle(self) -> list[Action]:
        """Let the client machine handle the event, and return its actions."""
        return list(self.machine.handle(self.event, self.simulation.now))


def cut(data: bytes) -> Iterator[bytes]:
    """Yield pieces as a driver reads them."""
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


def chunk(content: bytes) -> bytes:
    """Return one HTTP chunk with this data."""
    return b"%x\r\n%b\r\n" % (len(content), content)


def answered(before: bytes, last: bytes, request: ServiceRequest | None = None) -> FullEvent:
    """Return the event with the piece ``last`` of a response. The bytes before it have been handled."""
    simulation = Asking()
    simulation.finish(asking())
    if request is not None:
        simulation.finish(request)
    simulation.request(request if request is not None else asking())
    stream = [action.stream for action in simulation.actions if isinstance(action, SendBytes)][-1]
    for piece in cut(before):
        simulation.machine.handle(BytesReceived(stream, piece), simulation.now)
    assert len(last) <= PIECE
    return FullEvent(simulation, BytesReceived(stream, last))


def rows(repeated: bytes, begun: bytes = b"") -> FullEvent:
    """Return the event with a piece full of rows, the first of which follow ``begun``."""
    content = (repeated * (PIECE // len(repeated)))[: PIECE - 16]
    return answered(HEAD + chunk(ROWS + begun), chunk(content))


def document(head: bytes, members: bytes, request: ServiceRequest | None = None) -> FullEvent:
    """Return the event with the last piece of a response whose body is one document."""
    return answered(head + chunk(members), b"0\r\n\r\n", request)


def listed(name: bytes, element: bytes, count: int) -> bytes:
    """Return a document with a list."""
    return b'{"status":"success","%b":[%b]}' % (name, b",".join([element] * count))


def keys(count: int) -> bytes:
    """Return an object with ``count`` keys."""
    return b"{%b}" % b",".join(b'"%d":1' % number for number in range(count))


def row(content: bytes) -> FullEvent:
    """Return the event with the end of a large row."""
    return answered(HEAD + chunk(ROWS + content[:-1]), chunk(content[-1:] + b",1,"))


def users() -> FullEvent:
    """Return the event with the end of a list of users, as long as the limits permit."""
    user = {"id": "u", "domain": "local", "roles": [{"role": "r", "origins": [{"type": "user"}]}]}
    body = json.dumps([user] * ROWS_MAX, separators=(",", ":")).encode()
    return document(HEAD, body, GetAllUsers())


def buckets() -> FullEvent:
    """Return the event with the end of a list of buckets with as many nodes as the limits permit."""
    bucket = {"name": "b", "nodes": [{}] * ITEMS_MAX}
    body = json.dumps([bucket] * (BODY_LIMITS.objects_max // (ITEMS_MAX + 1)), separators=(",", ":")).encode()
    return document(HEAD, body, GetAllBuckets())


def roles_of_a_user() -> FullEvent:
    """Return the event with the end of a user with as many roles as the limits permit."""
    role = {"role": "r", "origins": [{"type": "user"}]}
    body = json.dumps({"id": "u", "roles": [role] * ITEMS_MAX}, separators=(",", ":")).encode()
    return document(HEAD, body, GetUser(username="u"))


def further(full: FullEvent) -> FullEvent:
    """Return the event that reads the second part of a list, after the first was read."""
    full.handle()
    assert full.machine.wakeup <= full.simulation.now
    return FullEvent(full.simulation, TimePassed())


def frames(frame: bytes) -> FullEvent:
    """Return the event with a piece full of frames that respond to no request."""
    simulation = ready()
    simulation.finish(get())
    return FullEvent(simulation, BytesReceived(simulation.newest, (frame * (PIECE // len(frame) + 1))[:PIECE]))


def answer_to(operation: Operation, value: bytes, extras: bytes = b"", datatype: int = 0) -> FullEvent:
    """Return the event with the last piece of a large response to an operation."""
    simulation = ready()
    simulation.finish(get())
    _, request = simulation.submit_in_flight(operation)
    data = encode_response(request.opcode, opaque=request.opaque, extras=extras, value=value, datatype=datatype)
    return last_of(simulation, simulation.newest, data)


def last_of(simulation: Simulation, stream: StreamId, data: bytes) -> FullEvent:
    """Return the event with the last bytes of ``data``. The bytes before them have been handled."""
    *before, last = cut(data)
    for piece in before:
        simulation.machine.handle(BytesReceived(stream, piece), simulation.now)
    return FullEvent(simulation, BytesReceived(stream, last))


def config() -> FullEvent:
    """Return the event with the end of a newer config, as large as the limits permit, in a response."""
    simulation = ready()
    simulation.finish(get())
    _, request = simulation.submit_in_flight(get())
    holders = [[0] * HOLDERS_MAX] * VBUCKETS_MAX
    servers = [f"n{number}.example:11210" for number in range(NODES_MAX)]
    entries = [{"hostname": server[:-6], "services": {"kv": 11210}} for server in servers]
    fields = {"serverList": servers, "vBucketMap": holders, "vBucketMapForward": holders}
    value = changed(name="travel", rev=2**40, nodesExt=entries, vBucketServerMap=fields)
    data = encode_response(request.opcode, opaque=request.opaque, status=0x07, value=value)
    return last_of(simulation, simulation.newest, data)


def manifest() -> FullEvent:
    """Return the event with the end of a manifest, as large as the limits permit."""
    collections = [{"uid": f"{number:x}", "name": "c" * 100} for number in range(MANIFEST_LIMITS.objects_max - 2)]
    value = json.dumps({"uid": "1", "scopes": [{"uid": "8", "name": "s", "collections": collections}]}).encode()
    return answer_to(GetCollectionsManifest(TRAVEL), value)


def scan_page() -> FullEvent:
    """Return the event with the end of a page that would inflate to several hundred megabytes."""
    block = bytes(cramjam.snappy.compress_raw(bytes(INFLATED_SIZE_BYTES_MAX // 4)))
    size = bytes([0x80 | len(block) & 0x7F, 0x80 | (len(block) >> 7) & 0x7F, len(block) >> 14])
    one = struct.pack(">IIQQB", 0x2000000, 0, 1, 1, Datatype.SNAPPY) + b"\x01k" + size + block
    page = RangeScanContinue(TRAVEL, 0, bytes(SCAN_ID_SIZE), 10_000, 15_000_000, 10_000)
    return answer_to(page, one * (VALUE_SIZE_MAX // len(one)), struct.pack(">I", 1))


def inflated() -> FullEvent:
    """Return the event with the end of the largest document, compressed."""
    value = bytes(cramjam.snappy.compress_raw(bytes(VALUE_SIZE_MAX)))
    return answer_to(get(), value, bytes(4), Datatype.SNAPPY)


def server_request(opcode: int, extras: bytes) -> bytes:
    """Return a request frame from the server."""
    return HEADER.pack(Magic.SERVER_REQUEST, opcode, 0, len(extras), 0, 0, len(extras), 0, 0) + extras


TEXT = REST_LIMITS.size_bytes_max - 200
ERROR = b'{"code":1,"msg":"x"}'
OBJECTS, PARTS = REST_LIMITS.objects_max, REST_LIMITS.parts_max

FULL_EVENTS: Mapping[str, Callable[[], FullEvent]] = {
    "chunks of one byte": lambda: answered(HEAD + chunk(ROWS + b'"'), (chunk(b"x") * PIECE)[:PIECE]),
    "rows of one digit": partial(rows, b"1,", b"1,1,"),
    "rows of an empty object": partial(rows, b"{},", b"{},{},"),
    "brackets, 8 deep": partial(rows, b"[" * 8 + b"]" * 8, b"["),
    "brackets that never close": partial(rows, b"[", b"["),
    "strings in brackets that never close": partial(rows, b'["a",', b"["),
    "brackets that close soon": partial(rows, b"[]", b"[1,"),
    "objects of an error": lambda: answered(
        REFUSED + chunk(b'{"errors":['), chunk((b'{"a":1},' * PIECE)[: PIECE - 16])
    ),
    "escapes in a string": partial(rows, rb"\"", b'"'),
    "extensions of chunks": lambda: answered(
        HEAD + chunk(ROWS + b'"'), (b"1;%b\r\nx\r\n" % (b"a" * (LINE_SIZE_BYTES_MAX - 100)) * PIECE)[:PIECE]
    ),
    "lone surrogates in one row": lambda: row(b'"%b"' % (SURROGATE * 4000)),
    "members": lambda: answered(HEAD, chunk(b"{" + b'"a":1,' * MEMBERS_MAX + b'"b":1}')),
    "lines of a head": lambda: answered(
        b"", b"HTTP/1.1 200 OK\r\n" + (b"a: %b\r\n" % (b"b" * 200)) * (HEAD_LINES_MAX - 3) + b"\r\n"
    ),
    "trailers": lambda: answered(
        HEAD + chunk(ROWS + b"]}"), b"0\r\n" + b"a:b\r\n" * (TRAILER_SIZE_BYTES_MAX // 5 - 1) + b"\r\n"
    ),
    "warnings": lambda: document(HEAD, listed(b"warnings", ERROR, PARTS // 3 - 10)),
    "errors": lambda: document(REFUSED, listed(b"errors", ERROR, PARTS // 3 - 10)),
    "keys of a profile": lambda: document(HEAD, b'{"status":"success","profile":%b}' % keys(PARTS - 10)),
    "text of an error": lambda: document(REFUSED, b'{"errors":[{"code":1,"msg":"%b"}]}' % (b"x" * TEXT)),
    "text of an error, escaped": lambda: document(
        REFUSED, b'{"errors":[{"code":1,"msg":"%b"}]}' % (rb"\n" * (TEXT // 2))
    ),
    "page of a proxy": lambda: document(REFUSED, b"<html>" + b"x\n\0" * (TEXT // 3)),
    "row of a million keys": lambda: row(keys(1_000_000)),
    "row of 20 MiB": lambda: row(b'{"a":"%b"}' % (b"x" * VALUE_SIZE_MAX)),
    "row of 32 MiB": lambda: row(b'{"a":"%b"}' % (b"x" * (ROW_SIZE_BYTES_MAX - 100))),
    "list of users": users,
    "list of users, further": lambda: further(users()),
    "list of buckets": buckets,
    "list of buckets, further": lambda: further(buckets()),
    "roles of a user": roles_of_a_user,
    "roles of a user, further": lambda: further(roles_of_a_user()),
    "NOOPs of the server": lambda: frames(server_request(Opcode.NOOP, b"")),
    "announced configs": lambda: frames(
        server_request(ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION, struct.pack(">QQ", 1, 2**40))
    ),
    "second answers": lambda: frames(encode_response(Opcode.GET, opaque=1)),
    "config": config,
    "manifest": manifest,
    "page of a scan": scan_page,
    "deflated document": inflated,
}
"""Functions that return an event, by name."""

ROW_PARTS = decoded_limits.OBJECTS_PARTS_MAX - 10_000
"""Number of parts in a row of some megabytes, which is limited by its size, too."""

FULL_ROWS: Mapping[str, Callable[[], bytes]] = {
    "keys": lambda: keys(ROW_PARTS),
    "long keys": lambda: b"{%b}" % b",".join(b'"%040d":1' % number for number in range(ROW_PARTS)),
    "lists": lambda: b"[%b1]" % (b"[]," * (decoded_limits.UNCOUNTED_SIZE_BYTES_MAX // 3 - 1)),
    "brackets, 900 deep": lambda: (
        b"[%b1]" % ((b"[" * 900 + b"]" * 900 + b",") * (decoded_limits.UNCOUNTED_SIZE_BYTES_MAX // 1801))
    ),
    "escapes": lambda: b'"%b"' % (rb"a\n" * decoded_limits.OBJECTS_ESCAPES_MAX),
    "surrogate pairs": lambda: b'"%b"' % (rb"\ud83d\ude00" * (decoded_limits.OBJECTS_ESCAPES_MAX // 2)),
    "text": lambda: b'"%b"' % (b"x" * (decoded_limits.OBJECTS_SIZE_BYTES_MAX - 2)),
    "text of wide characters": lambda: (
        b'"%b"' % ("x\U0001f600".encode() * (decoded_limits.OBJECTS_SIZE_BYTES_MAX // 5 - 1))
    ),
    "a million keys, refused": lambda: keys(1_000_000),
}
"""Functions that return a row, by name. The row is as full as the limits of decoded rows permit, or exceeds them."""
