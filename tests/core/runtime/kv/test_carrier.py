"""Life cycle of operations: their responses, retries and deadlines, and the reports about them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.carrier_cases import TWO, each_kind
from tests.core.runtime.kv.phases import Make, read, write
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import CompleteOperation
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.results import Cas, CounterResult, Done, ExistsResult, GetResult, MutationResult
from triclinium_core.kv.wire.constants import Datatype, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry import couchbase
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.faults import delay
from triclinium_core.transcoding.flags import JSON_FLAGS


def test_no_deadline() -> None:
    """Without a deadline, an operation waits for its response without limit."""
    simulation = simulated.ready(options=simulated.client_options("couchbase://127.0.0.1:11210?kv_timeout=inf"))
    simulation.node.faults.next(Opcode.GET, delay(10_000.0))
    simulation.node.documents.put("travel", "k", b"{}")
    token = simulation.submit(simulated.get())
    simulation.live(10_001.0)

    assert token in simulation.results


def test_a_strategy_that_never_waits() -> None:
    """If a strategy returns no delay, the client retries at most once per millisecond until the deadline."""

    class Restless:
        def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason) -> couchbase.RetryAction:
            return couchbase.RetryAction.after(0)

    simulation = simulated.Recorded()
    simulation.node.faults.always(None, faults.refuse_connection())
    simulation.submit(simulated.get())
    simulation.flow()
    token = simulation.submit(simulated.get(), retry_strategy=Restless())
    simulation.advance(0.1)
    attempts = sum(retry.token == token for retry in simulation.retries)
    simulation.run()

    assert 10 < attempts <= 101
    assert pytest.approx(simulated.TIMEOUT) == simulation.settled_at[token]
    simulation.error(errors.UnambiguousTimeoutException, token)


# Every operation.


def test_every_operation() -> None:
    """If the node has no faults, document operations return their results or raise their documented errors."""
    simulation = simulated.ready()
    run = simulation.result
    inserted = run(document_operations.Insert(simulated.TRAVEL, "k", b'{"a":1}', JSON_FLAGS))
    assert isinstance(inserted, MutationResult)
    assert inserted.mutation_token is not None
    replaced = run(document_operations.Replace(simulated.TRAVEL, "k", b'{"a":2}', JSON_FLAGS, cas=inserted.cas))
    assert isinstance(replaced, MutationResult)

    simulation.failure(
        errors.CasMismatchException,
        document_operations.Replace(simulated.TRAVEL, "k", b"{}", JSON_FLAGS, cas=inserted.cas),
    )
    simulation.failure(
        errors.DocumentExistsException, document_operations.Insert(simulated.TRAVEL, "k", b"{}", JSON_FLAGS)
    )
    simulation.failure(errors.DocumentNotFoundException, simulated.get("nobody"))

    got = run(document_operations.GetAndTouch(simulated.TRAVEL, "k", 60))
    assert isinstance(got, GetResult)
    assert {"a": 2} == got.content
    locked_result = run(document_operations.GetAndLock(simulated.TRAVEL, "k"))
    assert isinstance(locked_result, GetResult)
    assert Done() == run(document_operations.Unlock(simulated.TRAVEL, "k", locked_result.cas))
    exists = run(document_operations.Exists(simulated.TRAVEL, "k"))
    assert isinstance(exists, ExistsResult)
    assert exists.exists
    assert ExistsResult(False, Cas(0)) == run(document_operations.Exists(simulated.TRAVEL, "nobody"))
    assert isinstance(run(document_operations.Touch(simulated.TRAVEL, "k", 0)), MutationResult)
    run(document_operations.Append(simulated.TRAVEL, "k", b" "))
    run(document_operations.Prepend(simulated.TRAVEL, "k", b" "))
    run(document_operations.Remove(simulated.TRAVEL, "k"))
    assert ExistsResult(False, Cas(0)) == run(document_operations.Exists(simulated.TRAVEL, "k"))
    counted = [
        run(document_operations.Increment(simulated.TRAVEL, "n", 5, 10)),
        run(document_operations.Increment(simulated.TRAVEL, "n", 5)),
        run(document_operations.Decrement(simulated.TRAVEL, "n", 100)),
    ]
    assert [10, 15, 0] == [result.content for result in counted if isinstance(result, CounterResult)]
    simulation.failure(errors.DocumentNotFoundException, document_operations.Increment(simulated.TRAVEL, "nobody"))
    assert 0 == simulation.now


# Responses.


def test_success_allocates_nothing_for_retrying() -> None:
    """A successful operation causes only two actions, and none for retries (decision C38)."""
    simulation = simulated.ready()
    del simulation.actions[:]
    token = simulation.finish(simulated.upsert())

    assert [neutral.SendBytes, CompleteOperation] == [type(action) for action in simulation.actions]
    assert CompleteOperation(token, simulation.results[token]) == simulation.actions[-1]
    assert {} == simulation.machine.statistics().retries_by_reason


@rows("code", sorted(code for code, row in couchbase.KV_STATUSES.items() if row.only_of))
@each_kind
def test_success_of_another_operation(code: int, make: Make) -> None:
    """If a response has the success status of another operation, the operation fails as undecodable (decision D12)."""
    simulation = simulated.ready()
    simulation.node.faults.next(None, faults.status(code))
    error = simulation.failure(errors.DecodingFailureException, make(simulated.TRAVEL))

    assert code == error.context.status
    assert [] == simulation.closings()


@each_kind
def test_malformed_response(make: Make) -> None:
    """If the body of a success is invalid, its operation fails; for a write, the error states that the write was
    applied.
    """
    simulation = simulated.ready()
    token, request = simulation.submit_in_flight(make(simulated.TRAVEL))
    simulation.inject(simulated.respond(request, extras=b"12345"))
    error = simulation.error(errors.DecodingFailureException, token)

    assert [] == simulation.closings()
    assert "size of the extras: 5" in str(error)
    assert (make is not read) == ("it was applied" in str(error))
    assert (couchbase.Status.SUCCESS, "127.0.0.1:11210") == (error.context.status, error.context.last_dispatched_to)


NONSENSE: Mapping[str, Callable[[Frame], bytes]] = {
    "extras": lambda request: simulated.respond(request, extras=b"12345"),
    "framing extras": lambda request: simulated.respond(request, extras=b"1", framing_extras=b"\xff"),
    "compression": lambda request: simulated.respond(request, value=b"\xff" * 40, datatype=Datatype.SNAPPY),
    "datatype": lambda request: simulated.respond(request, extras=b"12345", datatype=0xFF),
    "status": lambda request: simulated.respond(request, couchbase.Status.RANGE_SCAN_MORE),
    "path": lambda request: simulated.respond(request, couchbase.Status.SUBDOC_MULTI_PATH_FAILURE, value=b"no path"),
}
"""Functions that return a frame with correct lengths and invalid content."""


@given(
    kinds=st.lists(st.sampled_from((read, write)), min_size=2, max_size=12),
    victim=st.integers(min_value=0),
    nonsense=st.sampled_from(sorted(NONSENSE)),
    order=st.randoms(use_true_random=False),
    cut=st.integers(min_value=0),
)
def test_one_invalid_response_among_many(
    kinds: Sequence[Make], victim: int, nonsense: str, order: random.Random, cut: int
) -> None:
    """If one of many responses is invalid, only its operation fails; the others succeed on the same connection."""
    simulation = simulated.ready()
    sent = [simulation.submit_in_flight(make(simulated.TRAVEL)) for make in kinds]
    victim %= len(sent)
    answers = [
        simulated.found(request) if make is read else simulated.respond(request)
        for make, (_, request) in zip(kinds, sent, strict=True)
    ]
    answers[victim] = NONSENSE[nonsense](sent[victim][1])
    order.shuffle(answers)
    data = b"".join(answers)
    cut %= len(data)
    simulation.inject(data[:cut])
    simulation.inject(data[cut:])

    assert [token for token, _ in sent if token not in simulation.results] == [sent[victim][0]]
    simulation.error(errors.DecodingFailureException, sent[victim][0])
    assert (0, 0, []) == (
        simulation.connection().in_flight,
        simulation.machine.statistics().orphans,
        simulation.closings(),
    )


def test_a_response_that_arrives_twice() -> None:
    """A second response to a request counts as an orphan, and other operations continue."""
    simulation = simulated.ready()
    (first, request), (second, other) = (simulation.submit_in_flight(simulated.upsert(key)) for key in "ab")
    simulation.inject(
        simulated.respond(request, couchbase.Status.KEY_EXISTS) + simulated.respond(request) + simulated.respond(other)
    )

    assert (True, True) == (first in simulation.errors, second in simulation.results)
    assert (1, []) == (simulation.machine.statistics().orphans, simulation.closings())


def test_status_of_a_final_answer() -> None:
    """A known status raises its exception, whose context has all details in the response."""
    simulation = simulated.ready()
    body = b'{"error":{"context":"why not","ref":"abc-1"}}'
    simulation.node.faults.next(Opcode.SET, faults.status(couchbase.Status.TOO_BIG, body))
    token = simulation.finish(simulated.upsert())
    error = simulation.errors[token]
    last = simulation.commands(Opcode.SET)[-1]

    assert ("ValueTooLargeException", 3, "TOO_BIG", "why not", "abc-1", "127.0.0.1:11210", last.opaque) == (
        type(error).__name__,
        error.context.status,
        error.context.status_name,
        error.context.server_context,
        error.context.server_ref,
        error.context.last_dispatched_to,
        error.context.opaque,
    )
    assert "why not" in str(error)


def test_late_answers_are_orphans() -> None:
    """A late response to an abandoned or timed-out operation counts as an orphan and has no other effect."""
    simulation = simulated.ready()
    simulation.node.faults.next(None, delay(3.0), times=2)
    simulation.submit(simulated.upsert("a"))
    abandoned = simulation.submit(simulated.upsert("b"))
    simulation.flow()
    simulation.abandon(abandoned)
    before = simulation.machine.statistics()
    simulation.live(4.0)
    after = simulation.machine.statistics()

    assert (2, 0) == (before.in_flight, before.orphans)
    assert (0, 2) == (after.in_flight, after.orphans)
    assert [] == simulation.closings()


def test_tokens_may_be_reused() -> None:
    """A token may be reused after its operation has completed; the new operation does not get late responses."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.GET, delay(3.0))
    token = simulation.submit(simulated.get("a"))
    simulation.live(2.6)
    simulation._last_token -= 1
    del simulation.settled_at[token], simulation.errors[token]
    again, request = simulation.submit_in_flight(simulated.upsert("b"))
    simulation.live(1.0)

    assert token == again
    assert again not in simulation.settled_at

    simulation.inject(simulated.respond(request, cas=5))

    assert MutationResult(Cas(5)) == simulation.results[again]


