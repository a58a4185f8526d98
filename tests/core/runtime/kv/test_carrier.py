"""The life of operations: each ends exactly once, in time, with the outcome that its phase allows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.phases import AMBIGUOUS, PHASES, Make, read, write
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import CompleteOperation, FailOperation, ReportRefusal, ReportRetry
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.results import Cas, CounterResult, Done, ExistsResult, GetResult, MutationResult
from triclinium_core.kv.wire.constants import Datatype, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry import couchbase
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.runtime.kv.connection.grace_period import SECONDS_MAX
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.error_map import ErrorMapDocument, ErrorMapRow
from triclinium_core.testing.fakes.faults import delay
from triclinium_core.transcoding.flags import JSON_FLAGS

TWO = neutral.StreamId(2)

each_phase = rows("phase", PHASES)
each_kind = rows("make", [read, write])


def is_forgotten(simulation: simulated.Recorded, *, in_flight: int = 0) -> bool:
    """Tell whether nothing of any operation is left in the client, whatever still happens, and it can be used.

    Args:
        in_flight: answers that will never come.
    """
    simulation.node.faults.clear()
    simulation.live(20.0)
    statistics = simulation.machine.statistics()
    assert (0, in_flight) == (statistics.open_operations, statistics.in_flight)
    simulation.result(simulated.upsert("other"), retry_strategy=couchbase.BestEffortRetryStrategy())
    return True


# Deadlines.


@each_phase
@each_kind
def test_deadline(phase: str, make: Make) -> None:
    """In every phase: at its time, ambiguous where a write is on the wire without an answer, else not (decision C25)."""
    simulation, token = PHASES[phase](make)
    expected = phase in AMBIGUOUS and make is write
    told = simulation.machine.is_ambiguous(token)
    simulation.live(simulated.TIMEOUT)

    assert expected == told
    error = simulation.error(
        errors.AmbiguousTimeoutException if expected else errors.UnambiguousTimeoutException, token
    )
    assert simulated.TIMEOUT == simulation.settled_at[token]
    assert simulated.TIMEOUT == error.context.timeout == error.context.elapsed
    assert "2.5 s" in str(error)
    assert is_forgotten(simulation, in_flight=phase == "answer lost")


STATES: Mapping[str, couchbase.RetryState] = {
    "connecting": couchbase.RetryState.PENDING,
    "bootstrapping": couchbase.RetryState.PENDING,
    "asking for the collection": couchbase.RetryState.PENDING,
    "in flight": couchbase.RetryState.IN_FLIGHT,
    "in flight again": couchbase.RetryState.IN_FLIGHT,
    "answer lost": couchbase.RetryState.IN_FLIGHT,
    "waiting": couchbase.RetryState.WAITING,
    "without a connection": couchbase.RetryState.WAITING,
    "expiring": couchbase.RetryState.EXPIRING,
    "consulting": couchbase.RetryState.CONSULTING,
    "consulting after a loss": couchbase.RetryState.CONSULTING,
}
"""Where the request stands in each phase."""


@each_phase
@each_kind
def test_whoever_gives_up_is_told_as_much_as_the_deadline_tells(phase: str, make: Make) -> None:
    """In every phase: at the same instant, the same context, and where the request stood."""
    simulation, token = PHASES[phase](make)
    early = simulation.machine.error_context(token, simulation.now)
    simulation.live(simulated.TIMEOUT - 0.001 - simulation.now)
    context = simulation.machine.error_context(token, simulated.TIMEOUT)
    simulation.live(0.001)

    assert early is not None
    assert STATES[phase].value == early.state
    assert context is not None
    assert simulation.errors[token].context == replace(context, state=None)
    assert simulation.machine.error_context(token, simulated.TIMEOUT) is None


@each_phase
@each_kind
def test_abandoned(phase: str, make: Make) -> None:
    """In every phase: the caller hears nothing more, and nothing is left behind."""
    simulation, token = PHASES[phase](make)
    simulation.abandon(token)

    assert not simulation.machine.is_ambiguous(token)
    assert 0 == simulation.open_operations

    simulation.abandon(token)
    simulation.live(simulated.TIMEOUT)

    assert token not in simulation.settled_at
    assert is_forgotten(simulation, in_flight=phase == "answer lost")


@rows("phase", ["in flight", "waiting", "expiring", "consulting"])
@rows("ending", ["abandoned", "deadline"])
def test_no_timer_is_left_behind(phase: str, ending: str) -> None:
    """A settled operation wakes nobody up: the next thing due is a sign of life."""
    simulation, token = PHASES[phase](read)
    if ending == "abandoned":
        simulation.abandon(token)
    else:
        simulation.now = simulated.TIMEOUT
        simulation.feed(neutral.TimePassed())

    assert 0 == simulation.open_operations
    assert 20.0 == simulation.machine.wakeup


@each_phase
@each_kind
def test_connection_lost(phase: str, make: Make) -> None:
    """In every phase: what was on the wire is retried if it is a read, everything else was not and is retried."""
    simulation, token = PHASES[phase](make)
    simulation.node.documents.put("travel", "k", b"{}")
    simulation.node.documents.put("travel", "k", b"{}", collection_id=8)
    if simulation.links:
        simulation.lose(simulation.newest)
    for consulted in simulation.consulted:
        simulation.feed(neutral.StrategyDecided(consulted.token, couchbase.RetryAction.after(0.01)))
    simulation.node.faults.clear()
    simulation.run()

    assert token in simulation.settled_at
    if phase in AMBIGUOUS and make is write:
        simulation.error(errors.RequestCanceledException, token)
    elif phase == "expiring":
        simulation.error(errors.UnambiguousTimeoutException, token)
    else:
        assert token in simulation.results
    assert is_forgotten(simulation)


def test_no_deadline() -> None:
    """Infinity removes the net: the operation waits for as long as it takes."""
    simulation = simulated.ready(options=simulated.client_options("couchbase://127.0.0.1:11210?kv_timeout=inf"))
    simulation.node.faults.next(Opcode.GET, delay(10_000.0))
    simulation.node.documents.put("travel", "k", b"{}")
    token = simulation.submit(simulated.get())
    simulation.live(10_001.0)

    assert token in simulation.results


def test_a_strategy_that_never_waits() -> None:
    """Each of its retries comes a millisecond later all the same, and the deadline ends them."""

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
    """Against a node that does what it is told."""
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


def test_feature_that_is_gone_after_a_retry() -> None:
    """The next connection may grant less; the error still tells of the retries."""
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


# Answers.


def test_success_allocates_nothing_for_retrying() -> None:
    """Three actions of the network, one for the caller (decision C38)."""
    simulation = simulated.ready()
    del simulation.actions[:]
    token = simulation.finish(simulated.upsert())

    assert [neutral.SendBytes, CompleteOperation] == [type(action) for action in simulation.actions]
    assert CompleteOperation(token, simulation.results[token]) == simulation.actions[-1]
    assert {} == simulation.machine.statistics().retries_by_reason


@rows("code", sorted(code for code, row in couchbase.KV_STATUSES.items() if row.only_of))
@each_kind
def test_success_of_another_operation(code: int, make: Make) -> None:
    """A status that cannot answer the request tells nothing of it: it fails with that, at once (decision D12)."""
    simulation = simulated.ready()
    simulation.node.faults.next(None, faults.status(code))
    error = simulation.failure(errors.DecodingFailureException, make(simulated.TRAVEL))

    assert code == error.context.status
    assert [] == simulation.closings()


@each_kind
def test_malformed_response(make: Make) -> None:
    """A success with an impossible body costs its own operation, at once; of a write it says that it was applied."""
    simulation = simulated.ready()
    token, request = simulation.submit_in_flight(make(simulated.TRAVEL))
    simulation.inject(simulated.respond(request, extras=b"12345"))
    error = simulation.error(errors.DecodingFailureException, token)

    assert [] == simulation.closings()
    assert "5 bytes of extras" in str(error)
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
"""Frames whose boundaries are intact, and which say nothing that can be."""


@given(
    kinds=st.lists(st.sampled_from((read, write)), min_size=2, max_size=12),
    victim=st.integers(min_value=0),
    nonsense=st.sampled_from(sorted(NONSENSE)),
    order=st.randoms(use_true_random=False),
    cut=st.integers(min_value=0),
)
def test_one_nonsense_among_many(
    kinds: Sequence[Make], victim: int, nonsense: str, order: random.Random, cut: int
) -> None:
    """It costs the operation that it answers, and nobody else: all others succeed, on the same connection."""
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


def test_an_answer_that_comes_twice() -> None:
    """The second one is an orphan, and bystanders go on."""
    simulation = simulated.ready()
    (first, request), (second, other) = (simulation.submit_in_flight(simulated.upsert(key)) for key in "ab")
    simulation.inject(
        simulated.respond(request, couchbase.Status.KEY_EXISTS) + simulated.respond(request) + simulated.respond(other)
    )

    assert (True, True) == (first in simulation.errors, second in simulation.results)
    assert (1, []) == (simulation.machine.statistics().orphans, simulation.closings())


def test_status_of_a_final_answer() -> None:
    """Known statuses surface as their exception, with all that the server said."""
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
    """Counted, and nothing else: neither to an abandoned operation nor to one that timed out."""
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


def test_tokens_may_come_again() -> None:
    """Once an operation is settled its token is free, and a late answer does not reach the new one."""
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
    """Statuses of the list, with the best-effort delays: 1, 2, 4 ms (decision C2)."""
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
    """Nothing was applied, so it is sent again and counts once; who wants no retry is told the truth (decision D25)."""
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
    """A delay that would reach the deadline is cut to it, and nothing is sent again (decision C23)."""
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
    """Always retried, with the controlled backoff (decisions C3, C10)."""
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
    """A reason born of a status surfaces as the status, any other as cancelled (decision C32)."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.GET, fault)
    error = simulation.failure(kind, simulated.get(), retry_strategy=couchbase.FailFastRetryStrategy())

    assert reason == error.context.refused_reason
    assert [reason] == [refusal.reason for refusal in simulation.refusals]
    assert kind.__name__ == simulation.refusals[0].error


