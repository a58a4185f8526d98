"""The whole client as one machine: its contract, the great stories from end to end, and the nonsense of any server."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any, cast, get_args

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.connection.peer import CONFIG, ERROR_MAP
from tests.core.runtime.kv.phases import PHASES, Make, read, write
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.results import Cas, ExistsResult
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame, encode_response
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreakerOptions
from triclinium_core.retry.couchbase.strategy import BestEffortRetryStrategy, FailFastRetryStrategy, RetryAction
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.faults import delay

ONE, TWO = neutral.StreamId(1), neutral.StreamId(2)
ACTIONS = get_args(couchbase.Action)


# The contract.


def test_bytes_that_are_none() -> None:
    """A text instead of bytes raises, and the client goes on."""
    client = simulated.machine()
    client.handle(neutral.TimePassed(), 100.0)
    before = client.statistics()
    with pytest.raises(errors.InvalidArgumentException) as caught:
        client.handle(neutral.BytesReceived(ONE, cast("bytes", "text")), 100.0)

    assert "data" == caught.value.parameter
    assert before == client.statistics()


def test_wakeup() -> None:
    """At once before the first TimePassed, whatever was submitted; then when something is due."""
    client = simulated.machine()
    client.handle(couchbase.OperationSubmitted(neutral.Token(1), simulated.get()), 98.0)

    assert -math.inf == client.wakeup

    client.handle(neutral.TimePassed(), 100.0)

    assert 100.5 == client.wakeup

    client.handle(couchbase.OperationAbandoned(neutral.Token(1)), 100.0)

    assert 108.0 == client.wakeup


@pytest.mark.parametrize(
    ("rest", "orders"),
    [
        (b"", [couchbase.FailOperation, neutral.SendBytes]),
        (b"nonsense", [couchbase.FailOperation, neutral.CloseStream, neutral.ReportConnection, couchbase.ReportRetry]),
    ],
)
def test_what_is_sent_comes_last(rest: bytes, orders: list[type[couchbase.Action]]) -> None:
    """Callers are settled first. On a stream that the same bytes have cost nothing more is sent."""
    simulation = simulated.ready()
    first, _ = simulation.submit_in_flight(simulated.get("a"))
    request = simulation.requests[TWO][-1]
    simulation.submit(simulated.get("b", simulated.HOTELS))
    simulation.swallow(TWO)
    question = simulation.requests[TWO][-1]
    del simulation.actions[:]
    simulation.inject(
        encode_response(Opcode.GET_COLLECTION_ID, opaque=question.opaque, extras=bytes(8) + b"\0\0\0\x08")
        + encode_response(Opcode.GET, opaque=request.opaque, status=1)
        + rest
    )

    assert orders == [type(each) for each in simulation.actions][: len(orders)]
    assert first == cast("couchbase.FailOperation", simulation.actions[0]).token


# A caller's mistakes.


def mistake(
    simulation: simulated.Recorded, event: Any, error: type[Exception] | tuple[type[Exception], ...]
) -> Exception:
    """Feed an event that must raise and change nothing."""
    before = simulation.machine.statistics()
    with pytest.raises(error) as caught:
        simulation.machine.handle(event, simulation.now)
    assert before == simulation.machine.statistics()
    assert [] == list(simulation.machine.handle(neutral.TimePassed(), simulation.now))
    return caught.value


def test_token_of_an_open_operation() -> None:
    """A token names one operation."""
    simulation = simulated.ready()
    token, _ = simulation.submit_in_flight(simulated.get())

    assert str(token) in str(mistake(simulation, couchbase.OperationSubmitted(token, simulated.get()), InvalidEvent))


@rows(
    ("parameter", "event"),
    [
        # A document lies in a bucket.
        (
            "bucket",
            couchbase.OperationSubmitted(
                neutral.Token(9), document_operations.Get(document_operations.Keyspace(None), "k")
            ),
        ),
        (
            "operation",
            couchbase.OperationSubmitted(
                neutral.Token(9), document_operations.DocumentOperation(simulated.TRAVEL, "k")
            ),
        ),
        (
            "operation",
            couchbase.OperationSubmitted(neutral.Token(9), document_operations.Store(simulated.TRAVEL, "k", b"", 0)),
        ),
        ("operation", couchbase.OperationSubmitted(neutral.Token(9), cast("Any", None))),
        ("operation", couchbase.OperationSubmitted(neutral.Token(9), cast("Any", "get"))),
        ("retry_strategy", couchbase.OperationSubmitted(neutral.Token(9), simulated.get(), cast("Any", "best effort"))),
        (
            "retry_strategy",
            couchbase.OperationSubmitted(neutral.Token(9), simulated.get(), cast("Any", BestEffortRetryStrategy)),
        ),
        (
            "client_context",
            couchbase.OperationSubmitted(neutral.Token(9), simulated.get(), None, cast("Any", ["robot"])),
        ),
        *(("token", couchbase.OperationSubmitted(cast("Any", token), simulated.get())) for token in ("tok", None, 1.5)),
        *(("event", event) for event in ("time passed", None, neutral.TimePassed)),
    ],
)
def test_wrong_event(parameter: str, event: Any) -> None:
    """What would show only at the first failure, in the midst of a server's answer, is refused by name."""
    error = mistake(simulated.ready(), event, errors.InvalidArgumentException)

    assert parameter == cast("errors.InvalidArgumentException", error).parameter
    assert parameter in str(error)


