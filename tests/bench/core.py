"""The core alone, without a driver: what a decision costs, and what an operation in flight weighs."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from collections.abc import Iterator

from tests.bench.turns import Row, Turn, row
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.actions import Action, OpenStream, SendBytes
from triclinium_core.kv.client_machine import ClientMachine
from triclinium_core.kv.events import BytesReceived, OperationSubmitted, StreamId, StreamOpened, TimePassed, Token
from triclinium_core.kv.node.in_flight import REQUESTS_MAX
from triclinium_core.kv.operation.requests import Get, Keyspace
from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.options import ClientOptions
from triclinium_core.retry.couchbase.events import (
    Dispatched,
    KvResponse,
    ResponseReceived,
    TimePassed as RetryTimePassed,
)
from triclinium_core.retry.couchbase.machine import RequestAnnotation, RetryMachine
from triclinium_core.retry.couchbase.strategy import BestEffortRetryStrategy
from triclinium_core.retry.couchbase.tables.kv_status import Status

PART = "core"
OPERATIONS = 4_096
AT_ONCE = (1, 64)
VALUE = b"v" * 90
KEYSPACE = Keyspace(None)
OPAQUE = struct.Struct(">I")
OPAQUE_AT = 12
STREAM = StreamId(1)
IN_FLIGHT = 100_000


def rows(rounds: int) -> Iterator[Row]:
    """Measure."""
    for count in AT_ONCE:
        yield row(PART, f"submit and reply, {count} at a time", {"a get": gets(count)}, rounds)
    yield row(PART, "dispatched, refused for now, due again", {"RetryMachine": retries}, rounds)
    yield row(PART, f"{IN_FLIGHT:,} operations in flight", {"one get": weight}, 1, unit="bytes")


def ready() -> ClientMachine:
    """Return a client of a plain memcached, which is ready as soon as its stream is open."""
    machine = ClientMachine(ClientOptions(connection_string="memcached://127.0.0.1"), rng=random.Random(7))
    (opened,) = [action for action in machine.handle(TimePassed(), 0.0) if isinstance(action, OpenStream)]
    assert opened.stream == STREAM
    machine.handle(StreamOpened(STREAM, "nonce"), 0.0)
    return machine


def sent(actions: Iterator[Action] | list[Action]) -> bytes:
    """Return the bytes that are to be sent."""
    return b"".join([action.data for action in actions if isinstance(action, SendBytes)])


def gets(at_once: int) -> Turn:
    """Return a turn that submits so many gets, and then hears all their answers in one piece."""

    def turn() -> float:
        machine, get, token, seconds = ready(), Get(KEYSPACE, "k"), 0, 0.0
        answer = bytearray(encode_response(0, opaque=0, cas=7, extras=bytes(4), value=VALUE))
        for _ in range(OPERATIONS // at_once):
            requests = []
            began = time.process_time()
            for _ in range(at_once):
                token += 1
                requests.append(machine.handle(OperationSubmitted(Token(token), get), 1.0))
            seconds += time.process_time() - began
            data = sent([action for actions in requests for action in actions])
            size, answers = len(data) // at_once, bytearray()
            for start in range(0, len(data), size):
                answer[OPAQUE_AT : OPAQUE_AT + 4] = data[start + OPAQUE_AT : start + OPAQUE_AT + 4]
                answers += answer
            event = BytesReceived(STREAM, bytes(answers))
            began = time.process_time()
            completed = machine.handle(event, 1.0)
            seconds += time.process_time() - began
            assert len(completed) == at_once
        return seconds / OPERATIONS

    return turn


def retries() -> float:
    """Return what a cycle costs: an attempt is handed over, answered, judged, and is due again."""
    annotation = RequestAnnotation(
        operation="get",
        idempotent=True,
        strategy=BestEffortRetryStrategy(),
        submitted_at=0.0,
        deadline=1e9,
        error_context=ErrorContext(key="k"),
    )
    machine, now = RetryMachine(annotation, rng=random.Random(7)), 0.0
    dispatched, refused = Dispatched("127.0.0.1:11210", 1), ResponseReceived(KvResponse(Status.LOCKED, "n"))
    began = time.process_time()
    for _ in range(OPERATIONS):
        machine.handle(dispatched, now)
        machine.handle(refused, now)
        now = machine.wakeup
        machine.handle(RetryTimePassed(), now)
    return (time.process_time() - began) / OPERATIONS


def weight() -> float:
    """Return the bytes that an operation takes beside its request, with as many of them as connections need for it."""
    machines = [ready() for _ in range(-(-IN_FLIGHT // REQUESTS_MAX))]
    get = Get(KEYSPACE, "k")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(IN_FLIGHT):
            machines[number % len(machines)].handle(OperationSubmitted(Token(number), get), 1.0)
        return (tracemalloc.get_traced_memory()[0] - before) / IN_FLIGHT
    finally:
        tracemalloc.stop()
