"""The checked simulation: clients that break one law each are caught, and the client as it is passes beside them."""

from __future__ import annotations

import pytest

from tests.core.testing import distorted
from tests.core.testing.asked import TRAVEL, append, exists, get, lock, named, upsert
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
"""Bytes at the beginning of each answer that say how long the server worked."""
DENIED = "was applied, and is said not to have been"


def test_the_client_as_it_is() -> None:
    """It keeps the laws while nothing happens and while everything does."""
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


def test_noop_that_never_settles() -> None:
    """An operation without a document has a deadline too."""
    simulation = distorted.ready(distorted.loses_answers)
    token = simulation.submit(Noop(TRAVEL))
    simulation.flow_for(TIMEOUT + 1.0)

    with pytest.raises(Violation, match=f"operation {token} is open after its deadline"):
        simulation.tick()


def test_deadline_of_the_connection_string() -> None:
    """It goes before that of the options, for the client and for who watches it."""
    simulation = distorted.ready(connection_string="couchbase://127.0.0.1:11210?kv_timeout=10s")
    simulation.node.faults.next(Opcode.GET, faults.drop_response())
    token = simulation.submit(get())
    simulation.flow_for(TIMEOUT + 1.0)
    simulation.tick()

    assert token not in simulation.settled_at

    simulation.flow_for(10.0)

    assert 10.0 == simulation.settled_at[token]


def test_write_is_sent_twice() -> None:
    """Then it is applied twice."""
    simulation = distorted.ready()
    simulation.store(upsert)
    simulation.client.distort = distorted.sends_twice
    token = simulation.submit(append(simulation.model.unique_values.fragment()))

    with pytest.raises(Violation, match="APPEND.* b'ada' was applied 2 times, and asked for 1 times"):
        simulation.flow()
    assert token not in simulation.settled_at


def test_write_is_acknowledged_and_lost() -> None:
    """Success is told of what was applied."""
    simulation = distorted.ready(distorted.acknowledges_at_once)

    with pytest.raises(Violation, match="is acknowledged, but the node has not applied it"):
        simulation.submit(upsert(simulation.model.unique_values.fragment()))


@pytest.mark.parametrize("is_quiet", [False, True])
def test_late_write(is_quiet: bool) -> None:
    """What nobody knows of may still be applied, but not after everything has come to rest."""
    simulation = distorted.ready()
    simulation.node.faults.next(Opcode.SET, faults.drop_response())
    simulation.serve(upsert(simulation.model.unique_values.fragment()))
    simulation.flow_for(TIMEOUT)
    if is_quiet:
        simulation.check_frames()
    simulation.store(upsert)
    simulation.client.distort = distorted.always_finds(b"<1>")

    if is_quiet:
        with pytest.raises(Violation, match=r"found what operation 2 \(upsert 'ada'\) wrote, but that was certainly"):
            simulation.serve(get())
    else:
        assert b"<1>" == distorted.content(simulation, simulation.serve(get()))


def test_forged_answer() -> None:
    """An answer whose length was forged may be read as anything; without that fault it must be what was written."""
    simulation = distorted.ready()
    simulation.store(upsert)
    simulation.node.faults.next(Opcode.GET, faults.wrong_length(announced=SERVER_TIME_SIZE + 5))
    token = simulation.serve(get())
    simulation.flow_for(1.0)

    assert b"<" == distorted.content(simulation, token)
    assert not simulation.model.open

    simulation.client.distort = distorted.always_finds(b"<")

    with pytest.raises(Violation, match="b'<' is not what was written"):
        simulation.serve(get())


def test_settled_twice() -> None:
    """A caller is told once."""
    simulation = distorted.ready(distorted.settles_twice)

    with pytest.raises(AssertionError, match="was settled twice"):
        simulation.serve(get())


def test_settled_after_it_was_abandoned() -> None:
    """A caller who has left is told nothing."""
    simulation = distorted.ready(distorted.fails_when_abandoned)
    token = simulation.submit(get())

    with pytest.raises(Violation, match=r"operation 2 \(get 'ada'\) is settled although its caller has left"):
        simulation.abandon(token)


