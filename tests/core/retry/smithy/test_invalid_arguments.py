"""Invalid arguments of strategies, backoffs and their options."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.core.retry.smithy.cases import Fixed
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry import smithy
from triclinium_core.retry.smithy.quota import RetryQuota
from triclinium_core.shown import shown

backoff = partial(smithy.ExponentialRetryBackoffStrategy, rng=Fixed())
simple = partial(smithy.SimpleRetryStrategy, rng=Fixed())
standard = partial(smithy.StandardRetryStrategy, rng=Fixed())
numbers = partial(dataclasses.replace, smithy.AwsRetryNumbers.OF_2026)
resolver = partial(smithy.RetryStrategyResolver, rng=Fixed())


@rows(
    ("build", "parameter", "values"),
    [
        (backoff, "base", [-0.1]),
        (backoff, "max", [math.inf]),
        (backoff, "jitter", ["full"]),
        (backoff, "rng", [0.5, None]),
        (simple, "max_attempts", [-1, None]),
        (simple, "backoff", [0.5]),
        (simple, "rng", [None]),
        (simple().acquire_initial_retry_token, "token_scope", [0, b"s3", ["s3"]]),
        (standard, "max_attempts", [-1]),
        (standard, "quota_capacity", [-1]),
        (standard, "numbers", [2026]),
        (standard, "clamp_retry_after", [1]),
        (standard, "backoff", [0.5]),
        (standard, "throttling_backoff", [0.5]),
        (standard, "rng", [None]),
        (partial(smithy.AdaptiveRetryStrategy, rng=Fixed()), "clock", [12.5]),
        (partial(smithy.AdaptiveRetryStrategy, rng=Fixed(), clock=lambda: 0.0), "max_attempts", [-1]),
        (partial(smithy.BudgetRetryStrategy, rng=Fixed()), "capacity", [-1.0]),
        (partial(smithy.BudgetRetryStrategy, rng=Fixed()), "deposit", [-1.0]),
        (partial(smithy.BreakerRetryStrategy, rng=Fixed()), "failure_share", [-0.1]),
        (numbers, "max_attempts", [-1]),
        (numbers, "quota_capacity", [1.5]),
        (numbers, "retry_cost", [0]),
        (numbers, "throttling_cost", [True]),
        (numbers, "timeout_cost", [0]),
        (numbers, "backoff_base", [math.nan]),
        (numbers, "throttling_backoff_base", [-0.1]),
        (numbers, "backoff_max", [math.inf]),
        (
            lambda quota_capacity: RetryQuota(capacity=quota_capacity),
            "quota_capacity",
            [-1, 1.5, math.nan, True, None, "500"],
        ),
        (smithy.RetryStrategyOptions, "retry_mode", ["legacy", None, [], 10**5000]),
        (smithy.RetryStrategyOptions, "max_attempts", [-1, 2.0]),
        (resolver, "rng", [None]),
        (resolver, "numbers", [2026]),
    ],
)
def test_invalid_arguments(build: Callable[..., object], parameter: str, values: list[Any]) -> None:
    """An invalid argument raises an error with its name, and with its value unless a random source is missing."""
    for value in values:
        said = "rng" if (parameter, value) == ("rng", None) else f"{parameter}={shown(value)}"
        with refusal_of(parameter, f"^{parameter}", said=said):
            build(**{parameter: value})