@pytest.mark.parametrize("fault", [faults.hang_up(), faults.hang_up_after_applying()])
def test_write_is_never_applied_twice(fault: Any) -> None:
    """Once it was handed over, nobody can know; the strategy cannot change that."""

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


@rows("answer", [None, 5, "retry", couchbase.RetryAction, LookupError("no such plan")])
def test_strategy_that_is_broken(answer: object) -> None:
    """What it raises, or answers in place of an action, fails the request as its cause; the client goes on (C28)."""

    class Broken:
        def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.SET, faults.temporary_failure())
    error = simulation.failure(errors.RequestCanceledException, simulated.upsert(), retry_strategy=Broken())

    assert (LookupError if isinstance(answer, Exception) else TypeError) is type(error.__cause__)
    simulation.result(simulated.upsert())


def test_own_strategy_and_context() -> None:
    """An operation may bring both; the strategy sees what the application attached."""
    seen: list[couchbase.RetryRequest] = []

    class Curious:
        def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason) -> couchbase.RetryAction:
            seen.append(request)
            return (
                couchbase.RetryAction.after(0.5)
                if len(seen) == 1
                else couchbase.RetryAction.no_retry(errors.InvalidArgumentException)
            )

    simulation = simulated.ready(options=simulated.client_options(retry_strategy=couchbase.FailFastRetryStrategy()))
    simulation.node.faults.always(Opcode.SET, faults.temporary_failure())
    simulation.failure(
        errors.InvalidArgumentException, simulated.upsert(), retry_strategy=Curious(), client_context={"robot": True}
    )

    assert [{"robot": True}] * 2 == [request.client_context for request in seen]
    assert [(0.0, 2.5, 0), (0.5, 2.0, 1)] == [
        (request.age, request.remaining, request.retry_attempts) for request in seen
    ]
    assert {("upsert", "k", False)} == {(request.operation, request.key, request.idempotent) for request in seen}