# Retries.


@each_kind
@rows("code", [couchbase.Status.TEMPORARY_FAILURE, couchbase.Status.LOCKED, couchbase.Status.SYNC_WRITE_IN_PROGRESS])
def test_retried_until_it_works(make: Make, code: couchbase.Status) -> None:
    """After a retryable status, an operation is retried with the best-effort delays of 1, 2 and 4 ms (decision C2)."""
    simulation = simulated.ready()
    simulation.node.documents.put("travel", "k", b"{}")
    simulation.node.faults.next(None, faults.status(code), times=3)
    token = simulation.finish(make(simulated.TRAVEL))

    assert token in simulation.results
    assert [0.001, 0.002, 0.004] == [retry.delay for retry in simulation.retries]
    assert pytest.approx(0.007) == simulation.settled_at[token]
    assert 3 == sum(simulation.machine.statistics().retries_by_reason.values())


@pytest.mark.parametrize(
    ("make", "opcode"),
    [(document_operations.Increment, Opcode.INCREMENT), (document_operations.Decrement, Opcode.DECREMENT)],
)
def test_a_counter_that_lost_a_race(
    make: type[document_operations.Increment | document_operations.Decrement], opcode: Opcode
) -> None:
    """If a counter operation loses a race, best effort retries it and it counts once; fail fast fails it (D25)."""
    simulation = simulated.ready()
    simulation.node.documents.put("travel", "hits", b"5")
    simulation.node.faults.next(opcode, faults.status(couchbase.Status.NOT_STORED), times=3)
    counted = simulation.result(make(simulated.TRAVEL, "hits", 2, 5))
    simulation.node.faults.next(opcode, faults.status(couchbase.Status.NOT_STORED))
    failed = simulation.finish(make(simulated.TRAVEL, "hits", 2, 5), retry_strategy=couchbase.FailFastRetryStrategy())

    assert isinstance(counted, CounterResult)
    assert (7 if make is document_operations.Increment else 3) == counted.content
    assert [couchbase.RetryReason.KV_TEMPORARY_FAILURE] * 3 == [retry.reason for retry in simulation.retries]
    assert errors.TemporaryFailureException is type(simulation.errors[failed])


