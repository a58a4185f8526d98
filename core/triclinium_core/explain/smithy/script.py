"""Operation as a script: the response to each of its attempts, passed to a strategy.

Source: the Smithy Python retry design, "Example Usage": the steps of a client around its attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Self

from triclinium_core.retry.smithy import ClassifiedError, ErrorInfo, MinimalRetryStrategy, RetryError


@unique
class ScriptedResponse(StrEnum):
    """Response to an attempt.

    Layout of a row: name in scripts, description, properties of the error.
    """

    meaning: str
    """Description of the response."""
    info: ErrorInfo | None
    """Properties of the error; None for a success."""

    def __new__(cls, name: str, meaning: str = "", info: ErrorInfo | None = None) -> Self:
        """Create one row. The enum machinery calls this method."""
        row = str.__new__(cls, name)
        row._value_ = name
        row.meaning, row.info = meaning, info
        return row

    RETRY_SAFE = "E", "an error that is safe to retry", ErrorInfo(is_retry_safe=True)
    THROTTLING = "T", "a throttling error", ErrorInfo(is_retry_safe=True, is_throttling_error=True)
    TIMEOUT = "TO", "a timeout", ErrorInfo(is_retry_safe=True, is_timeout_error=True)
    NOT_RETRY_SAFE = "N", "an error that is not safe to retry", ErrorInfo(is_retry_safe=False)
    OK = "ok", "success"


class ScriptedClock:
    """Clock that advances only when ``wait`` is called."""

    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        """Return the current time in seconds."""
        return self._now

    def wait(self, seconds: float) -> None:
        """Advance the clock by ``seconds``."""
        self._now += seconds


@dataclass(frozen=True, slots=True)
class PlayedAttempt:
    """Attempt and its result.

    Args:
        delay: seconds of waiting before the attempt.
        response: response to the attempt.
        available: units in the quota after the attempt; None without a quota.
        next_delay: seconds until the next attempt; None without one.
        refusal: reason that the strategy gave for refusing another attempt; None for a success or a retry.
    """

    delay: float
    response: ScriptedResponse
    available: int | None
    next_delay: float | None = None
    refusal: str | None = None


def play(
    strategy: MinimalRetryStrategy,
    responses: Iterable[ScriptedResponse],
    available: Callable[[], int | None],
    *,
    retry_after: float | None = None,
    wait: Callable[[float], None] | None = None,
) -> Sequence[PlayedAttempt]:
    """Return the attempts of one operation, up to a success or a refusal. Later responses are unused.

    If the responses end before that, ``next_delay`` of the last attempt is the delay before a further attempt.

    Args:
        strategy: synchronous strategy.
        responses: one or more responses.
        available: function that returns the number of units in the strategy's quota, or None without a quota.
        retry_after: delay that every error requests, in seconds; None for none.
        wait: function that gets the delay before each attempt, in seconds, to advance a clock; None without a clock.
    """
    steps: list[PlayedAttempt] = []
    token = strategy.acquire_initial_retry_token()
    for response in responses:
        delay = token.retry_delay
        if wait is not None:
            wait(delay)
        if response.info is None:
            strategy.record_success(token=token)
            steps.append(PlayedAttempt(delay, response, available()))
            break
        error = ClassifiedError(Exception(response.meaning), response.info._replace(retry_after=retry_after))
        try:
            token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        except RetryError as refused:
            refusal = str(refused).removeprefix(f"{type(error).__name__} is not retried: ")
            steps.append(PlayedAttempt(delay, response, available(), refusal=refusal))
            break
        steps.append(PlayedAttempt(delay, response, available(), next_delay=token.retry_delay))
    return steps
