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

from tests.core.runtime.kv.connection.peer import CONFIG, ERROR_MAP
from tests.core.runtime.kv.phases import PHASES, Make, read, write
from tests.core.runtime.kv.simulated import (
    ADDRESS,
    HOTELS,
    TIMEOUT,
    TRAVEL,
    Recorded,
    client_options,
    get,
    machine,
    ready,
    upsert,
)
from tests.rows import rows
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.couchbase import (
    Action,
    CompleteOperation,
    FailOperation,
    OperationAbandoned,
    OperationsSubmitted,
    OperationSubmitted,
    ReportRetry,
)
from triclinium_core.contract.neutral import (
    BytesReceived,
    CloseStream,
    LossCause,
    OpenStream,
    ReportConnection,
    SendBytes,
    StrategyDecided,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
    Token,
)
from triclinium_core.errors import (
    AuthenticationFailureException,
    BucketAccessException,
    CouchbaseException,
    FeatureNotAvailableException,
    InvalidArgumentException,
    RequestCanceledException,
    UnambiguousTimeoutException,
    UnsupportedOperationException,
)
from triclinium_core.kv.operation.document_operations import (
    DocumentOperation,
    Exists,
    Get,
    GetAndLock,
    Keyspace,
    Operation,
    Store,
    Unlock,
)
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.results import Cas, ExistsResult
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame, encode_response
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreakerOptions
from triclinium_core.retry.couchbase.strategy import (
    BestEffortRetryStrategy,
    FailFastRetryStrategy,
    RetryAction,
)
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.testing.fakes.faults import (
    delay,
    drop_response,
    hang_up,
    not_my_vbucket,
    refuse_connection,
    status,
)

ONE, TWO = StreamId(1), StreamId(2)
ACTIONS = get_args(Action)


# The contract.


def test_bytes_that_are_none() -> None:
    """A text instead of bytes raises, and the client goes on."""
    client = machine()
    client.handle(TimePassed(), 100.0)
    before = client.statistics()
    with pytest.raises(InvalidArgumentException) as caught:
        client.handle(BytesReceived(ONE, cast("bytes", "text")), 100.0)

    assert "data" == caught.value.parameter
    assert before == client.statistics()


def test_wakeup() -> None:
    """At once before the first TimePassed, whatever was submitted; then when something is due."""
    client = machine()
    client.handle(OperationSubmitted(Token(1), get()), 98.0)

    assert -math.inf == client.wakeup

    client.handle(TimePassed(), 100.0)

    assert 100.5 == client.wakeup

    client.handle(OperationAbandoned(Token(1)), 100.0)

    assert 108.0 == client.wakeup


@pytest.mark.parametrize(
    ("rest", "orders"),
    [(b"", [FailOperation, SendBytes]), (b"nonsense", [FailOperation, CloseStream, ReportConnection, ReportRetry])],
)
def test_what_is_sent_comes_last(rest: bytes, orders: list[type[Action]]) -> None:
    """Callers are settled first. On a stream that the same bytes have cost nothing more is sent."""
    simulation = ready()
    first, _ = simulation.submit_in_flight(get("a"))
    request = simulation.requests[TWO][-1]
    simulation.submit(get("b", HOTELS))
    simulation.swallow(TWO)
    question = simulation.requests[TWO][-1]
    del simulation.actions[:]
    simulation.inject(
        encode_response(Opcode.GET_COLLECTION_ID, opaque=question.opaque, extras=bytes(8) + b"\0\0\0\x08")
        + encode_response(Opcode.GET, opaque=request.opaque, status=1)
        + rest
    )

    assert orders == [type(each) for each in simulation.actions][: len(orders)]
    assert first == cast("FailOperation", simulation.actions[0]).token


# A caller's mistakes.


def mistake(simulation: Recorded, event: Any, error: type[Exception] | tuple[type[Exception], ...]) -> Exception:
    """Feed an event that must raise and change nothing."""
    before = simulation.machine.statistics()
    with pytest.raises(error) as caught:
        simulation.machine.handle(event, simulation.now)
    assert before == simulation.machine.statistics()
    assert [] == list(simulation.machine.handle(TimePassed(), simulation.now))
    return caught.value