# Asynchronous strategies.


def consulted() -> tuple[simulated.Recorded, neutral.Token]:
    """Return a simulation in which a write waits for its strategy."""
    return PHASES["consulting"](write)


def test_strategy_decides_to_retry() -> None:
    """After its delay, counted from the decision."""
    simulation, token = consulted()
    simulation.live(0.5)
    simulation.feed(neutral.StrategyDecided(token, couchbase.RetryAction.after(0.25)))
    simulation.run()

    assert token in simulation.results
    assert 0.75 == simulation.settled_at[token]


def test_strategy_decides_not_to_retry() -> None:
    """With the error that the status stands for, or with the strategy's own."""
    simulation, token = consulted()
    simulation.feed(neutral.StrategyDecided(token, couchbase.RetryAction.no_retry()))
    simulation.error(errors.TemporaryFailureException, token)

    simulation, token = consulted()
    simulation.feed(
        neutral.StrategyDecided(token, couchbase.RetryAction.no_retry(errors.AuthenticationFailureException))
    )
    simulation.error(errors.AuthenticationFailureException, token)


@pytest.mark.parametrize(
    ("answer", "raised", "cause"),
    [(None, LookupError("no"), LookupError), (None, KeyboardInterrupt(), KeyboardInterrupt), (None, None, TypeError)],
)
def test_strategy_that_fails_to_decide(
    answer: couchbase.RetryAction | None, raised: BaseException | None, cause: type[BaseException]
) -> None:
    """What it raised is the cause; what is not an answer is a mistake of its own (decision C28)."""
    simulation, token = consulted()
    simulation.feed(neutral.StrategyDecided(token, answer, raised))

    assert cause is type(simulation.error(errors.RequestCanceledException, token).__cause__)


