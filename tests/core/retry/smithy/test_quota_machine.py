"""Concurrent requests that share one strategy: its quota is always correct (safety) and recovers (liveness)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.retry.smithy.cases import Failure
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import smithy
from triclinium_core.retry.smithy.rate_limiter import WAIT_MAX

SCOPES = (None, "a", "b")
RETRY_AFTER_MAX = 30.0

errors = st.builds(
    Failure,
    st.sampled_from([True, True, True, True, False, None]),
    retry_after=st.sampled_from([None, None, 0.0, 3.0, RETRY_AFTER_MAX]),
    throttling=st.booleans(),
    timeout=st.booleans(),
)


@dataclass
class Request:
    """Attempt that is in flight in the model."""

    token: smithy.SingleUseToken
    scope: str | None
    attempts: int = 1
    cost: int = 0


class SharedStrategy(RuleBasedStateMachine):
    """State machine that compares the quota of a strategy with a simple model."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.open: list[Request] = []
        self.used: list[smithy.SingleUseToken] = []

    @initialize(
        kind=st.sampled_from(["standard", "adaptive"]),
        numbers=st.sampled_from([smithy.AwsRetryNumbers.OF_2020, smithy.AwsRetryNumbers.OF_2026]),
        capacity=st.sampled_from([0, 4, 14, 30, 500]),
        max_attempts=st.sampled_from([1, 3, 5]),
        clamps=st.booleans(),
        seed=st.integers(0, 9),
    )
    def choose(
        self, *, kind: str, numbers: smithy.AwsRetryNumbers, capacity: int, max_attempts: int, clamps: bool, seed: int
    ) -> None:
        """Create a strategy with drawn settings."""
        options: dict[str, Any] = {
            "rng": random.Random(seed),
            "numbers": numbers,
            "quota_capacity": capacity,
            "max_attempts": max_attempts,
            "clamp_retry_after": clamps,
        }
        if kind == "adaptive":
            self.strategy: smithy.StandardRetryStrategy = smithy.AdaptiveRetryStrategy(
                clock=lambda: self.now, **options
            )
        else:
            self.strategy = smithy.StandardRetryStrategy(**options)
        self.numbers, self.capacity, self.max_attempts = numbers, capacity, max_attempts
        self.available = dict.fromkeys(SCOPES, capacity)

    @rule(seconds=st.sampled_from([0.0, 0.001, 0.4, 5.0, 1e5]))
    def wait(self, seconds: float) -> None:
        """Advance the clock, which does not refill the quota."""
        self.now += seconds

    @rule(scope=st.sampled_from(SCOPES))
    def begin(self, scope: str | None) -> None:
        """Start a request, whose first attempt takes nothing from the quota."""
        token = self.strategy.acquire_initial_retry_token(token_scope=scope)
        assert 0.0 <= token.retry_delay <= WAIT_MAX
        self.open.append(Request(token, scope))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), error=errors)
    def fail(self, data: st.DataObject, error: Failure) -> None:
        """Fail an attempt, and check that a retry is permitted if and only if error, attempts and quota permit it."""
        request = self.take(data)
        cost = self.cost(error)
        permitted = (
            error.is_retry_safe is True
            and request.attempts < self.max_attempts
            and cost <= self.available[request.scope]
        )
        try:
            token = self.strategy.refresh_retry_token_for_retry(token_to_renew=request.token, error=error)
        except smithy.RetryError as refusal:
            assert not permitted
            by_quota = error.is_retry_safe is True and request.attempts < self.max_attempts
            assert by_quota is (refusal.retry_after is not None)
            return
        assert permitted
        assert request.attempts == token.retry_count
        assert 0.0 <= token.retry_delay <= RETRY_AFTER_MAX
        self.available[request.scope] -= cost
        self.open.append(Request(token, request.scope, request.attempts + 1, cost))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def succeed(self, data: st.DataObject) -> None:
        """Complete an attempt, which gives the quota the units of this attempt, or 1 after a first attempt."""
        request = self.take(data)
        self.strategy.record_success(token=request.token)
        self.give_back(request.scope, request.cost or 1)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        """Abandon an attempt, which gives the quota exactly the units of this attempt."""
        request = self.take(data)
        self.strategy.abandon(token=request.token)
        self.give_back(request.scope, request.cost)

    @precondition(lambda self: self.used)
    @rule(data=st.data(), error=errors, way=st.sampled_from(["succeed", "fail", "abandon"]))
    def use_again(self, data: st.DataObject, error: Failure, way: str) -> None:
        """Check that each method of the strategy refuses a used token."""
        token = data.draw(st.sampled_from(self.used), label="used token")
        uses: dict[str, Callable[[], object]] = {
            "succeed": lambda: self.strategy.record_success(token=token),
            "fail": lambda: self.strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error),
            "abandon": lambda: self.strategy.abandon(token=token),
        }
        with pytest.raises(ArgumentError, match="has been used"):
            uses[way]()

    @invariant()
    def the_quota_is_that_of_the_model(self) -> None:
        """Check that each scope's quota equals the model's quota and is within its bounds."""
        if not hasattr(self, "strategy"):
            return
        actual = {scope: self.strategy.available_quota(scope) for scope in SCOPES}
        assert self.available == actual
        assert all(0 <= left <= self.capacity for left in actual.values())

    def teardown(self) -> None:
        """Check that successful requests fill the quota, and that retries are permitted again."""
        if not hasattr(self, "strategy"):
            return
        for scope in SCOPES:
            for _ in range(self.capacity):
                self.strategy.record_success(token=self.strategy.acquire_initial_retry_token(token_scope=scope))
            assert self.capacity == self.strategy.available_quota(scope)
            if self.capacity >= self.numbers.retry_cost and self.max_attempts > 1:
                token = self.strategy.acquire_initial_retry_token(token_scope=scope)
                self.strategy.refresh_retry_token_for_retry(token_to_renew=token, error=Failure())

    def take(self, data: st.DataObject) -> Request:
        """Remove one open request, and record its token as used."""
        request = self.open.pop(data.draw(st.integers(0, len(self.open) - 1), label="request"))
        self.used.append(request.token)
        return request

    def cost(self, error: Failure) -> int:
        """Return the cost of a retry after ``error``."""
        if self.numbers is smithy.AwsRetryNumbers.OF_2020:
            return 10 if error.is_timeout_error else 5
        return 5 if error.is_throttling_error else 14

    def give_back(self, scope: str | None, amount: int) -> None:
        """Add units to the bucket of the model, up to its capacity."""
        self.available[scope] = min(self.capacity, self.available[scope] + amount)


TestSharedStrategy = SharedStrategy.TestCase
TestSharedStrategy.settings = settings(stateful_step_count=40)
