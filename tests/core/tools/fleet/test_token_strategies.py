"""Operations of a fleet under Couchbase's rules and a token strategy: both decide, and operations share the quota."""

from __future__ import annotations

import random

import pytest

from tests.core.retry.combined.token_book import TokenBook
from tests.core.tools.fleet.test_strategies import attempts_at
from triclinium_core.tools.fleet.scenario import Fleet
from triclinium_core.tools.fleet.service import AttemptOutcome
from triclinium_core.tools.fleet.strategies import Process, couchbase_token_clients


def clients(book: TokenBook, *, idempotent: bool = True) -> Process:
    """Return a process whose operations share a book."""
    make_process = couchbase_token_clients(lambda rng, clock: book)
    return make_process(Fleet(idempotent=idempotent), random.Random(1))


def test_strategy_decides_number_and_delay_of_retries() -> None:
    """The token strategy decides how many retries there are and how long each waits."""
    book = TokenBook(retries=2, delay=0.25)

    assert ([0.0, 0.25, 0.5], 0.5) == attempts_at(clients(book), AttemptOutcome.THROTTLED)
    assert ["renewed", "renewed", "refused"] == book.ends


@pytest.mark.parametrize("outcome", [AttemptOutcome.DENIED, AttemptOutcome.CLOSED])
def test_couchbase_rules_come_first(outcome: AttemptOutcome) -> None:
    """A terminal reason, or a write that may have been applied, fails without consulting the token strategy."""
    book = TokenBook()

    assert ([0.0], 0.0) == attempts_at(clients(book, idempotent=False), outcome)
    assert [] == book.errors


def test_delay_after_the_deadline_abandons_the_token() -> None:
    """If the delay would pass the deadline, the operation abandons its token and ends at the deadline."""
    book = TokenBook(retries=1, delay=60.0)

    assert ([0.0], 2.5) == attempts_at(clients(book), AttemptOutcome.REFUSED)
    assert (["renewed", "abandoned"], 1) == (book.ends, book.left)


def test_success_is_recorded_and_silence_is_not() -> None:
    """A success is recorded with the operation's own token; an operation without a response records nothing."""
    book = TokenBook()
    process = clients(book)
    process(0.0, 2.5).succeed(0.1)
    silent = process(0.0, 2.5)
    silent.dispatch(AttemptOutcome.ANSWERED, 0.0)
    silent.expire(2.5)

    assert ["recorded", None] == book.ends


def test_first_attempt_waits_until_its_deadline() -> None:
    """A first attempt waits at most until its deadline; an operation that ends unsent abandons its token."""
    book = TokenBook(first_delay=1.0)
    process = clients(book)
    late, in_time = process(0.0, 0.5), process(0.0, 2.5)

    assert (0.5, 1.0) == (late.begin(0.0), in_time.begin(0.0))
    assert not late.resume(0.5)
    assert in_time.resume(1.0)
    assert ["abandoned", None] == book.ends