def test_decision_that_comes_too_late() -> None:
    """After the deadline, after the caller has left, or for a token that nobody knows: ignored."""
    simulation, token = consulted()
    simulation.live(3.0)
    simulation.feed(neutral.StrategyDecided(token, couchbase.RetryAction.after(0)))
    simulation.feed(neutral.StrategyDecided(neutral.Token(99), couchbase.RetryAction.after(0)))
    other, left = consulted()
    other.abandon(left)
    other.feed(neutral.StrategyDecided(left, couchbase.RetryAction.after(0)))

    simulation.error(errors.UnambiguousTimeoutException, token)
    assert left not in other.settled_at


@pytest.mark.parametrize("phase", ["connecting", "in flight", "waiting"])
def test_decision_that_nobody_asked_for(phase: str) -> None:
    """A mistake of the driver raises at once, and changes nothing."""
    simulation, token = PHASES[phase](read)

    with pytest.raises(InvalidEvent):
        simulation.feed(neutral.StrategyDecided(token, couchbase.RetryAction.no_retry()))
    assert token not in simulation.settled_at

    simulation.live(simulated.TIMEOUT)

    simulation.error(errors.UnambiguousTimeoutException, token)


def test_always_retried_reasons_are_not_asked_about() -> None:
    """Nor under an asynchronous strategy."""
    simulation, _ = consulted()
    simulation.node.faults.next(Opcode.SET, faults.not_my_vbucket())
    token = simulation.finish(simulated.upsert())

    assert token in simulation.results
    assert 1 == len(simulation.consulted)


# Unknown statuses and the error map.

