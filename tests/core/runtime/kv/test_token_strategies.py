"""Operations under a token strategy, from the token of the first attempt to the end of the last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
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
    """Do not think."""


class _Moment:
    def __await__(self) -> Generator[None, None, None]:
        yield


async def moment() -> None:
    """Suspend once, as whoever waits for something does."""
    await _Moment()


def after_the_first(think: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Return a function that thinks from its second call on."""
    thoughts = iter([nothing])

    def next_thought() -> Awaitable[None]:
        return next(thoughts, think)()

    return next_thought


def ready(strategy: AnyRetryStrategy) -> Recorded:
    """Return a client whose own strategy this is, after one write."""
    simulation = Recorded(options=client_options(retry_strategy=strategy))
    simulation.result(upsert())
    return simulation


def test_the_token_comes_before_the_first_dispatch_and_goes_back_with_the_success() -> None:
    """Each operation has one, from the strategy of the cluster."""
    book = TokenBook()
    simulation = ready(book)
    simulation.result(get())

    assert ["recorded", "recorded"] == book.ends


@pytest.mark.parametrize("where", ["cluster", "call"])
def test_a_cluster_and_a_call_take_one(where: str) -> None:
    """A scope is told with every token."""
    book = TokenBook()
    scoped = TokenScope(book, "orders")
    options: dict[str, Any] = {"retry_strategy": scoped} if where == "cluster" else {}
    simulation = Recorded(options=client_options(**options))
    simulation.result(upsert(), retry_strategy=None if where == "cluster" else scoped)

    assert [("orders", "recorded")] == [(token.token_scope, token.end) for token in book.tokens]


def test_the_strategy_says_when_to_try_again_and_is_told_why() -> None:
    """What it is shown says what Smithy's strategies read, and has the reason."""
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


def test_a_refusal_ends_the_operation_with_its_own_error_and_the_words_of_the_strategy() -> None:
    """Whoever reads it learns that the quota is empty."""
    simulation = ready(StandardRetryStrategy(rng=Fixed(), quota_capacity=3))
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure())
    error = simulation.failure(errors.TemporaryFailureException, get())

    assert "KV_TEMPORARY_FAILURE" == error.context.refused_reason
    assert "quota" in str(error)


def test_what_is_always_retried_costs_nothing_and_needs_no_quota() -> None:
    """The orchestrator decides, and the token that the operation has serves on."""
    book = TokenBook(retries=0)
    simulation = ready(book)
    simulation.node.faults.next(Opcode.GET, faults.not_my_vbucket(), times=3)
    simulation.result(get())

    assert ([], "recorded") == (book.errors, book.ends[-1])


def test_a_terminal_reason_is_not_retried_and_its_token_goes_back() -> None:
    """With the error that the default strategy names, and without a question."""
    book = TokenBook()
    wrong = PasswordAuthenticator("Administrator", "wrong")
    simulation = Recorded(options=client_options(authenticator=wrong, retry_strategy=book))
    simulation.failure(errors.AuthenticationFailureException, get())

    assert "AUTHENTICATION_ERROR" not in {getattr(error, "reason", None) for error in book.errors}
    assert "abandoned" == book.ends[-1]


def test_a_write_that_may_have_been_applied_is_not_sent_again() -> None:
    """The strategy would permit it, and is not asked; a read goes on."""
    book = TokenBook()
    simulation = ready(book)
    simulation.node.faults.next(Opcode.SET, faults.hang_up_after_applying())
    simulation.failure(errors.RequestCanceledException, upsert())

    assert ([], None) == (book.errors, book.ends[-1])

    simulation.result(get())
    simulation.node.faults.next(Opcode.GET, faults.hang_up_after_applying())
    simulation.result(get())

    assert "recorded" == book.ends[-1]


def test_a_strategy_that_permits_what_is_not_safe_is_overruled() -> None:
    """Only what throttles is shown to it then; there is none such, so it is not even asked."""
    book = TokenBook()
    simulation = ready(book)
    simulation.node.faults.next(Opcode.SET, faults.hang_up_after_applying())
    simulation.failure(errors.RequestCanceledException, upsert())

    assert book.retries == book.left


def test_a_delay_beyond_the_deadline_is_cut_and_the_token_goes_back_at_once() -> None:
    """The operation waits for its deadline, as the RFC has it; its part of the quota does not."""
    book = TokenBook(delay=60.0, retries=1)
    simulation = ready(book)
    simulation.node.faults.always(Opcode.GET, faults.temporary_failure())
    simulation.submit(get())
    simulation.flow()

    assert (["renewed", "abandoned"], 1) == (book.ends[1:], book.left)

    simulation.run()
    (error,) = simulation.errors.values()

    assert isinstance(error, errors.UnambiguousTimeoutException)


