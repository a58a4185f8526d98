"""Speculative executions: when a slow request is sent to another node as well.

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
    """Who decides when a further execution starts. Asked for idempotent statements only, and answers at once."""

    def next_execution(self, *, node: Hashable, running: int) -> Duration | None:
        """Return how long after this a further execution starts; None for no further one.

        Args:
            node: where the newest execution was just sent to.
            running: executions that were started so far, the first one included.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoSpeculativeExecution:
    """The default: one execution."""

    def next_execution(self, *, node: Hashable, running: int) -> float | None:
        """Return None."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ConstantSpeculativeExecutionPolicy:
    """A further execution after each ``delay``, as long as there are fewer than ``max_executions``.

    Args:
        max_executions: how many there are at most, the first one included.
        delay: from the moment that one is written to the start of the next; 0 starts it at once.

    Raises:
        ArgumentError: ``max_executions`` is no whole number of at least 1, or ``delay`` no duration of at
            least 0.
    """

    max_executions: int
    delay: float

    def __init__(self, *, max_executions: int, delay: Duration) -> None:
        object.__setattr__(self, "max_executions", check_integer(max_executions, "max_executions", least=1))
        object.__setattr__(self, "delay", check_duration(delay, "delay"))

    def next_execution(self, *, node: Hashable, running: int) -> float | None:
        """Return the delay, or None where enough executions were started."""
        return self.delay if running < self.max_executions else None


def next_delay(policy: SpeculativeExecutionPolicy, *, node: Hashable, running: int) -> float | None:
    """Return what ``policy`` says.

    Raises:
        TypeError: that is neither a delay nor None.
        Exception: whatever the policy raised.
    """
    answer = policy.next_execution(node=node, running=running)
    if answer is None:
        return None
    seconds = in_seconds(answer)
    if not is_seconds(seconds):
        raise TypeError(
            f"next_execution of {type(policy).__name__} answered {shown(answer)}; "
            "it must answer seconds or a timedelta, 0 or more, or None for no further execution"
        )
    return seconds


def require_speculation(policy: SpeculativeExecutionPolicy, parameter: str = "speculation") -> None:
    """Raise ArgumentError, about ``parameter``, unless ``policy`` can be asked for the next execution."""
    if isinstance(policy, type) or not callable(getattr(policy, "next_execution", None)):
        raise ArgumentError(
            f"{parameter}={shown(policy)} must be an object with next_execution, such as "
            "ConstantSpeculativeExecutionPolicy(max_executions=2, delay=0.1)",
            parameter=parameter,
        )
