"""Retries of a fleet: operations with Couchbase or Smithy retries, and strategies by their command line names.

Couchbase operations use the retry machine of the core, which is created at the first failure. Circuit breakers, which
belong to connections, are omitted, so that the figures show only the strategy (decision F4). Smithy operations use the
machine of a call, and the tokens of a strategy that the clients of a process share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry import couchbase, smithy
from triclinium_core.retry.backoff import Random, exponential
from triclinium_core.retry.calls import CallMachine, CallTerms, Sleep
from triclinium_core.retry.combined.permits import Permit
from triclinium_core.retry.couchbase import RetryStrategy as CouchbaseRetryStrategy
from triclinium_core.retry.couchbase.strategy import is_async, require_strategy
from triclinium_core.shown import shown
from triclinium_core.tools.fleet.retries import (
    BreakerRetries,
    BudgetRetries,
    CouchbaseRetries,
    CountedRetries,
    DecorrelatedDelays,
    Delays,
    ExponentialDelays,
    NoDelay,
    QuotaRetries,
    Retries,
)
from triclinium_core.tools.fleet.scenario import Fleet
from triclinium_core.tools.fleet.service import NOT_SENT, AttemptOutcome


class Call:
    """One operation that is sent once, without retries. Subclasses add retries.

    A call ends once: with an answer, with ``expire``, or when ``fail`` returns None or ``resume`` returns False.
    """

    __slots__ = ("began", "client", "deadline", "gives_up_at")

    records_success: bool = False
    """Whether ``succeed`` must be called, in chronological order, because a success affects other operations."""
    attempt_timeout: float = math.inf
    """Timeout of one attempt in seconds; ``inf`` if the strategy supports none."""

    def __init__(self, began: float, deadline: float) -> None:
        self.began: float = began
        self.deadline: float = deadline
        self.client: int = 0
        """Number of the client; set by ``play``."""
        self.gives_up_at: float = deadline
        """Instant at which the current attempt times out; set by ``play``."""

    def begin(self, now: float) -> float | None:
        """Return the instant at which to call ``resume`` for the first attempt, or None to send it now."""
        return None

    def dispatch(self, outcome: AttemptOutcome | None, now: float) -> None:
        """Record that an attempt begins.

        Args:
            outcome: future outcome of the attempt, which may be that nothing is sent; None if it is not known yet.
            now: current instant in seconds.
        """

    def fail(self, outcome: AttemptOutcome, now: float) -> float | None:
        """Record the outcome of a failed attempt. Return when to call ``resume``, or None if the operation failed."""
        return None

    def resume(self, now: float) -> bool:
        """Return whether to send the attempt now. If not, the operation has failed."""
        return False

    def succeed(self, now: float) -> None:
        """Record the answer."""

    def expire(self, now: float) -> None:
        """Record that the deadline passed without an answer."""


Process = Callable[[float, float], Call]
"""Clients that share a strategy: a function that takes start time and deadline, and returns a new operation."""

MakeProcess = Callable[[Fleet, Random], Process]

IDEMPOTENT_OPERATION = "get"
OTHER_OPERATION = "upsert"

_EVENTS: dict[AttemptOutcome, couchbase.RequestEvent] = {
    AttemptOutcome.THROTTLED: couchbase.ResponseReceived(couchbase.KvResponse(couchbase.Status.TEMPORARY_FAILURE)),
    AttemptOutcome.FAILED: couchbase.ResponseReceived(couchbase.KvResponse(couchbase.Status.TEMPORARY_FAILURE)),
    AttemptOutcome.CONFLICT: couchbase.ResponseReceived(couchbase.KvResponse(couchbase.Status.LOCKED)),
    AttemptOutcome.REFUSED: couchbase.DispatchFailed(couchbase.RetryReason.SOCKET_NOT_AVAILABLE),
    AttemptOutcome.DENIED: couchbase.DispatchFailed(couchbase.RetryReason.AUTHENTICATION_ERROR),
    AttemptOutcome.CLOSED: couchbase.SocketClosed(couchbase.HandedOver.ALL),
}
"""Event of the client's machine for each outcome. A timeout has no event: only the deadline ends such an attempt."""

_DISPATCHED = couchbase.Dispatched()
_TIME_PASSED = couchbase.WakeupReached()


def couchbase_clients(make_strategy: Callable[[], CouchbaseRetryStrategy]) -> MakeProcess:
    """Return a factory of processes whose clients have Couchbase retries; each process calls ``make_strategy`` once.

    The factory raises InvalidArgumentException if the strategy is asynchronous or is not a Couchbase strategy.
    """

    def make_process(fleet: Fleet, rng: Random) -> Process:
        machines, strategy = _Machines(fleet, rng), make_strategy()
        require_strategy(strategy, "strategy")
        if is_async(strategy):
            message = f"strategy={shown(strategy)} is asynchronous; write its methods without async"
            raise InvalidArgumentException(message, parameter="strategy")
        return partial(CouchbaseCall, lambda call, state: machines.make(call, state, strategy))

    return make_process


