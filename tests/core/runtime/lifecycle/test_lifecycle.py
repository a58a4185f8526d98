"""Life cycle of operations with a carrier that sends nothing: permits and stages."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.core.kv.operation.examples import HOTELS
from tests.core.retry.combined.token_book import AwaitedBook, BookedToken, TokenBook
from triclinium_core import errors
from triclinium_core.contract.couchbase import AbandonReason, Action, TimerKind
from triclinium_core.contract.neutral import AcquirePermit, RecordSuccess, ReportStrategyError, StrategyDecided, Token
from triclinium_core.kv.operation.document_operations import Get
from triclinium_core.options import ClientOptions
from triclinium_core.retry import couchbase
from triclinium_core.retry.combined.permits import AnyPermit, AsyncPermit, Permit
from triclinium_core.runtime.kv.live_operation import LiveOperation
from triclinium_core.runtime.lifecycle.carrier import Departure, Refused, Undispatched
from triclinium_core.runtime.lifecycle.lifecycle import Lifecycle
from triclinium_core.runtime.lifecycle.stages import NEXT_STAGES, Stage
from triclinium_core.runtime.toolkit import toolkit_of
from triclinium_core.testing.simulation import MIDPOINT


class Forgetful(TokenBook):
    """Strategy that raises an error when an operation acquires its first token."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> BookedToken:
        """Raise an error instead of returning a token."""
        raise KeyError("lost")


async def nothing() -> None:
    """Return without waiting."""


class Sink:
    """Carrier that records dispatches, departures and failures, and whose dispatch returns what the test sets."""

    def __init__(self) -> None:
        self.lifecycle: Lifecycle | None = None
        self.undispatched: Undispatched | None = None
        self.dispatched: list[float] = []
        self.departures: list[Departure] = []
        self.failures: list[errors.CouchbaseException] = []

    def dispatch(self, live: LiveOperation, now: float) -> Undispatched | None:
        """Record the time, and return the result that the test has set."""
        self.dispatched.append(now)
        if self.undispatched is None:
            live.stage = Stage.IN_FLIGHT
        return self.undispatched

    def leave(self, live: LiveOperation, departure: Departure, now: float) -> None:
        """Record why the operation leaves the carrier."""
        self.departures.append(departure)

    def fail(self, live: LiveOperation, error: errors.CouchbaseException, now: float) -> None:
        """Record the failure, and complete the operation."""
        assert self.lifecycle is not None
        self.failures.append(error)
        self.lifecycle.forget(live)

    def attempt_failed(self, live: LiveOperation) -> None:
        """Do nothing."""

    def retry_decided(self, live: LiveOperation, reason: couchbase.RetryReason) -> None:
        """Do nothing."""


class Scene:
    """Life cycle that has one operation."""

    def __init__(self, permit: AnyPermit | None = None, *, deadline: float = 1.0) -> None:
        self.actions: list[Action] = []
        self.carrier = Sink()
        options = ClientOptions(connection_string="couchbase://a.example", tracer=None, meter=None, orphans=None)
        tools = toolkit_of(options, rng=MIDPOINT, emit=self.actions.append)
        self.timers = tools.timers
        self.lifecycle = self.carrier.lifecycle = Lifecycle(couchbase.ErrorMapStore(), tools)
        sink: Any = self.carrier
        self.lifecycle.carriers[LiveOperation] = sink
        strategy = permit if permit is not None else couchbase.BestEffortRetryStrategy()
        self.live = LiveOperation(Token(7), Get(HOTELS, "k"), strategy, None, 0.0, deadline, permit=permit)
        self.lifecycle.open[7] = self.live

    def pass_time(self, now: float) -> None:
        """Fire the retry timer if it is due."""
        due = self.timers.pop_due(now, self.timers.newest)
        if due is not None:
            assert TimerKind.RETRY is due[0]
            self.lifecycle.backoff_over(self.live, now)


@pytest.mark.parametrize(("delay", "dispatched"), [(0.0, [0.0]), (0.5, [0.5]), (2.0, [])])
def test_a_permit_delays_the_first_attempt(delay: float, dispatched: list[float]) -> None:
    """The first attempt waits for the delay of the permit; if the delay reaches the deadline, nothing is dispatched."""
    scene = Scene(Permit(TokenBook(first_delay=delay), None))
    scene.lifecycle.begin(scene.live, 0.0)
    scene.pass_time(0.5)
    scene.pass_time(1.0)

    assert dispatched == scene.carrier.dispatched


def test_a_strategy_that_fails_fails_the_operation() -> None:
    """If the strategy raises instead of providing a token, the operation fails with that exception as cause."""
    scene = Scene(Permit(Forgetful(), None))
    scene.lifecycle.begin(scene.live, 0.0)

    (error,) = scene.carrier.failures
    assert isinstance(error.__cause__, KeyError)
    assert [] == scene.carrier.dispatched
    assert {} == scene.lifecycle.open


def awaited(book: TokenBook) -> AsyncPermit:
    """Return the permit of an asynchronous strategy."""
    return AsyncPermit(AwaitedBook(book, nothing), None)


