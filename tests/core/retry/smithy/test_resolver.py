"""The resolver: the same options, the same strategy, and so the same quota."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.retry.smithy.cases import Fixed
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import smithy


def resolver(**options: Any) -> smithy.RetryStrategyResolver:
    """Return a resolver with a clock."""
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
    """Each mode is a class, with its own default of attempts."""
    strategies = resolver()

    made: Any = strategies.resolve(smithy.RetryStrategyOptions(retry_mode=mode))
    other: Any = strategies.resolve(smithy.RetryStrategyOptions(retry_mode=mode, max_attempts=7))

    assert (kind, attempts) == (type(made), made.max_attempts)
    assert (kind, 7) == (type(other), other.max_attempts)


def test_one_strategy_for_the_same_options() -> None:
    """Also where they say in other words what the default is."""
    strategies = resolver()
    standard = strategies.resolve()

    assert standard is strategies.resolve(smithy.RetryStrategyOptions())
    assert standard is strategies.resolve(smithy.RetryStrategyOptions(retry_mode="standard", max_attempts=3))
    assert standard is not strategies.resolve(smithy.RetryStrategyOptions(max_attempts=4))
    simple = strategies.resolve(smithy.RetryStrategyOptions(retry_mode="simple", max_attempts=5))
    assert simple is strategies.resolve(smithy.RetryStrategyOptions(retry_mode="simple"))
    assert standard is not resolver().resolve()


def test_other_numbers() -> None:
    """The default of attempts is that of the numbers."""
    strategies = resolver(numbers=smithy.AwsRetryNumbers.OF_2026_DYNAMODB)

    assert strategies.resolve() is strategies.resolve(smithy.RetryStrategyOptions(max_attempts=4))


def test_strategies_of_ones_own() -> None:
    """They are returned as they are, of either shape."""
    strategies = resolver()
    mine = smithy.SimpleRetryStrategy(rng=Fixed())
    shape = smithy.as_async(mine)

    assert mine is strategies.resolve(mine)
    assert shape is strategies.resolve(shape)


@rows("strategy", ["standard", 3, object(), smithy.SimpleRetryStrategy])
def test_what_is_no_strategy(strategy: Any) -> None:
    """The error names it."""
    with pytest.raises(ArgumentError, match=r"^strategy=.* must be an object such as"):
        resolver().resolve(strategy)


@rows(
    ("parameter", "value"),
    [("retry_mode", "legacy"), ("retry_mode", None), ("retry_mode", []), ("max_attempts", -1), ("max_attempts", 2.0)],
)
def test_options_that_make_no_sense(parameter: str, value: Any) -> None:
    """The error names the option and its value."""
    with pytest.raises(ArgumentError) as caught:
        smithy.RetryStrategyOptions(**{parameter: value})

    assert parameter == caught.value.parameter
    assert f"{parameter}={value!r}" in str(caught.value)


def test_a_mode_that_cannot_be_written_out() -> None:
    """It is a wrong argument as any other."""
    with pytest.raises(ArgumentError) as caught:
        smithy.RetryStrategyOptions(retry_mode=10**5000)  # type: ignore[arg-type]

    assert "retry_mode" == caught.value.parameter


def test_adaptive_needs_a_clock() -> None:
    """The others do without."""
    strategies = smithy.RetryStrategyResolver(rng=Fixed())

    with pytest.raises(ArgumentError, match="needs a clock") as caught:
        strategies.resolve(smithy.RetryStrategyOptions(retry_mode="adaptive"))

    assert "clock" == caught.value.parameter


@rows(("parameter", "value"), [("rng", None), ("numbers", 2026)])
def test_arguments_that_make_no_sense(parameter: str, value: Any) -> None:
    """They are refused before anything is asked for."""
    with pytest.raises(ArgumentError) as caught:
        smithy.RetryStrategyResolver(**{"rng": Fixed(), parameter: value})

    assert parameter == caught.value.parameter
