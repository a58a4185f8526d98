"""Checked simulation, which finds clients that break one law each, and accepts the real client."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from tests.core.testing import distorted
from tests.core.testing.asked import TRAVEL, append, exists, get, lock, named, upsert
from tests.core.testing.books import is_suspect, refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract.neutral import CloseStream, LossCause
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import DocumentOperation, Noop
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry import couchbase
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.faults import delay
from triclinium_core.testing.oracle.ledger import SURVIVABLE_DELAY, SURVIVABLE_STRIKES
from triclinium_core.testing.oracle.submissions import Violation

TIMEOUT = 2.5
SERVER_TIME_SIZE = 3
"""Number of bytes with the server's duration, at the start of the body of each response."""
DENIED = "was applied, "


def test_real_client() -> None:
    """The real client obeys the laws, in operation and when idle."""
    simulation = distorted.Distorted()
    simulation.tick()
    value = simulation.store(upsert)
    part = simulation.store(append)
    token = simulation.serve(get())
    simulation.flow_for(60.0)
    simulation.check_frames()

    assert value + part == distorted.content(simulation, token)
    assert simulation.is_healthy
    assert 60 == simulation.now == simulation.model.now


def test_deadline_of_the_connection_string() -> None:
    """The connection string's deadline overrides the options', for the client and for its checks."""
    simulation = distorted.ready(connection_string="couchbase://127.0.0.1:11210?kv_timeout=10s")
    simulation.node.faults.next(Opcode.GET, faults.drop_response())
    token = simulation.submit(get())
    simulation.flow_for(TIMEOUT + 1.0)
    simulation.tick()

    assert token not in simulation.settled_at

    simulation.flow_for(10.0)

    assert 10.0 == simulation.settled_at[token]


def test_write_is_sent_twice() -> None:
    """A write that is sent twice is found when the node applies it the second time."""
    simulation = distorted.ready()
    simulation.store(upsert)
    simulation.client.distort = distorted.sends_twice
    token = simulation.submit(append(simulation.model.unique_values.fragment()))

    with pytest.raises(Violation, match="APPEND.* b'ada' was applied more often than submitted: 2 > 1"):
        simulation.flow()
    assert token not in simulation.settled_at


@rows(
    ("defect", "act", "message"),
    [
        (distorted.acknowledges_at_once, lambda it: it.store(upsert), "the node has not applied it"),
        (
            distorted.fails_when_abandoned,
            lambda it: it.abandon(it.submit(get())),
            r"operation 2 \(get 'ada'\) is settled",
        ),
        # An operation without a document also has a deadline.
        (
            distorted.loses_answers,
            lambda it: (it.submit(Noop(TRAVEL)), it.flow_for(TIMEOUT + 1.0), it.tick()),
            "operation 2 is open after its deadline",
        ),
        # A timeout of a read must be unambiguous, because a read changes nothing.
        (
            distorted.is_always_ambiguous,
            lambda it: (
                it.node.faults.next(Opcode.GET_META, faults.drop_response()),
                it.serve(exists()),
                it.flow_for(TIMEOUT),
            ),
            "changes nothing, .*ambiguous",
        ),
        # A stream must be closed after an invalid frame.
        *(
            (
                distorted.never_closes,
                lambda it, fault=fault: (it.node.faults.next(Opcode.GET, fault), it.serve(get())),
                "stream 2, ",
            )
            for fault in (faults.garble(), faults.wrong_length())
        ),
    ],
)
def test_defect_is_found(defect: distorted.Distort, act: Callable[[distorted.Distorted], object], message: str) -> None:
    """A client with a defect breaks the law that forbids the defect."""
    simulation = distorted.ready(defect)

    with pytest.raises(Violation, match=message):
        act(simulation)


def test_settled_twice() -> None:
    """A client that settles an operation twice is stopped by the simulation itself."""
    simulation = distorted.ready(distorted.settles_twice)

    with pytest.raises(AssertionError, match="was settled twice"):
        simulation.serve(get())


@pytest.mark.parametrize("is_quiet", [False, True])
def test_late_write(is_quiet: bool) -> None:
    """A write with an unknown result may still be applied until nothing is in progress."""
    simulation = distorted.ready()
    simulation.node.faults.next(Opcode.SET, faults.drop_response())
    simulation.serve(upsert(simulation.model.unique_values.fragment()))
    simulation.flow_for(TIMEOUT)
    if is_quiet:
        simulation.check_frames()
    simulation.store(upsert)
    simulation.client.distort = distorted.always_finds(b"<1>")

    if is_quiet:
        with pytest.raises(Violation, match=r"operation 2 \(upsert 'ada'\).* certainly replaced"):
            simulation.serve(get())
    else:
        assert b"<1>" == distorted.content(simulation, simulation.serve(get()))


