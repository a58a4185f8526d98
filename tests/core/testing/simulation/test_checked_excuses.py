"""The checked simulation: what excuses a failure, each beside the same failure without the excuse."""

from __future__ import annotations

import pytest

from tests.core.testing.asked import exists, get, lock, named, upsert
from tests.core.testing.distorted import content, fails_instead, fails_with, ready
from tests.rows import rows
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import (
    CouchbaseException,
    RequestCanceledException,
    TemporaryFailureException,
    UnambiguousTimeoutException,
)
from triclinium_core.kv.operation.requests import DocumentOperation
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreakerOptions
from triclinium_core.retry.couchbase.strategy import (
    AnyRetryStrategy,
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FailFastRetryStrategy,
)
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.testing.fakes.faults import (
    delay,
    drop_response,
    temporary_failure,
)
from triclinium_core.testing.oracle.ledger import SURVIVABLE_DELAY, SURVIVABLE_STRIKES
from triclinium_core.testing.oracle.submissions import Violation

TIMEOUT = 2.5
NO_EXCUSE = "failed though nothing was wrong"
BREAKER = CircuitBreakerOptions(volume_threshold=4)


def refusal(reason: RetryReason) -> CouchbaseException:
    """Return a failure because a retry was refused."""
    return RequestCanceledException("", ErrorContext(refused_reason=reason))


@rows(
    "error",
    [UnambiguousTimeoutException(), RequestCanceledException(), TemporaryFailureException(), CouchbaseException("no")],
)
def test_failure_for_no_reason(error: CouchbaseException) -> None:
    """Without trouble there is no excuse; the violation names operation and error."""
    simulation = ready(fails_with(error))

    with pytest.raises(Violation, match=rf"operation 2 \(get 'ada'\) {NO_EXCUSE}: {type(error).__name__}: {error}"):
        simulation.submit(get())


def test_failure_beside_a_lost_connection() -> None:
    """A connection that is lost while one waits is an excuse, one that was lost before and is back is none."""
    simulation = ready()
    token = simulation.submit(upsert(simulation.model.unique_values.fragment()))
    simulation.hand_over(simulation.newest, 1)
    simulation.lose(simulation.newest)
    simulation.flow_for(1.0)
    simulation.client.distort = fails_with(RequestCanceledException())

    assert isinstance(simulation.errors[token], RequestCanceledException)
    assert simulation.is_healthy
    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.submit(get())


def test_what_is_survived_leaves_time_for_an_answer() -> None:
    """As many faults as a patient client has to get over, and a late answer behind them, are no reason to fail."""
    simulation = ready()
    value = simulation.store(upsert)
    simulation.node.faults.next(Opcode.GET, temporary_failure(), times=SURVIVABLE_STRIKES - 1)
    simulation.node.faults.next(Opcode.GET, delay(SURVIVABLE_DELAY))
    token = simulation.serve(get())
    simulation.flow_for(TIMEOUT)

    assert value == content(simulation, token)


@pytest.mark.parametrize("strategy", [None, BestEffortRetryStrategy(), ErrorMapRetryStrategy()], ids=named)
@pytest.mark.parametrize("times", [1, SURVIVABLE_STRIKES])
def test_failure_of_a_patient_client(strategy: AnyRetryStrategy | None, times: int) -> None:
    """Who is patient gets over some faults that permit a retry."""
    simulation = ready(fails_instead(TemporaryFailureException("", ErrorContext(retry_attempts=times))))
    simulation.node.faults.next(Opcode.GET, temporary_failure(), times=times)
    simulation.serve(get(), retry_strategy=strategy)

    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.flow_for(TIMEOUT)


def test_failure_of_an_impatient_client() -> None:
    """Who asks not to be patient fails at the first fault, and without one not at all."""
    simulation = ready(retry_strategy=FailFastRetryStrategy())
    simulation.node.faults.next(Opcode.GET, temporary_failure())
    token = simulation.serve(get())
    simulation.client.distort = fails_with(TemporaryFailureException())

    assert isinstance(simulation.errors[token], TemporaryFailureException)
    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.submit(get())


