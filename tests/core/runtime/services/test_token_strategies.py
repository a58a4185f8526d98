"""Requests over HTTP under a token strategy: the same tokens, from the first attempt to the last row."""

from __future__ import annotations

import pytest

from tests.core.retry.combined.token_book import AwaitedBook, TokenBook
from tests.core.retry.smithy.cases import Fixed
from tests.core.runtime.kv.test_token_strategies import asking as question, completed, nothing
from tests.core.runtime.services.asking import ANSWER, ROWS, STATEMENT, Asking, asking
from triclinium_core import errors
from triclinium_core.contract.couchbase import OperationAbandoned
from triclinium_core.contract.neutral import StrategyDecided
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.combined.permits import AsyncPermit
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.retry.combined.strategies import TokenScope
from triclinium_core.retry.couchbase import RetryReason, Service
from triclinium_core.retry.smithy import StandardRetryStrategy
from triclinium_core.testing.fakes.faults import drop_response, hang_up
from triclinium_core.testing.fakes.services.answers import FakeAnswer

FAILING = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
"""What is retried."""


def test_a_success_is_recorded_with_its_last_row() -> None:
    """The token was there before anything was sent; a scope is told with it."""
    book = TokenBook()
    simulation = Asking(retry_strategy=TokenScope(book, "reports"))
    token = simulation.request(asking())

    assert [None] == book.ends

    simulation.run()

    assert ROWS == simulation.rows[token]
    assert [("reports", "recorded")] == [(each.token_scope, each.end) for each in book.tokens]


def test_the_strategy_says_when_to_try_again_and_is_told_why() -> None:
    """A call's own strategy comes before that of the cluster."""
    book = TokenBook(delay=0.3)
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FAILING, ANSWER)
    token = simulation.finish(asking(), retry_strategy=book)
    (shown,) = book.errors

    assert isinstance(shown, FailedAttemptError)
    assert (RetryReason.QUERY_INDEX_NOT_FOUND, Service.QUERY) == (shown.reason, shown.request.service)
    assert book is shown.request.retry_strategy
    assert ["renewed", "recorded"] == book.ends
    assert [0.3] == [retry.delay for retry in simulation.retries]
    assert ROWS == simulation.rows[token]


class Empty(TokenBook):
    """Has a length, and that is 0."""

    def __len__(self) -> int:
        return 0


def test_an_empty_strategy_is_one() -> None:
    """A call's own strategy is asked, whatever it is like as a condition."""
    book = Empty()
    Asking().finish(asking(), retry_strategy=book)

    assert ["recorded"] == book.ends


def test_an_empty_quota_ends_the_request_with_its_own_error() -> None:
    """And with the words of the strategy."""
    simulation = Asking(retry_strategy=StandardRetryStrategy(rng=Fixed(), quota_capacity=0))
    simulation.nodes.script.answer(STATEMENT, FAILING, ANSWER)
    error = simulation.failure(errors.IndexNotFoundException, asking())

    assert "quota" in str(error)


def test_what_may_have_changed_something_is_not_sent_again() -> None:
    """A token is no permission."""
    book = TokenBook()
    simulation = Asking(retry_strategy=book)
    simulation.nodes[0].faults.next(Service.QUERY, hang_up())
    simulation.failure(errors.RequestCanceledException, asking())

    assert ([], [None]) == (book.errors, book.ends)


@pytest.mark.parametrize(
    ("code", "kind", "end"),
    [(3000, errors.ParsingFailureException, "recorded"), (5000, errors.InternalServerFailureException, None)],
)
def test_only_an_answer_that_says_nothing_against_the_service_is_a_success(
    code: int, kind: type[errors.CouchbaseException], end: str | None
) -> None:
    """A wrong statement is its author's fault."""
    book = TokenBook()
    simulation = Asking(retry_strategy=book)
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(errors=[{"code": code, "msg": "no"}]))
    simulation.failure(kind, asking())

    assert [end] == book.ends