OPEN = couchbase.OperationSubmitted(neutral.Token(0), simulated.get())
"""Stands for one with the token of an operation that is open."""


@rows(
    "wrong",
    [
        couchbase.OperationSubmitted(
            neutral.Token(9), document_operations.Get(document_operations.Keyspace(None), "k")
        ),
        couchbase.OperationSubmitted(neutral.Token(9), simulated.get(), cast("Any", "best effort")),
        couchbase.OperationSubmitted(neutral.Token(8), simulated.get()),
        OPEN,
        cast("Any", simulated.get()),
    ],
)
def test_one_mistake_of_several(wrong: couchbase.OperationSubmitted) -> None:
    """Of submissions that come together all are taken, in order, or none: neither those before it nor those behind."""
    simulation = simulated.ready()
    is_open, _ = simulation.submit_in_flight(simulated.get())
    wrong = couchbase.OperationSubmitted(is_open, simulated.get()) if wrong == OPEN else wrong
    first, last = (couchbase.OperationSubmitted(neutral.Token(token), simulated.get(str(token))) for token in (8, 10))
    mistake(
        simulation, couchbase.OperationsSubmitted([first, wrong, last]), (InvalidEvent, errors.InvalidArgumentException)
    )
    actions = simulation.feed(couchbase.OperationsSubmitted([first, last]))

    assert [neutral.SendBytes] == [type(action) for action in actions]
    assert [b"\x008", b"\x0010"] == [request.key for request in simulation.requests[TWO][-2:]]


@pytest.mark.parametrize(
    "now",
    [None, "0", True, math.nan, math.inf, -math.inf, 10**5000],
    ids=lambda now: str(now)[:9] if now != 10**5000 else "huge",
)
def test_wrong_time(now: Any) -> None:
    """What is no time changes nothing: the next event finds the machine as it was."""
    fresh = simulated.machine()
    with pytest.raises(errors.InvalidArgumentException) as caught:
        fresh.handle(neutral.TimePassed(), now)

    assert "now" == caught.value.parameter
    assert -math.inf == fresh.wakeup
    assert [neutral.OpenStream(ONE, "127.0.0.1", 11210, False)] == list(fresh.handle(neutral.TimePassed(), 0.0))


def test_time_that_goes_back() -> None:
    """It may stand still."""
    fresh = simulated.machine()
    fresh.handle(neutral.TimePassed(), 5.0)
    fresh.handle(neutral.TimePassed(), 5.0)
    with pytest.raises(errors.InvalidArgumentException, match="cannot go back"):
        fresh.handle(neutral.TimePassed(), 4.999)


