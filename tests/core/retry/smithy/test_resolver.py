"""Resolver: it returns one strategy for equal options, so their users share one quota."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.retry.smithy.cases import Fixed
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import smithy


def resolver(**options: Any) -> smithy.RetryStrategyResolver:
    """Return a resolver that has a clock."""
    return smithy.RetryStrategyResolver(rng=Fixed(), clock=lambda: 0.0, **options)


@rows(
    ("mode", "kind", "attempts"),
    [
        ("simple", smithy.SimpleRetryStrategy, 5),
        ("standard", smithy.StandardRetryStrategy, 3),
        ("adaptive", smithy.AdaptiveRetryStrategy, 3),
    ],
)
def test_modes(mode: Any, kind: type, attempts: int) -> None:
    """For each mode, the resolver creates the strategy class of the mode with its default number of attempts."""
    strategies = resolver()

    made: Any = strategies.resolve(smithy.RetryStrategyOptions(retry_mode=mode))
    other: Any = strategies.resolve(smithy.RetryStrategyOptions(retry_mode=mode, max_attempts=7))

    assert (kind, attempts) == (type(made), made.max_attempts)
    assert (kind, 7) == (type(other), other.max_attempts)


def test_one_strategy_for_the_same_options() -> None:
    """Equal options give the same strategy, even if only one of them states the defaults."""
    strategies = resolver()
    standard = strategies.resolve()

    assert standard is strategies.resolve(smithy.RetryStrategyOptions())
    assert standard is strategies.resolve(smithy.RetryStrategyOptions(retry_mode="standard", max_attempts=3))
    assert standard is not strategies.resolve(smithy.RetryStrategyOptions(max_attempts=4))
    simple = strategies.resolve(smithy.RetryStrategyOptions(retry_mode="simple", max_attempts=5))
    assert simple is strategies.resolve(smithy.RetryStrategyOptions(retry_mode="simple"))
    assert standard is not resolver().resolve()


def test_other_numbers() -> None:
    """The resolver's numbers set the default number of attempts."""
    strategies = resolver(numbers=smithy.AwsRetryNumbers.OF_2026_DYNAMODB)

    assert strategies.resolve() is strategies.resolve(smithy.RetryStrategyOptions(max_attempts=4))


def test_a_given_strategy_is_returned() -> None:
    """A strategy is returned unchanged, whether it is synchronous or asynchronous."""
    strategies = resolver()
    mine = smithy.SimpleRetryStrategy(rng=Fixed())
    shape = smithy.as_async(mine)

    assert mine is strategies.resolve(mine)
    assert shape is strategies.resolve(shape)


@rows("strategy", ["standard", 3, object(), smithy.SimpleRetryStrategy])
def test_an_invalid_strategy_is_refused(strategy: Any) -> None:
    """An object that is neither a strategy nor options is refused, and the error names the parameter."""
    with pytest.raises(ArgumentError, match=r"^strategy=.* must be an object such as"):
        resolver().resolve(strategy)


def test_adaptive_needs_a_clock() -> None:
    """Without a clock, a resolver refuses the adaptive mode."""
    strategies = smithy.RetryStrategyResolver(rng=Fixed())

    with refusal_of("clock", "needs a clock"):
        strategies.resolve(smithy.RetryStrategyOptions(retry_mode="adaptive"))