@pytest.mark.parametrize(("takes_rows", "end"), [(True, "recorded"), (False, "recorded")])
def test_whoever_leaves_with_rows_in_hand_has_got_an_answer(takes_rows: bool, end: str) -> None:
    """Be it that more would have come, or not."""
    book = TokenBook()
    simulation = Asking(retry_strategy=book)
    simulation.takes_rows = takes_rows
    simulation.nodes.script.answer("SELECT slow", FakeAnswer(rows=[1] * 10, seconds_between_rows=1.0))
    token = simulation.request(asking("SELECT slow"))
    simulation.run(2.5)
    simulation.feed(OperationAbandoned(token))

    assert [end] == book.ends


def test_whoever_leaves_before_anything_was_sent_gives_the_token_back() -> None:
    """In flight it stays where it is."""
    book = TokenBook()
    simulation = Asking(retry_strategy=book)
    simulation.nodes[0].faults.always(Service.QUERY, drop_response())
    first = simulation.request(asking())
    simulation.feed(OperationAbandoned(first))
    second = simulation.request(asking())
    simulation.live(1.0)
    simulation.feed(OperationAbandoned(second))

    assert ["abandoned", None] == book.ends


def test_a_delay_beyond_the_deadline_is_cut_and_the_token_goes_back_at_once() -> None:
    """The request waits for its deadline without it."""
    book = TokenBook(delay=600.0, retries=1)
    simulation = Asking(retry_strategy=book, timeouts=TimeoutOptions(query=2.0))
    simulation.nodes.script.answer(STATEMENT, FAILING, ANSWER)
    token = simulation.request(asking())
    simulation.live(1.0)

    assert (["renewed", "abandoned"], 1) == (book.ends, book.left)
    assert token not in simulation.errors

    simulation.run()

    assert isinstance(simulation.errors[token], errors.UnambiguousTimeoutException)


@pytest.mark.parametrize(("delay", "ends"), [(0.5, ["recorded"]), (600.0, ["abandoned"])])
def test_the_first_attempt_is_held_back(delay: float, ends: list[str]) -> None:
    """Beyond its deadline it is not made at all, and the error says what held it back."""
    book = TokenBook(first_delay=delay)
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    began = simulation.now
    token = simulation.request(asking(), retry_strategy=book)
    context = simulation.machine.error_context(token, simulation.now)
    simulation.run()

    assert ends == book.ends
    assert simulation.settled_at[token] - began == pytest.approx(min(delay, 2.0))
    assert context is not None
    assert "holds it back" in str(context.last_dispatch_error)
    assert (delay > 2.0) is (token in simulation.errors)


def test_a_strategy_that_breaks_fails_the_request_unsent_or_costs_nobody_the_result() -> None:
    """Before the first attempt the one, at a success the other."""
    broken = ZeroDivisionError("a strategy with a defect")
    simulation = Asking()
    token = simulation.finish(asking(), retry_strategy=TokenBook(raises=broken))

    assert ROWS == simulation.rows[token]
    assert [broken] == [report.error for report in simulation.strategy_errors]

    book = TokenBook(first_delay=-1.0)
    error = simulation.failure(errors.RequestCanceledException, asking(), retry_strategy=book)

    assert error.__cause__ is not None
    assert 1 == len(simulation.asked)


def test_an_asynchronous_strategy_is_awaited_and_told_of_the_success() -> None:
    """In the background, once the caller has its last row."""
    book = TokenBook()
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FAILING, ANSWER)
    token = simulation.request(asking(), retry_strategy=AwaitedBook(book, nothing))
    for _ in range(2):
        simulation.live(0.5)
        consulted = simulation.consulted.pop(0)
        simulation.feed(StrategyDecided(token, completed(question(consulted))))
    simulation.run()
    (recorded,) = simulation.recorded

    assert ROWS == simulation.rows[token]
    assert ["renewed", None] == book.ends

    assert isinstance(recorded.permit, AsyncPermit)
    with pytest.raises(StopIteration):
        recorded.permit.record().send(None)

    assert ["renewed", "recorded"] == book.ends


def test_an_asynchronous_strategy_that_breaks_fails_the_request_unsent() -> None:
    """With what it raised as the cause."""
    broken = ZeroDivisionError("a strategy with a defect")
    simulation = Asking()
    token = simulation.request(asking(), retry_strategy=AwaitedBook(TokenBook(), nothing))
    simulation.feed(StrategyDecided(token, None, broken))

    assert broken is simulation.errors[token].__cause__
