"""Token strategies in a history: one that the clients share, and others that callers supply. Some are asynchronous."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triclinium_core.retry import smithy
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, TokenScope
from triclinium_core.testing.oracle.checked_strategies import AwaitedStrategy, CheckedStrategy
from triclinium_core.testing.oracle.loans import LoanBook
from triclinium_core.testing.simulation.chance import Chance
from triclinium_core.testing.simulation.checked import CheckedSimulation
from triclinium_core.testing.simulation.consultations import Consultations, think

SHARE = 0.5
"""Share of the histories that have token strategies."""
SALT = 52
"""Salt of the seed for the draws of token strategies.

With this salt, the regressions of ``simulation_command`` have no token strategies, as when they were found.
"""

CAPACITIES = (0, 14, 40, 500)
"""Capacities of the quotas: enough for no retry, for one, for a few, and for more than a history needs."""
OWN_SHARE = 0.7
"""Share of the histories with token strategies in which the clients have one for operations without a strategy."""
BROUGHT_SHARE = 0.4
"""Share of the operations and requests whose callers supply a token strategy."""


def token_strategies_chance(seed: int) -> Chance:
    """Return the source of draws for token strategies, which leaves all other draws unchanged."""
    return Chance(seed ^ SALT)


def has_token_strategies(seed: int) -> bool:
    """Return whether a history has token strategies."""
    return token_strategies_chance(seed).happens(SHARE)


class Unwilling(smithy.StandardRetryStrategy):
    """Strategy that issues no token, and so permits no retry."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> smithy.SingleUseToken:
        """Refuse the token."""
        raise smithy.RetryError("this strategy issues no token")


class TokenStrategies:
    """Token strategies of one history.

    Args:
        chance: source of the draws that choose strategies, and that continue awaited strategies.
        clock: returns the time in the history, in seconds.
    """

    def __init__(self, chance: Chance, clock: Callable[[], float]) -> None:
        self.book: LoanBook = LoanBook()
        self._chance = chance
        rng, capacity = chance.fork(), chance.choose(CAPACITIES)
        shared = self._checked(smithy.StandardRetryStrategy(rng=rng, quota_capacity=capacity))
        awaited = AwaitedStrategy(shared, think)
        own: Sequence[AnyRetryStrategy] = (shared, awaited, TokenScope(shared, "cluster"))
        self.own: AnyRetryStrategy | None = chance.choose(own) if chance.happens(OWN_SHARE) else None
        """Token strategy of the clients; None for a Couchbase strategy."""
        self._brought: Sequence[AnyRetryStrategy] = (
            shared,
            TokenScope(shared, "near"),
            TokenScope(shared, "far"),
            TokenScope(awaited, "far"),
            AwaitedStrategy(self._checked(smithy.BudgetRetryStrategy(rng=rng, capacity=3, deposit=0.3)), think),
            self._checked(smithy.BreakerRetryStrategy(rng=rng)),
            self._checked(smithy.SimpleRetryStrategy(rng=rng)),
            self._checked(smithy.AdaptiveRetryStrategy(rng=rng, clock=clock, quota_capacity=capacity)),
            self._checked(Unwilling(rng=rng)),
        )

    def strategy(self, drawn: AnyRetryStrategy | None) -> AnyRetryStrategy | None:
        """Return the strategy of a caller: a token strategy, or ``drawn``."""
        return self._chance.choose(self._brought) if self._chance.happens(BROUGHT_SHARE) else drawn

    def begin_storm(self, consultations: Consultations) -> None:
        """Make later calls of strategies wait until the test continues them."""
        consultations.answers_at_once = False
        consultations.finishes_late = self._chance.happens(0.5)

    def live_in_storm(self, simulation: CheckedSimulation) -> None:
        """Continue one pending call of a strategy, or none. Some calls never finish."""
        thinking = simulation.consultations.open
        if thinking and self._chance.happens(0.5):
            simulation.go_on(self._chance.choose(thinking))

    def finish(self, simulation: CheckedSimulation) -> None:
        """Let every pending call finish, and every later call answer immediately."""
        simulation.consultations.answers_at_once = True
        for token in simulation.consultations.open:
            if token in simulation.consultations.open:
                simulation.go_on(token)

    def _checked(self, strategy: smithy.MinimalRetryStrategy) -> CheckedStrategy:
        return CheckedStrategy(self.book, strategy)