@pytest.mark.parametrize(
    ("parameter", "options", "rng"),
    [("options", None, random.Random(1)), ("rng", ClientOptions(connection_string=simulated.ADDRESS), None)],
)
def test_wrong_parts(parameter: str, options: Any, rng: Any) -> None:
    """Refused by name."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        ClientMachine(options, rng=rng)

    assert parameter == caught.value.parameter


# Terminal reasons, from end to end.


def test_wrong_password() -> None:
    """Fails at once under the default strategy, with the next step in words (decisions C1, C6)."""
    options = simulated.client_options(authenticator=PasswordAuthenticator("Administrator", "wrong"))
    simulation = simulated.Recorded(options=options)
    error = simulation.failure(errors.AuthenticationFailureException, simulated.get())

    assert 0.0 == simulation.now
    assert ("AUTHENTICATION_ERROR", 0) == (error.context.refused_reason, error.context.retry_attempts)
    assert "check user name and password, or the token" in str(error)
    assert "wrong" not in str(error)


def test_wrong_password_is_noticed_without_an_operation() -> None:
    """The connection without a bucket has met it, so the first operation need not wait for its own."""
    options = simulated.client_options(authenticator=PasswordAuthenticator("Administrator", "wrong"))
    simulation = simulated.Recorded(options=options)
    simulation.flow()
    token = simulation.submit(simulated.get())
    simulation.flow()

    simulation.error(errors.AuthenticationFailureException, token)


def test_credentials_that_become_right() -> None:
    """A success clears the state; an operation that can be dispatched is never stopped by it (decision C6)."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.SASL_STEP, faults.status(Status.AUTH_ERROR), times=1)
    simulation.lose(ONE)
    simulation.live(0.01)
    while_refused = simulation.finish(simulated.upsert("a"))
    simulation.live(1.0)
    simulation.lose(TWO)
    token = simulation.finish(simulated.upsert("b"))

    assert while_refused in simulation.results
    assert token in simulation.results


@pytest.mark.parametrize("other", [Status.TEMPORARY_FAILURE, Status.NOT_SUPPORTED])
def test_other_failures_of_sasl_are_not_terminal(other: Status) -> None:
    """They are retried until the deadline (decision C6)."""
    simulation = simulated.Recorded()
    simulation.node.faults.always(Opcode.SASL_STEP, faults.status(other))
    error = simulation.failure(errors.UnambiguousTimeoutException, simulated.get())

    assert frozenset({"SOCKET_NOT_AVAILABLE"}) == error.context.retry_reasons


def test_missing_bucket() -> None:
    """0x24 to SELECT_BUCKET is terminal, for that bucket alone (decision C7)."""
    simulation = simulated.ready()
    error = simulation.failure(
        errors.BucketAccessException, simulated.get("k", document_operations.Keyspace("nowhere"))
    )

    assert 0.0 == simulation.now
    assert "BUCKET_ACCESS_ERROR" == error.context.refused_reason
    assert "check that the bucket exists" in str(error)
    simulation.result(simulated.upsert())


def test_bucket_that_becomes_accessible() -> None:
    """A success clears the state."""
    simulation = simulated.Recorded()
    simulation.node.faults.next(Opcode.SELECT_BUCKET, faults.status(Status.NO_ACCESS))
    simulation.failure(errors.BucketAccessException, simulated.get())
    simulation.live(1.0)
    simulation.result(simulated.upsert())
    simulation.node.faults.always(None, faults.refuse_connection())
    simulation.lose(simulation.newest)
    error = simulation.failure(errors.UnambiguousTimeoutException, simulated.get())

    assert "BUCKET_ACCESS_ERROR" not in error.context.retry_reasons


def test_nobody_knocks_at_a_bucket_that_is_denied() -> None:
    """The connection is opened again when an operation asks for the bucket, and not sooner than after its backoff."""
    simulation = simulated.Recorded()
    simulation.node.faults.always(Opcode.SELECT_BUCKET, faults.status(Status.NO_ACCESS))
    simulation.failure(errors.BucketAccessException, simulated.get())
    simulation.failure(errors.BucketAccessException, simulated.get())
    denied = simulation.commands(Opcode.SELECT_BUCKET)
    simulation.live(3600.0)

    assert 1 == len(denied) == len(simulation.commands(Opcode.SELECT_BUCKET))

    simulation.failure(errors.BucketAccessException, simulated.get())
    simulation.failure(errors.BucketAccessException, simulated.get())

    assert 2 == len(simulation.commands(Opcode.SELECT_BUCKET))


