"""Resolver that returns a strategy for options. All requests with the same options share a strategy.

Source: smithy-core's ``RetryStrategyResolver``; decision S10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.checks import check_integer, check_random
from triclinium_core.retry.smithy.adaptive import AdaptiveRetryStrategy
from triclinium_core.retry.smithy.asynchronous import require_strategy
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers
from triclinium_core.retry.smithy.protocols import AnyRetryStrategy
from triclinium_core.retry.smithy.simple import SimpleRetryStrategy
from triclinium_core.retry.smithy.standard import StandardRetryStrategy
from triclinium_core.shown import shown, total_repr

RetryMode = Literal["simple", "standard", "adaptive"]
"""Names of the strategies that the resolver can create."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryStrategyOptions:
    """Options by which a resolver selects a strategy. A resolver returns the same strategy for equal options.

    Args:
        retry_mode: name of the strategy.
        max_attempts: maximum number of attempts of one request, including the first. Default: that of the strategy.

    Raises:
        ArgumentError: the mode is unknown, or ``max_attempts`` is not an integer of at least 0.
    """

    retry_mode: RetryMode = "standard"
    max_attempts: int | None = None

    def __post_init__(self) -> None:
        if self.retry_mode not in get_args(RetryMode):
            raise ArgumentError(
                f"retry_mode={shown(self.retry_mode)} must be one of {', '.join(get_args(RetryMode))}",
                parameter="retry_mode",
            )
        if self.max_attempts is not None:
            check_integer(self.max_attempts, "max_attempts")


class RetryStrategyResolver:
    """Cache of one client's strategies, with one strategy for each set of options. It keeps all strategies.

    Args:
        rng: random source for the backoffs.
        clock: as for ``AdaptiveRetryStrategy``. Only the mode "adaptive" needs a clock.
        numbers: parameters for the modes "standard" and "adaptive".

    Raises:
        ArgumentError: ``rng`` or ``numbers`` is of the wrong type. ``resolve`` checks ``clock``.
    """

    def __init__(
        self,
        *,
        rng: Random,
        clock: Callable[[], float] | None = None,
        numbers: AwsRetryNumbers = AwsRetryNumbers.OF_2026,
    ) -> None:
        self._rng = check_random(rng)
        self._clock = clock
        self._numbers = numbers
        self._strategies: dict[RetryStrategyOptions, AnyRetryStrategy] = {}
        # Creating the default strategy checks ``numbers``.
        self.resolve()

    @total_repr
    def __repr__(self) -> str:
        return f"<RetryStrategyResolver: {len(self._strategies)} strategies>"

    def resolve(self, strategy: AnyRetryStrategy | RetryStrategyOptions | None = None) -> AnyRetryStrategy:
        """Return ``strategy`` if it is a strategy; otherwise the strategy for the options, by default the standard one.

        Options that specify a default value, and options that omit it, have the same strategy.

        Raises:
            ArgumentError: ``strategy`` is not a strategy, options or None, or the options need a clock and that of the
                resolver is missing or invalid.
        """
        if strategy is None:
            strategy = RetryStrategyOptions()
        if not isinstance(strategy, RetryStrategyOptions):
            require_strategy(strategy)
            return strategy
        found = self._strategies.get(strategy)
        if found is None:
            made = self._make(strategy)
            complete = RetryStrategyOptions(retry_mode=strategy.retry_mode, max_attempts=made.max_attempts)
            found = self._strategies.setdefault(complete, made)
            self._strategies[strategy] = found
        return found

    def _make(
        self, options: RetryStrategyOptions
    ) -> SimpleRetryStrategy | StandardRetryStrategy | AdaptiveRetryStrategy:
        rng, most = self._rng, options.max_attempts
        if options.retry_mode == "simple":
            return SimpleRetryStrategy(rng=rng) if most is None else SimpleRetryStrategy(rng=rng, max_attempts=most)
        if options.retry_mode == "standard":
            return StandardRetryStrategy(rng=rng, max_attempts=most, numbers=self._numbers)
        if self._clock is None:
            raise ArgumentError(
                "retry_mode='adaptive' needs a clock; pass one to the resolver, such as clock=trio.current_time",
                parameter="clock",
            )
        return AdaptiveRetryStrategy(rng=rng, clock=self._clock, max_attempts=most, numbers=self._numbers)
