"""Random source, errors and helpers that the tests of Smithy's strategies share."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core.retry.smithy import RetryError, SingleUseToken
from triclinium_core.retry.smithy.base import BaseRetryStrategy


class Fixed:
    """Random source that always returns one number, and counts the draws."""

    def __init__(self, number: float = 0.5) -> None:
        self.number = number
        self.draws = 0

    def random(self) -> float:
        """Return the number."""
        self.draws += 1
        return self.number


class Failure(Exception):
    """Error with the attributes of the design page, and with the one that the library adds."""

    def __init__(
        self,
        safe: bool | None = True,
        *,
        retry_after: float | None = None,
        throttling: bool = False,
        timeout: bool = False,
    ) -> None:
        super().__init__("it failed")
        self.is_retry_safe = safe
        self.retry_after = retry_after
        self.is_throttling_error = throttling
        self.is_timeout_error = timeout


ERRORS = {
    "E": Failure(),
    "T": Failure(throttling=True),
    "TO": Failure(timeout=True),
    "N": Failure(safe=False),
}
"""Errors by the names that the test vectors use."""


def delays_of(
    strategy: BaseRetryStrategy, responses: Sequence[str | Failure], scope: str | None = None
) -> tuple[str, list[float]]:
    """Run one request. Return "ok", "open" or the refusal's text, and the delays before its retries."""
    delays: list[float] = []
    token: SingleUseToken = strategy.acquire_initial_retry_token(token_scope=scope)
    for response in responses:
        if response == "ok":
            strategy.record_success(token=token)
            return "ok", delays
        try:
            error = response if isinstance(response, Failure) else ERRORS[response]
            token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        except RetryError as refusal:
            return str(refusal), delays
        delays.append(token.retry_delay)
    return "open", delays


def retries_of(strategy: BaseRetryStrategy, scope: str | None = None) -> int:
    """Return how often the strategy permits a retry of a request that never succeeds."""
    token = strategy.acquire_initial_retry_token(token_scope=scope)
    while True:
        try:
            token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ERRORS["E"])
        except RetryError:
            return token.retry_count