class _Machines:
    """Factory that creates the retry machines for the clients of one process."""

    def __init__(self, fleet: Fleet, rng: Random) -> None:
        self._idempotent = fleet.idempotent
        self._operation = IDEMPOTENT_OPERATION if fleet.idempotent else OTHER_OPERATION
        self._rng = rng
        self._error_maps = couchbase.ErrorMapStore()

    def make(self, call: Call, state: couchbase.RetryState, strategy: CouchbaseRetryStrategy) -> couchbase.RetryMachine:
        annotation = couchbase.RequestAnnotation(
            operation=self._operation,
            idempotent=self._idempotent,
            strategy=strategy,
            submitted_at=call.began,
            deadline=call.deadline,
        )
        return couchbase.RetryMachine(annotation, rng=self._rng, error_maps=self._error_maps, state=state)


class CouchbaseCall(Call):
    """One operation with Couchbase retries, which creates its machine at the first failure."""

    __slots__ = ("_machine", "_make_machine")

    def __init__(
        self,
        make_machine: Callable[[Call, couchbase.RetryState], couchbase.RetryMachine],
        began: float,
        deadline: float,
    ) -> None:
        super().__init__(began, deadline)
        self._make_machine = make_machine
        self._machine: couchbase.RetryMachine | None = None

    def dispatch(self, outcome: AttemptOutcome | None, now: float) -> None:
        """Pass the dispatch of a retry to the machine."""
        if self._machine is not None and outcome not in NOT_SENT:
            self._machine.handle(_DISPATCHED, now)

    def fail(self, outcome: AttemptOutcome, now: float) -> float | None:
        """Return the machine's wakeup if it retries or waits for the deadline, else None."""
        machine = self._machine
        if machine is None:
            state = couchbase.RetryState.PENDING if outcome in NOT_SENT else couchbase.RetryState.IN_FLIGHT
            machine = self._machine = self._make_machine(self, state)
        for action in machine.handle(_EVENTS[outcome], now):
            if type(action) is couchbase.RetryAfter:
                return machine.wakeup
        return None

    def resume(self, now: float) -> bool:
        """Return whether the machine orders a dispatch."""
        machine = self._machine
        assert machine is not None
        return any(type(action) is couchbase.Dispatch for action in machine.handle(_TIME_PASSED, now))

    def expire(self, now: float) -> None:
        """Wake the machine at its deadline."""
        if self._machine is not None:
            self._machine.handle(_TIME_PASSED, now)


MakeStrategy = Callable[[Random, Callable[[], float]], smithy.MinimalRetryStrategy]
"""Function that takes random source and clock, and returns the strategy of one process."""


def _infos(*, idempotent: bool) -> Mapping[AttemptOutcome, smithy.ErrorInfo]:
    """Return the error info of each outcome. If an attempt may have been applied, only idempotent retries are safe."""
    return {
        AttemptOutcome.THROTTLED: smithy.ErrorInfo(is_retry_safe=True, is_throttling_error=True, fault="server"),
        AttemptOutcome.FAILED: smithy.ErrorInfo(is_retry_safe=True, fault="server"),
        AttemptOutcome.CONFLICT: smithy.ErrorInfo(is_retry_safe=True, fault="client"),
        AttemptOutcome.REFUSED: smithy.ErrorInfo(is_retry_safe=True, fault="server"),
        AttemptOutcome.CLOSED: smithy.ErrorInfo(is_retry_safe=idempotent, fault="server"),
        AttemptOutcome.TIMED_OUT: smithy.ErrorInfo(is_retry_safe=idempotent, is_timeout_error=True),
        AttemptOutcome.DENIED: smithy.ErrorInfo(is_retry_safe=False, fault="client"),
    }


_INFOS = {idempotent: _infos(idempotent=idempotent) for idempotent in (False, True)}


class SmithyProcess:
    """Clients that share one of Smithy's strategies, its quota and its rate."""

    def __init__(self, make_strategy: MakeStrategy, fleet: Fleet, rng: Random) -> None:
        self.now: float = 0.0
        self.strategy: smithy.MinimalRetryStrategy = make_strategy(rng, lambda: self.now)
        self.terms: CallTerms[None] = CallTerms(self.strategy)
        self.infos: Mapping[AttemptOutcome, smithy.ErrorInfo] = _INFOS[fleet.idempotent]
        self.attempt_timeout: float = fleet.attempt_timeout if fleet.attempt_timeout is not None else math.inf