def test_an_answer_that_says_nothing_against_the_node_is_a_success() -> None:
    """A cache asks mostly for what is not there, and its quota must fill again."""
    book = TokenBook()
    simulation = ready(book)
    simulation.failure(errors.DocumentNotFoundException, get("absent"))

    assert "recorded" == book.ends[-1]


@pytest.mark.parametrize("answer", [Status.INTERNAL_ERROR, Status.RATE_LIMITED_MAX_COMMANDS, 0x7FFF])
def test_an_answer_that_does_is_none(answer: int) -> None:
    """The node could not do it, met a limit, or nobody knows what it said."""
    book = TokenBook()
    simulation = ready(book)
    simulation.node.faults.next(Opcode.GET, faults.status(answer))
    token = simulation.finish(get())

    assert token in simulation.errors
    assert None is book.ends[-1]


def test_whoever_leaves_before_anything_was_sent_gives_the_token_back() -> None:
    """The connection is not open yet."""
    book = TokenBook()
    simulation = Recorded(options=client_options(retry_strategy=book))
    token = simulation.submit(get())
    simulation.abandon(token)

    assert ["abandoned"] == book.ends


def test_whoever_leaves_in_flight_leaves_the_token_where_it_is() -> None:
    """The node works for it all the same."""
    book = TokenBook()
    simulation = ready(book)
    token, _ = simulation.submit_in_flight(get())
    simulation.abandon(token)

    assert None is book.ends[-1]


def test_whoever_leaves_during_a_delay_gives_the_next_token_back() -> None:
    """Its attempt will not be made."""
    book = TokenBook(delay=1.0, retries=1)
    simulation = ready(book)
    simulation.node.faults.always(Opcode.GET, faults.temporary_failure())
    token = simulation.submit(get())
    simulation.flow()
    simulation.abandon(token)

    assert (["renewed", "abandoned"], 1) == (book.ends[1:], book.left)


def test_a_retry_that_waits_for_its_connection_at_the_deadline_gives_its_token_back() -> None:
    """It was granted, and never sent."""
    book = TokenBook(delay=0.2, retries=1)
    simulation = ready(book)
    simulation.node.faults.next(Opcode.GET, faults.hang_up_after_applying())
    simulation.node.faults.always(Opcode.HELLO, faults.drop_response())
    simulation.failure(errors.UnambiguousTimeoutException, get())

    assert (["renewed", "abandoned"], 1) == (book.ends[1:], book.left)


@pytest.mark.parametrize("delay", [0.25, 1.0])
def test_the_first_attempt_is_held_back_for_as_long_as_its_token_says(delay: float) -> None:
    """Only that operation: another one goes its way meanwhile."""
    book = TokenBook(first_delay=delay)
    simulation = Recorded()
    simulation.result(upsert())
    began, held = simulation.now, simulation.submit(get(), retry_strategy=book)
    other = simulation.submit(get())
    simulation.flow()

    assert other in simulation.results
    assert held not in simulation.results

    simulation.run()

    assert delay == pytest.approx(simulation.settled_at[held] - began)
    assert ["recorded"] == book.ends


def test_a_first_attempt_that_is_held_back_beyond_the_deadline_times_out_unsent() -> None:
    """Its token goes back at once, and the error says what held it back."""
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