def test_whoever_is_patient_with_a_bucket_that_is_denied() -> None:
    """Its retries ask for the bucket, with the pauses of any reconnection in between."""
    simulation = simulated.Recorded()
    simulation.node.faults.next(Opcode.SELECT_BUCKET, faults.status(Status.NO_ACCESS), times=5)
    simulation.result(simulated.upsert(), retry_strategy=BestEffortRetryStrategy())
    opened = [at for at, order in simulation.opened_at if order.stream > 1]

    assert 6 == len(opened)
    assert all(later - sooner > 0.009 for sooner, later in pairwise(opened))


# The circuit breaker, from end to end (decision C33).


def test_circuit_breaker() -> None:
    """Twenty timeouts open it, operations are refused, the canary closes it, operations pass."""
    simulation = simulated.Recorded()
    simulation.flow()
    simulation.node.faults.always(Opcode.GET, faults.drop_response())
    first = [simulation.submit(simulated.get(str(position))) for position in range(20)]
    simulation.live(simulated.TIMEOUT)
    opened = simulation.connection().circuit_breaker
    before = len(simulation.requests[TWO])
    refused = simulation.finish(simulated.get(), retry_strategy=FailFastRetryStrategy())
    waiting = simulation.submit(simulated.upsert())
    simulation.live(1.0)
    sent = simulation.requests[TWO][before:]
    simulation.node.faults.clear()
    late = simulation.submit(simulated.upsert())
    simulation.run()
    simulation.live(5.0)
    closed = simulation.connection().circuit_breaker

    assert all(type(simulation.errors[token]) is errors.UnambiguousTimeoutException for token in first)
    assert [] == sent
    assert "CIRCUIT_BREAKER_OPEN" == simulation.errors[refused].context.refused_reason
    assert opened is not None
    assert ("OPEN", 20, simulated.TIMEOUT) == (opened.state.name, opened.failures, opened.opened_at)
    assert closed is not None
    assert "CLOSED" == closed.state.name
    simulation.error(errors.UnambiguousTimeoutException, waiting)
    simulation.error(errors.UnambiguousTimeoutException, late)
    simulation.result(simulated.upsert())


