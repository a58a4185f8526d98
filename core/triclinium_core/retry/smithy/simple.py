"""Simple strategy, which limits the attempts of each request. Requests share no state.

Source: smithy-core's ``SimpleRetryStrategy``; decisions S3 and S16 to S20.
"""

from __future__ import annotations

from triclinium_core.retry.backoff import Random
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy
from triclinium_core.retry.smithy.base import BaseRetryStrategy
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy


class SimpleRetryStrategy(BaseRetryStrategy):
    """Strategy that permits up to ``max_attempts`` attempts, and only retries that are safe.

    Unlike ``StandardRetryStrategy``, it does not prevent retry storms. It ignores the scope of a token.

    Args:
        rng: random source for the backoff.
        max_attempts: maximum number of attempts of one request, including the first. 0 means 1, because the strategy
            never refuses the first attempt. Default: 5.
        backoff: backoff strategy. Default: 25 ms, doubled up to 20 s, half of it random.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    def __init__(self, *, rng: Random, max_attempts: int = 5, backoff: RetryBackoffStrategy | None = None) -> None:
        super().__init__(max_attempts, ExponentialRetryBackoffStrategy(rng=rng) if backoff is None else backoff)