MAP = ErrorMapDocument(
    revision=3,
    rows=(
        ErrorMapRow(0x7F03, "AUTO", "auto-retry", "Again", {"strategy": "constant", "interval": 10, "after": 20}),
        ErrorMapRow(0x7F06, "INPUT", "invalid-input", "Not like this"),
        ErrorMapRow(0x7F08, "CONFIG", "fetch-config", "Look at the map"),
        ErrorMapRow(0x7F09, "GONE", "conn-state-invalidated", "Connect anew"),
        ErrorMapRow(0x7F0A, "SPECIAL", "special-handling", "You know how"),
        ErrorMapRow(0x7F0B, "GONE_NOW", "conn-state-invalidated retry-now", "Connect anew and try again"),
        ErrorMapRow(0x7F0C, "CONFIG_NOW", "fetch-config retry-now", "Look at the map and try again"),
    ),
)


@rows(
    ("code", "kind"),
    [
        (0x7F06, errors.InvalidArgumentException),
        (0x7F08, errors.CouchbaseException),
        (0x7EEE, errors.CouchbaseException),
    ],
)
def test_unknown_status_that_is_not_retried(code: int, kind: type[errors.CouchbaseException]) -> None:
    """The class goes by the attributes; name and text of the map stand in the context (decisions C13, C31)."""
    simulation = simulated.ready(error_map=MAP)
    simulation.node.faults.next(Opcode.SET, faults.status(code))
    error = simulation.failure(kind, simulated.upsert(), retry_strategy=couchbase.BestEffortRetryStrategy())
    row = next((row for row in MAP.rows if row.code == code), None)

    assert code == error.context.status
    assert (row.name if row else None, row.description if row else None) == (
        error.context.status_name,
        error.context.status_text,
    )
    assert 0 == error.context.retry_attempts


def test_schedule_of_the_map() -> None:
    """Only the opt-in strategy follows it (decision C14)."""
    simulation = simulated.ready(error_map=MAP)
    simulation.node.faults.next(Opcode.SET, faults.status(0x7F03), times=3)
    simulation.finish(simulated.upsert(), retry_strategy=couchbase.ErrorMapRetryStrategy())

    assert [0.02, 0.01, 0.01] == [retry.delay for retry in simulation.retries]


@pytest.mark.parametrize(("code", "settles"), [(0x7F09, True), (0x7F0A, True), (0x7F0B, False)])
def test_close_after_settling(code: int, settles: bool) -> None:
    """The request is settled, or its retry ordered, before the connection is closed (decision C31)."""
    simulation = simulated.ready(error_map=MAP)
    _, request = simulation.submit_in_flight(simulated.upsert())
    del simulation.actions[:]
    simulation.inject(simulated.respond(request, code))
    first = FailOperation if settles else ReportRetry

    assert [first, neutral.CloseStream, neutral.ReportConnection] == [type(action) for action in simulation.actions]
    assert f"of status 0x{code:02x}" in simulation.closings()[0]


def test_closing_takes_others_along_after_settling() -> None:
    """Their fate comes after the closing that caused it."""
    simulation = simulated.ready(error_map=MAP)
    first, request = simulation.submit_in_flight(simulated.upsert("a"))
    second, _ = simulation.submit_in_flight(simulated.upsert("b"))
    del simulation.actions[:]
    simulation.inject(simulated.respond(request, 0x7F09))
    kinds = [type(action) for action in simulation.actions]

    assert [FailOperation, neutral.CloseStream, neutral.ReportConnection, ReportRefusal, FailOperation] == kinds
    assert [first, second] == [action.token for action in simulation.actions if isinstance(action, FailOperation)]


@pytest.mark.parametrize("code", [0x7F08, 0x7F0C])
@pytest.mark.parametrize("body", [b"", b'{"error":{"context":"look"}}'])
def test_fetch_config(code: int, body: bytes) -> None:
    """A newer map is asked for, whatever the body says; only NOT_MY_VBUCKET carries one (decision C31)."""
    simulation = simulated.ready(error_map=MAP)
    _, request = simulation.submit_in_flight(simulated.get())
    simulation.inject(simulated.respond(request, code, value=body))

    assert Opcode.GET_CLUSTER_CONFIG == simulation.requests[TWO][-1].opcode


