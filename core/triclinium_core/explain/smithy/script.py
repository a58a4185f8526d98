"""An operation as a script: what each of its attempts is answered, played to a strategy.

Source: the Smithy Python retry design, "Specification": what a client does around its attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Self

from triclinium_core.retry.smithy import ClassifiedError, ErrorInfo, MinimalRetryStrategy, RetryError


@unique
class ScriptedResponse(StrEnum):
    """What an attempt ends with.

    Layout of a row: what a script calls it, its name in words, what the error says of itself.
    """

    meaning: str
    """The name in words."""
    info: ErrorInfo | None
    """What the error says of itself; None for a success."""

    def __new__(cls, name: str, meaning: str = "", info: ErrorInfo | None = None) -> Self:
        """Build one row; the enum machinery calls this."""
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
    """A clock that stands still until it is told to wait."""

    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        """Return the present in seconds."""
        return self._now

    def wait(self, seconds: float) -> None:
        """Move on."""
        self._now += seconds


@dataclass(frozen=True, slots=True)
class PlayedAttempt:
    """One attempt, and what became of it.

    Args:
        delay: seconds that were waited before it.
        response: what it ended with.
        available: what the quota has left after that; None where there is no quota.
        next_delay: seconds to the next attempt; None where there is none.
        refusal: why there is none, in the strategy's words; None after a success too.
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
    """Return the attempts of one operation, from the first to a success or a refusal; responses beyond it go unused.

    Where they end before that, the last of the steps has a delay to a next attempt.

    Args:
        strategy: answers at once.
        responses: at least one.
        available: tells what the strategy's quota has left.
        retry_after: what every error asks for, in seconds.
        wait: is told the seconds before each attempt, so that a clock can be moved.
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
