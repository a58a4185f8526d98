"""Check of strategies: Couchbase and token strategies are accepted, and any other object is refused immediately."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.retry.combined.token_book import TokenBook
from tests.core.retry.smithy.cases import Fixed
from tests.refusals import refusal_of
from triclinium_core import errors
from triclinium_core.retry.combined.strategies import PermitIssuer, TokenScope, decider_of, require_strategy
from triclinium_core.retry.couchbase import BestEffortRetryStrategy
from triclinium_core.retry.smithy import StandardRetryStrategy, as_async

TOKENS = StandardRetryStrategy(rng=Fixed())


class Both(BestEffortRetryStrategy, TokenBook):
    """Strategy that has the methods of Couchbase strategies and of token strategies."""


@pytest.mark.parametrize(
    ("strategy", "issues_permits"),
    [
        (BestEffortRetryStrategy(), False),
        (TOKENS, True),
        (as_async(TOKENS), True),
        (TokenScope(TOKENS, "orders"), True),
        (Both(), False),
    ],
)
def test_strategies_of_both_shapes_pass(strategy: Any, issues_permits: bool) -> None:
    """Couchbase and token strategies are accepted; an object with the methods of both counts as the former."""
    require_strategy(strategy)

    assert issues_permits is isinstance(decider_of(strategy), PermitIssuer)


@pytest.mark.parametrize("wrong", [None, 5, BestEffortRetryStrategy, StandardRetryStrategy, TokenScope, object()])
def test_other_objects_are_refused_by_parameter_name(wrong: Any) -> None:
    """An object that is not a strategy, and the class of a strategy, are refused with the name of the parameter."""
    with refusal_of("otherwise", kind=errors.InvalidArgumentException):
        require_strategy(wrong, "otherwise")


@pytest.mark.parametrize(("strategy", "scope"), [(BestEffortRetryStrategy(), "s"), (TOKENS, None), (TOKENS, 5)])
def test_a_scope_needs_a_name_and_token_strategy(strategy: Any, scope: Any) -> None:
    """A token scope without a name is refused, and so is a token scope around a Couchbase strategy."""
    with pytest.raises(errors.InvalidArgumentException):
        TokenScope(strategy, scope)


class Unbound:
    """Proxy that has no strategy behind it."""

    def __getattr__(self, name: str) -> object:
        """Raise an error for every attribute."""
        raise RuntimeError("nothing is bound")


def test_an_unbound_proxy_is_refused() -> None:
    """If reading the attributes of a proxy raises an error, the proxy is refused, and this error is the cause."""
    with pytest.raises(errors.InvalidArgumentException, match="RuntimeError") as caught:
        require_strategy(Unbound())

    assert isinstance(caught.value.__cause__, RuntimeError)