def smithy_clients(make_strategy: MakeStrategy) -> MakeProcess:
    """Return a factory of processes whose clients have Smithy retries and share a strategy."""
    return lambda fleet, rng: partial(SmithyCall, SmithyProcess(make_strategy, fleet, rng))


class SmithyCall(Call):
    """One operation with Smithy retries. It has a token, and creates its machine at the first failure."""

    __slots__ = ("_machine", "_process", "_token", "attempt_timeout")
    records_success = True

    def __init__(self, process: SmithyProcess, began: float, deadline: float) -> None:
        super().__init__(began, deadline)
        self.attempt_timeout: float = process.attempt_timeout
        self._process = process
        process.now = began
        self._token: smithy.RetryToken = process.strategy.acquire_initial_retry_token()
        self._machine: CallMachine | None = None

    def begin(self, now: float) -> float | None:
        """Return the end of the first attempt's delay, at most the deadline, or None without a delay."""
        delay = self._token.retry_delay
        return min(now + delay, self.deadline) if delay > 0 else None

    def fail(self, outcome: AttemptOutcome, now: float) -> float | None:
        """Pass the failure to the machine. Return the end of its delay; None without token or time (decision F6)."""
        process, machine = self._process, self._machine
        process.now = now
        if machine is None:
            machine = self._machine = CallMachine(process.terms, token=self._token, began=self.began)
        error = smithy.ClassifiedError(ConnectionError(outcome.value), process.infos[outcome])
        decision = machine.fail(error, now=now, deadline=self.deadline)
        return now + decision.delay if isinstance(decision, Sleep) else None

    def resume(self, now: float) -> bool:
        """Return whether the deadline is in the future: a first attempt may have waited until the deadline."""
        process, machine = self._process, self._machine
        if now < self.deadline:
            if machine is not None:
                machine.begin(now)
            return True
        process.now = now
        process.terms.abandon(self._token if machine is None else machine.token)
        return False

    def succeed(self, now: float) -> None:
        """Record the success with the strategy, which takes the token back."""
        process, machine = self._process, self._machine
        process.now = now
        token = self._token if machine is None else machine.token
        assert token is not None
        process.strategy.record_success(token=token)
        if machine is not None:
            machine.succeed()


def couchbase_token_clients(make_strategy: MakeStrategy) -> MakeProcess:
    """Return a factory of processes whose clients have Couchbase retries and share a token strategy."""

    def make_process(fleet: Fleet, rng: Random) -> Process:
        return partial(CouchbaseTokenCall, SmithyProcess(make_strategy, fleet, rng), _Machines(fleet, rng))

    return make_process


class CouchbaseTokenCall(CouchbaseCall):
    """One operation with a permit of a token strategy. The RFC's rules apply first, then the strategy's rules."""

    __slots__ = ("_delay", "_permit", "_process")
    records_success = True

    def __init__(self, process: SmithyProcess, machines: _Machines, began: float, deadline: float) -> None:
        permit = Permit(process.strategy, None)
        super().__init__(lambda call, state: machines.make(call, state, permit), began, deadline)
        self._process = process
        self._permit = permit
        process.now = began
        self._delay = permit.acquire()

    def begin(self, now: float) -> float | None:
        """Return the end of the first attempt's delay, at most the deadline, or None without a delay."""
        return min(now + self._delay, self.deadline) if self._delay > 0 else None

    def dispatch(self, outcome: AttemptOutcome | None, now: float) -> None:
        """Pass the dispatch of a retry to the machine, and mark the permit as used."""
        super().dispatch(outcome, now)
        if outcome not in NOT_SENT:
            self._permit.begin()

    def fail(self, outcome: AttemptOutcome, now: float) -> float | None:
        """Return the machine's wakeup if it retries or waits for the deadline, else None."""
        self._process.now = now
        resume_at = super().fail(outcome, now)
        # If the delay is cut to the deadline, no retry follows, so the permit ends now.
        if resume_at is None:
            self._permit.end(succeeded=False)
        elif resume_at >= self.deadline:
            self._permit.release_unused()
        return resume_at

    def resume(self, now: float) -> bool:
        """Return whether to send the attempt now: a first attempt may have waited until the deadline."""
        self._process.now = now
        is_due = now < self.deadline if self._machine is None else super().resume(now)
        if not is_due:
            self._permit.end(succeeded=False)
        return is_due

    def succeed(self, now: float) -> None:
        """Record the success with the strategy, which takes the token back."""
        self._process.now = now
        self._permit.end(succeeded=True)

    def expire(self, now: float) -> None:
        """Wake the machine at its deadline."""
        super().expire(now)
        self._process.now = now
        self._permit.end(succeeded=False)


