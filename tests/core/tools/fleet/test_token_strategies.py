"""An operation of a fleet under Couchbase's rules and a token strategy: both decide, and the quota is shared."""

from __future__ import annotations

import random

import pytest

from tests.core.retry.combined.token_book import TokenBook
from tests.core.tools.fleet.test_strategies import attempts_at
from triclinium_core.tools.fleet.scenario import Fleet
from triclinium_core.tools.fleet.service import AttemptOutcome
from triclinium_core.tools.fleet.strategies import Process, couchbase_token_clients


def clients(book: TokenBook, *, idempotent: bool = True) -> Process:
    """Return clients that share a book."""
    make_process = couchbase_token_clients(lambda rng, clock: book)
    return make_process(Fleet(idempotent=idempotent), random.Random(1))


def test_the_strategy_permits_as_many_retries_as_it_has() -> None:
    """And says how far apart."""
    book = TokenBook(retries=2, delay=0.25)

    assert ([0.0, 0.25, 0.5], 0.5) == attempts_at(clients(book), AttemptOutcome.THROTTLED)
    assert ["renewed", "renewed", "refused"] == book.ends


@pytest.mark.parametrize("outcome", [AttemptOutcome.DENIED, AttemptOutcome.CLOSED])
def test_the_rules_come_first(outcome: AttemptOutcome) -> None:
    """A terminal reason is not retried, and neither is a write that may have been applied."""
    book = TokenBook()

    assert ([0.0], 0.0) == attempts_at(clients(book, idempotent=False), outcome)
    assert [] == book.errors


def test_a_delay_beyond_the_deadline_gives_the_token_back() -> None:
    """The operation waits for its deadline without it."""
    book = TokenBook(retries=1, delay=60.0)

    assert ([0.0], 2.5) == attempts_at(clients(book), AttemptOutcome.REFUSED)
    assert (["renewed", "abandoned"], 1) == (book.ends, book.left)


def test_a_success_is_recorded_and_silence_is_not() -> None:
    """Each operation has a token of its own."""
    book = TokenBook()
    process = clients(book)
    process(0.0, 2.5).succeed(0.1)
    silent = process(0.0, 2.5)
    silent.dispatch(AttemptOutcome.ANSWERED, 0.0)
    silent.expire(2.5)

    assert ["recorded", None] == book.ends


def test_a_first_attempt_is_held_back_until_its_deadline_at_most() -> None:
    """Whoever leaves unsent gives the place back."""
    book = TokenBook(first_delay=1.0)
    process = clients(book)
    late, in_time = process(0.0, 0.5), process(0.0, 2.5)

    assert (0.5, 1.0) == (late.begin(0.0), in_time.begin(0.0))
    assert not late.resume(0.5)
    assert in_time.resume(1.0)
    assert ["abandoned", None] == book.ends
