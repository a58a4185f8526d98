"""Token strategies in a history: one that all clients have, and others that callers bring; some of them have to be awaited."""

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
"""Of the histories that have token strategies."""
SALT = 52
"""Makes other draws of a seed; by this one no regression of ``command`` has token strategies, as when it was found."""

CAPACITIES = (0, 14, 40, 500)
"""Of the quotas: for no retry, for one, for a few, and for more than a history needs."""
OWN_SHARE = 0.7
"""Of the histories with token strategies whose clients have one for all that nobody brings another one for."""
BROUGHT_SHARE = 0.4
"""Of the operations that bring one."""


def lenders_chance(seed: int) -> Chance:
    """Return the chance of a history's token strategies, which leaves all its other draws as they are."""
    return Chance(seed ^ SALT)


def has_lenders(seed: int) -> bool:
    """Tell whether a history has token strategies."""
    return lenders_chance(seed).happens(SHARE)


class Unwilling(smithy.StandardRetryStrategy):
    """Has no token for anybody: what it decides about is sent once."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> smithy.SingleUseToken:
        """Refuse."""
        raise smithy.RetryError("it lends nothing")


class Lenders:
    """All token strategies of one history.

    Args:
        chance: draws them, and lets those that are awaited go on.
        clock: tells the time in the history, in seconds.
    """

    def __init__(self, chance: Chance, clock: Callable[[], float]) -> None:
        self.book: LoanBook = LoanBook()
        self._chance = chance
        rng, capacity = chance.fork(), chance.choose(CAPACITIES)
        shared = self._checked(smithy.StandardRetryStrategy(rng=rng, quota_capacity=capacity))
        awaited = AwaitedStrategy(shared, think)
        own: Sequence[AnyRetryStrategy] = (shared, awaited, TokenScope(shared, "cluster"))
        self.own: AnyRetryStrategy | None = chance.choose(own) if chance.happens(OWN_SHARE) else None
        """That of the clients; None for one of Couchbase's."""
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
        """Return what a caller brings: a token strategy, or what was drawn otherwise."""
        return self._chance.choose(self._brought) if self._chance.happens(BROUGHT_SHARE) else drawn

    def begin_storm(self, consultations: Consultations) -> None:
        """Let strategies take their time from now on."""
        consultations.answers_at_once = False
        consultations.finishes_late = self._chance.happens(0.5)

    def live_in_storm(self, simulation: CheckedSimulation) -> None:
        """Let a strategy go on that was asked, or none; some never do."""
        thinking = simulation.consultations.open
        if thinking and self._chance.happens(0.5):
            simulation.go_on(self._chance.choose(thinking))

    def finish(self, simulation: CheckedSimulation) -> None:
        """Have every strategy answer, and answer at once from now on."""
        simulation.consultations.answers_at_once = True
        for token in simulation.consultations.open:
            if token in simulation.consultations.open:
                simulation.go_on(token)

    def _checked(self, strategy: smithy.MinimalRetryStrategy) -> CheckedStrategy:
        return CheckedStrategy(self.book, strategy)
