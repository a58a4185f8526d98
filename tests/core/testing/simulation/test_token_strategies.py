"""Histories with token strategies, in which tokens of every kind occur and every loan is over at the end."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.core.testing.simulation.played import played
from triclinium_core.testing.oracle.loans import Loan, TokenEnd
from triclinium_core.testing.simulation.simulation_command import REGRESSIONS
from triclinium_core.testing.simulation.token_strategies import has_token_strategies

SEEDS = (3, 4)


@pytest.fixture(scope="module")
def loans() -> list[Loan]:
    """Return the loans of complete histories: the tokens of each request with a token strategy."""
    found: list[Loan] = []
    for seed in SEEDS:
        book = played(seed).simulation.loans
        found += [book[token] for token in range(5000) if token in book]
    return found


@pytest.mark.history
def test_tokens_have_every_end(loans: list[Loan]) -> None:
    """Within these histories, tokens end by each lawful route, and by no other."""
    ends = Counter((issued.end, issued.is_made) for loan in loans for issued in loan.issued)

    assert {TokenEnd.RENEWED, TokenEnd.REFUSED, TokenEnd.RECORDED, TokenEnd.RETURNED, None} <= {end for end, _ in ends}
    assert 0 == ends[None, False] == ends[TokenEnd.RETURNED, True] == ends[TokenEnd.RECORDED, False]


@pytest.mark.history
def test_every_kind_of_request_acquires_tokens(loans: list[Loan]) -> None:
    """Requests acquire tokens with and without delay, from several scopes, and in vain; all end."""
    assert len(loans) > 300
    assert len({loan.token_scope for loan in loans}) > 2
    assert any(loan.position for loan in loans)
    assert any(loan.refusals for loan in loans)
    assert any(loan.is_first_refused for loan in loans)
    assert any(loan.was_held_back for loan in loans)
    assert all(loan.is_over for loan in loans)


def test_some_histories_have_no_token_strategies() -> None:
    """About half of the histories have token strategies, and no known regression does."""
    assert not any(map(has_token_strategies, REGRESSIONS))
    assert 0.4 < sum(map(has_token_strategies, range(1000))) / 1000 < 0.6
