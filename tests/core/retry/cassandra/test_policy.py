"""Calls of a policy: each error calls one method, and each method must return a RetryVerdict."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import RetryVerdict, errors
from triclinium_core.retry.cassandra.policy import METHODS

QUORUM = cassandra.ConsistencyLevel.QUORUM
READ = cassandra.ReadTimeout(consistency=QUORUM, block_for=2, received=1, data_present=True)
WRITE = cassandra.WriteTimeout(consistency=QUORUM, write_type=cassandra.WriteType.BATCH, block_for=3, received=2)
ALIVE = cassandra.Unavailable(consistency=QUORUM, required=5, alive=4)


class Foreign(cassandra.CoordinatorError):
    """Error response of a class that the application defines."""


QUESTIONS: list[tuple[cassandra.CassandraError, str, dict[str, object]]] = [
    (READ, "on_read_timeout", {"consistency": QUORUM, "block_for": 2, "received": 1, "data_present": True}),
    (
        WRITE,
        "on_write_timeout",
        {"consistency": QUORUM, "write_type": cassandra.WriteType.BATCH, "block_for": 3, "received": 2},
    ),
    (ALIVE, "on_unavailable", {"consistency": QUORUM, "required": 5, "alive": 4}),
]
ASIDE = {cassandra.ReadTimeout, cassandra.WriteTimeout, cassandra.Unavailable}
QUESTIONS += [
    (error, "on_error_response", {"error": error})
    for error in (kind() for kind in (*cassandra.CODES.values(), Foreign) if kind not in ASIDE)
]
QUESTIONS += [
    (error, "on_request_aborted", {"error": error})
    for error in (cassandra.RequestAborted(), cassandra.ClosedConnection(), cassandra.HeartbeatFailure())
]


@rows(("error", "method", "asked"), QUESTIONS)
def test_each_error_calls_its_method(error: cassandra.CassandraError, method: str, asked: dict[str, object]) -> None:
    """Each error calls its method with its details and the retry count; the method's result or exception is kept."""
    policy, mistake = (
        Always(RetryVerdict(cassandra.RetryDecision.RETRY_SAME, cassandra.ConsistencyLevel.TWO)),
        ZeroDivisionError(method),
    )

    assert policy.answer is cassandra.verdict_on(policy, error, retry_count=3)
    assert [(method, {**asked, "retry_count": 3})] == policy.asked
    with pytest.raises(ZeroDivisionError) as caught:
        cassandra.verdict_on(Always(mistake), error, retry_count=0)
    assert mistake is caught.value


def test_every_method_has_an_error() -> None:
    """For each method of a policy, at least one error calls the method."""
    assert set(METHODS) == {method for _, method, _ in QUESTIONS}
    assert set(METHODS) == {name for name in vars(cassandra.RetryPolicy) if name.startswith("on_")}


@rows(
    "answer",
    [
        None,
        True,
        "RETRY_NEXT",
        cassandra.RetryDecision.RETRY_NEXT,
        cassandra.ConsistencyLevel.ONE,
        (cassandra.RETHROW,),
        RetryVerdict,
    ],
)
def test_a_result_that_is_not_a_verdict(answer: object) -> None:
    """If a method returns no RetryVerdict, TypeError has the class, the method, the value and the expected type."""
    with pytest.raises(TypeError) as caught:
        cassandra.verdict_on(Always(answer), READ, retry_count=0)

    for fact in ("on_read_timeout of Always", repr(answer), "RetryVerdict"):
        assert fact in str(caught.value)


def test_an_asynchronous_policy_is_refused() -> None:
    """If a method returns a coroutine, TypeError is raised and the coroutine is closed."""

    async def answer() -> RetryVerdict:
        return cassandra.RETRY_NEXT

    coroutine = answer()
    with pytest.raises(TypeError, match="^on_error_response of Always .*coroutine"):
        cassandra.verdict_on(Always(coroutine), cassandra.Overloaded(), retry_count=0)

    assert inspect.CORO_CLOSED == inspect.getcoroutinestate(coroutine)


@rows(
    "error",
    [
        errors.NodeUnavailable(),
        errors.FrameTooLong(),
        errors.DriverTimeout(),
        cassandra.CassandraError(),
        ValueError("not of this family"),
        cassandra.Overloaded,
        None,
    ],
)
def test_other_errors_do_not_reach_the_policy(error: Any) -> None:
    """An error about which policies do not decide is refused, and the policy is not called."""
    policy = Always(cassandra.RETRY_NEXT)
    with refusal_of("error") as caught:
        cassandra.verdict_on(policy, error, retry_count=0)

    assert repr(error) in str(caught.value)
    assert [] == policy.asked


@rows("retry_count", [-1, True, 0.0, None, "0"])
def test_an_invalid_retry_count(retry_count: Any) -> None:
    """An invalid retry count is refused, and the policy is not called."""
    policy = Always(cassandra.RETRY_NEXT)
    with pytest.raises(ArgumentError, match=f"^retry_count={retry_count!r} must be an integer of at least 0"):
        cassandra.verdict_on(policy, READ, retry_count=retry_count)

    assert [] == policy.asked


class Awaits(Always):
    """Policy in which one method is an ``async def``."""

    async def on_unavailable(self, **asked: object) -> RetryVerdict:  # type: ignore[override]
        """Return a verdict, asynchronously."""
        return cassandra.RETHROW


class Lacks:
    """Policy that lacks some of the methods."""

    on_read_timeout = on_write_timeout = Always(cassandra.RETHROW).on_read_timeout
    on_unavailable = None


@rows(
    ("policy", "message"),
    [
        (None, "policy=None has no method on_read_timeout; a RetryPolicy has on_read_timeout, on_write_timeout, "),
        ("default", "policy='default' has no method on_read_timeout; a RetryPolicy has "),
        (Lacks(), "has no method on_unavailable; a RetryPolicy has "),
        (Awaits(cassandra.RETHROW), "is an `async def`"),
        (cassandra.DefaultRetryPolicy, "DefaultRetryPolicy()"),
    ],
)
def test_an_invalid_policy(policy: Any, message: str) -> None:
    """An object is refused if it lacks a method or has an async method; a policy need not inherit from any class."""
    cassandra.require_policy(Always(cassandra.RETHROW))
    with refusal_of("policy", said=message):
        cassandra.require_policy(policy)
