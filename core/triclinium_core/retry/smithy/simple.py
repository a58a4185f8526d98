"""The simple strategy: a number of attempts, and nothing that requests share.

Source: smithy-core's ``SimpleRetryStrategy``; decisions S3 and S16 to S20.
"""

from __future__ import annotations

from triclinium_core.retry.backoff import Random
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy
from triclinium_core.retry.smithy.base import BaseRetryStrategy
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy


class SimpleRetryStrategy(BaseRetryStrategy):
    """Retries what is safe to retry until ``max_attempts`` were made. It stops no storm: see ``StandardRetryStrategy``.

    The scope of a token separates nothing here.

    Args:
        rng: draws for the backoff.
        max_attempts: attempts of one request, including the first; 0 means 1, because the first is never refused.
        backoff: replaces 25 ms, doubled up to 20 s, half of it random.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    def __init__(self, *, rng: Random, max_attempts: int = 5, backoff: RetryBackoffStrategy | None = None) -> None:
        super().__init__(max_attempts, ExponentialRetryBackoffStrategy(rng=rng) if backoff is None else backoff)
