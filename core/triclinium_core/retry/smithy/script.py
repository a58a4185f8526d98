"""An operation as a script: what each of its attempts is answered, played to a strategy.

Source: the Smithy Python retry design, "Specification": what a client does around its attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from types import MappingProxyType

from triclinium_core.retry.smithy.classification import ClassifiedError, ErrorInfo
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


class ScriptTooShort(Exception):
    """The strategy permits another attempt, and the script has no response for it.

    Args:
        attempts: attempts that have a response.
        delay: seconds before the next.
    """

    def __init__(self, attempts: int, delay: float) -> None:
        super().__init__(f"attempt {attempts + 1} follows in {delay:g} s, and there is no response for it")
        self.attempts = attempts
        self.delay = delay


@dataclass(frozen=True, slots=True)
class Step:
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
) -> Sequence[Step]:
    """Return the attempts of one operation, from the first to a success or a refusal; responses beyond it go unused.

    Args:
        strategy: answers at once; it has given a token and taken it back when this returns.
        available: tells what the strategy's quota has left.
        retry_after: what every error asks for, in seconds.

    Raises:
        ScriptTooShort: there is a next attempt, and no response for it.
    """
    steps: list[Step] = []
    token = strategy.acquire_initial_retry_token()
    for response in responses:
        delay = token.retry_delay
        if response is Response.OK:
            strategy.record_success(token=token)
            return (*steps, Step(delay, response, available()))
        error = ClassifiedError(Exception(response.meaning), replace(ERRORS[response], retry_after=retry_after))
        try:
            token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        except RetryError as refusal:
            return (*steps, Step(delay, response, available(), refusal=str(refusal)))
        steps.append(Step(delay, response, available(), next_delay=token.retry_delay))
    raise ScriptTooShort(len(steps), token.retry_delay)