@pytest.mark.parametrize(
    ("failures", "time"),
    [
        (1, neutral.TimePassed()),
        (1, neutral.TimePassed(unsent={neutral.StreamId(1): 0}, unread={neutral.StreamId(1)})),
        (1, neutral.TimePassed(unsent={TWO: 10_000})),
        (0, neutral.TimePassed(unsent={TWO: 0})),
        (0, neutral.TimePassed(unread={TWO})),
    ],
)
def test_circuit_breaker_counts_what_the_node_owes(failures: int, time: neutral.TimePassed) -> None:
    """What the client has not sent yet, or may only not have read, is no failure of the node (decision C33)."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.GET, faults.drop_response())
    token = simulation.submit(simulated.get())
    simulation.flow()
    simulation.now += simulated.TIMEOUT
    simulation.feed(time)
    breaker = simulation.connection().circuit_breaker

    assert token in simulation.errors
    assert breaker is not None
    assert failures == breaker.failures


def test_circuit_breaker_can_be_switched_off() -> None:
    """Then nothing is counted."""
    options = simulated.client_options(circuit_breaker=CircuitBreakerOptions(enabled=False, volume_threshold=1))
    simulation = simulated.ready(options=options)
    simulation.node.faults.always(Opcode.GET, faults.drop_response())
    for position in range(3):
        simulation.submit(simulated.get(str(position)))
    simulation.run()
    simulation.node.faults.clear()

    simulation.result(simulated.upsert())


def test_each_bucket_has_its_own_breaker() -> None:
    """One that is open leaves the others alone."""
    options = simulated.client_options(circuit_breaker=CircuitBreakerOptions(volume_threshold=1))
    simulation = simulated.Recorded(options=options, buckets=("travel", "other"))
    simulation.node.faults.next(Opcode.GET, faults.drop_response())
    simulation.finish(simulated.get())
    simulation.result(simulated.upsert("k", document_operations.Keyspace("other")))

    assert ["OPEN", "CLOSED"] == [
        breaker.state.name
        for bucket in ("travel", "other")
        if (breaker := simulation.connection(bucket).circuit_breaker) is not None
    ]


# A plain memcached (decision C27).


class Bare:
    """A client of a plain memcached, and what it sends."""

    def __init__(self, *, open_stream: bool = True) -> None:
        self.client = simulated.machine("memcached://127.0.0.1:11211", authenticator=None)
        self.buffer = FrameBuffer(SERVER_ACCEPTS)
        self.actions: list[couchbase.Action] = []
        self.requests: list[Frame] = []
        self.now = 0.0
        self.feed(neutral.TimePassed())
        if open_stream:
            self.feed(neutral.StreamOpened(ONE, ""))

    def feed(self, event: Any, now: float | None = None) -> None:
        """Feed an event, now or at a later time, and keep what it leads to."""
        self.now = self.now if now is None else now
        for action in self.client.handle(event, self.now):
            self.actions.append(action)
            if isinstance(action, neutral.SendBytes):
                self.requests += self.buffer.receive(action.data)

    def submit(self, token: int, operation: document_operations.Operation) -> None:
        """Submit an operation, without its bucket."""
        keyspace = msgspec.structs.replace(operation.keyspace, bucket=None)
        self.feed(
            couchbase.OperationSubmitted(neutral.Token(token), msgspec.structs.replace(operation, keyspace=keyspace))
        )

    def answer(self, **parts: Any) -> None:
        """Answer the newest request."""
        request = self.requests[-1]
        self.feed(neutral.BytesReceived(ONE, encode_response(request.opcode, opaque=request.opaque, **parts)))


def test_memcached_has_no_buckets() -> None:
    """Documents of two buckets would be the same ones, so a bucket is refused, and nothing is sent."""
    bare = Bare()
    with pytest.raises(errors.InvalidArgumentException, match="default_collection") as caught:
        bare.feed(couchbase.OperationSubmitted(neutral.Token(1), simulated.get()))

    assert "bucket" == caught.value.parameter
    assert [] == bare.requests


@rows(
    ("operation", "open_stream"),
    [
        *product(
            (
                document_operations.GetAndLock(simulated.TRAVEL, "k"),
                document_operations.Unlock(simulated.TRAVEL, "k", Cas(5)),
                simulated.upsert(preserve_expiry=True),
                simulated.upsert(durability=DurabilityLevel.MAJORITY),
            ),
            (True, False),
        ),
        (simulated.get("k", simulated.HOTELS), True),
    ],
)
def test_memcached_cannot(operation: document_operations.Operation, open_stream: bool) -> None:
    """What it has nothing like fails before anything is sent, and before it is reached."""
    bare = Bare(open_stream=open_stream)
    bare.submit(1, operation)
    (failed,) = (action for action in bare.actions if isinstance(action, couchbase.FailOperation))

    assert errors.FeatureNotAvailableException is type(failed.error)
    assert ([], 0) == (bare.requests, bare.client.statistics().open_operations)


def test_memcached_exists() -> None:
    """Is a GET, and its answer is one."""
    bare = Bare()
    bare.submit(1, document_operations.Exists(simulated.TRAVEL, "ada"))
    request = bare.requests[-1]
    bare.answer(cas=5, extras=bytes(4), value=b"v")
    bare.submit(2, document_operations.Exists(simulated.TRAVEL, "bob"))
    bare.answer(status=Status.KEY_NOT_FOUND)

    assert (Opcode.GET, b"") == (request.opcode, request.extras)
    assert [ExistsResult(True, Cas(5)), ExistsResult(False, Cas(0))] == [
        action.result for action in bare.actions if isinstance(action, couchbase.CompleteOperation)
    ]


def test_where_an_attempt_went_from() -> None:
    """The driver tells our end of a stream, and errors tell it on, those after a retry too."""
    bare = Bare(open_stream=False)
    bare.feed(neutral.StreamOpened(ONE, "", local_address="10.0.0.9:40000"))
    bare.submit(1, simulated.get())
    bare.answer(status=Status.KEY_NOT_FOUND)
    bare.submit(2, simulated.get())
    bare.answer(status=Status.TEMPORARY_FAILURE)
    bare.feed(neutral.TimePassed(), 0.001)
    bare.answer(status=Status.KEY_NOT_FOUND)

    assert [("10.0.0.9:40000", "127.0.0.1:11211")] * 2 == [
        (action.error.context.last_dispatched_from, action.error.context.last_dispatched_to)
        for action in bare.actions
        if isinstance(action, couchbase.FailOperation)
    ]


def test_memcached_nonsense() -> None:
    """Closes the stream like anybody's; a text protocol is recognised."""
    bare = Bare()
    bare.submit(1, simulated.upsert())
    bare.feed(neutral.BytesReceived(ONE, b"ERROR\r\n"))
    bare.feed(neutral.StreamLost(ONE, neutral.LossCause.CLOSED_BY_US, handed_over=10**6))
    (closed,) = (action for action in bare.actions if isinstance(action, neutral.CloseStream))
    (failed,) = (action for action in bare.actions if isinstance(action, couchbase.FailOperation))

    assert "text only" in closed.reason
    assert errors.RequestCanceledException is type(failed.error)