def clients_of(retries: Retries) -> MakeProcess:
    """Return a factory of processes whose clients have these retries, from the core's strategy for their kind."""
    match retries:
        case CouchbaseRetries(first=first, most=most, factor=factor, jitter=jitter):
            backoff = exponential(first=first, most=most, factor=factor, jitter=jitter)
            return couchbase_clients(lambda: couchbase.BestEffortRetryStrategy(backoff))
        case CountedRetries(max_attempts=max_attempts, delays=delays):
            return smithy_clients(
                lambda rng, clock: smithy.SimpleRetryStrategy(
                    rng=rng, max_attempts=max_attempts, backoff=_backoff(delays, rng)
                )
            )
        case QuotaRetries(max_attempts=max_attempts, quota=quota, delays=delays):
            return smithy_clients(
                lambda rng, clock: smithy.StandardRetryStrategy(
                    rng=rng, max_attempts=max_attempts, quota_capacity=quota, backoff=_backoff(delays, rng)
                )
            )
        case BudgetRetries(capacity=capacity, deposit=deposit, max_attempts=max_attempts, delays=delays):
            return smithy_clients(
                lambda rng, clock: smithy.BudgetRetryStrategy(
                    rng=rng,
                    capacity=capacity,
                    deposit=deposit,
                    max_attempts=max_attempts,
                    backoff=_backoff(delays, rng),
                )
            )
        case BreakerRetries(max_attempts=max_attempts, failure_share=failure_share, delays=delays):
            return smithy_clients(
                lambda rng, clock: smithy.BreakerRetryStrategy(
                    rng=rng, max_attempts=max_attempts, failure_share=failure_share, backoff=_backoff(delays, rng)
                )
            )
        case _:
            assert_never(retries)


def _backoff(delays: Delays, rng: Random) -> smithy.RetryBackoffStrategy:
    match delays:
        case NoDelay():
            return smithy.ExponentialRetryBackoffStrategy(base=0.0, max=0.0, jitter=smithy.Jitter.NONE)
        case ExponentialDelays(base=base, most=most, jitter=jitter):
            return smithy.ExponentialRetryBackoffStrategy(rng=rng, base=base, max=most, jitter=jitter)
        case DecorrelatedDelays(base=base, most=most):
            return smithy.DecorrelatedRetryBackoffStrategy(rng=rng, base=base, max=most)
        case _:
            assert_never(delays)


@dataclass(frozen=True, slots=True)
class NamedStrategy:
    """Strategy with its description, which is the predicate of a sentence."""

    meaning: str
    make_process: MakeProcess
    """Factory of processes, called once for each process of the fleet."""


STRATEGIES: Mapping[str, NamedStrategy] = {
    "none": NamedStrategy("sends once", lambda fleet, rng: Call),
    "best_effort": NamedStrategy(
        "retries after 1, 2, 4 … 500 ms until the deadline", couchbase_clients(couchbase.BestEffortRetryStrategy)
    ),
    "best_effort_jittered": NamedStrategy(
        "retries after the same delays, each drawn between 0 and itself",
        couchbase_clients(lambda: couchbase.BestEffortRetryStrategy(exponential(jitter=1.0))),
    ),
    "fast_fail_on_terminal_error": NamedStrategy(
        "retries as best_effort does, but fails immediately if a retry cannot help",
        couchbase_clients(couchbase.FastFailOnTerminalErrorRetryStrategy),
    ),
    "couchbase_standard": NamedStrategy(
        "makes at most two retries, as Couchbase operations do under standard, while a shared quota lasts",
        couchbase_token_clients(lambda rng, clock: smithy.StandardRetryStrategy(rng=rng)),
    ),
    "couchbase_adaptive": NamedStrategy(
        "does the same, and limits its rate to what a throttling service accepts",
        couchbase_token_clients(lambda rng, clock: smithy.AdaptiveRetryStrategy(rng=rng, clock=clock)),
    ),
    "fail_fast": NamedStrategy("retries nothing", couchbase_clients(couchbase.FailFastRetryStrategy)),
    "simple": NamedStrategy(
        "makes five attempts, from 25 ms apart", smithy_clients(lambda rng, clock: smithy.SimpleRetryStrategy(rng=rng))
    ),
    "standard": NamedStrategy(
        "makes three attempts while a shared quota lasts",
        smithy_clients(lambda rng, clock: smithy.StandardRetryStrategy(rng=rng)),
    ),
    "standard_2020": NamedStrategy(
        "retries as standard does with the numbers of 2020, from 1 s apart",
        smithy_clients(
            lambda rng, clock: smithy.StandardRetryStrategy(rng=rng, numbers=smithy.AwsRetryNumbers.OF_2020)
        ),
    ),
    "adaptive": NamedStrategy(
        "retries as standard does, and limits its rate to what a throttling service accepts",
        smithy_clients(lambda rng, clock: smithy.AdaptiveRetryStrategy(rng=rng, clock=clock)),
    ),
}
"""Strategies by name, in the order of the help text."""