def test_forged_response() -> None:
    """A response with a forged length may have any content. Any other response has content that a caller wrote."""
    simulation = distorted.ready()
    simulation.store(upsert)
    simulation.node.faults.next(Opcode.GET, faults.wrong_length(announced=SERVER_TIME_SIZE + 5))
    token = simulation.serve(get())
    simulation.flow_for(1.0)

    assert b"<" == distorted.content(simulation, token)
    assert not simulation.model.open

    simulation.client.distort = distorted.always_finds(b"<")

    with pytest.raises(Violation, match="b'<' "):
        simulation.serve(get())


def test_denying_an_abandoned_write() -> None:
    """A client that denies the ambiguity of an abandoned write that was sent violates a law."""
    simulation = distorted.ready()
    simulation.client.denies = True
    token = simulation.submit(upsert(simulation.model.unique_values.fragment()))
    simulation.hand_over(simulation.newest)

    with pytest.raises(Violation, match=DENIED):
        simulation.abandon(token)


def test_client_that_is_always_due() -> None:
    """A client that is due again and again at the same time violates a law."""
    simulation = distorted.ready()
    for _ in range(1_000):
        simulation.tick()
    simulation.now += 0.1
    simulation.tick()
    simulation.client.stand_still()

    with pytest.raises(Violation, match=r"at 0\.100000 s"):
        simulation.flow()


def test_closing_without_a_reason() -> None:
    """Closing a stream without a fault is a violation."""
    simulation = distorted.ready()
    stream = simulation.newest
    simulation.client.distort = lambda event, actions: [*actions, CloseStream(stream, "it was Monday")]

    with pytest.raises(Violation, match=f"stream {stream} .*: it was Monday"):
        simulation.submit(get())


def test_node_that_closes_without_a_reason() -> None:
    """A stream that its node closes without a fault or an invalid request is a violation."""
    simulation = distorted.ready()
    stream = simulation.newest
    simulation.links[stream].is_hung_up = True

    with pytest.raises(Violation, match=f"stream {stream} .*: the node hung up"):
        simulation.flow()


NO_EXCUSE = " failed "
BREAKER = couchbase.CircuitBreakerOptions(volume_threshold=4)


@rows(
    "error",
    [
        errors.UnambiguousTimeoutException(),
        errors.RequestCanceledException(),
        errors.TemporaryFailureException(),
        errors.CouchbaseException("no"),
    ],
)
def test_failure_without_a_reason(error: errors.CouchbaseException) -> None:
    """A failure without a fault is a violation, which names the operation and the error."""
    simulation = distorted.ready(distorted.fails_with(error))

    with pytest.raises(Violation, match=rf"operation 2 \(get 'ada'\){NO_EXCUSE}.*: {type(error).__name__}: {error}"):
        simulation.submit(get())


def test_survivable_faults_leave_time_for_a_response() -> None:
    """The client succeeds in spite of as many faults, and as late a response, as it must survive."""
    simulation = distorted.ready()
    value = simulation.store(upsert)
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure(), times=SURVIVABLE_STRIKES - 1)
    simulation.node.faults.next(Opcode.GET, delay(SURVIVABLE_DELAY))
    token = simulation.serve(get())
    simulation.flow_for(TIMEOUT)

    assert value == distorted.content(simulation, token)


@pytest.mark.parametrize(
    "strategy", [None, couchbase.BestEffortRetryStrategy(), couchbase.ErrorMapRetryStrategy()], ids=named
)
@pytest.mark.parametrize("times", [1, SURVIVABLE_STRIKES])
def test_failure_of_a_patient_client(strategy: couchbase.AnyRetryStrategy | None, times: int) -> None:
    """A client with a patient strategy must survive some faults that permit a retry."""
    simulation = distorted.ready(
        distorted.fails_instead(errors.TemporaryFailureException("", ErrorContext(retry_attempts=times)))
    )
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure(), times=times)
    simulation.serve(get(), retry_strategy=strategy)

    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.flow_for(TIMEOUT)


