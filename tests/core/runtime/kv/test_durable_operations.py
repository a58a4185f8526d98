"""Durable writes in the client machine: their deadline, the timeout that the server gets, and their results."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.core.kv.operation.examples import VALID, make
from tests.core.runtime.kv.simulated import Recorded, client_options, ready, respond, upsert
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract.neutral import BytesReceived
from triclinium_core.kv.operation.document_operations import Mutation, Upsert
from triclinium_core.kv.operation.durability import DURABLE_TIMEOUT_MIN, TIMEOUT_MS_MAX, DurabilityLevel
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.framing_extras import RequestFrameInfo, parse_framing_extras
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, RetryAction, Status
from triclinium_core.testing.fakes.faults import drop_response, status
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

MAJORITY = DurabilityLevel.MAJORITY
MUTATIONS = [kind for kind in VALID if issubclass(kind, Mutation)]


def durable(**options: Any) -> Upsert:
    """Return a durable write."""
    return upsert(durability=MAJORITY, **options)


def with_timeouts(**seconds: float) -> Recorded:
    """Return a simulation whose client has these options for timeouts."""
    return ready(options=client_options(timeouts=TimeoutOptions(**seconds)))


def sent(simulation: Recorded) -> list[Frame]:
    """Return the writes that the client has sent."""
    return [
        request for requests in simulation.requests.values() for request in requests if request.opcode == Opcode.SET
    ]


def milliseconds_sent(simulation: Recorded) -> list[int]:
    """Return the timeout that the client sent with each attempt."""
    contents = [
        parse_framing_extras(request.framing_extras)[RequestFrameInfo.DURABILITY] for request in sent(simulation)
    ]
    return [int.from_bytes(content[1:], "big") for content in contents]


class Once:
    """Strategy that permits one retry, after a given delay."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def retry_after(self, request: Any, reason: object) -> RetryAction:
        """Return the delay for the first retry, and refuse the second."""
        return RetryAction.no_retry() if request.retry_attempts else RetryAction.after(self.seconds)


@pytest.mark.parametrize("kind", MUTATIONS, ids=lambda kind: kind.name)
def test_every_write_has_the_durable_deadline(kind: type[Mutation]) -> None:
    """A durable write has a deadline of 10 s; if it times out in flight, the error is ambiguous."""
    simulation = ready()
    simulation.node.faults.always(None, drop_response())
    error = simulation.failure(errors.AmbiguousTimeoutException, make(kind, durability=MAJORITY))

    assert 10.0 == simulation.now
    assert 10.0 == error.context.timeout
    assert "may have been applied" in str(error)


@pytest.mark.parametrize(
    ("seconds", "deadline", "milliseconds"),
    [
        (10.0, 10.0, 9000),
        (3.0, 3.0, 2700),
        (1.5, 1.5, 1350),
        (1.4, DURABLE_TIMEOUT_MIN, 1350),
        (0.001, DURABLE_TIMEOUT_MIN, 1350),
        (100.0, 100.0, TIMEOUT_MS_MAX),
        (math.inf, math.inf, TIMEOUT_MS_MAX),
    ],
)
def test_the_deadline_and_the_timeout_for_the_server(seconds: float, deadline: float, milliseconds: int) -> None:
    """The server gets nine tenths of the deadline; if that is too little for a server, the deadline is raised."""
    simulation = with_timeouts(kv_durable=seconds)
    token, _ = simulation.submit_in_flight(durable())
    simulation.live(200.0)

    assert [milliseconds] == milliseconds_sent(simulation)
    assert (deadline if math.isfinite(deadline) else None) == simulation.settled_at.get(token)


def test_the_connection_string_sets_the_deadline() -> None:
    """``kv_durable_timeout`` in the connection string sets the deadline of durable writes; ``kv_timeout`` does not."""
    options = client_options("couchbase://127.0.0.1:11210?kv_durable_timeout=4s&kv_timeout=1s")
    simulation = ready(options=options)
    simulation.node.faults.always(Opcode.SET, drop_response())
    simulation.failure(errors.AmbiguousTimeoutException, durable())

    assert 4.0 == simulation.now
    assert [3600] == milliseconds_sent(simulation)


