"""Operations under a token strategy: how their tokens are acquired, renewed, recorded and released."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import coroutine
from typing import Any

import pytest

from tests.core.retry.combined.token_book import AwaitedBook, TokenBook
from tests.core.retry.smithy.cases import Fixed
from tests.core.runtime.kv.simulated import TIMEOUT, TRAVEL, Recorded, client_options, get, upsert
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import CompleteOperation
from triclinium_core.kv.operation.scan.scan_requests import RangeScanCancel
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import PasswordAuthenticator, TimeoutOptions
from triclinium_core.retry.combined.permits import AsyncPermit
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, TokenScope
from triclinium_core.retry.couchbase import RetryAction, RetryReason, Status
from triclinium_core.retry.smithy import AdaptiveRetryStrategy, RetryError, RetryToken, StandardRetryStrategy
from triclinium_core.testing.fakes import faults


async def nothing() -> None:
    """Return without waiting."""


@coroutine
def moment() -> Generator[None, None, None]:
    """Suspend once, as a function that waits does."""
    yield


def ready(strategy: AnyRetryStrategy) -> Recorded:
    """Return a simulation with this strategy after a first write."""
    simulation = Recorded(options=client_options(retry_strategy=strategy))
    simulation.result(upsert())
    return simulation


def test_each_operation_records_one_token() -> None:
    """Each operation acquires one token from the client's strategy, and records its success with this token."""
    book = TokenBook()
    simulation = ready(book)
    simulation.result(get())

    assert ["recorded", "recorded"] == book.ends


@pytest.mark.parametrize("where", ["cluster", "call"])
def test_a_cluster_and_a_call_accept_scopes(where: str) -> None:
    """The ``TokenScope`` of a cluster or of a call passes its scope to the strategy with each token."""
    book = TokenBook()
    scoped = TokenScope(book, "orders")
    options: dict[str, Any] = {"retry_strategy": scoped} if where == "cluster" else {}
    simulation = Recorded(options=client_options(**options))
    simulation.result(upsert(), retry_strategy=None if where == "cluster" else scoped)

    assert [("orders", "recorded")] == [(token.token_scope, token.end) for token in book.tokens]


def test_the_strategy_gets_errors_and_sets_delays() -> None:
    """The strategy receives each error with its reason and its Smithy attributes, and sets the delay of the retry."""
    book = TokenBook(delay=0.3)
    simulation = ready(book)
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure(), times=2)
    began = simulation.now
    token = simulation.finish(get())
    first, second = book.errors

    assert simulation.settled_at[token] - began == pytest.approx(0.6)
    assert ["renewed", "renewed", "recorded"] == book.ends[1:]
    assert isinstance(first, FailedAttemptError)
    assert isinstance(second, FailedAttemptError)
    assert RetryReason.KV_TEMPORARY_FAILURE is first.reason
    assert (first.is_retry_safe, first.is_throttling_error, first.is_timeout_error) == (True, True, False)
    assert [0, 1] == [first.request.retry_attempts, second.request.retry_attempts]
    assert book is first.request.retry_strategy


def test_a_refusal_fails_with_the_quota_text() -> None:
    """If the strategy refuses a retry, the exception is that of the status, with the text of the strategy."""
    simulation = ready(StandardRetryStrategy(rng=Fixed(), quota_capacity=3))
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure())
    error = simulation.failure(errors.TemporaryFailureException, get())

    assert "KV_TEMPORARY_FAILURE" == error.context.refused_reason
    assert "quota" in str(error)


def test_always_retried_reasons_need_no_quota() -> None:
    """If the reason is always retried, the strategy is not consulted, and the operation keeps its token."""
    book = TokenBook(retries=0)
    simulation = ready(book)
    simulation.node.faults.next(Opcode.GET, faults.not_my_vbucket(), times=3)
    simulation.result(get())

    assert ([], "recorded") == (book.errors, book.ends[-1])


def test_a_terminal_reason_releases_the_token() -> None:
    """If the reason is terminal, the operation fails without consulting the strategy, and its token is released."""
    book = TokenBook()
    wrong = PasswordAuthenticator("Administrator", "wrong")
    simulation = Recorded(options=client_options(authenticator=wrong, retry_strategy=book))
    simulation.failure(errors.AuthenticationFailureException, get())

    assert "AUTHENTICATION_ERROR" not in {getattr(error, "reason", None) for error in book.errors}
    assert "abandoned" == book.ends[-1]