def test_failure_of_an_impatient_client() -> None:
    """A client with the fail fast strategy may fail an operation at the first fault, but not without a fault."""
    simulation = distorted.ready(retry_strategy=couchbase.FailFastRetryStrategy())
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure())
    token = simulation.serve(get())
    simulation.client.distort = distorted.fails_with(errors.TemporaryFailureException())

    assert isinstance(simulation.errors[token], errors.TemporaryFailureException)
    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.submit(get())


@pytest.mark.parametrize("reason", [reason for reason in couchbase.RetryReason if reason.always_retry])
def test_refusing_what_is_always_retried(reason: couchbase.RetryReason) -> None:
    """Refusing a reason that is always retried is a violation in spite of any excuse."""
    simulation = distorted.ready(distorted.fails_with(refused(reason)))
    simulation.excuses.lost((9.0, 0), 0)

    with pytest.raises(Violation, match=f"is not retried for {reason}, which is always retried"):
        simulation.submit(get(), retry_strategy=couchbase.FailFastRetryStrategy())


@rows(
    ("operation", "strategy", "reason", "is_lawful"),
    [
        (get(), couchbase.BestEffortRetryStrategy(), couchbase.RetryReason.KV_TEMPORARY_FAILURE, False),
        (get(), couchbase.BestEffortRetryStrategy(), couchbase.RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, False),
        (get(), couchbase.BestEffortRetryStrategy(), couchbase.RetryReason.AUTHENTICATION_ERROR, False),
        (get(), None, couchbase.RetryReason.AUTHENTICATION_ERROR, True),
        (get(), None, couchbase.RetryReason.NODE_NOT_AVAILABLE, False),
        (get(), couchbase.FailFastRetryStrategy(), couchbase.RetryReason.KV_TEMPORARY_FAILURE, True),
        (get(), couchbase.ErrorMapRetryStrategy(), couchbase.RetryReason.KV_ERROR_MAP_RETRY_INDICATED, True),
        (upsert(), couchbase.BestEffortRetryStrategy(), couchbase.RetryReason.KV_TEMPORARY_FAILURE, False),
        (upsert(), couchbase.BestEffortRetryStrategy(), couchbase.RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, True),
        (upsert(), None, couchbase.RetryReason.UNKNOWN, True),
    ],
)
def test_refusing_what_the_strategy_wants(
    operation: DocumentOperation,
    strategy: couchbase.AnyRetryStrategy | None,
    reason: couchbase.RetryReason,
    is_lawful: bool,
) -> None:
    """Best effort must retry what may be retried, the default all of that but terminal reasons; others may refuse."""
    simulation = distorted.ready(distorted.fails_with(refused(reason)))
    simulation.excuses.lost((9.0, 0), 0)

    with nullcontext() if is_lawful else pytest.raises(Violation, match=f"is not retried for {reason}, although "):
        assert simulation.submit(operation, retry_strategy=strategy) in simulation.errors


@pytest.mark.parametrize("timeouts", [1, 2])
@pytest.mark.parametrize(
    "context",
    [
        ErrorContext(refused_reason=couchbase.RetryReason.CIRCUIT_BREAKER_OPEN),
        ErrorContext(retry_reasons=frozenset({couchbase.RetryReason.CIRCUIT_BREAKER_OPEN})),
    ],
    ids=["refused", "retried"],
)
def test_failure_behind_a_breaker(context: ErrorContext, timeouts: int) -> None:
    """An open breaker excuses a failure only if enough operations have timed out to open it: half of four."""
    simulation = distorted.ready(retry_strategy=couchbase.FailFastRetryStrategy(), circuit_breaker=BREAKER)
    simulation.node.faults.next(Opcode.GET, faults.drop_response(), times=timeouts)
    for _ in range(timeouts):
        simulation.serve(get())
    # Wait until the client is healthy, so that only an open breaker can excuse the next failure.
    simulation.flow_for(TIMEOUT + 30.0)
    simulation.client.distort = distorted.fails_with(errors.RequestCanceledException("", context))

    assert simulation.is_healthy
    with nullcontext() if timeouts >= 2 else pytest.raises(Violation, match=NO_EXCUSE):
        assert simulation.submit(get()) in simulation.errors


