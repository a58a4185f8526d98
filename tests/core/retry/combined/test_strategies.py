"""What may decide about requests, and what is refused before any of them is made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.retry.combined.token_book import TokenBook
from tests.core.retry.smithy.cases import Fixed
from triclinium_core import errors
from triclinium_core.retry.combined.strategies import TokenLender, TokenScope, decider_of, require_strategy
from triclinium_core.retry.couchbase import BestEffortRetryStrategy
from triclinium_core.retry.smithy import StandardRetryStrategy, as_async

TOKENS = StandardRetryStrategy(rng=Fixed())


class Both(BestEffortRetryStrategy, TokenBook):
    """Has the methods of both shapes."""


@pytest.mark.parametrize(
    ("strategy", "lends"),
    [
        (BestEffortRetryStrategy(), False),
        (TOKENS, True),
        (as_async(TOKENS), True),
        (TokenScope(TOKENS, "orders"), True),
        (Both(), False),
    ],
)
def test_strategies_of_both_shapes_pass(strategy: Any, lends: bool) -> None:
    """Those of Couchbase and those with tokens; what has both counts as Couchbase's."""
    require_strategy(strategy)

    assert lends is isinstance(decider_of(strategy), TokenLender)


@pytest.mark.parametrize("wrong", [None, 5, BestEffortRetryStrategy, StandardRetryStrategy, TokenScope, object()])
def test_anything_else_is_refused_by_the_name_of_the_parameter(wrong: Any) -> None:
    """A class in the place of an object too."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        require_strategy(wrong, "otherwise")

    assert "otherwise" == caught.value.parameter


@pytest.mark.parametrize(("strategy", "scope"), [(BestEffortRetryStrategy(), "s"), (TOKENS, None), (TOKENS, 5)])
def test_a_scope_has_a_name_and_a_token_strategy(strategy: Any, scope: Any) -> None:
    """Couchbase's strategies have no tokens, so there is no scope of theirs."""
    with pytest.raises(errors.InvalidArgumentException):
        TokenScope(strategy, scope)


class Unbound:
    """Stands for a strategy, as a proxy does that nothing was put behind yet."""

    def __getattr__(self, name: str) -> object:
        """Find nothing."""
        raise RuntimeError("nothing is bound")


def test_a_stand_in_that_stands_for_nothing_is_refused() -> None:
    """Its own error is the cause; it must not strike where the machine asks."""
    with pytest.raises(errors.InvalidArgumentException, match="RuntimeError") as caught:
        require_strategy(Unbound())

    assert isinstance(caught.value.__cause__, RuntimeError)
