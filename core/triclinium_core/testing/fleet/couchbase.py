"""Operations that retry as Couchbase clients do: through the retry machine of the core, made at the first failure.

A circuit breaker belongs to a connection, and would stand between machine and service; it is left out, so that the
figures show the strategy alone (decision F4).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase.actions import Dispatch, RetryAfter
from triclinium_core.retry.couchbase.events import (
    Dispatched,
    DispatchFailed,
    HandedOver,
    KvResponse,
    RequestEvent,
    ResponseReceived,
    SocketClosed,
    TimePassed,
)
from triclinium_core.retry.couchbase.machine import RequestAnnotation, RetryMachine
from triclinium_core.retry.couchbase.states import RequestState
from triclinium_core.retry.couchbase.strategy import RetryStrategy
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.testing.fleet.calls import Call, MakeProcess, Process
from triclinium_core.testing.fleet.scenario import Fleet
from triclinium_core.testing.fleet.service import NOT_SENT, AttemptOutcome

IDEMPOTENT_OPERATION = "get"
OTHER_OPERATION = "upsert"

_EVENTS: dict[AttemptOutcome, RequestEvent] = {
    AttemptOutcome.THROTTLED: ResponseReceived(KvResponse(Status.TEMPORARY_FAILURE)),
    AttemptOutcome.REFUSED: DispatchFailed(RetryReason.SOCKET_NOT_AVAILABLE),
    AttemptOutcome.DENIED: DispatchFailed(RetryReason.AUTHENTICATION_ERROR),
    AttemptOutcome.CLOSED: SocketClosed(HandedOver.ALL),
}
"""What the client's machine hears of an attempt. There is none for a timeout: only the deadline ends an attempt."""

_DISPATCHED = Dispatched()
_TIME_PASSED = TimePassed()


def couchbase_clients(make_strategy: Callable[[], RetryStrategy]) -> MakeProcess:
    """Return clients that retry as Couchbase's do, with what ``make_strategy`` returns for each process."""

    def make_process(fleet: Fleet, rng: Random) -> Process:
        strategy, error_maps = make_strategy(), ErrorMapStore()

        def make_machine(call: Call, state: RequestState) -> RetryMachine:
            annotation = RequestAnnotation(
                operation=IDEMPOTENT_OPERATION if fleet.idempotent else OTHER_OPERATION,
                idempotent=fleet.idempotent,
                strategy=strategy,
                submitted_at=call.began,
                deadline=call.deadline,
            )
            return RetryMachine(annotation, rng=rng, error_maps=error_maps, state=state)

        return partial(CouchbaseCall, make_machine)

    return make_process


class CouchbaseCall(Call):
    """One operation; it has a machine from its first failure on."""

    __slots__ = ("_machine", "_make_machine")

    def __init__(
        self, make_machine: Callable[[Call, RequestState], RetryMachine], began: float, deadline: float
    ) -> None:
        super().__init__(began, deadline)
        self._make_machine = make_machine
        self._machine: RetryMachine | None = None

    def dispatch(self, outcome: AttemptOutcome, now: float) -> None:
        """Tell the machine that a retry was sent."""
        if self._machine is not None and outcome not in NOT_SENT:
            self._machine.handle(_DISPATCHED, now)

    def fail(self, outcome: AttemptOutcome, now: float) -> float | None:
        """Return when the machine wants to be woken, where it retries or waits for the deadline."""
        machine = self._machine
        if machine is None:
            state = RequestState.PENDING if outcome in NOT_SENT else RequestState.IN_FLIGHT
            machine = self._machine = self._make_machine(self, state)
        for action in machine.handle(_EVENTS[outcome], now):
            if type(action) is RetryAfter:
                return machine.wakeup
        return None

    def resume(self, now: float) -> bool:
        """Tell whether the machine orders a dispatch."""
        machine = self._machine
        assert machine is not None
        return any(type(action) is Dispatch for action in machine.handle(_TIME_PASSED, now))

    def expire(self, now: float) -> None:
        """Wake the machine at its deadline."""
        if self._machine is not None:
            self._machine.handle(_TIME_PASSED, now)
