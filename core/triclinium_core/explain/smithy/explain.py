"""How often would this operation be tried, and when?

``explain`` has no rule of its own: it plays the responses to a strategy, the object that clients share, and tells what
came of them.

Source: the Smithy Python retry design; decisions S2 to S8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triclinium_core.checks import check_seconds
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.explain.smithy.explanation import Explanation
from triclinium_core.explain.smithy.script import Response, play
from triclinium_core.retry.smithy.adaptive import AdaptiveRetryStrategy
from triclinium_core.retry.smithy.simple import SimpleRetryStrategy
from triclinium_core.retry.smithy.standard import StandardRetryStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Operations, one after the other, and what each of their attempts ends with.

    Args:
        strategy: decides about all of them; its quota is what they leave it.
        operations: of each the responses, at least one; what follows its end goes unused.
        retry_after: what every error asks for, in seconds.
        wait: is told the seconds before each attempt; what moves the clock of an adaptive strategy.

    Raises:
        InvalidArgumentException: an argument is of the wrong type or out of range.
    """

    strategy: StandardRetryStrategy | SimpleRetryStrategy
    operations: Sequence[Sequence[Response]]
    retry_after: float | None = None
    wait: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, StandardRetryStrategy | SimpleRetryStrategy):
            raise InvalidArgumentException(
                f"strategy={self.strategy!r} must be a StandardRetryStrategy or a SimpleRetryStrategy",
                parameter="strategy",
            )
        if not self.operations or not all(self.operations):
            raise InvalidArgumentException(
                f"operations={self.operations!r} must have a response each, and there must be one",
                parameter="operations",
            )
        for response in (response for responses in self.operations for response in responses):
            if not isinstance(response, Response):
                raise InvalidArgumentException(
                    f"response {response!r} must be one of {', '.join(map(str, Response))}", parameter="operations"
                )
        if self.retry_after is not None:
            check_seconds(self.retry_after, "retry_after")


def explain(case: Case) -> Explanation:
    """Return how each operation goes, and what is left of the quota."""
    quota = case.strategy if isinstance(case.strategy, StandardRetryStrategy) else None

    def available() -> int | None:
        return None if quota is None else quota.available_quota()

    before = available()
    return Explanation(
        strategy=type(case.strategy).__name__,
        max_attempts=case.strategy.max_attempts,
        quota_capacity=None if quota is None else quota.quota_capacity,
        available_before=before,
        operations=[
            play(case.strategy, script, available, retry_after=case.retry_after, wait=case.wait)
            for script in case.operations
        ],
        allowed_rate=case.strategy.allowed_rate if isinstance(case.strategy, AdaptiveRetryStrategy) else None,
    )