def test_0x81_to_hello_fails_at_once() -> None:
    """Under any strategy, whether one waits for the connection or comes between two attempts."""
    simulation = simulated.Recorded()
    simulation.node.faults.always(Opcode.HELLO, faults.status(Status.UNKNOWN_COMMAND))
    tokens = [
        simulation.submit(simulated.get("a"), retry_strategy=BestEffortRetryStrategy()),
        simulation.submit(simulated.upsert("b", simulated.HOTELS)),
    ]
    simulation.flow()
    later = simulation.finish(simulated.get("c"))

    for token in (*tokens, later):
        assert "memcached://" in str(simulation.error(errors.UnsupportedOperationException, token))


# Statistics.


# A server's nonsense.

STATUSES = [0, 1, 7, 9, 0x1F, 0x20, 0x21, 0x24, 0x81, 0x86, 0x88, 0x8C, 0xA6, 0xCD, 0x7FF0, 0xFFFF]


@st.composite
def server_frames(draw: st.DrawFn) -> bytes:
    """Return a frame that is well-formed, and nonsense in every other respect."""
    frame = encode_response(
        draw(st.sampled_from([*Opcode])),
        opaque=draw(st.integers(0, 9)),
        status=draw(st.sampled_from(STATUSES)),
        cas=draw(st.sampled_from([0, 5, 2**64 - 1])),
        datatype=draw(st.sampled_from([0, 1, 2, 4, 7])),
        extras=draw(st.binary(max_size=24) | st.sampled_from([bytes(4), bytes(12), bytes(16), bytes(21)])),
        value=draw(st.binary(max_size=12) | st.sampled_from([CONFIG.encode(), ERROR_MAP.encode(), bytes(8), b"{}"])),
    )
    return bytes([draw(st.sampled_from([0x81, 0x81, 0x81, 0x18, 0x82]))]) + frame[1:]


pieces = st.lists(server_frames() | st.binary(max_size=40), max_size=8).map(b"".join)
cuts = st.lists(st.integers(0, 400), max_size=6)
makes: Sequence[Make] = (read, write)


def settles_everything(simulation: simulated.Recorded) -> None:
    """Let the deadlines pass: every operation must be settled, by documented actions only, and none twice."""
    simulation.node.faults.clear()
    simulation.live(simulated.TIMEOUT)
    assert 0 == simulation.open_operations
    assert set(range(1, simulation._last_token + 1)) == set(simulation.settled_at)
    assert all(isinstance(action, ACTIONS) for action in simulation.actions)
    assert all(isinstance(error, errors.CouchbaseException) for error in simulation.errors.values())
    for stream in [*simulation.links]:
        # Half a frame of nonsense would swallow the next honest answer.
        simulation.lose(stream)
    simulation.live(11.0)
    assert "READY" == simulation.connection().state
    simulation.result(simulated.upsert("afterwards"), retry_strategy=BestEffortRetryStrategy())


def deliver(simulation: simulated.Recorded, stream: neutral.StreamId, data: bytes, cut: list[int]) -> None:
    """Let the client have ``data`` in pieces, for as long as it listens."""
    bounds = sorted({0, len(data), *(each % (len(data) + 1) for each in cut)})
    for start, end in pairwise(bounds):
        if stream in simulation.links:
            simulation.inject(data[start:end], stream)