def test_token_of_an_open_operation() -> None:
    """A token names one operation."""
    simulation = ready()
    token, _ = simulation.submit_in_flight(get())

    assert str(token) in str(mistake(simulation, OperationSubmitted(token, get()), InvalidEvent))


@rows(
    ("parameter", "event"),
    [
        # A document lies in a bucket.
        ("bucket", OperationSubmitted(Token(9), Get(Keyspace(None), "k"))),
        ("operation", OperationSubmitted(Token(9), DocumentOperation(TRAVEL, "k"))),
        ("operation", OperationSubmitted(Token(9), Store(TRAVEL, "k", b"", 0))),
        ("operation", OperationSubmitted(Token(9), cast("Any", None))),
        ("operation", OperationSubmitted(Token(9), cast("Any", "get"))),
        ("retry_strategy", OperationSubmitted(Token(9), get(), cast("Any", "best effort"))),
        ("retry_strategy", OperationSubmitted(Token(9), get(), cast("Any", BestEffortRetryStrategy))),
        ("client_context", OperationSubmitted(Token(9), get(), None, cast("Any", ["robot"]))),
        *(("token", OperationSubmitted(cast("Any", token), get())) for token in ("tok", None, 1.5)),
        *(("event", event) for event in ("time passed", None, TimePassed)),
    ],
)
def test_wrong_event(parameter: str, event: Any) -> None:
    """What would show only at the first failure, in the midst of a server's answer, is refused by name."""
    error = mistake(ready(), event, InvalidArgumentException)

    assert parameter == cast("InvalidArgumentException", error).parameter
    assert parameter in str(error)


OPEN = OperationSubmitted(Token(0), get())
"""Stands for one with the token of an operation that is open."""


@rows(
    "wrong",
    [
        OperationSubmitted(Token(9), Get(Keyspace(None), "k")),
        OperationSubmitted(Token(9), get(), cast("Any", "best effort")),
        OperationSubmitted(Token(8), get()),
        OPEN,
        cast("Any", get()),
    ],
)
def test_one_mistake_of_several(wrong: OperationSubmitted) -> None:
    """Of submissions that come together all are taken, in order, or none: neither those before it nor those behind."""
    simulation = ready()
    is_open, _ = simulation.submit_in_flight(get())
    wrong = OperationSubmitted(is_open, get()) if wrong == OPEN else wrong
    first, last = (OperationSubmitted(Token(token), get(str(token))) for token in (8, 10))
    mistake(simulation, OperationsSubmitted([first, wrong, last]), (InvalidEvent, InvalidArgumentException))
    actions = simulation.feed(OperationsSubmitted([first, last]))

    assert [SendBytes] == [type(action) for action in actions]
    assert [b"\x008", b"\x0010"] == [request.key for request in simulation.requests[TWO][-2:]]


@pytest.mark.parametrize(
    "now",
    [None, "0", True, math.nan, math.inf, -math.inf, 10**5000],
    ids=lambda now: str(now)[:9] if now != 10**5000 else "huge",
)
def test_wrong_time(now: Any) -> None:
    """What is no time changes nothing: the next event finds the machine as it was."""
    fresh = machine()
    with pytest.raises(InvalidArgumentException) as caught:
        fresh.handle(TimePassed(), now)

    assert "now" == caught.value.parameter
    assert -math.inf == fresh.wakeup
    assert [OpenStream(ONE, "127.0.0.1", 11210, False)] == list(fresh.handle(TimePassed(), 0.0))


def test_time_that_goes_back() -> None:
    """It may stand still."""
    fresh = machine()
    fresh.handle(TimePassed(), 5.0)
    fresh.handle(TimePassed(), 5.0)
    with pytest.raises(InvalidArgumentException, match="cannot go back"):
        fresh.handle(TimePassed(), 4.999)


@pytest.mark.parametrize(
    ("parameter", "options", "rng"),
    [("options", None, random.Random(1)), ("rng", ClientOptions(connection_string=ADDRESS), None)],
)
def test_wrong_parts(parameter: str, options: Any, rng: Any) -> None:
    """Refused by name."""
    with pytest.raises(InvalidArgumentException) as caught:
        ClientMachine(options, rng=rng)

    assert parameter == caught.value.parameter


