"""Properties that every history of a request has: no wrong action (safety), and always an end (liveness)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hypothesis import event as note, given, strategies as st

from tests.core.retry.couchbase.request_cases import NODE, Awaits, Refusal, Unbuildable, annotation, map_entry
from tests.core.retry.couchbase.tables.service_cases import bodies, body_of
from triclinium_core import errors
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import exponential

SCHEDULED = 0x7FF0
ASLEEP = {couchbase.RetryState.WAITING, couchbase.RetryState.EXPIRING}
ROUNDING = 1e-9
DECISIONS = couchbase.Dispatch | couchbase.RetryAfter | couchbase.AskStrategy | couchbase.Complete | couchbase.Fail
"""Actions of which an event causes at most one."""

good_answers = st.builds(
    couchbase.RetryAction.after,
    st.sampled_from([0.0, 0.001, 0.1, 1.0, 1e6]),
    within=st.none() | st.sampled_from([0.0, 0.05, 1.0]),
)
often_good: st.SearchStrategy[Any] = st.sampled_from(
    [couchbase.RetryAction.after(delay) for delay in (0.0, 0.001, 0.01, 0.05)]
)
answers: st.SearchStrategy[Any] = st.one_of(
    often_good,
    often_good,
    often_good,
    good_answers,
    st.sampled_from(
        [
            couchbase.RetryAction.no_retry(),
            couchbase.RetryAction.no_retry(Refusal),
            couchbase.RetryAction.no_retry(Unbuildable),
        ]
    ),
    st.sampled_from([None, 0.5, "retry", ZeroDivisionError("raise me")]),
)


class Whims:
    """Strategy that draws a value in each call, and returns or raises the value."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /) -> couchbase.RetryAction:
        """Return the drawn value, or raise it if it is an exception."""
        answer: Any = self._data.draw(answers, label="the strategy's answer")
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


shipped = [
    couchbase.BestEffortRetryStrategy(),
    couchbase.BestEffortRetryStrategy(exponential(jitter=1.0)),
    couchbase.FastFailOnTerminalErrorRetryStrategy(),
    couchbase.FailFastRetryStrategy(),
    couchbase.ErrorMapRetryStrategy(),
]

RETRYABLE = [0x07, 0x09, 0x86, 0x88, 0xA2, 0xA4, SCHEDULED, SCHEDULED, 0x07, 0x09]
statuses = st.sampled_from([*RETRYABLE, *RETRYABLE, 0x00, 0x01, 0x24, 0x25, 0x7FF1, 0x7FF2])
kv_answers = st.builds(couchbase.KvResponse, statuses, st.sampled_from([NODE, NODE, "10.0.0.2:11210", None]))
GAVE_UP = 1080
"""Code with which the query service reports a timeout."""

http_answers = st.builds(
    couchbase.ServiceResponse,
    st.sampled_from([service for service in couchbase.Service if service is not couchbase.Service.KV]),
    st.sampled_from([200, 302, 401, 404, 429, 500, 503]),
    st.sampled_from([body_of(4040), body_of(GAVE_UP), body_of(23000), body_of(3000)]) | bodies,
    st.sampled_from(["", "get_user", "create_bucket"]),
)

EVENTS: dict[type[couchbase.RequestEvent], st.SearchStrategy[couchbase.RequestEvent]] = {
    couchbase.Dispatched: st.builds(couchbase.Dispatched, st.just(NODE), st.integers(0, 2**32 - 1)),
    couchbase.DispatchFailed: st.builds(couchbase.DispatchFailed, st.sampled_from(couchbase.RetryReason)),
    couchbase.SocketClosed: st.builds(
        couchbase.SocketClosed, st.sampled_from(couchbase.HandedOver), reason=st.sampled_from(couchbase.RetryReason)
    ),
    couchbase.ResponseReceived: st.builds(
        couchbase.ResponseReceived, st.one_of(kv_answers, kv_answers, kv_answers, http_answers)
    ),
    couchbase.ErrorMapLoaded: st.builds(
        couchbase.ErrorMapLoaded,
        st.just(NODE),
        st.builds(couchbase.ErrorMap, st.just(2), st.integers(1, 3), st.just({0x7FF1: map_entry("retry-now")})),
    ),
    couchbase.StrategyAnswered: st.one_of(
        st.builds(couchbase.StrategyAnswered, answers),
        st.builds(couchbase.StrategyAnswered, st.none(), st.just(OSError("down"))),
    ),
    couchbase.WakeupReached: st.just(couchbase.WakeupReached()),
    couchbase.Abandoned: st.just(couchbase.Abandoned()),
}