def test_each_attempt_gives_the_server_less() -> None:
    """Each attempt gives the server nine tenths of the time that remains (decision C29)."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SET, status(Status.SYNC_WRITE_IN_PROGRESS), times=12)
    simulation.finish(durable())
    # Best effort waits 1, 2, 4 … 256, 500, 500 … ms after successive responses.
    waited = [0, *(sum(min(2**n, 500) for n in range(attempt)) for attempt in range(1, 13))]

    assert [(10_000 - ms) * 9 // 10 for ms in waited] == milliseconds_sent(simulation)


@pytest.mark.parametrize(("seconds", "milliseconds"), [(9.0, 900), (9.9, 90), (9.995, 4), (9.999, 1)], ids=str)
def test_an_attempt_just_before_the_deadline(seconds: float, milliseconds: int) -> None:
    """An attempt shortly before the deadline sends the time that remains, even below the minimum, but never 0."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SET, status(Status.SYNC_WRITE_IN_PROGRESS))
    simulation.finish(durable(), retry_strategy=Once(seconds))

    assert [9000, milliseconds] == milliseconds_sent(simulation)


@rows(
    ("code", "error"),
    [
        (Status.DURABILITY_INVALID_LEVEL, errors.DurabilityLevelNotAvailableException),
        (Status.DURABILITY_IMPOSSIBLE, errors.DurabilityImpossibleException),
        (Status.SYNC_WRITE_AMBIGUOUS, errors.DurabilityAmbiguousException),
    ],
)
@rows("kind", MUTATIONS)
def test_statuses_without_a_retry(kind: type[Mutation], code: Status, error: type[errors.CouchbaseException]) -> None:
    """After a final status of durability, such as an ambiguous one, best effort does not retry a durable write."""
    simulation = ready()
    token, request = simulation.submit_in_flight(
        make(kind, durability=MAJORITY), retry_strategy=BestEffortRetryStrategy()
    )
    before = len(simulation.requests[simulation.newest])
    simulation.feed(BytesReceived(simulation.newest, respond(request, code)))
    simulation.live(20.0)

    assert 0 == simulation.error(error, token).context.retry_attempts
    assert not any(later.opcode == request.opcode for later in simulation.requests[simulation.newest][before:])


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (Status.SYNC_WRITE_IN_PROGRESS, errors.DurableWriteInProgressException),
        (Status.SYNC_WRITE_RE_COMMIT_IN_PROGRESS, errors.DurableWriteReCommitInProgressException),
    ],
)
@pytest.mark.parametrize("operation", [upsert(), durable()], ids=["plain", "durable"])
def test_another_durable_write_is_waited_for(
    operation: Upsert, code: Status, error: type[errors.CouchbaseException]
) -> None:
    """While another durable write is in progress, a write is retried; a refused retry fails with the status's error."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SET, status(code), times=3)
    simulation.result(operation)
    simulation.node.faults.always(Opcode.SET, status(code))
    late = simulation.failure(errors.UnambiguousTimeoutException, operation)
    refused = simulation.failure(error, operation, retry_strategy=Once(0.001))

    assert f"KV_{code.name}" in late.context.retry_reasons
    assert "certainly not applied" in str(late)
    assert (1, f"KV_{code.name}") == (refused.context.retry_attempts, refused.context.refused_reason)


@pytest.mark.parametrize("missing", [HelloFeature.SYNC_REPLICATION, HelloFeature.ALT_REQUEST])
def test_a_server_without_durable_writes(missing: HelloFeature) -> None:
    """If the server supports no durable writes, a durable write fails unsent with the feature; other writes succeed."""
    simulation = ready(features=IMPLEMENTED_FEATURES - {missing})
    error = simulation.failure(errors.FeatureNotAvailableException, durable(), retry_strategy=BestEffortRetryStrategy())
    unsent = sent(simulation)
    simulation.result(upsert())

    assert f"upsert 'k': durability needs the feature {missing.name}" in str(error)
    assert [] == unsent