# Terminal reasons, from end to end.


def test_wrong_password() -> None:
    """Fails at once under the default strategy, with the next step in words (decisions C1, C6)."""
    options = client_options(authenticator=PasswordAuthenticator("Administrator", "wrong"))
    simulation = Recorded(options=options)
    error = simulation.failure(AuthenticationFailureException, get())

    assert 0.0 == simulation.now
    assert ("AUTHENTICATION_ERROR", 0) == (error.context.refused_reason, error.context.retry_attempts)
    assert "check user name and password, or the token" in str(error)
    assert "wrong" not in str(error)


def test_wrong_password_is_noticed_without_an_operation() -> None:
    """The connection without a bucket has met it, so the first operation need not wait for its own."""
    options = client_options(authenticator=PasswordAuthenticator("Administrator", "wrong"))
    simulation = Recorded(options=options)
    simulation.flow()
    token = simulation.submit(get())
    simulation.flow()

    simulation.error(AuthenticationFailureException, token)


def test_credentials_that_become_right() -> None:
    """A success clears the state; an operation that can be dispatched is never stopped by it (decision C6)."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SASL_STEP, status(Status.AUTH_ERROR), times=1)
    simulation.lose(ONE)
    simulation.live(0.01)
    while_refused = simulation.finish(upsert("a"))
    simulation.live(1.0)
    simulation.lose(TWO)
    token = simulation.finish(upsert("b"))

    assert while_refused in simulation.results
    assert token in simulation.results


@pytest.mark.parametrize("other", [Status.TEMPORARY_FAILURE, Status.NOT_SUPPORTED])
def test_other_failures_of_sasl_are_not_terminal(other: Status) -> None:
    """They are retried until the deadline (decision C6)."""
    simulation = Recorded()
    simulation.node.faults.always(Opcode.SASL_STEP, status(other))
    error = simulation.failure(UnambiguousTimeoutException, get())

    assert frozenset({"SOCKET_NOT_AVAILABLE"}) == error.context.retry_reasons


def test_missing_bucket() -> None:
    """0x24 to SELECT_BUCKET is terminal, for that bucket alone (decision C7)."""
    simulation = ready()
    error = simulation.failure(BucketAccessException, get("k", Keyspace("nowhere")))

    assert 0.0 == simulation.now
    assert "BUCKET_ACCESS_ERROR" == error.context.refused_reason
    assert "check that the bucket exists" in str(error)
    simulation.result(upsert())


def test_bucket_that_becomes_accessible() -> None:
    """A success clears the state."""
    simulation = Recorded()
    simulation.node.faults.next(Opcode.SELECT_BUCKET, status(Status.NO_ACCESS))
    simulation.failure(BucketAccessException, get())
    simulation.live(1.0)
    simulation.result(upsert())
    simulation.node.faults.always(None, refuse_connection())
    simulation.lose(simulation.newest)
    error = simulation.failure(UnambiguousTimeoutException, get())

    assert "BUCKET_ACCESS_ERROR" not in error.context.retry_reasons


def test_nobody_knocks_at_a_bucket_that_is_denied() -> None:
    """The connection is opened again when an operation asks for the bucket, and not sooner than after its backoff."""
    simulation = Recorded()
    simulation.node.faults.always(Opcode.SELECT_BUCKET, status(Status.NO_ACCESS))
    simulation.failure(BucketAccessException, get())
    simulation.failure(BucketAccessException, get())
    denied = simulation.commands(Opcode.SELECT_BUCKET)
    simulation.live(3600.0)

    assert 1 == len(denied) == len(simulation.commands(Opcode.SELECT_BUCKET))

    simulation.failure(BucketAccessException, get())
    simulation.failure(BucketAccessException, get())

    assert 2 == len(simulation.commands(Opcode.SELECT_BUCKET))


def test_whoever_is_patient_with_a_bucket_that_is_denied() -> None:
    """Its retries ask for the bucket, with the pauses of any reconnection in between."""
    simulation = Recorded()
    simulation.node.faults.next(Opcode.SELECT_BUCKET, status(Status.NO_ACCESS), times=5)
    simulation.result(upsert(), retry_strategy=BestEffortRetryStrategy())
    opened = [at for at, order in simulation.opened_at if order.stream > 1]

    assert 6 == len(opened)
    assert all(later - sooner > 0.009 for sooner, later in pairwise(opened))


# The circuit breaker, from end to end (decision C33).


def test_circuit_breaker() -> None:
    """Twenty timeouts open it, operations are refused, the canary closes it, operations pass."""
    simulation = Recorded()
    simulation.flow()
    simulation.node.faults.always(Opcode.GET, drop_response())
    first = [simulation.submit(get(str(position))) for position in range(20)]
    simulation.live(TIMEOUT)
    opened = simulation.connection().circuit_breaker
    before = len(simulation.requests[TWO])
    refused = simulation.finish(get(), retry_strategy=FailFastRetryStrategy())
    waiting = simulation.submit(upsert())
    simulation.live(1.0)
    sent = simulation.requests[TWO][before:]
    simulation.node.faults.clear()
    late = simulation.submit(upsert())
    simulation.run()
    simulation.live(5.0)
    closed = simulation.connection().circuit_breaker

    assert all(type(simulation.errors[token]) is UnambiguousTimeoutException for token in first)
    assert [] == sent
    assert "CIRCUIT_BREAKER_OPEN" == simulation.errors[refused].context.refused_reason
    assert opened is not None
    assert ("OPEN", 20, TIMEOUT) == (opened.state.name, opened.failures, opened.opened_at)
    assert closed is not None
    assert "CLOSED" == closed.state.name
    simulation.error(UnambiguousTimeoutException, waiting)
    simulation.error(UnambiguousTimeoutException, late)
    simulation.result(upsert())


@pytest.mark.parametrize(
    ("failures", "time"),
    [
        (1, TimePassed()),
        (1, TimePassed(unsent={StreamId(1): 0}, unread={StreamId(1)})),
        (1, TimePassed(unsent={TWO: 10_000})),
        (0, TimePassed(unsent={TWO: 0})),
        (0, TimePassed(unread={TWO})),
    ],
)
def test_circuit_breaker_counts_what_the_node_owes(failures: int, time: TimePassed) -> None:
    """What the client has not sent yet, or may only not have read, is no failure of the node (decision C33)."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET, drop_response())
    token = simulation.submit(get())
    simulation.flow()
    simulation.now += TIMEOUT
    simulation.feed(time)
    breaker = simulation.connection().circuit_breaker

    assert token in simulation.errors
    assert breaker is not None
    assert failures == breaker.failures


