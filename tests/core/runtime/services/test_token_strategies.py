"""HTTP requests under a token strategy: how their tokens are acquired, renewed, recorded and released."""

from __future__ import annotations

import pytest

from tests.core.retry.combined.token_book import AwaitedBook, TokenBook
from tests.core.retry.smithy.cases import Fixed
from tests.core.runtime.kv.test_token_strategies import asking as question, completed, nothing
from tests.core.runtime.services.asking import ANSWER, NO_INDEX, ROWS, STATEMENT, Asking, asking
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


def test_a_success_is_recorded_with_its_last_row() -> None:
    """A request acquires its token at submission, with the scope, and records the success with its last row."""
    book = TokenBook()
    simulation = Asking(retry_strategy=TokenScope(book, "reports"))
    token = simulation.request(asking())

    assert [None] == book.ends

    simulation.run()

    assert ROWS == simulation.rows[token]
    assert [("reports", "recorded")] == [(each.token_scope, each.end) for each in book.tokens]


def test_the_strategy_gets_errors_and_sets_delays() -> None:
    """The strategy of a call replaces that of the client; it receives the error of the attempt and sets the delay."""
    book = TokenBook(delay=0.3)
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, ANSWER)
    token = simulation.finish(asking(), retry_strategy=book)
    (shown,) = book.errors

    assert isinstance(shown, FailedAttemptError)
    assert (RetryReason.QUERY_INDEX_NOT_FOUND, Service.QUERY) == (shown.reason, shown.request.service)
    assert book is shown.request.retry_strategy
    assert ["renewed", "recorded"] == book.ends
    assert [0.3] == [retry.delay for retry in simulation.retries]
    assert ROWS == simulation.rows[token]


class Empty(TokenBook):
    """Strategy that is false as a condition, because its length is 0."""

    def __len__(self) -> int:
        return 0


def test_a_falsy_strategy_is_used() -> None:
    """A call uses its strategy even if the strategy is false as a condition."""
    book = Empty()
    Asking().finish(asking(), retry_strategy=book)

    assert ["recorded"] == book.ends


def test_an_empty_quota_fails_the_request() -> None:
    """If the quota is empty, the request fails with the error of its response, whose text mentions the quota."""
    simulation = Asking(retry_strategy=StandardRetryStrategy(rng=Fixed(), quota_capacity=0))
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, ANSWER)
    error = simulation.failure(errors.IndexNotFoundException, asking())

    assert "quota" in str(error)


def test_a_token_does_not_permit_an_unsafe_retry() -> None:
    """If a request may have changed data, it is not sent again, and the strategy is not consulted."""
    book = TokenBook()
    simulation = Asking(retry_strategy=book)
    simulation.nodes[0].faults.next(Service.QUERY, hang_up())
    simulation.failure(errors.RequestCanceledException, asking())

    assert ([], [None]) == (book.errors, book.ends)


@pytest.mark.parametrize(
    ("code", "kind", "end"),
    [(3000, errors.ParsingFailureException, "recorded"), (5000, errors.InternalServerFailureException, None)],
)
def test_an_error_of_the_user_records_a_success(
    code: int, kind: type[errors.CouchbaseException], end: str | None
) -> None:
    """After a syntax error the request records a success; after an internal error of the service it does not."""
    book = TokenBook()
    simulation = Asking(retry_strategy=book)
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(errors=[{"code": code, "msg": "no"}]))
    simulation.failure(kind, asking())

    assert [end] == book.ends


@pytest.mark.parametrize("takes_rows", [True, False])
def test_abandoning_after_rows_records_a_success(takes_rows: bool) -> None:
    """If a request is abandoned after rows have arrived, it records a success, even if no row was taken."""
    book = TokenBook()
    simulation = Asking(retry_strategy=book)
    simulation.takes_rows = takes_rows
    simulation.nodes.script.answer("SELECT slow", FakeAnswer(rows=[1] * 10, seconds_between_rows=1.0))
    token = simulation.request(asking("SELECT slow"))
    simulation.run(2.5)
    simulation.feed(OperationAbandoned(token))

    assert ["recorded"] == book.ends


def test_abandoning_an_unsent_request_releases_its_token() -> None:
    """If a request is abandoned, it releases its token only if it was not sent."""
    book = TokenBook()
    simulation = Asking(retry_strategy=book)
    simulation.nodes[0].faults.always(Service.QUERY, drop_response())
    first = simulation.request(asking())
    simulation.feed(OperationAbandoned(first))
    second = simulation.request(asking())
    simulation.live(1.0)
    simulation.feed(OperationAbandoned(second))

    assert ["abandoned", None] == book.ends


def test_a_delay_beyond_the_deadline_releases_the_token() -> None:
    """If the delay reaches the deadline, the request releases its token immediately and times out."""
    book = TokenBook(delay=600.0, retries=1)
    simulation = Asking(retry_strategy=book, timeouts=TimeoutOptions(query=2.0))
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, ANSWER)
    token = simulation.request(asking())
    simulation.live(1.0)

    assert (["renewed", "abandoned"], 1) == (book.ends, book.left)
    assert token not in simulation.errors

    simulation.run()

    assert isinstance(simulation.errors[token], errors.UnambiguousTimeoutException)


@pytest.mark.parametrize(("delay", "ends"), [(0.5, ["recorded"]), (600.0, ["abandoned"])])
def test_the_first_attempt_is_held_back(delay: float, ends: list[str]) -> None:
    """The strategy delays the first attempt; if its delay exceeds the deadline, the request times out unsent."""
    book = TokenBook(first_delay=delay)
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    began = simulation.now
    token = simulation.request(asking(), retry_strategy=book)
    context = simulation.machine.error_context(token, simulation.now)
    simulation.run()

    assert ends == book.ends
    assert simulation.settled_at[token] - began == pytest.approx(min(delay, 2.0))
    assert context is not None
    assert f"{delay:g} s" in str(context.last_dispatch_error)
    assert (delay > 2.0) is (token in simulation.errors)


def test_a_broken_strategy() -> None:
    """An invalid first delay of the strategy fails the request; an exception at a success is only reported."""
    broken = ZeroDivisionError("a strategy with a defect")
    simulation = Asking()
    token = simulation.finish(asking(), retry_strategy=TokenBook(raises=broken))

    assert ROWS == simulation.rows[token]
    assert [broken] == [report.error for report in simulation.strategy_errors]

    book = TokenBook(first_delay=-1.0)
    error = simulation.failure(errors.RequestCanceledException, asking(), retry_strategy=book)

    assert error.__cause__ is not None
    assert 1 == len(simulation.asked)


def test_a_broken_asynchronous_strategy_fails_the_request() -> None:
    """If an asynchronous strategy raises before the first attempt, the request fails with this exception as cause."""
    broken = ZeroDivisionError("a strategy with a defect")
    simulation = Asking()
    token = simulation.request(asking(), retry_strategy=AwaitedBook(TokenBook(), nothing))
    simulation.feed(StrategyDecided(token, None, broken))

    assert broken is simulation.errors[token].__cause__


def test_an_asynchronous_strategy_records_the_success() -> None:
    """If the strategy is asynchronous, it records the success in the background, after the last row."""
    book = TokenBook()
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, ANSWER)
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
