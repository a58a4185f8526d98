"""Speculation policies: their delays, and errors for invalid settings and results."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tests.core.retry.cassandra.requests.request_cases import Says
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra import ConstantSpeculativeExecutionPolicy, NoSpeculativeExecution
from triclinium_core.retry.cassandra.requests.speculation import next_delay, require_speculation
from triclinium_core.shown import shown


def test_the_default_starts_nothing() -> None:
    """The default policy starts no further execution."""
    assert NoSpeculativeExecution().next_execution(node="n1", running=1) is None


@rows("delay", [0, 0.25])
def test_constant(delay: float) -> None:
    """The constant policy returns its delay until ``max_executions`` executions run, including the first."""
    policy = ConstantSpeculativeExecutionPolicy(max_executions=3, delay=delay)

    assert [delay, delay, None, None] == [policy.next_execution(node="n1", running=running) for running in (1, 2, 3, 4)]


@rows(
    ("parameter", "value"),
    [
        *(("max_executions", value) for value in (0, -1, 1.5, True, None, "2", math.nan)),
        *(("delay", value) for value in (-0.001, math.nan, math.inf, 10**400, True, None, "0.1")),
    ],
)
def test_invalid_settings(parameter: str, value: Any) -> None:
    """An invalid setting raises an error with its name and value."""
    settings: dict[str, Any] = {"max_executions": 2, "delay": 0.1, parameter: value}
    with refusal_of(parameter, re.escape(f"{parameter}={shown(value)}")):
        ConstantSpeculativeExecutionPolicy(**settings)


@rows("answer", [-1.0, math.nan, math.inf, 10**400, "soon", True])
def test_an_invalid_delay(answer: Any) -> None:
    """If a policy returns an invalid delay, TypeError is raised."""
    with pytest.raises(TypeError, match="next_execution of Says "):
        next_delay(Says(answer), node="n1", running=1)


@rows("answer", [0, 0.5, 3, None])
def test_a_valid_delay(answer: float | None) -> None:
    """If a policy returns a valid delay or None, it is used unchanged."""
    assert answer == next_delay(Says(answer), node="n1", running=1)


@rows("policy", [None, 0.1, NoSpeculativeExecution, lambda: 0.1])
def test_an_invalid_policy(policy: Any) -> None:
    """An object without ``next_execution``, and a class, are refused."""
    with pytest.raises(ArgumentError, match="must be an object with next_execution"):
        require_speculation(policy)
