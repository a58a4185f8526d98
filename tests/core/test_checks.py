"""Checks of arguments: a valid value is returned, and an invalid one raises an error with a uniform text."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.core.retry.couchbase.request_cases import retry_request
from tests.rows import rows
from triclinium_core import checks, errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.kv.operation.validation import encode_expiry, encode_lock_time
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry import checks as retry_checks
from triclinium_core.retry.backoff import exponential
from triclinium_core.retry.calls import HttpRetryRules
from triclinium_core.retry.cassandra import CassandraRequest, ConstantSpeculativeExecutionPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.requests.speculation import next_delay
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, CircuitBreakerOptions, RetryAction, RetryReason
from triclinium_core.retry.smithy import ExponentialRetryBackoffStrategy, Jitter
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.cluster.network import FakeNetwork
from triclinium_core.testing.fakes.store.documents import FakeDocuments


def timeouts(name: str, value: Any) -> object:
    """Construct ``TimeoutOptions`` with this timeout, and return its value."""
    return getattr(TimeoutOptions(**{"config_poll_floor": 1e-6, "config_poll_interval": 1e6, name: value}), name)


def breaker(name: str, value: Any) -> object:
    """Construct ``CircuitBreakerOptions`` with this option, and return its value."""
    return getattr(CircuitBreakerOptions(**{name: value}), name)


def best_effort(value: Any) -> object:
    """Return the action of a best-effort strategy whose backoff returns ``value``."""
    strategy = BestEffortRetryStrategy(lambda retries, rng: value)
    return strategy.retry_after(retry_request(), RetryReason.KV_LOCKED)


def slow_node(value: Any) -> object:
    """Slow down a fake network, and return the delay of its responses."""
    network = FakeNetwork()
    network.slow_down(value)
    return network.slowness


def documents() -> FakeDocuments:
    """Return a store with one document."""
    documents = FakeDocuments(vbuckets=16, wall_seconds_at_zero=0.0)
    documents.put("default", "key", b"1")
    return documents


def lock(value: Any) -> object:
    """Lock a document for ``value``, and return the document."""
    locked = documents()
    locked.lock("default", "key", seconds=value)
    return locked.find(locked.address("default", "key"))


def put(value: Any) -> object:
    """Store a document that expires after ``value``, and return its expiry time."""
    return documents().put("default", "key", b"2", expires_after=value).expires_at


CASSANDRA_POLICY = DefaultRetryPolicy()

TAKERS: Mapping[str, Callable[[Any], object]] = {
    **{
        f"TimeoutOptions.{field.name}": lambda value, name=field.name: timeouts(name, value)  # type: ignore[misc]
        for field in fields(TimeoutOptions)
    },
    **{
        f"CircuitBreakerOptions.{name}": lambda value, name=name: breaker(name, value)  # type: ignore[misc]
        for name in ("sleep_window", "rolling_window", "canary_timeout")
    },
    "exponential.first": lambda value: exponential(first=value, most=1e6),
    "exponential.most": lambda value: exponential(first=0.0, most=value),
    "RetryAction.delay": RetryAction.after,
    "RetryAction.within": lambda value: RetryAction(0.0, within=value),
    "a backoff's delay": best_effort,
    "lock_time": encode_lock_time,
    "expiry": lambda value: encode_expiry(value, wall_seconds=1_750_000_000.0),
    "ConstantSpeculativeExecutionPolicy.delay": lambda value: ConstantSpeculativeExecutionPolicy(
        max_executions=2, delay=value
    ),
    "CassandraRequest.timeout": lambda value: CassandraRequest(policy=CASSANDRA_POLICY, timeout=value),
    "ExponentialRetryBackoffStrategy.base": lambda value: ExponentialRetryBackoffStrategy(
        base=value, jitter=Jitter.NONE
    ),
    "ExponentialRetryBackoffStrategy.max": lambda value: ExponentialRetryBackoffStrategy(max=value, jitter=Jitter.NONE),
    "HttpRetryRules.retry_after_max": lambda value: HttpRetryRules(retry_after_max=value),
    "a fault's seconds": faults.delay,
    "a slow node's seconds": slow_node,
    "a lock's seconds": lock,
    "a document's expires_after": put,
}
"""Functions of the core that accept a duration, by the name of the parameter."""


@given(st.timedeltas(timedelta(microseconds=1), timedelta(seconds=30)))
def test_a_timedelta_means_its_seconds(duration: timedelta) -> None:
    """All functions that accept a duration treat a timedelta like its seconds."""
    seconds = duration.total_seconds()

    for name, take in TAKERS.items():
        assert take(seconds) == take(duration), name


@rows("taker", TAKERS)
@rows("value", [True, "1", b"1", 1j, math.nan, -math.inf, -1, timedelta(microseconds=-1), timedelta.min, 10**400])
def test_invalid_durations(taker: str, value: object) -> None:
    """An invalid duration raises an error that names the parameter."""
    with pytest.raises(ArgumentError) as caught:
        TAKERS[taker](value)

    parameter = caught.value.parameter
    assert parameter is not None
    assert parameter in str(caught.value)
    assert taker.endswith((parameter, f"{parameter}'s seconds"))


@rows(
    ("value", "limits", "accepted"),
    [
        (0, {}, True),
        (timedelta(0), {"above_zero": True}, False),
        (5e-324, {"above_zero": True}, True),
        (2.5, {"most": 2.5}, True),
        (timedelta(seconds=2.5, microseconds=1), {"most": 2.5}, False),
        (math.inf, {}, False),
        (math.inf, {"most": 2.5}, False),
        (math.inf, {"most": 2.5, "endless": True}, True),
        (timedelta.max, {}, True),
    ],
)
def test_the_limits_of_a_duration(value: Any, limits: Mapping[str, Any], accepted: bool) -> None:
    """A duration below its minimum or above its maximum is rejected; infinity needs explicit permission."""
    try:
        checks.check_duration(value, "wait", **limits)
    except errors.InvalidArgumentException:
        assert not accepted
    else:
        assert accepted


@pytest.mark.parametrize(
    "made",
    [
        TimeoutOptions(kv=1),
        CircuitBreakerOptions(sleep_window=1),
        exponential(first=0.5),
        RetryAction.after(1, within=2),
        ConstantSpeculativeExecutionPolicy(max_executions=2, delay=1),
        CassandraRequest(policy=CASSANDRA_POLICY, timeout=1),
        ExponentialRetryBackoffStrategy(base=1, jitter=Jitter.NONE),
        HttpRetryRules(retry_after_max=1),
    ],
    ids=lambda made: type(made).__name__,
)
def test_objects_with_durations_are_dataclasses(made: Any) -> None:
    """An object with durations can be created again from its fields, which have the defaults of the constructor."""
    assert made == replace(made)
    parameters = inspect.signature(type(made)).parameters
    for field in fields(made):
        if field.init:
            default = parameters[field.name].default
            assert field.default == (MISSING if default is inspect.Parameter.empty else default)


def test_returned_delays_may_be_timedeltas() -> None:
    """A custom policy, or the backoff of a strategy, may return a delay as timedelta."""

    class Answering:
        def next_execution(self, *, node: Hashable, running: int) -> checks.Duration | None:
            return timedelta(seconds=1.5)

    assert 1.5 == next_delay(Answering(), node="a", running=1)
    assert RetryAction.after(1.5) == best_effort(timedelta(seconds=1.5))


class Hundred(int):
    """Subclass of int."""


@rows("seconds", [0, 0.0, 1e-9, 1, 3.5, 1e300, 10**308])
def test_seconds(seconds: float) -> None:
    """A finite number of at least 0 is a valid number of seconds."""
    assert checks.is_seconds(seconds)


@rows("seconds", [-1, -1e-9, math.nan, math.inf, -math.inf, 10**309, 10**5000, True, None, "1", Fraction(1, 2), 1j])
def test_no_seconds(seconds: Any) -> None:
    """A negative, infinite or huge number, a boolean or a value of another type is not a number of seconds."""
    assert not checks.is_seconds(seconds)


@rows("count", [0, 1, 10**9, 10**5000, Hundred(100)])
def test_counts(count: int) -> None:
    """An integer of at least the minimum is returned unchanged."""
    assert count == checks.check_integer(count, "attempts")


@rows(("count", "least"), [(-1, 0), (-(10**5000), 0), (0, 1), (1.0, 0), (True, 0), ("1", 0)])
def test_no_counts(count: Any, least: int) -> None:
    """A value that is not an integer, or is below the minimum, raises an error that names the parameter."""
    with pytest.raises(errors.InvalidArgumentException, match=f"^attempts=.* must be an integer of at least {least}"):
        checks.check_integer(count, "attempts", least=least)


@rows(
    ("check", "wanted"),
    [
        (lambda: checks.check_integer(4, "n", 0, 3), "n=4 must be an integer from 0 to 3"),
        (lambda: checks.check_integer(10**5000, "n", 0, 3), "n=<int> must be an integer from 0 to 3"),
        (lambda: checks.check_number(math.nan, "n", 0), "n=nan must be a number of at least 0, and finite"),
        (lambda: checks.check_number(True, "n", 0, 1), "n=True must be a number from 0 to 1"),
        (lambda: checks.check_seconds(-1, "n"), "n=-1 must be a finite number of seconds of at least 0"),
        (lambda: checks.check_flag(1, "n"), "n=1 must be True or False"),
        (lambda: checks.check_text("", "n"), "n='' must be a string that is not empty"),
        (lambda: checks.check_text(b"a", "n", empty=True), "n=b'a' must be a string"),
        (lambda: checks.check_text("\ud800", "n"), "n='\\ud800' must be "),
        (lambda: checks.check_type("1", "n", int, float), "n='1' must be of type int or float"),
        (lambda: checks.check_choice("full", "n", Jitter), "n='full' must be one of Jitter.NONE, Jitter.EQUAL, "),
        (
            lambda: checks.check_random(0.5),
            "rng=0.5 must be an object, not a class, with a method random() that draws from [0, 1)",
        ),
        (lambda: checks.check_random(10**5000), "rng=<int> must be an object, not a class, with a method random() "),
    ],
)
def test_refusals(check: Callable[[], object], wanted: str) -> None:
    """Each error starts with the parameter, the value and the requirement."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        check()

    assert str(caught.value).startswith(wanted)
    assert wanted.startswith(str(caught.value.parameter))