@given(data=pieces, cut=cuts, answered=st.integers(0, 4_000))
def test_nonsense_to_a_bootstrapping_client(data: bytes, cut: list[int], answered: int) -> None:
    """At any point of a real bootstrap: nothing raises, and every operation is settled by its deadline."""
    simulation = simulated.Recorded()
    simulation.flow()
    for make in makes:
        simulation.submit(make(simulated.TRAVEL))
        simulation.submit(make(simulated.HOTELS))
    simulation.open(TWO)
    simulation.hand_over(TWO)
    simulation.deliver(TWO, answered)
    if TWO in simulation.links:
        simulation.swallow(TWO)
    deliver(simulation, TWO, data, cut)

    settles_everything(simulation)


@given(data=pieces, cut=cuts)
def test_nonsense_to_a_ready_client(data: bytes, cut: list[int]) -> None:
    """With reads, writes, a collection's question and a config's in flight."""
    simulation = simulated.ready()
    for make in makes:
        simulation.submit(make(simulated.TRAVEL))
        simulation.submit(make(simulated.HOTELS))
    simulation.submit(document_operations.Exists(simulated.TRAVEL, "k"))
    simulation.submit(document_operations.GetAndLock(simulated.TRAVEL, "k"))
    simulation.swallow(TWO)
    deliver(simulation, TWO, data, cut)

    settles_everything(simulation)


@given(data=pieces, phase=st.sampled_from([*PHASES]), make=st.sampled_from(makes), cut=cuts)
def test_nonsense_in_every_phase(data: bytes, phase: str, make: Make, cut: list[int]) -> None:
    """Whatever an operation waits for, nonsense on the connections does not keep it beyond its deadline."""
    simulation, token = PHASES[phase](make)
    for stream in [*simulation.links]:
        if simulation.links[stream].outgoing or simulation.requests[stream]:
            deliver(simulation, stream, data, cut)
    for consulted in simulation.consulted:
        if consulted.token not in simulation.settled_at:
            simulation.feed(neutral.StrategyDecided(consulted.token, RetryAction.after(0.001)))
            break
    simulation.node.faults.clear()
    simulation.live(simulated.TIMEOUT)

    assert token in simulation.settled_at
    assert simulated.TIMEOUT >= simulation.settled_at[token]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*Opcode]),
            st.sampled_from(["status", "drop", "delay", "hang up", "refuse", "nmvb"]),
            st.sampled_from(STATUSES),
            st.binary(max_size=20) | st.just(CONFIG.encode()),
        ),
        max_size=12,
    )
)
def test_any_faults(script: list[tuple[Opcode, str, int, bytes]]) -> None:
    """A node that fails in any way and recovers: every operation is settled in time, and the client lives on."""
    simulation = simulated.Recorded()
    for opcode, kind, code, body in script:
        match kind:
            case "status":
                simulation.node.faults.next(opcode, faults.status(code, body))
            case "drop":
                simulation.node.faults.next(opcode, faults.drop_response())
            case "delay":
                simulation.node.faults.next(opcode, delay(code / 100))
            case "hang up":
                simulation.node.faults.next(opcode, faults.hang_up())
            case "nmvb":
                simulation.node.faults.next(opcode, faults.not_my_vbucket(code % 2 == 0))
            case _:
                simulation.node.faults.next(None, faults.refuse_connection())
    submitted: dict[neutral.Token, float] = {}
    for make in makes:
        for keyspace in (simulated.TRAVEL, simulated.HOTELS):
            for _ in range(2):
                token = simulation.submit(make(keyspace))
                submitted[token] = simulation.now
                simulation.live(0.25)
    simulation.live(simulated.TIMEOUT)

    assert 0 == simulation.open_operations
    for token, at in submitted.items():
        assert at + simulated.TIMEOUT + 1e-9 >= simulation.settled_at[token]


def test_seeded_randomness_is_the_only_one() -> None:
    """The same seed gives the same instants."""

    def play(seed: int) -> list[float]:
        simulation = simulated.Recorded(rng=random.Random(seed))
        simulation.node.faults.next(None, faults.refuse_connection(), times=5)
        simulation.flow()
        simulation.live(2.0)
        return [at for at, _ in simulation.opened_at]

    assert play(7) == play(7) != play(8)