@pytest.mark.parametrize("reason", [reason for reason in RetryReason if reason.always_retry])
def test_refusing_what_must_always_be_retried(reason: RetryReason) -> None:
    """No excuse helps."""
    simulation = ready(fails_with(refusal(reason)))
    simulation.excuses.lost((9.0, 0), 0)

    with pytest.raises(Violation, match=f"is not retried for {reason}, which is always retried"):
        simulation.submit(get(), retry_strategy=FailFastRetryStrategy())


@rows(
    ("operation", "strategy", "reason", "is_lawful"),
    [
        (get(), BestEffortRetryStrategy(), RetryReason.KV_TEMPORARY_FAILURE, False),
        (get(), BestEffortRetryStrategy(), RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, False),
        (get(), BestEffortRetryStrategy(), RetryReason.AUTHENTICATION_ERROR, False),
        (get(), None, RetryReason.AUTHENTICATION_ERROR, True),
        (get(), None, RetryReason.NODE_NOT_AVAILABLE, False),
        (get(), FailFastRetryStrategy(), RetryReason.KV_TEMPORARY_FAILURE, True),
        (get(), ErrorMapRetryStrategy(), RetryReason.KV_ERROR_MAP_RETRY_INDICATED, True),
        (upsert(), BestEffortRetryStrategy(), RetryReason.KV_TEMPORARY_FAILURE, False),
        (upsert(), BestEffortRetryStrategy(), RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, True),
        (upsert(), None, RetryReason.UNKNOWN, True),
    ],
)
def test_refusing_what_the_strategy_wants(
    operation: DocumentOperation, strategy: AnyRetryStrategy | None, reason: RetryReason, is_lawful: bool
) -> None:
    """Best effort retries what may be retried, the default does too unless it is terminal, others may refuse."""
    simulation = ready(fails_with(refusal(reason)))
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
        ErrorContext(refused_reason=RetryReason.CIRCUIT_BREAKER_OPEN),
        ErrorContext(retry_reasons=frozenset({RetryReason.CIRCUIT_BREAKER_OPEN})),
    ],
    ids=["refused", "retried"],
)
def test_failure_behind_a_breaker(context: ErrorContext, timeouts: int) -> None:
    """A breaker that opened is an excuse, where enough operations have timed out to open it: half of four."""
    simulation = ready(retry_strategy=FailFastRetryStrategy(), circuit_breaker=BREAKER)
    simulation.node.faults.next(Opcode.GET, drop_response(), times=timeouts)
    for _ in range(timeouts):
        simulation.serve(get())
    # Healthy again, so that nothing else excuses what comes then.
    simulation.flow_for(TIMEOUT + 30.0)
    simulation.client.distort = fails_with(RequestCanceledException("", context))

    assert simulation.is_healthy
    if timeouts >= 2:
        assert simulation.submit(get()) in simulation.errors
    else:
        with pytest.raises(Violation, match=NO_EXCUSE):
            simulation.submit(get())


def test_failure_beside_a_breaker() -> None:
    """Who begins while it is open need not have met it; once it is closed, it excuses only those who did."""
    simulation = ready(retry_strategy=FailFastRetryStrategy(), circuit_breaker=BREAKER)
    simulation.node.faults.next(Opcode.GET, drop_response(), times=5)
    for _ in range(5):
        simulation.serve(get())
    simulation.flow_for(TIMEOUT)
    simulation.client.distort = fails_instead(RequestCanceledException())

    assert simulation.submit(exists()) in simulation.errors

    simulation.flow_for(30.0)

    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.serve(exists())


@pytest.mark.parametrize("is_locked", [True, False])
def test_failure_beside_a_lock(is_locked: bool) -> None:
    """Who waits for a lock of somebody else times out."""
    simulation = ready()
    simulation.store(upsert)
    if is_locked:
        simulation.serve(lock(15))
    simulation.node.documents.lock("travel", "ada", seconds=15)
    token = simulation.serve(upsert(simulation.model.unique_values.fragment()))

    if is_locked:
        simulation.flow_for(TIMEOUT)

        assert isinstance(simulation.errors[token], UnambiguousTimeoutException)
    else:
        with pytest.raises(Violation, match=NO_EXCUSE):
            simulation.flow_for(TIMEOUT)
