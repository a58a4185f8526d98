"""Speculative execution policies, which decide when a slow request is also sent to another node.

Source: the Cassandra Java driver, "Speculative query execution".
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import Duration, in_seconds, is_seconds
from triclinium_core.retry.checks import check_duration, check_integer
from triclinium_core.shown import shown


class SpeculativeExecutionPolicy(Protocol):
    """Policy that decides when another execution of an idempotent statement starts. Its method is synchronous."""

    def next_execution(self, *, node: Hashable, running: int) -> Duration | None:
        """Return the delay until another execution starts, or None for no other execution.

        Args:
            node: node to which the driver has just sent the newest execution.
            running: number of executions that were started so far, including the first.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoSpeculativeExecution:
    """Policy that starts no speculative executions. It is the default."""

    def next_execution(self, *, node: Hashable, running: int) -> float | None:
        """Return None."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ConstantSpeculativeExecutionPolicy:
    """Policy that starts another execution after each ``delay``, up to ``max_executions``.

    Args:
        max_executions: maximum number of executions, including the first.
        delay: time from the write of one execution to the start of the next one; 0 starts the next one immediately.

    Raises:
        ArgumentError: ``max_executions`` is not an integer of at least 1, or ``delay`` is not a duration of at least 0.
    """

    max_executions: int
    delay: float

    def __init__(self, *, max_executions: int, delay: Duration) -> None:
        object.__setattr__(self, "max_executions", check_integer(max_executions, "max_executions", least=1))
        object.__setattr__(self, "delay", check_duration(delay, "delay"))

    def next_execution(self, *, node: Hashable, running: int) -> float | None:
        """Return ``delay``, or None if ``max_executions`` executions were started."""
        return self.delay if running < self.max_executions else None


def next_delay(policy: SpeculativeExecutionPolicy, *, node: Hashable, running: int) -> float | None:
    """Return the delay that ``policy`` prescribes, in seconds, or None if it prescribes no further execution.

    Raises:
        TypeError: the policy returned neither a delay nor None.
        Exception: any exception that the policy raised.
    """
    answer = policy.next_execution(node=node, running=running)
    if answer is None:
        return None
    seconds = in_seconds(answer)
    if not is_seconds(seconds):
        raise TypeError(
            f"next_execution of {type(policy).__name__} returned {shown(answer)}; "
            "it must return a finite number of seconds or a timedelta, at least 0, or None for no further execution"
        )
    return seconds


def require_speculation(policy: SpeculativeExecutionPolicy, parameter: str = "speculation") -> None:
    """Raise ArgumentError, about ``parameter``, unless ``policy`` is an object with ``next_execution``."""
    if isinstance(policy, type) or not callable(getattr(policy, "next_execution", None)):
        raise ArgumentError(
            f"{parameter}={shown(policy)} must be an object with next_execution, such as "
            "ConstantSpeculativeExecutionPolicy(max_executions=2, delay=0.1)",
            parameter=parameter,
        )
