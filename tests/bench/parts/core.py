"""Costs of the core without a driver: an operation, a retry, and the memory of an operation in flight."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import partial

from tests.bench.replay import Rehearsal, ReplayScript, ScriptRecorder
from tests.bench.turns import Effort, Row, Stopwatch, measure
from tests.bench.weight import in_flight
from triclinium_core import ClientOptions
from triclinium_core.contract.couchbase import OperationsSubmitted, OperationSubmitted
from triclinium_core.contract.neutral import BytesReceived, OpenStream, SendBytes, StreamOpened, TimePassed, Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Upsert
from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.retry import couchbase
from triclinium_core.testing import FakeNodeOptions, FakeNodes

OPERATIONS = 2_048
RETRIES = 512
AT_ONCE = (1, 64, 256)
GET = Get(Keyspace(None), "ada")
GET_FROM_A_COLLECTION = Get(Keyspace("travel", "inventory", "hotel"), "ada")
COLLECTIONS = {"_default": {"_default": 0}, "inventory": {"hotel": 8}}
VALUE = b"v" * 90
IN_FLIGHT = 100_000


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    for count in AT_ONCE:
        turns = {
            "memcached": gets_from_memcached(effort.of(OPERATIONS), count).play,
            "a bucket's collection": gets_from_a_collection(effort.of(OPERATIONS), count).play,
        }
        yield from measure("core: a get, submitted and answered", f"{count} at once", turns, effort.short)
    turn = partial(retries, effort.of(RETRIES))
    what = "sent, refused temporarily, due for its retry"
    yield from measure("core: a retry", what, {"RetryMachine": turn}, effort.short)
    yield from in_flight(effort.of(IN_FLIGHT))


def gets_from_memcached(gets: int, at_once: int) -> ReplayScript:
    """Return the script of gets of which ``at_once`` are submitted together; their responses arrive in one piece."""
    options = ClientOptions(connection_string="memcached://127.0.0.1")
    machine, requests = ScriptRecorder(options), FrameBuffer(SERVER_ACCEPTS)
    (opened,) = [action for action in machine.handle(TimePassed(), 0.0) if isinstance(action, OpenStream)]
    machine.handle(StreamOpened(opened.stream, "nonce"), 0.0)
    begin = len(machine.received)
    for first in range(0, gets, at_once):
        together = [OperationSubmitted(Token(token), GET) for token in range(first, min(first + at_once, gets))]
        actions = machine.handle(together[0] if at_once == 1 else OperationsSubmitted(together), 1.0)
        sent = b"".join(action.data for action in actions if isinstance(action, SendBytes))
        answers = [
            encode_response(frame.opcode, opaque=frame.opaque, cas=7, extras=bytes(4), value=VALUE)
            for frame in requests.receive(sent)
        ]
        machine.handle(BytesReceived(opened.stream, b"".join(answers)), 1.0)
    return ReplayScript(options, machine.received, begin, gets)


def gets_from_a_collection(gets: int, at_once: int) -> ReplayScript:
    """Return the script of gets from a bucket with vbuckets and collections."""
    rehearsal = Rehearsal(FakeNodes(FakeNodeOptions(buckets=("travel",), collections=COLLECTIONS), 1))
    rehearsal.do([Upsert(GET_FROM_A_COLLECTION.keyspace, "ada", VALUE, 0)], 1)
    rehearsal.begin()
    rehearsal.do([GET_FROM_A_COLLECTION] * gets, at_once)
    return rehearsal.script()


def retries(count: int) -> Mapping[str, float]:
    """Return the cost of a cycle: an attempt is sent, the node refuses it, and its retry becomes due."""
    annotation = couchbase.RequestAnnotation(
        operation="get",
        idempotent=True,
        strategy=couchbase.BestEffortRetryStrategy(),
        submitted_at=0.0,
        deadline=1e9,
        error_context=ErrorContext(key="ada"),
    )
    machine, now = couchbase.RetryMachine(annotation, rng=random.Random(7)), 0.0
    dispatched, refused = (
        couchbase.Dispatched("127.0.0.1:11210", 1),
        couchbase.ResponseReceived(couchbase.KvResponse(couchbase.Status.LOCKED, "n")),
    )
    with Stopwatch() as watch:
        for _ in range(count):
            machine.handle(dispatched, now)
            machine.handle(refused, now)
            now = machine.wakeup
            machine.handle(couchbase.WakeupReached(), now)
    return watch.processor(count)