def test_failure_during_an_open_breaker() -> None:
    """An open breaker excuses failures of operations that are submitted while it is open, and of no later ones."""
    simulation = distorted.ready(retry_strategy=couchbase.FailFastRetryStrategy(), circuit_breaker=BREAKER)
    simulation.node.faults.next(Opcode.GET, faults.drop_response(), times=5)
    for _ in range(5):
        simulation.serve(get())
    simulation.flow_for(TIMEOUT)
    simulation.client.distort = distorted.fails_instead(errors.RequestCanceledException())

    assert simulation.submit(exists()) in simulation.errors

    simulation.flow_for(30.0)

    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.serve(exists())


@pytest.mark.parametrize("is_locked", [True, False])
def test_failure_on_a_lock(is_locked: bool) -> None:
    """A timeout is excused by a lock that a caller of the client took, but not by one that none of them took."""
    simulation = distorted.ready()
    simulation.store(upsert)
    if is_locked:
        simulation.serve(lock(15))
    simulation.node.documents.lock("travel", "ada", seconds=15)
    token = simulation.serve(upsert(simulation.model.unique_values.fragment()))

    if is_locked:
        simulation.flow_for(TIMEOUT)

        assert isinstance(simulation.errors[token], errors.UnambiguousTimeoutException)
    else:
        with pytest.raises(Violation, match=NO_EXCUSE):
            simulation.flow_for(TIMEOUT)


READY = "None: READY, None; travel: READY, None"


def test_bytes_in_transit() -> None:
    """The simulation is quiet and healthy once all requests are handed over and all responses delivered."""
    simulation = distorted.ready()
    steps = [(simulation.is_quiet, simulation.is_healthy)]
    simulation.submit(get())
    steps.append((simulation.is_quiet, simulation.is_healthy))
    simulation.hand_over(simulation.newest)
    steps.append((simulation.is_quiet, simulation.is_healthy))
    simulation.deliver(simulation.newest)
    steps.append((simulation.is_quiet, simulation.is_healthy))

    assert [(True, True), (False, False), (False, False), (True, True)] == steps
    assert READY == simulation.describe()


def test_within_a_frame() -> None:
    """A client within a frame is not healthy; the description names the stream."""
    simulation = distorted.ready()
    simulation.submit(get())
    stream = simulation.newest
    simulation.hand_over(stream)
    simulation.deliver(stream, 10)
    rest = bytes(simulation.links[stream].incoming)
    simulation.links[stream].incoming.clear()

    assert simulation.is_quiet
    assert not simulation.is_healthy
    assert f"{READY}; stream {stream} is within a frame; operation 2 (get 'ada')" == simulation.describe()

    simulation.links[stream].incoming += rest
    simulation.deliver(stream)

    assert simulation.is_healthy


def test_without_a_connection() -> None:
    """A client without a connection is not healthy; the description gives the reason."""
    simulation = distorted.ready()
    simulation.node.faults.always(None, faults.refuse_connection())
    simulation.lose(simulation.newest, LossCause.RESET)
    simulation.flow()

    assert simulation.is_quiet
    assert not simulation.is_healthy
    assert "None: READY, None; travel: LOST, 127.0.0.1:11210: connection reset" == simulation.describe()


def test_open_breaker_is_not_healthy() -> None:
    """A client with an open breaker is not healthy until its canary succeeds."""
    simulation = distorted.ready(circuit_breaker=couchbase.CircuitBreakerOptions(volume_threshold=1))
    simulation.node.faults.next(Opcode.GET, faults.drop_response())
    simulation.serve(get())
    simulation.flow_for(2.5)

    assert simulation.is_quiet
    assert not simulation.is_healthy
    assert f"{READY}; BreakerState.OPEN" == simulation.describe()

    simulation.flow_for(5.0)

    assert simulation.is_healthy


def test_frames_of_a_lost_stream() -> None:
    """A frame that the driver had started to write counts as sent, even if its stream is lost."""
    simulation = distorted.ready()
    token = simulation.submit(exists())
    link = simulation.links[simulation.newest]
    link.handed_over += len(link.outgoing)
    simulation.lose(simulation.newest)
    simulation.flow_for(1.0)

    assert token in simulation.results
    assert couchbase.RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT is simulation.retries[0].reason
    simulation.check_frames()


def test_withheld_bytes() -> None:
    """A stream whose bytes were withheld while time passed may end; other streams may not."""
    simulation = distorted.ready()
    other, stream = sorted(simulation.links)
    simulation.submit(get())
    simulation.advance(1.0)

    assert 1.0 == simulation.model.now == simulation.excuses.newest_at([])[0]
    assert is_suspect(simulation.excuses, stream)
    assert not is_suspect(simulation.excuses, other)