@pytest.mark.parametrize(
    ("answer", "raised", "dispatched"),
    [
        (couchbase.RetryAction.after(0.0), None, [0.25]),
        (couchbase.RetryAction.after(0.5), None, [0.75]),
        (None, ValueError("no"), []),
    ],
)
def test_an_awaited_permit_is_acquired_by_the_driver(
    answer: couchbase.RetryAction | None, raised: Exception | None, dispatched: list[float]
) -> None:
    """A driver awaits the permit; the operation then begins, or fails with the exception of the strategy."""
    permit = awaited(TokenBook())
    scene = Scene(permit)
    scene.lifecycle.begin(scene.live, 0.0)

    assert [AcquirePermit(Token(7), permit)] == scene.actions
    assert [] == scene.carrier.dispatched

    scene.lifecycle.strategy_decided(StrategyDecided(Token(7), answer, raised), 0.25)
    scene.pass_time(0.75)

    assert dispatched == scene.carrier.dispatched
    assert [raised] * (raised is not None) == [error.__cause__ for error in scene.carrier.failures]
    assert not permit.is_acquiring


def test_a_permit_ends_once() -> None:
    """The first end of a permit counts: a success is recorded, and any other end releases the permit."""
    book = TokenBook()
    for succeeded in (True, False):
        scene = Scene(Permit(book, None))
        scene.lifecycle.begin(scene.live, 0.0)
        scene.lifecycle.end_permit(scene.live, succeeded=succeeded)
        scene.lifecycle.end_permit(scene.live, succeeded=True)

    assert ["recorded", "abandoned"] == book.ends


def test_an_exception_of_an_ending_permit_is_reported() -> None:
    """If the strategy raises at the end of a permit, the exception is reported and not raised."""
    error = ValueError("full")
    scene = Scene(Permit(TokenBook(raises=error), None))
    scene.lifecycle.begin(scene.live, 0.0)
    scene.lifecycle.end_permit(scene.live, succeeded=True)

    assert [ReportStrategyError(Token(7), error)] == scene.actions


def test_the_driver_records_an_asynchronous_success() -> None:
    """If the strategy is asynchronous, the driver records the success."""
    permit = awaited(TokenBook())
    scene = Scene(permit)
    scene.lifecycle.begin(scene.live, 0.0)
    with contextlib.suppress(StopIteration):
        permit.acquire().__await__().send(None)
    scene.lifecycle.strategy_decided(StrategyDecided(Token(7), couchbase.RetryAction.after(0.0)), 0.0)
    scene.lifecycle.end_permit(scene.live, succeeded=True)

    assert RecordSuccess(Token(7), permit) in scene.actions


def test_a_dispatch_that_fails_is_retried() -> None:
    """If a dispatch fails for a reason that is always retried, it is retried and the retry is counted."""
    scene = Scene(deadline=math.inf)
    scene.carrier.undispatched = couchbase.DispatchFailed(couchbase.RetryReason.KV_NOT_MY_VBUCKET)
    scene.lifecycle.begin(scene.live, 0.0)

    assert [Stage.BACKING_OFF] == [scene.live.stage]

    scene.carrier.undispatched = None
    scene.pass_time(1.0)

    assert [0.0, 1.0] == scene.carrier.dispatched
    assert Stage.IN_FLIGHT is scene.live.stage
    assert {couchbase.RetryReason.KV_NOT_MY_VBUCKET: 1} == scene.lifecycle.retries_by_reason


def test_a_refused_dispatch_fails() -> None:
    """If a dispatch is refused, the operation fails without consulting the strategy."""
    scene = Scene()
    scene.carrier.undispatched = Refused(errors.DocumentNotFoundException, "gone")
    scene.lifecycle.begin(scene.live, 0.0)

    assert [errors.DocumentNotFoundException] == [type(error) for error in scene.carrier.failures]
    assert [Departure.FAILED] == scene.carrier.departures


@pytest.mark.parametrize(
    ("reason", "departure"),
    [
        (AbandonReason.CANCELLED, Departure.CALLER_LEFT),
        (AbandonReason.TIMEOUT, Departure.CALLER_LEFT),
        (AbandonReason.NOT_NEEDED, Departure.NOT_NEEDED),
    ],
)
def test_an_abandoned_operation_leaves_its_carrier(reason: AbandonReason, departure: Departure) -> None:
    """If an operation is abandoned, it leaves its carrier once, and the life cycle forgets it."""
    scene = Scene()
    scene.lifecycle.begin(scene.live, 0.0)
    for _ in range(2):
        scene.lifecycle.abandon(7, 0.5, reason)

    assert [departure] == scene.carrier.departures
    assert {} == scene.lifecycle.open
    assert Stage.SETTLED is scene.live.stage


def reachable(stage: Stage, next_of: Callable[[Stage], frozenset[Stage]]) -> frozenset[Stage]:
    """Return all stages that can follow ``stage``, directly or after other stages."""
    found, unseen = set[Stage](), [stage]
    while unseen:
        for each in next_of(unseen.pop()) - found:
            found.add(each)
            unseen.append(each)
    return frozenset(found)


def test_each_stage_leads_to_the_end() -> None:
    """An operation can reach each stage from the first, and the last stage from each; no stage follows the last."""
    assert set(Stage) == reachable(Stage.WAITING, NEXT_STAGES.__getitem__)
    assert all(Stage.SETTLED in reachable(stage, NEXT_STAGES.__getitem__) for stage in set(Stage) - {Stage.SETTLED})
    assert frozenset() == NEXT_STAGES[Stage.SETTLED]


def test_a_wrong_stage_fails_each_test() -> None:
    """While the tests run, giving an operation a stage that the table does not permit raises an error."""
    scene = Scene()

    with pytest.raises(AssertionError, match="from WAITING to HELD"):
        scene.live.stage = Stage.HELD