REFRESHING = (couchbase.Status.NOT_MY_VBUCKET, 0x7F0C)
"""Statuses, answered without a config, that refresh the map and have the operation sent again after a delay."""


def refreshing() -> simulated.Recorded:
    """Return a client whose operations are sent again after either status."""
    return simulated.ready(
        error_map=MAP, options=simulated.client_options(retry_strategy=couchbase.BestEffortRetryStrategy())
    )


@pytest.mark.parametrize("code", REFRESHING)
def test_config_request_precedes_waiting_operations(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A response that refreshes the map has the config requested first, then queued operations sent, then the retry."""
    monkeypatch.setattr("triclinium_core.runtime.kv.connection.in_flight.REQUESTS_MAX", 1)
    simulation = refreshing()
    token, request = simulation.submit_in_flight(simulated.upsert("a"))
    queued = simulation.submit(simulated.get("b"))
    before = len(simulation.requests[TWO])
    simulation.inject(simulated.respond(request, code))
    first = [frame.opcode for frame in simulation.requests[TWO][before:]]
    simulation.flow()
    then = [frame.opcode for frame in simulation.requests[TWO][before:]]
    simulation.run()

    # The table is full while the config request is unanswered.
    assert [Opcode.GET_CLUSTER_CONFIG] == first
    assert [Opcode.GET_CLUSTER_CONFIG, Opcode.GET] == then
    assert [*then, Opcode.SET] == [frame.opcode for frame in simulation.requests[TWO][before:]]
    assert (True, True) == (token in simulation.results, queued in simulation.errors)


@pytest.mark.parametrize("code", REFRESHING)
def test_responses_in_one_piece_request_one_config(code: int) -> None:
    """Two operations that are refused in one piece of bytes request one config, and are sent again in their order."""
    simulation = refreshing()
    (_, first), (_, second) = (simulation.submit_in_flight(simulated.upsert(key)) for key in "ab")
    del simulation.actions[:]
    before = len(simulation.requests[TWO])
    simulation.inject(simulated.respond(first, code) + simulated.respond(second, code))
    kinds = [type(action) for action in simulation.actions]
    simulation.live(0.1)
    sent = [(frame.opcode, frame.key[-1:]) for frame in simulation.requests[TWO][before:]]

    assert [ReportRetry, ReportRetry, neutral.SendBytes] == kinds
    assert [(Opcode.GET_CLUSTER_CONFIG, b""), (Opcode.SET, b"a"), (Opcode.SET, b"b")] == sent


def test_config_request_closes_before_the_retry() -> None:
    """A connection that answers no config request is closed before the retry of a refused operation is reported."""
    simulation = simulated.ready(options=simulated.client_options(timeouts=TimeoutOptions(config_poll_interval=60.0)))
    simulation.node.faults.always(Opcode.GET_CLUSTER_CONFIG, faults.drop_response())
    for seconds in (0, SECONDS_MAX):
        simulation.live(seconds)
        simulation.feed(neutral.TimePassed())
        _, request = simulation.submit_in_flight(simulated.get())
        del simulation.actions[:]
        simulation.inject(simulated.respond(request, couchbase.Status.NOT_MY_VBUCKET))

    assert [neutral.CloseStream, neutral.ReportConnection, ReportRetry] == [
        type(action) for action in simulation.actions[:3]
    ]
    assert "has answered no question" in simulation.closings()[0]


# Bounds.


def test_too_many_wait_for_a_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond the bound are told, and try again; nobody is forgotten (decision C37)."""
    monkeypatch.setattr("triclinium_core.runtime.kv.collection_ids.WAITING_MAX", 50)
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
    """Every retry and every refusal is told, with all that a log line needs (decision C30)."""
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


def test_report_of_what_was_never_sent() -> None:
    """Where it was to go, from the first attempt on; and its end by the deadline is told like any other refusal."""
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