def test_abandoning_what_was_applied() -> None:
    """The client says that nobody knows."""
    simulation = distorted.ready()
    simulation.client.denies = True
    token = simulation.submit(upsert(simulation.model.unique_values.fragment()))
    simulation.hand_over(simulation.newest)

    with pytest.raises(Violation, match=DENIED):
        simulation.abandon(token)


def test_timeout_of_a_read() -> None:
    """A read changes nothing, so nothing about it is ambiguous."""
    simulation = distorted.ready(distorted.is_always_ambiguous)
    simulation.node.faults.next(Opcode.GET_META, faults.drop_response())
    simulation.serve(exists())

    with pytest.raises(Violation, match="changes nothing, and still its timeout is called ambiguous"):
        simulation.flow_for(TIMEOUT)


def test_time_that_stands_still() -> None:
    """A client is due when something is due, and once."""
    simulation = distorted.ready()
    for _ in range(1_000):
        simulation.tick()
    simulation.now += 0.1
    simulation.tick()
    simulation.client.stand_still()

    with pytest.raises(Violation, match=r"at 0\.100000 s the client is due again and again"):
        simulation.flow()


@pytest.mark.parametrize("fault", [faults.garble(), faults.wrong_length()], ids=repr)
def test_reading_on(fault: faults.Fault) -> None:
    """A stream that holds what is no frame is closed."""
    simulation = distorted.ready(distorted.never_closes)
    simulation.node.faults.next(Opcode.GET, fault)
    simulation.submit(get())

    with pytest.raises(Violation, match=f"the client goes on reading stream {simulation.newest}"):
        simulation.flow()


def test_closing_for_no_reason() -> None:
    """A stream that works stays."""
    simulation = distorted.ready()
    stream = simulation.newest
    simulation.client.distort = lambda event, actions: [*actions, CloseStream(stream, "it was Monday")]

    with pytest.raises(Violation, match=f"stream {stream} was ended though nothing was wrong with it: it was Monday"):
        simulation.submit(get())


def test_node_that_hangs_up() -> None:
    """A node hangs up because of a fault, or because of what the client sent."""
    simulation = distorted.ready()
    stream = simulation.newest
    simulation.links[stream].is_hung_up = True

    with pytest.raises(Violation, match=f"stream {stream} was ended though .*: the node hung up"):
        simulation.flow()


NO_EXCUSE = "failed though nothing was wrong"
BREAKER = couchbase.CircuitBreakerOptions(volume_threshold=4)


def refusal(reason: couchbase.RetryReason) -> errors.CouchbaseException:
    """Return a failure because a retry was refused."""
    return errors.RequestCanceledException("", ErrorContext(refused_reason=reason))


@rows(
    "error",
    [
        errors.UnambiguousTimeoutException(),
        errors.RequestCanceledException(),
        errors.TemporaryFailureException(),
        errors.CouchbaseException("no"),
    ],
)
def test_failure_for_no_reason(error: errors.CouchbaseException) -> None:
    """Without trouble there is no excuse; the violation names operation and error."""
    simulation = distorted.ready(distorted.fails_with(error))

    with pytest.raises(Violation, match=rf"operation 2 \(get 'ada'\) {NO_EXCUSE}: {type(error).__name__}: {error}"):
        simulation.submit(get())


def test_what_is_survived_leaves_time_for_an_answer() -> None:
    """As many faults as a patient client has to get over, and a late answer behind them, are no reason to fail."""
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
    """Who is patient gets over some faults that permit a retry."""
    simulation = distorted.ready(
        distorted.fails_instead(errors.TemporaryFailureException("", ErrorContext(retry_attempts=times)))
    )
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure(), times=times)
    simulation.serve(get(), retry_strategy=strategy)

    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.flow_for(TIMEOUT)


def test_failure_of_an_impatient_client() -> None:
    """Who asks not to be patient fails at the first fault, and without one not at all."""
    simulation = distorted.ready(retry_strategy=couchbase.FailFastRetryStrategy())
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure())
    token = simulation.serve(get())
    simulation.client.distort = distorted.fails_with(errors.TemporaryFailureException())

    assert isinstance(simulation.errors[token], errors.TemporaryFailureException)
    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.submit(get())