def test_circuit_breaker_can_be_switched_off() -> None:
    """Then nothing is counted."""
    options = client_options(circuit_breaker=CircuitBreakerOptions(enabled=False, volume_threshold=1))
    simulation = ready(options=options)
    simulation.node.faults.always(Opcode.GET, drop_response())
    for position in range(3):
        simulation.submit(get(str(position)))
    simulation.run()
    simulation.node.faults.clear()

    simulation.result(upsert())


def test_each_bucket_has_its_own_breaker() -> None:
    """One that is open leaves the others alone."""
    options = client_options(circuit_breaker=CircuitBreakerOptions(volume_threshold=1))
    simulation = Recorded(options=options, buckets=("travel", "other"))
    simulation.node.faults.next(Opcode.GET, drop_response())
    simulation.finish(get())
    simulation.result(upsert("k", Keyspace("other")))

    assert ["OPEN", "CLOSED"] == [
        breaker.state.name
        for bucket in ("travel", "other")
        if (breaker := simulation.connection(bucket).circuit_breaker) is not None
    ]


# A plain memcached (decision C27).


class Bare:
    """A client of a plain memcached, and what it sends."""

    def __init__(self, *, open_stream: bool = True) -> None:
        self.client = machine("memcached://127.0.0.1:11211", authenticator=None)
        self.buffer = FrameBuffer(SERVER_ACCEPTS)
        self.actions: list[Action] = []
        self.requests: list[Frame] = []
        self.now = 0.0
        self.feed(TimePassed())
        if open_stream:
            self.feed(StreamOpened(ONE, ""))

    def feed(self, event: Any, now: float | None = None) -> None:
        """Feed an event, now or at a later time, and keep what it leads to."""
        self.now = self.now if now is None else now
        for action in self.client.handle(event, self.now):
            self.actions.append(action)
            if isinstance(action, SendBytes):
                self.requests += self.buffer.receive(action.data)

    def submit(self, token: int, operation: Operation) -> None:
        """Submit an operation, without its bucket."""
        keyspace = msgspec.structs.replace(operation.keyspace, bucket=None)
        self.feed(OperationSubmitted(Token(token), msgspec.structs.replace(operation, keyspace=keyspace)))

    def answer(self, **parts: Any) -> None:
        """Answer the newest request."""
        request = self.requests[-1]
        self.feed(BytesReceived(ONE, encode_response(request.opcode, opaque=request.opaque, **parts)))