def test_retried_until_the_deadline() -> None:
    """If the delay would exceed the deadline, the operation fails at the deadline without another attempt (C23)."""
    simulation = simulated.ready()
    simulation.node.faults.always(Opcode.SET, faults.temporary_failure())
    error = simulation.failure(errors.UnambiguousTimeoutException, simulated.upsert())
    sent = [command.now for command in simulation.commands(Opcode.SET)]

    assert simulated.TIMEOUT == simulation.now
    assert [True] * (len(sent) - 1) + [False] == [retry.dispatches for retry in simulation.retries][: len(sent)]
    assert len(sent) == error.context.retry_attempts + 1 == len(simulation.retries)
    assert error.context.retry_attempts == sum(simulation.machine.statistics().retries_by_reason.values())
    assert max(sent) < simulated.TIMEOUT
    assert "temporarily unable" in str(error)


@pytest.mark.parametrize("embedded", [True, False])
def test_not_my_vbucket_under_fail_fast(embedded: bool) -> None:
    """After NOT_MY_VBUCKET even fail fast retries, with the delays of the controlled backoff (decisions C3, C10)."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.SET, faults.not_my_vbucket(embedded), times=4)
    token = simulation.finish(simulated.upsert(), retry_strategy=couchbase.FailFastRetryStrategy())

    assert token in simulation.results
    assert [0.001, 0.01, 0.05, 0.1] == [retry.delay for retry in simulation.retries]
    assert {couchbase.RetryReason.KV_NOT_MY_VBUCKET: 4} == simulation.machine.statistics().retries_by_reason


@pytest.mark.parametrize(
    ("fault", "kind", "reason"),
    [
        (faults.temporary_failure(), errors.TemporaryFailureException, "KV_TEMPORARY_FAILURE"),
        (faults.locked(), errors.DocumentLockedException, "KV_LOCKED"),
        (faults.hang_up(), errors.RequestCanceledException, "SOCKET_CLOSED_WHILE_IN_FLIGHT"),
    ],
)
def test_refused_by_the_strategy(fault: Any, kind: type[errors.CouchbaseException], reason: str) -> None:
    """If the strategy refuses, the status selects the exception; otherwise it is RequestCanceledException (C32)."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.GET, fault)
    error = simulation.failure(kind, simulated.get(), retry_strategy=couchbase.FailFastRetryStrategy())

    assert reason == error.context.refused_reason
    assert [reason] == [refusal.reason for refusal in simulation.refusals]
    assert kind.__name__ == simulation.refusals[0].error


