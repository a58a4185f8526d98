"""Scripted strategies, with which tests choose each decision about a retry."""

from __future__ import annotations

import trio

from triclinium_core.retry.smithy import RetryToken


class Token:
    """Token without a strategy."""

    def __init__(self, retry_delay: object = 0.0) -> None:
        self.retry_delay: float = retry_delay  # type: ignore[assignment]
        self.retry_count = 0


class ScriptedStrategy:
    """Strategy that returns its answers one by one, raises those that are exceptions, and records its calls."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.reported: list[str] = []
        self.shown: list[Exception] = []

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return or raise the next answer."""
        return self.answer("acquire")

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return or raise the next answer."""
        self.shown.append(error)
        return self.answer("refresh")

    def record_success(self, *, token: RetryToken) -> None:
        """Record the call."""
        self.reported.append("success")

    def answer(self, what: str) -> RetryToken:
        """Return or raise the next answer."""
        self.reported.append(what)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]


class AsyncStrategy:
    """Variant of ``ScriptedStrategy`` with asynchronous methods, each with a checkpoint."""

    def __init__(self, *answers: object) -> None:
        self._inner = ScriptedStrategy(*answers)
        self.reported = self._inner.reported
        self.shown = self._inner.shown

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return or raise the next answer."""
        await trio.lowlevel.checkpoint()
        return self._inner.acquire_initial_retry_token(token_scope=token_scope)

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return or raise the next answer."""
        await trio.lowlevel.checkpoint()
        return self._inner.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    async def record_success(self, *, token: RetryToken) -> None:
        """Record the call."""
        await trio.lowlevel.checkpoint()
        self._inner.record_success(token=token)
