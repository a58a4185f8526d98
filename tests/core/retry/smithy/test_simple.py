"""Simple strategy: it limits the number of attempts, and has no quota."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TypeAlias

import pytest

from tests.core.retry.smithy.cases import Failure, Fixed, delays_of, retries_of
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry.smithy import ExponentialRetryBackoffStrategy, Jitter, RetryError, SimpleRetryStrategy


def test_delays() -> None:
    """The default strategy permits four retries, with delays from 25 ms upwards and equal jitter."""
    refusal, delays = delays_of(SimpleRetryStrategy(rng=Fixed(0.5)), ["E"] * 9)

    assert [0.01875, 0.0375, 0.075, 0.15] == pytest.approx(delays)
    assert "attempt 5 was the last of max_attempts=5" in refusal


def test_retry_after() -> None:
    """A retry waits for at least ``retry_after`` (decision S3), also after a throttling error."""
    error = Failure(retry_after=0.1, throttling=True)

    _, delays = delays_of(SimpleRetryStrategy(rng=Fixed(0.0), max_attempts=6), [error] * 9)

    assert [0.1, 0.1, 0.1, 0.1, 0.2] == pytest.approx(delays)


def test_requests_share_no_quota() -> None:
    """Failed requests do not reduce the number of retries of later requests."""
    strategy = SimpleRetryStrategy(rng=Fixed())

    assert {4} == {retries_of(strategy) for _ in range(50)}


Use: TypeAlias = tuple[str, str, dict[str, Exception]]
"""Method that uses a token, the name of its parameter for the token, and its other arguments."""

USES: list[Use] = [
    ("record_success", "token", {}),
    ("abandon", "token", {}),
    ("refresh_retry_token_for_retry", "token_to_renew", {"error": Failure()}),
    ("refresh_retry_token_for_retry", "token_to_renew", {"error": Failure(safe=False)}),
]


@rows(("first", "second"), itertools.product(USES, USES))
def test_a_token_is_used_once(first: Use, second: Use) -> None:
    """If a token is used a second time, even after a refusal, an error names the parameter and the token (S6)."""
    (use, parameter, more), (again, named, others) = first, second
    strategy = SimpleRetryStrategy(rng=Fixed())
    token = strategy.acquire_initial_retry_token(token_scope="s3")
    with suppress(RetryError):  # A refused retry uses the token up, too.
        getattr(strategy, use)(**{parameter: token}, **more)

    assert ("s3", True) == (token.token_scope, token.is_used)
    with refusal_of(named, rf"^{named}=SingleUseToken\(token_scope='s3', .*been used"):
        getattr(strategy, again)(**{named: token}, **others)


def test_a_custom_backoff() -> None:
    """A custom backoff replaces the delays and is the value of ``backoff_strategy``."""
    backoff = ExponentialRetryBackoffStrategy(base=1.0, jitter=Jitter.NONE)
    strategy = SimpleRetryStrategy(rng=Fixed(), backoff=backoff)

    assert backoff is strategy.backoff_strategy
    assert [1.0, 2.0, 4.0, 8.0] == delays_of(strategy, ["E"] * 9)[1]