@pytest.mark.parametrize("reason", [reason for reason in couchbase.RetryReason if reason.always_retry])
def test_refusing_what_must_always_be_retried(reason: couchbase.RetryReason) -> None:
    """No excuse helps."""
    simulation = distorted.ready(distorted.fails_with(refusal(reason)))
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
    """Best effort retries what may be retried, the default does too unless it is terminal, others may refuse."""
    simulation = distorted.ready(distorted.fails_with(refusal(reason)))
    simulation.excuses.lost((9.0, 0), 0)

    if is_lawful:
        assert simulation.submit(operation, retry_strategy=strategy) in simulation.errors
    else:
        with pytest.raises(Violation, match=f"is not retried for {reason}, although its strategy wants it"):
            simulation.submit(operation, retry_strategy=strategy)


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
    """A breaker that opened is an excuse, where enough operations have timed out to open it: half of four."""
    simulation = distorted.ready(retry_strategy=couchbase.FailFastRetryStrategy(), circuit_breaker=BREAKER)
    simulation.node.faults.next(Opcode.GET, faults.drop_response(), times=timeouts)
    for _ in range(timeouts):
        simulation.serve(get())
    # Healthy again, so that nothing else excuses what comes then.
    simulation.flow_for(TIMEOUT + 30.0)
    simulation.client.distort = distorted.fails_with(errors.RequestCanceledException("", context))

    assert simulation.is_healthy
    if timeouts >= 2:
        assert simulation.submit(get()) in simulation.errors
    else:
        with pytest.raises(Violation, match=NO_EXCUSE):
            simulation.submit(get())


def test_failure_beside_a_breaker() -> None:
    """Who begins while it is open need not have met it; once it is closed, it excuses only those who did."""
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
def test_failure_beside_a_lock(is_locked: bool) -> None:
    """Who waits for a lock of somebody else times out."""
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


def test_under_way() -> None:
    """Bytes are under way until they were handed over, and answers until they were delivered."""
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
    """A client that has part of an answer waits for the rest."""
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
    """It is not healthy, and says why."""
    simulation = distorted.ready()
    simulation.node.faults.always(None, faults.refuse_connection())
    simulation.lose(simulation.newest, LossCause.RESET)
    simulation.flow()

    assert simulation.is_quiet
    assert not simulation.is_healthy
    assert "None: READY, None; travel: LOST, 127.0.0.1:11210: connection reset" == simulation.describe()


def test_behind_an_open_breaker() -> None:
    """It serves nobody, until the canary has come back."""
    simulation = distorted.ready(circuit_breaker=couchbase.CircuitBreakerOptions(volume_threshold=1))
    simulation.node.faults.next(Opcode.GET, faults.drop_response())
    simulation.serve(get())
    simulation.flow_for(2.5)

    assert simulation.is_quiet
    assert not simulation.is_healthy
    assert f"{READY}; BreakerState.OPEN" == simulation.describe()

    simulation.flow_for(5.0)

    assert simulation.is_healthy


def test_frames_of_a_stream_that_is_lost() -> None:
    """What the driver had begun to hand over has left, wherever it is now."""
    simulation = distorted.ready()
    token = simulation.submit(exists())
    link = simulation.links[simulation.newest]
    link.handed_over += len(link.outgoing)
    simulation.lose(simulation.newest)
    simulation.flow_for(1.0)

    assert token in simulation.results
    assert couchbase.RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT is simulation.retries[0].reason
    simulation.check_frames()


def is_excused(simulation: distorted.Distorted, stream: int) -> bool:
    """Tell whether a stream may end."""
    try:
        simulation.excuses.check_end(stream, "")
    except Violation:
        return False
    return True


def test_withholding() -> None:
    """A stream whose bytes were held back while time passed may end, and others may not."""
    simulation = distorted.ready()
    other, stream = sorted(simulation.links)
    simulation.submit(get())
    simulation.advance(1.0)

    assert 1.0 == simulation.model.now == simulation.excuses.newest_at([])[0]
    assert is_excused(simulation, stream)
    assert not is_excused(simulation, other)