@pytest.mark.parametrize("fault", [faults.hang_up(), faults.hang_up_after_applying()])
def test_write_is_never_applied_twice(fault: Any) -> None:
    """Even a reckless strategy cannot send a handed-over write again; the error says that it may have been applied."""

    class Reckless:
        def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason) -> couchbase.RetryAction:
            return couchbase.RetryAction.after(0.001)

    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.INCREMENT, fault)
    error = simulation.failure(
        errors.RequestCanceledException,
        document_operations.Increment(simulated.TRAVEL, "n", initial=1),
        retry_strategy=Reckless(),
    )

    assert 1 == len(simulation.commands(Opcode.INCREMENT))
    assert "it may have been applied" in str(error)


def test_feature_that_is_missing_after_a_retry() -> None:
    """If the next connection lacks a feature, an operation that needs it fails; the error includes earlier retries."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.SET, faults.temporary_failure())
    token = simulation.submit(simulated.upsert(preserve_expiry=True))
    simulation.flow()
    simulation.node.faults.next(Opcode.HELLO, faults.status(couchbase.Status.SUCCESS, b"\x00\x07\x00\x12"))
    simulation.lose(TWO)
    simulation.live(1.0)
    error = simulation.error(errors.FeatureNotAvailableException, token)

    assert error.context.retry_attempts > 0
    assert "KV_TEMPORARY_FAILURE" in error.context.retry_reasons


# Limits.


def test_too_many_wait_for_a_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """If too many operations wait for a collection id, the next one is retried and succeeds (decision C37)."""
    monkeypatch.setattr("triclinium_core.runtime.kv.collection_lookups.WAITING_MAX", 50)
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.GET_COLLECTION_ID, delay(0.1))
    for position in range(50):
        simulation.submit(simulated.get(str(position), simulated.HOTELS))
    retries = len(simulation.retries)
    token = simulation.submit(simulated.upsert("one too many", simulated.HOTELS))

    assert [0, 1] == [retries, len(simulation.retries)]
    assert couchbase.RetryReason.SOCKET_NOT_AVAILABLE is simulation.retries[0].reason

    simulation.run()

    assert token in simulation.results
    assert 0 == simulation.open_operations
    assert 1 == len(simulation.commands(Opcode.GET_COLLECTION_ID))


# Reports.


def test_reports() -> None:
    """The client reports each retry and each refusal with all data that a log line needs (decision C30)."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.SET, faults.temporary_failure(), times=2)
    calls = 0

    class Twice:
        def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason) -> couchbase.RetryAction:
            nonlocal calls
            calls += 1
            return couchbase.RetryAction.after(0.1) if calls < 2 else couchbase.RetryAction.no_retry()

    token = simulation.finish(simulated.upsert(), retry_strategy=Twice())
    (retry,), (refusal,) = simulation.retries, simulation.refusals

    assert (token, 0.1, True, "127.0.0.1:11210", 0) == (
        retry.token,
        retry.delay,
        retry.dispatches,
        retry.node,
        retry.request.retry_attempts,
    )
    assert (token, "TemporaryFailureException", "127.0.0.1:11210", 1) == (
        refusal.token,
        refusal.error,
        refusal.node,
        refusal.request.retry_attempts,
    )


def test_reports_of_an_unsent_operation() -> None:
    """Reports about an operation that was never sent name its node, and report its timeout like a refusal."""
    simulation = simulated.Recorded()
    simulation.node.faults.always(None, faults.refuse_connection())
    token = simulation.submit(simulated.get())
    simulation.flow()
    parked = simulation.submit(simulated.upsert())
    simulation.run()

    assert {"127.0.0.1:11210"} == {retry.node for retry in simulation.retries}
    assert {token, parked} == {retry.token for retry in simulation.retries}

    silent = simulated.Recorded()
    silent.node.faults.always(Opcode.HELLO, faults.drop_response())
    late = silent.finish(simulated.get())

    assert [(late, "UnambiguousTimeoutException", "127.0.0.1:11210")] == [
        (refusal.token, refusal.error, refusal.node) for refusal in silent.refusals
    ]