def test_memcached_has_no_buckets() -> None:
    """Documents of two buckets would be the same ones, so a bucket is refused, and nothing is sent."""
    bare = Bare()
    with pytest.raises(InvalidArgumentException, match="default_collection") as caught:
        bare.feed(OperationSubmitted(Token(1), get()))

    assert "bucket" == caught.value.parameter
    assert [] == bare.requests


@rows(
    ("operation", "open_stream"),
    [
        *product(
            (
                GetAndLock(TRAVEL, "k"),
                Unlock(TRAVEL, "k", Cas(5)),
                upsert(preserve_expiry=True),
                upsert(durability=DurabilityLevel.MAJORITY),
            ),
            (True, False),
        ),
        (get("k", HOTELS), True),
    ],
)
def test_memcached_cannot(operation: Operation, open_stream: bool) -> None:
    """What it has nothing like fails before anything is sent, and before it is reached."""
    bare = Bare(open_stream=open_stream)
    bare.submit(1, operation)
    (failed,) = (action for action in bare.actions if isinstance(action, FailOperation))

    assert FeatureNotAvailableException is type(failed.error)
    assert ([], 0) == (bare.requests, bare.client.statistics().open_operations)


def test_memcached_exists() -> None:
    """Is a GET, and its answer is one."""
    bare = Bare()
    bare.submit(1, Exists(TRAVEL, "ada"))
    request = bare.requests[-1]
    bare.answer(cas=5, extras=bytes(4), value=b"v")
    bare.submit(2, Exists(TRAVEL, "bob"))
    bare.answer(status=Status.KEY_NOT_FOUND)

    assert (Opcode.GET, b"") == (request.opcode, request.extras)
    assert [ExistsResult(True, Cas(5)), ExistsResult(False, Cas(0))] == [
        action.result for action in bare.actions if isinstance(action, CompleteOperation)
    ]


def test_where_an_attempt_went_from() -> None:
    """The driver tells our end of a stream, and errors tell it on, those after a retry too."""
    bare = Bare(open_stream=False)
    bare.feed(StreamOpened(ONE, "", local_address="10.0.0.9:40000"))
    bare.submit(1, get())
    bare.answer(status=Status.KEY_NOT_FOUND)
    bare.submit(2, get())
    bare.answer(status=Status.TEMPORARY_FAILURE)
    bare.feed(TimePassed(), 0.001)
    bare.answer(status=Status.KEY_NOT_FOUND)

    assert [("10.0.0.9:40000", "127.0.0.1:11211")] * 2 == [
        (action.error.context.last_dispatched_from, action.error.context.last_dispatched_to)
        for action in bare.actions
        if isinstance(action, FailOperation)
    ]


def test_memcached_nonsense() -> None:
    """Closes the stream like anybody's; a text protocol is recognised."""
    bare = Bare()
    bare.submit(1, upsert())
    bare.feed(BytesReceived(ONE, b"ERROR\r\n"))
    bare.feed(StreamLost(ONE, LossCause.CLOSED_BY_US, handed_over=10**6))
    (closed,) = (action for action in bare.actions if isinstance(action, CloseStream))
    (failed,) = (action for action in bare.actions if isinstance(action, FailOperation))

    assert "text only" in closed.reason
    assert RequestCanceledException is type(failed.error)