@rows("name", [name for name in dir(checks.Checks) if name.startswith("check_")])
def test_both_modules_raise_the_same_text(name: str) -> None:
    """Checks for Couchbase raise InvalidArgumentException and all others ArgumentError, with the same text."""
    values: Mapping[str, tuple[object, ...]] = {
        "check_type": (None, "n", int),
        "check_choice": (None, "n", Jitter),
        "check_number": (None, "n", 0),
        "check_method": (None, "n", "random", "random()"),
        "check_random": (None,),
    }
    refused = []
    for module in (checks, retry_checks):
        with pytest.raises(ArgumentError) as caught:
            getattr(module, name)(*values.get(name, (None, "n")))
        refused.append(caught.value)

    assert [errors.InvalidArgumentException, ArgumentError] == [type(error) for error in refused]
    assert str(refused[0]) == str(refused[1])


def test_valid_values_are_returned() -> None:
    """A valid value is returned unchanged."""
    assert (3, 0.5, 1, True, "é", "") == (
        checks.check_integer(3, "n", 0, 3),
        checks.check_number(0.5, "n", 0, 1),
        checks.check_seconds(1, "n"),
        checks.check_flag(True, "n"),
        checks.check_text("é", "n"),
        checks.check_text("", "n", empty=True),
    )
    checks.check_type(1, "n", int, float)
    checks.check_choice(Jitter.FULL, "n", Jitter)
