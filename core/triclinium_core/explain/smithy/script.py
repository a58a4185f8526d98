"""An operation as a script: what each of its attempts is answered, played to a strategy.

Source: the Smithy Python retry design, "Specification": what a client does around its attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType

from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.protocols import RetryError, RetryStrategy


@unique
class Response(StrEnum):
    """What an attempt ends with; the value is what a script calls it."""

    RETRY_SAFE = "E"
    THROTTLING = "T"
    TIMEOUT = "TO"
    NOT_RETRY_SAFE = "N"
    OK = "ok"

    @property
    def meaning(self) -> str:
        """The name in words."""
        return _MEANINGS[self]


_MEANINGS: Mapping[Response, str] = MappingProxyType(
    {
        Response.RETRY_SAFE: "an error that is safe to retry",
        Response.THROTTLING: "a throttling error",
        Response.TIMEOUT: "a timeout",
        Response.NOT_RETRY_SAFE: "an error that is not safe to retry",
        Response.OK: "success",
    }
)

ERRORS: Mapping[Response, ErrorInfo] = MappingProxyType(
    {
        Response.RETRY_SAFE: ErrorInfo(is_retry_safe=True),
        Response.THROTTLING: ErrorInfo(is_retry_safe=True, is_throttling_error=True),
        Response.TIMEOUT: ErrorInfo(is_retry_safe=True, is_timeout_error=True),
        Response.NOT_RETRY_SAFE: ErrorInfo(is_retry_safe=False),
    }
)
"""What each error says of itself."""


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


class ScriptedError(Exception):
    """Says of itself what a response of the script is."""

    def __init__(self, response: Response, retry_after: float | None) -> None:
        info = ERRORS[response]
        super().__init__(response.meaning)
        self.is_retry_safe: bool | None = info.is_retry_safe
        self.retry_after: float | None = retry_after
        self.is_throttling_error: bool = info.is_throttling_error
        self.is_timeout_error: bool = info.is_timeout_error


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
    response: Response
    available: int | None
    next_delay: float | None = None
    refusal: str | None = None


def play(
    strategy: RetryStrategy,
    responses: Iterable[Response],
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
        if response is Response.OK:
            strategy.record_success(token=token)
            steps.append(PlayedAttempt(delay, response, available()))
            break
        error = ScriptedError(response, retry_after)
        try:
            token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        except RetryError as refused:
            refusal = str(refused).removeprefix(f"{type(error).__name__} is not retried: ")
            steps.append(PlayedAttempt(delay, response, available(), refusal=refusal))
            break
        steps.append(PlayedAttempt(delay, response, available(), next_delay=token.retry_delay))
    return steps