def test_0x81_to_hello_fails_at_once() -> None:
    """Under any strategy, whether one waits for the connection or comes between two attempts."""
    simulation = Recorded()
    simulation.node.faults.always(Opcode.HELLO, status(Status.UNKNOWN_COMMAND))
    tokens = [
        simulation.submit(get("a"), retry_strategy=BestEffortRetryStrategy()),
        simulation.submit(upsert("b", HOTELS)),
    ]
    simulation.flow()
    later = simulation.finish(get("c"))

    for token in (*tokens, later):
        assert "memcached://" in str(simulation.error(UnsupportedOperationException, token))


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


def settles_everything(simulation: Recorded) -> None:
    """Let the deadlines pass: every operation must be settled, by documented actions only, and none twice."""
    simulation.node.faults.clear()
    simulation.live(TIMEOUT)
    assert 0 == simulation.open_operations
    assert set(range(1, simulation._last_token + 1)) == set(simulation.settled_at)
    assert all(isinstance(action, ACTIONS) for action in simulation.actions)
    assert all(isinstance(error, CouchbaseException) for error in simulation.errors.values())
    for stream in [*simulation.links]:
        # Half a frame of nonsense would swallow the next honest answer.
        simulation.lose(stream)
    simulation.live(11.0)
    assert "READY" == simulation.connection().state
    simulation.result(upsert("afterwards"), retry_strategy=BestEffortRetryStrategy())


def deliver(simulation: Recorded, stream: StreamId, data: bytes, cut: list[int]) -> None:
    """Let the client have ``data`` in pieces, for as long as it listens."""
    bounds = sorted({0, len(data), *(each % (len(data) + 1) for each in cut)})
    for start, end in pairwise(bounds):
        if stream in simulation.links:
            simulation.inject(data[start:end], stream)


@given(data=pieces, cut=cuts, answered=st.integers(0, 4_000))
def test_nonsense_to_a_bootstrapping_client(data: bytes, cut: list[int], answered: int) -> None:
    """At any point of a real bootstrap: nothing raises, and every operation is settled by its deadline."""
    simulation = Recorded()
    simulation.flow()
    for make in makes:
        simulation.submit(make(TRAVEL))
        simulation.submit(make(HOTELS))
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
    simulation = ready()
    for make in makes:
        simulation.submit(make(TRAVEL))
        simulation.submit(make(HOTELS))
    simulation.submit(Exists(TRAVEL, "k"))
    simulation.submit(GetAndLock(TRAVEL, "k"))
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
            simulation.feed(StrategyDecided(consulted.token, RetryAction.after(0.001)))
            break
    simulation.node.faults.clear()
    simulation.live(TIMEOUT)

    assert token in simulation.settled_at
    assert TIMEOUT >= simulation.settled_at[token]


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
    simulation = Recorded()
    for opcode, kind, code, body in script:
        match kind:
            case "status":
                simulation.node.faults.next(opcode, status(code, body))
            case "drop":
                simulation.node.faults.next(opcode, drop_response())
            case "delay":
                simulation.node.faults.next(opcode, delay(code / 100))
            case "hang up":
                simulation.node.faults.next(opcode, hang_up())
            case "nmvb":
                simulation.node.faults.next(opcode, not_my_vbucket(code % 2 == 0))
            case _:
                simulation.node.faults.next(None, refuse_connection())
    submitted: dict[Token, float] = {}
    for make in makes:
        for keyspace in (TRAVEL, HOTELS):
            for _ in range(2):
                token = simulation.submit(make(keyspace))
                submitted[token] = simulation.now
                simulation.live(0.25)
    simulation.live(TIMEOUT)

    assert 0 == simulation.open_operations
    for token, at in submitted.items():
        assert at + TIMEOUT + 1e-9 >= simulation.settled_at[token]


def test_seeded_randomness_is_the_only_one() -> None:
    """The same seed gives the same instants."""

    def play(seed: int) -> list[float]:
        simulation = Recorded(rng=random.Random(seed))
        simulation.node.faults.next(None, refuse_connection(), times=5)
        simulation.flow()
        simulation.live(2.0)
        return [at for at, _ in simulation.opened_at]

    assert play(7) == play(7) != play(8)