@dataclass
class Witness:
    """Checker that follows the events and actions of one machine, and checks each action."""

    machine: couchbase.RetryMachine
    now: float
    unanswered: bool = False
    """Whether the current attempt may have been applied."""
    blind: bool = False
    """Whether a socket closed after at least a part of an attempt was handed over."""
    settled: list[couchbase.RequestAction] = field(default_factory=list)
    delays: list[couchbase.RetryAfter] = field(default_factory=list)
    reasons: set[couchbase.RetryReason] = field(default_factory=set)
    """Reasons of all retries."""
    met: set[couchbase.RetryReason] = field(default_factory=set)
    """Reasons of all failures."""
    dispatches: int = 0

    def feed(self, event: couchbase.RequestEvent) -> None:
        """Pass one event to the machine and check its actions."""
        machine, before = self.machine, self.machine.state
        actions = list(machine.handle(event, self.now))
        if before.is_final:
            assert [couchbase.Ignore()] == actions
            assert before is machine.state
            return
        match event:
            case couchbase.Dispatched():
                self.unanswered = True
            case couchbase.ResponseReceived() | couchbase.SocketClosed(couchbase.HandedOver.NOTHING):
                self.unanswered = False
            case couchbase.SocketClosed():
                self.blind = True
        for index, action in enumerate(actions):
            self._judge(action, actions[:index], actions[index + 1 :])
        self._judge_afterwards(event, before, actions)

    def _judge(
        self,
        action: couchbase.RequestAction,
        earlier: list[couchbase.RequestAction],
        later: list[couchbase.RequestAction],
    ) -> None:
        idempotent, deadline = self.machine.annotation.idempotent, self.machine.annotation.deadline
        match action:
            case couchbase.Dispatch():
                assert idempotent or not self.blind
                assert idempotent or not self.unanswered
                assert self.now < deadline
                self.dispatches += 1
            case couchbase.RetryAfter(delay):
                assert idempotent or not self.blind
                assert 0.0 <= delay
                assert self.now + delay <= deadline + ROUNDING
                assert isinstance(earlier[-1], couchbase.ReportRetry)
                self.delays.append(action)
            case couchbase.ReportRetry(_, reason, delay, dispatches):
                assert couchbase.RetryAfter(delay, dispatches) == later[0]
                self.reasons.add(reason)
                self.met.add(reason)
            case couchbase.AskStrategy(_, _, reason):
                self.met.add(reason)
            case couchbase.ReportRefusal(_, reason, name):
                self.met.add(reason)
                assert isinstance(later[0], couchbase.Fail)
                assert name == type(later[0].error).__name__
            case couchbase.Fail(error):
                self._judge_error(error)
                self.settled.append(action)
            case couchbase.Complete():
                self.settled.append(action)
            case couchbase.CloseConnection():
                assert not later
            case couchbase.Ignore():
                raise AssertionError("an open request ignored an event")

    def _judge_error(self, error: errors.CouchbaseException) -> None:
        assert isinstance(error, errors.CouchbaseException)
        if error.context.error_code == GAVE_UP and isinstance(error, errors.TimeoutException):
            assert self.machine.annotation.idempotent is not isinstance(error, errors.AmbiguousTimeoutException)
        elif isinstance(error, errors.TimeoutException):
            ambiguous = self.unanswered and not self.machine.annotation.idempotent
            assert ambiguous is isinstance(error, errors.AmbiguousTimeoutException)
            assert self.now >= self.machine.annotation.deadline - ROUNDING
        context = error.context
        assert self.dispatches == context.retry_attempts
        assert {str(reason) for reason in self.met} == context.retry_reasons
        assert str(error).startswith(f"{self.machine.annotation.operation} 'airline_10': ")
        assert context.to_json().startswith("{")

    def _judge_afterwards(
        self, event: couchbase.RequestEvent, before: couchbase.RetryState, actions: list[couchbase.RequestAction]
    ) -> None:
        machine = self.machine
        assert machine.state in couchbase.permitted_events(before)[type(event)].values()
        assert self.dispatches == machine.retry_attempts
        assert self.reasons == machine.retry_reasons
        assert len(self.settled) <= 1
        assert (machine.state in {couchbase.RetryState.COMPLETED, couchbase.RetryState.FAILED}) is bool(self.settled)
        assert machine.is_ambiguous is (self.unanswered and not machine.annotation.idempotent)
        assert sum(isinstance(action, DECISIONS) for action in actions) <= 1
        if machine.state.is_final:
            assert math.inf == machine.wakeup
            return
        assert machine.wakeup <= machine.annotation.deadline
        if isinstance(event, couchbase.WakeupReached):
            assert machine.wakeup > self.now