def test_an_applied_write_is_not_sent_again() -> None:
    """If a write may have been applied, the strategy is not consulted and the write fails; a read is retried."""
    book = TokenBook()
    simulation = ready(book)
    simulation.node.faults.next(Opcode.SET, faults.hang_up_after_applying())
    simulation.failure(errors.RequestCanceledException, upsert())

    assert ([], None) == (book.errors, book.ends[-1])

    simulation.result(get())
    simulation.node.faults.next(Opcode.GET, faults.hang_up_after_applying())
    simulation.result(get())

    assert "recorded" == book.ends[-1]


def test_an_unsafe_retry_takes_no_quota() -> None:
    """If a write may have been applied, it takes no retry from the quota of the strategy."""
    book = TokenBook()
    simulation = ready(book)
    simulation.node.faults.next(Opcode.SET, faults.hang_up_after_applying())
    simulation.failure(errors.RequestCanceledException, upsert())

    assert book.retries == book.left


def test_a_delay_beyond_the_deadline_releases_the_token() -> None:
    """If the delay reaches the deadline, the operation releases its token immediately and times out."""
    book = TokenBook(delay=60.0, retries=1)
    simulation = ready(book)
    simulation.node.faults.always(Opcode.GET, faults.temporary_failure())
    simulation.submit(get())
    simulation.flow()

    assert (["renewed", "abandoned"], 1) == (book.ends[1:], book.left)

    simulation.run()
    (error,) = simulation.errors.values()

    assert isinstance(error, errors.UnambiguousTimeoutException)


def test_a_missing_document_records_a_success() -> None:
    """If a document is missing, the operation records a success, so that the quota of a cache fills again."""
    book = TokenBook()
    simulation = ready(book)
    simulation.failure(errors.DocumentNotFoundException, get("absent"))

    assert "recorded" == book.ends[-1]


@pytest.mark.parametrize("answer", [Status.INTERNAL_ERROR, Status.RATE_LIMITED_MAX_COMMANDS, 0x7FFF])
def test_an_error_of_the_node_records_nothing(answer: int) -> None:
    """After an internal error, a limit or an unknown status, the operation records no success."""
    book = TokenBook()
    simulation = ready(book)
    simulation.node.faults.next(Opcode.GET, faults.status(answer))
    token = simulation.finish(get())

    assert token in simulation.errors
    assert None is book.ends[-1]


def test_abandoning_an_unsent_operation_releases_its_token() -> None:
    """If an operation is abandoned before its connection is open, it releases its token."""
    book = TokenBook()
    simulation = Recorded(options=client_options(retry_strategy=book))
    token = simulation.submit(get())
    simulation.abandon(token)

    assert ["abandoned"] == book.ends


def test_abandoning_in_flight_keeps_the_token() -> None:
    """If an operation is abandoned in flight, it does not release its token."""
    book = TokenBook()
    simulation = ready(book)
    token, _ = simulation.submit_in_flight(get())
    simulation.abandon(token)

    assert None is book.ends[-1]


def test_abandoning_a_delayed_retry_releases_its_token() -> None:
    """If an operation is abandoned during the delay of a retry, it releases the token of the retry."""
    book = TokenBook(delay=1.0, retries=1)
    simulation = ready(book)
    simulation.node.faults.always(Opcode.GET, faults.temporary_failure())
    token = simulation.submit(get())
    simulation.flow()
    simulation.abandon(token)

    assert (["renewed", "abandoned"], 1) == (book.ends[1:], book.left)


def test_an_unsent_retry_releases_its_token() -> None:
    """If a retry still waits for its connection at the deadline, it releases its token."""
    book = TokenBook(delay=0.2, retries=1)
    simulation = ready(book)
    simulation.node.faults.next(Opcode.GET, faults.hang_up_after_applying())
    simulation.node.faults.always(Opcode.HELLO, faults.drop_response())
    simulation.failure(errors.UnambiguousTimeoutException, get())

    assert (["renewed", "abandoned"], 1) == (book.ends[1:], book.left)


@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize("delay", [0.25, 1.0])
def test_a_token_delays_the_first_attempt(delay: float, is_awaited: bool) -> None:
    """A delay of the first token delays the first attempt of its operation, and no other operation."""
    book = TokenBook(first_delay=delay)
    simulation = Recorded()
    simulation.result(upsert())
    asked = Asked(book, simulation)
    began, held = simulation.now, simulation.submit(get(), retry_strategy=asked.strategy if is_awaited else book)
    if is_awaited:
        asked.answer()
    other = simulation.submit(get())
    simulation.flow()

    assert other in simulation.results
    assert held not in simulation.results

    simulation.run()

    assert delay == pytest.approx(simulation.settled_at[held] - began)
    assert [None if is_awaited else "recorded"] == book.ends