def test_an_adaptive_strategy_lowers_its_rate_and_then_holds_first_attempts_back() -> None:
    """Throttling answers count, as KV_TEMPORARY_FAILURE is one."""
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
    """Has no initial tokens."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:  # type: ignore[override]
        """Refuse, or break."""
        raise self.raises or RetryError("none")


def test_without_a_token_there_is_one_attempt() -> None:
    """What is always retried is retried all the same."""
    simulation = Recorded()
    simulation.result(upsert())
    simulation.node.faults.next(Opcode.GET, faults.not_my_vbucket())
    simulation.result(get(), retry_strategy=Refusing())
    simulation.node.faults.next(Opcode.GET, faults.temporary_failure())
    simulation.failure(errors.TemporaryFailureException, get(), retry_strategy=Refusing())


def test_a_strategy_that_breaks_before_the_first_attempt_fails_the_operation_unsent() -> None:
    """With what it raised as the cause."""
    broken = ZeroDivisionError("a strategy with a defect")
    simulation = Recorded()
    simulation.result(upsert())
    sent = sum(isinstance(action, neutral.SendBytes) for action in simulation.actions)
    error = simulation.failure(errors.RequestCanceledException, upsert("other"), retry_strategy=Refusing(raises=broken))

    assert broken is error.__cause__
    assert sent == sum(isinstance(action, neutral.SendBytes) for action in simulation.actions)


def test_a_first_token_with_a_delay_that_makes_no_sense_goes_back() -> None:
    """The operation fails unsent; what was lent for it is not lost."""
    book = TokenBook(first_delay=-1.0)
    error = ready(TokenBook()).failure(errors.RequestCanceledException, get(), retry_strategy=book)

    assert isinstance(error.__cause__, ArgumentError)
    assert ["abandoned"] == book.ends


def test_a_strategy_that_breaks_at_a_success_costs_nobody_the_result() -> None:
    """It is reported instead."""
    broken = ZeroDivisionError("a strategy with a defect")
    simulation = Recorded()
    simulation.result(upsert(), retry_strategy=TokenBook(raises=broken))

    assert [broken] == [report.error for report in simulation.strategy_errors]


class Asked:
    """Plays the driver's part for an asynchronous strategy."""

    def __init__(self, book: TokenBook, simulation: Recorded | None = None) -> None:
        self.strategy = AwaitedBook(book, nothing)
        self.simulation = simulation if simulation is not None else Recorded()

    def answer(self) -> None:
        """Have the strategy answer the oldest question."""
        consulted = self.simulation.consulted.pop(0)
        self.simulation.feed(neutral.StrategyDecided(consulted.token, completed(asking(consulted))))


def asking(consulted: neutral.AcquirePermit | neutral.ConsultStrategy) -> Callable[[], object]:
    """Return what the driver awaits."""
    if isinstance(consulted, neutral.AcquirePermit):
        return consulted.permit.acquire
    return partial(consulted.strategy.retry_after, consulted.request, consulted.reason)


def completed(ask: Callable[[], object]) -> RetryAction:
    """Return what an awaitable gives that waits for nothing."""
    try:
        ask().send(None)  # type: ignore[attr-defined]
    except StopIteration as end:
        assert isinstance(end.value, RetryAction)
        return end.value
    raise AssertionError("it waits for nothing")


def test_an_asynchronous_strategy_is_awaited_before_the_first_attempt_and_for_each_retry() -> None:
    """The success is recorded before the result leaves, and nobody waits for it."""
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
def test_a_token_that_comes_too_late_goes_back(is_retry: bool) -> None:
    """The caller has left while the strategy was thinking."""
    book = TokenBook(retries=1)
    asked = Asked(book)
    asked.strategy = AwaitedBook(book, moment) if not is_retry else AwaitedBook(book, after_the_first(moment))
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


def test_an_awaited_first_token_with_a_delay_that_makes_no_sense_goes_back() -> None:
    """As from a strategy that answers at once."""
    book = TokenBook(first_delay=-1.0)
    asked = Asked(book)
    token = asked.simulation.submit(get(), retry_strategy=asked.strategy)
    with pytest.raises(ArgumentError) as caught:
        completed(asking(asked.simulation.consulted.pop(0)))
    asked.simulation.feed(neutral.StrategyDecided(token, None, caught.value))

    assert caught.value is asked.simulation.error(errors.RequestCanceledException, token).__cause__
    assert ["abandoned"] == book.ends


@pytest.mark.parametrize("raised", [None, ZeroDivisionError("a strategy with a defect")])
def test_an_asynchronous_strategy_that_gives_no_token_fails_the_operation_unsent(raised: Exception | None) -> None:
    """With what it raised as the cause, if it raised."""
    asked = Asked(TokenBook())
    token = asked.simulation.submit(get(), retry_strategy=asked.strategy)
    asked.simulation.feed(neutral.StrategyDecided(token, None if raised else RetryAction.no_retry(), raised))
    error = asked.simulation.error(errors.RequestCanceledException, token)

    assert raised is error.__cause__


def test_an_asynchronous_strategy_that_thinks_past_the_deadline_times_out_its_operation() -> None:
    """And says what it waited for."""
    asked = Asked(TokenBook())
    token = asked.simulation.submit(upsert(), retry_strategy=asked.strategy)
    asked.simulation.run()
    error = asked.simulation.error(errors.UnambiguousTimeoutException, token)

    assert "strategy" in str(error.context.last_dispatch_error)


@rows("is_async", [False, True])
@rows("end", ["success", "refused", "abandoned", "deadline"])
def test_unawaited_operations_take_no_permit(is_async: bool, end: str) -> None:
    """An operation that is not awaited is sent without a permit, so nothing is recorded or released at its end."""
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