def witness_of(data: st.DataObject) -> Witness:
    """Return the checker of a new request whose strategy, deadline and start are drawn."""
    kind = data.draw(st.sampled_from(["whims", "awaits", "shipped"]), label="kind of strategy")
    strategy: Any = {"whims": Whims(data), "awaits": Awaits()}.get(kind) or data.draw(st.sampled_from(shipped))
    store = couchbase.ErrorMapStore()
    schedule = {"strategy": "linear", "interval": 10, "after": 5, "max-duration": 100}
    entries = {SCHEDULED: map_entry("auto-retry", "temp", "conn-state-invalidated", retry=schedule)}
    store.load(NODE, couchbase.ErrorMap(2, 1, entries))
    start = data.draw(st.sampled_from([0.0, 100.0, 12345.678]), label="start")
    request = annotation(
        strategy,
        idempotent=data.draw(st.booleans(), label="idempotent"),
        submitted_at=start,
        timeout=data.draw(st.sampled_from([2.5, 75.0, 75.0, 0.1, 0.0]), label="timeout"),
    )
    state = data.draw(st.sampled_from([couchbase.RetryState.PENDING, couchbase.RetryState.IN_FLIGHT]), label="state")
    drawn = data.draw(st.randoms(use_true_random=False))
    machine = couchbase.RetryMachine(request, rng=drawn, error_maps=store, state=state)
    return Witness(machine, start, unanswered=state is couchbase.RetryState.IN_FLIGHT)


def next_event(data: st.DataObject, state: couchbase.RetryState) -> couchbase.RequestEvent:
    """Return an event that is possible in ``state``; most of the events advance the request."""
    row = couchbase.permitted_events(state)
    news = [
        kind
        for kind in (
            couchbase.Dispatched,
            couchbase.DispatchFailed,
            couchbase.ResponseReceived,
            couchbase.SocketClosed,
            couchbase.StrategyAnswered,
        )
        if kind in row
    ]
    kinds: list[type[couchbase.RequestEvent]] = [*news * 4, couchbase.ErrorMapLoaded, couchbase.WakeupReached]
    if data.draw(st.integers(0, 24), label="leaves at 24") == 24:
        kinds = [couchbase.Abandoned]
    return data.draw(EVENTS[data.draw(st.sampled_from(kinds), label="kind")], label="event")


@given(st.data())
def test_any_history(data: st.DataObject) -> None:
    """No history violates a rule, and afterwards at most three wakeups end the request."""
    witness = witness_of(data)
    machine = witness.machine
    for _ in range(data.draw(st.integers(1, 40), label="events")):
        wakeup = machine.wakeup
        if machine.state in ASLEEP and witness.now <= wakeup and data.draw(st.booleans(), label="on time"):
            witness.now = wakeup
            witness.feed(couchbase.WakeupReached())
        else:
            witness.now += data.draw(
                st.sampled_from([0.0, 0.0, 0.0, 0.001, 0.001, 0.01, 0.2, 5.0]), label="time goes by"
            )
            witness.feed(next_event(data, machine.state))

    for _ in range(3):
        if machine.state.is_final:
            break
        witness.now = max(witness.now, machine.wakeup)
        witness.feed(couchbase.WakeupReached())

    note(f"ends {machine.state.value}")
    note(f"dispatched again {min(witness.dispatches, 3)} times")
    assert machine.state.is_final
    assert witness.dispatches <= sum(delay.dispatches for delay in witness.delays)


@given(st.data(), st.booleans())
def test_a_request_ends_by_its_deadline(data: st.DataObject, server_answers: bool) -> None:
    """If the driver executes every action on time, the request ends by its deadline, with or without responses."""
    witness = witness_of(data)
    machine, deadline = witness.machine, witness.machine.annotation.deadline
    steps = 0
    while not machine.state.is_final:
        steps += 1
        match machine.state:
            case couchbase.RetryState.PENDING if witness.now < deadline:
                witness.feed(couchbase.Dispatched(NODE, steps))
            case couchbase.RetryState.IN_FLIGHT if server_answers and steps < 400 and witness.now < deadline:
                witness.feed(couchbase.ResponseReceived(couchbase.KvResponse(data.draw(statuses), NODE)))
            case couchbase.RetryState.CONSULTING:
                witness.feed(couchbase.StrategyAnswered(data.draw(answers)))
            case _:
                witness.now = machine.wakeup
                witness.feed(couchbase.WakeupReached())

    note(f"dispatched again {min(witness.dispatches, 3)} times")
    assert witness.now <= deadline
    assert 1 == len(witness.settled)