def test_a_first_delay_beyond_the_deadline() -> None:
    """If the first token's delay exceeds the deadline, the token is released and the operation times out unsent."""
    book = TokenBook(first_delay=60.0)
    simulation = Recorded()
    simulation.result(upsert())
    simulation.submit(upsert("held"), retry_strategy=book)

    assert ["abandoned"] == book.ends

    simulation.run()
    (error,) = simulation.errors.values()

    assert isinstance(error, errors.UnambiguousTimeoutException)
    assert "60 s" in str(error.context.last_dispatch_error)
    assert TIMEOUT == simulation.settled_at[neutral.Token(2)]


def test_an_adaptive_strategy_delays_first_attempts() -> None:
    """After a throttling error, an adaptive strategy lowers its rate, which delays first attempts."""
    simulation = Recorded()
    simulation.result(upsert())
    strategy = AdaptiveRetryStrategy(rng=Fixed(), clock=lambda: simulation.now)
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure(), times=1)
    simulation.result(get(), retry_strategy=strategy)
    held = simulation.submit(get(), retry_strategy=strategy)
    simulation.flow()

    assert strategy.allowed_rate is not None
    assert held not in simulation.settled_at

    simulation.run()

    assert held in simulation.results


class Refusing(TokenBook):
    """Strategy that provides no initial tokens."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:  # type: ignore[override]
        """Raise an error instead of returning a token."""
        raise self.raises or RetryError("none")


def test_without_a_token_there_is_one_attempt() -> None:
    """If an operation has no token, it is retried only for reasons that are always retried."""
    simulation = Recorded()
    simulation.result(upsert())
    simulation.node.faults.next(Opcode.GET, faults.not_my_vbucket())
    simulation.result(get(), retry_strategy=Refusing())
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure())
    simulation.failure(errors.TemporaryFailureException, get(), retry_strategy=Refusing())


def test_a_strategy_that_breaks_at_first() -> None:
    """If a strategy raises before the first attempt, the operation fails unsent, with that exception as cause."""
    broken = ZeroDivisionError("a strategy with a defect")
    simulation = Recorded()
    simulation.result(upsert())
    sent = sum(isinstance(action, neutral.SendBytes) for action in simulation.actions)
    error = simulation.failure(errors.RequestCanceledException, upsert("other"), retry_strategy=Refusing(raises=broken))

    assert broken is error.__cause__
    assert sent == sum(isinstance(action, neutral.SendBytes) for action in simulation.actions)


def test_an_invalid_first_delay_releases_the_token() -> None:
    """If the delay of the first token is invalid, the operation fails and releases the token."""
    book = TokenBook(first_delay=-1.0)
    error = ready(TokenBook()).failure(errors.RequestCanceledException, get(), retry_strategy=book)

    assert isinstance(error.__cause__, ArgumentError)
    assert ["abandoned"] == book.ends


def test_a_strategy_that_breaks_at_a_success() -> None:
    """If a strategy raises when a success is recorded, the exception is reported, and the operation keeps its result."""
    broken = ZeroDivisionError("a strategy with a defect")
    simulation = Recorded()
    simulation.result(upsert(), retry_strategy=TokenBook(raises=broken))

    assert [broken] == [report.error for report in simulation.strategy_errors]


class Asked:
    """Simulation with an asynchronous strategy, which the test awaits in place of a driver."""

    def __init__(self, book: TokenBook, simulation: Recorded | None = None) -> None:
        self.strategy = AwaitedBook(book, nothing)
        self.simulation = simulation if simulation is not None else Recorded()

    def answer(self) -> None:
        """Let the strategy decide on the oldest action that awaits a decision."""
        consulted = self.simulation.consulted.pop(0)
        self.simulation.feed(neutral.StrategyDecided(consulted.token, completed(asking(consulted))))


def asking(consulted: neutral.AcquirePermit | neutral.ConsultStrategy) -> Callable[[], object]:
    """Return the function of the strategy that the driver awaits for this action."""
    if isinstance(consulted, neutral.AcquirePermit):
        return consulted.permit.acquire
    return partial(consulted.strategy.retry_after, consulted.request, consulted.reason)


def completed(ask: Callable[[], object]) -> RetryAction:
    """Run an awaitable that does not suspend, and return its result."""
    try:
        ask().send(None)  # type: ignore[attr-defined]
    except StopIteration as end:
        assert isinstance(end.value, RetryAction)
        return end.value
    raise AssertionError("the awaitable suspended; it must return immediately")


def test_an_asynchronous_strategy_decides_each_attempt() -> None:
    """An asynchronous strategy is awaited before each attempt. The operation completes without waiting for the strategy
    to record the success.
    """
    book = TokenBook()
    simulation = Recorded()
    simulation.result(upsert())
    asked = Asked(book, simulation)
    token = simulation.submit(get(), retry_strategy=asked.strategy)
    other = simulation.submit(get())
    simulation.flow()

    assert other in simulation.results

    simulation.node.faults.next(Opcode.GET, faults.temporary_failure())
    asked.answer()
    simulation.flow()
    asked.answer()
    simulation.run()
    (recorded,) = simulation.recorded
    last = [action for action in simulation.actions if isinstance(action, neutral.RecordSuccess | CompleteOperation)][
        -2:
    ]

    assert token in simulation.results
    assert [neutral.RecordSuccess, CompleteOperation] == [type(action) for action in last]
    assert ["renewed", None] == book.ends

    assert isinstance(recorded.permit, AsyncPermit)
    with pytest.raises(StopIteration):
        recorded.permit.record().send(None)

    assert ["renewed", "recorded"] == book.ends


@pytest.mark.parametrize("is_retry", [False, True])
def test_a_late_token_is_released(is_retry: bool) -> None:
    """If an operation is abandoned while its strategy provides a token, the token is released."""
    book = TokenBook(retries=1)
    asked = Asked(book)
    thoughts = iter([nothing] * is_retry)

    def think() -> Awaitable[None]:
        return next(thoughts, moment)()

    asked.strategy = AwaitedBook(book, think)
    simulation = asked.simulation
    simulation.result(upsert())
    simulation.node.faults.always(Opcode.GET, faults.temporary_failure())
    token = simulation.submit(get(), retry_strategy=asked.strategy)
    if is_retry:
        asked.answer()
        simulation.flow()
    question: Any = asking(simulation.consulted.pop(0))()
    question.send(None)
    simulation.abandon(token)
    with pytest.raises(StopIteration):
        question.send(None)

    assert ("abandoned", book.retries) == (book.ends[-1], book.left)


def test_an_invalid_delay_releases_an_awaited_token() -> None:
    """If the first token of an asynchronous strategy has an invalid delay, the operation fails and releases the token."""
    book = TokenBook(first_delay=-1.0)
    asked = Asked(book)
    token = asked.simulation.submit(get(), retry_strategy=asked.strategy)
    with pytest.raises(ArgumentError) as caught:
        completed(asking(asked.simulation.consulted.pop(0)))
    asked.simulation.feed(neutral.StrategyDecided(token, None, caught.value))

    assert caught.value is asked.simulation.error(errors.RequestCanceledException, token).__cause__
    assert ["abandoned"] == book.ends


@pytest.mark.parametrize("raised", [None, ZeroDivisionError("a strategy with a defect")])
def test_an_asynchronous_strategy_without_a_token(raised: Exception | None) -> None:
    """If an asynchronous strategy refuses or raises instead of providing a token, the operation fails, with the
    exception, if any, as cause.
    """
    asked = Asked(TokenBook())
    token = asked.simulation.submit(get(), retry_strategy=asked.strategy)
    asked.simulation.feed(neutral.StrategyDecided(token, None if raised else RetryAction.no_retry(), raised))
    error = asked.simulation.error(errors.RequestCanceledException, token)

    assert raised is error.__cause__


def test_a_slow_asynchronous_strategy_times_out() -> None:
    """If an asynchronous strategy is too slow, the operation times out, and the error names the strategy."""
    asked = Asked(TokenBook())
    token = asked.simulation.submit(upsert(), retry_strategy=asked.strategy)
    asked.simulation.run()
    error = asked.simulation.error(errors.UnambiguousTimeoutException, token)

    assert "strategy" in str(error.context.last_dispatch_error)


@rows("is_async", [False, True])
@rows("end", ["success", "refused", "abandoned", "deadline"])
def test_unawaited_operations_take_no_permit(is_async: bool, end: str) -> None:
    """The client sends an operation that no caller awaits without a permit, so its end records and releases nothing."""
    book = TokenBook()
    simulation = Recorded(options=client_options(timeouts=TimeoutOptions(kv_scan=TIMEOUT)))
    simulation.result(upsert())
    if end != "success":
        fault = faults.temporary_failure() if end == "refused" else faults.drop_response()
        simulation.node.faults.next(Opcode.RANGE_SCAN_CANCEL, fault)
    strategy = AwaitedBook(book, nothing) if is_async else book
    token = simulation.submit(RangeScanCancel(TRAVEL, 0, bytes(16)), retry_strategy=strategy)
    simulation.flow()
    if end == "abandoned":
        simulation.abandon(token)
    simulation.live(TIMEOUT)

    assert 1 == len(simulation.commands(Opcode.RANGE_SCAN_CANCEL))
    assert (end != "abandoned", 0) == (token in simulation.settled_at, simulation.open_operations)
    assert ([], []) == (book.tokens, book.errors)
    assert ([], []) == (simulation.consulted, simulation.recorded)
