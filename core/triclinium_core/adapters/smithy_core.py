"""Adapter of our strategies for clients of ``smithy-core``. It requires the extra ``smithy-core`` and Python >= 3.12.

Source: smithy-core 0.8 and later, ``smithy_core.aio.interfaces.retries`` and the loop of ``smithy_core.aio.client``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import RetryBackoffStrategy, RetryToken, protocols, require_strategy
from triclinium_core.shown import shown, total_repr

try:
    from smithy_core.exceptions import RetryError
except ImportError as _missing:
    raise ImportError(
        "the package smithy-core is missing or too old; on Python 3.12 or newer, run: "
        "pip install 'triclinium-core[smithy-core]'"
    ) from _missing

__all__ = ["LimitedRetryStrategy", "SmithyCoreRetryStrategy"]


class LimitedRetryStrategy(protocols.RetryStrategy, Protocol):
    """Strategy with ``max_attempts`` and ``backoff_strategy``, as ``smithy-core`` requires."""


class SmithyCoreRetryStrategy:
    """Adapter that makes a strategy the ``retry_strategy`` of a ``smithy-core`` client.

    The client's resolver returns the adapter unchanged. Clients share a quota if they have the same adapter, or
    adapters of the same ``strategy``. A shallow or deep copy of the adapter is the adapter itself: clients copy their
    configuration for every call, and a copied quota would limit nothing.

    An adapter belongs to one event loop. Its ``async`` methods are not checkpoints: the strategy is synchronous.

    Args:
        strategy: wrapped strategy. The scopes of the strategy have an effect: the client passes its ``retry_scope``.

    Raises:
        ArgumentError: ``strategy`` lacks a method or attribute, is a class, or has ``async def`` methods.
    """

    def __init__(self, strategy: LimitedRetryStrategy) -> None:
        require_strategy(strategy)
        for name in ("max_attempts", "backoff_strategy"):
            if not hasattr(strategy, name):
                raise ArgumentError(
                    f"strategy={shown(strategy)} lacks {name}, which smithy-core requires; add that attribute",
                    parameter="strategy",
                )
        if protocols.is_async(strategy):
            raise ArgumentError(
                f"strategy={shown(strategy)} is asynchronous; pass a synchronous strategy",
                parameter="strategy",
            )
        self._strategy = strategy

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._strategy!r})"

    def __copy__(self) -> SmithyCoreRetryStrategy:
        return self

    def __deepcopy__(self, memo: object) -> SmithyCoreRetryStrategy:
        return self

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts of one request, including the first."""
        return self._strategy.max_attempts

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """Strategy that computes the delays. The wrapped strategy may use another one after throttling errors."""
        return self._strategy.backoff_strategy

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token of a request's first attempt. Never refuse.

        The client would pass a refusal to its caller without sending the request. So if the strategy refuses a token,
        return one that permits a single attempt.
        """
        try:
            return self._strategy.acquire_initial_retry_token(token_scope=token_scope)
        except protocols.RetryError as refusal:
            return _SingleAttempt(str(refusal), refusal.retry_after)

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return the token of the next attempt, given the token of the attempt that failed with ``error``.

        Raises:
            smithy_core.exceptions.RetryError: no further attempt is permitted. ``__cause__`` is ``error``, which the
                client then raises. For a long poll, the client waits for ``retry_after``, if any, before it raises.
        """
        if isinstance(token_to_renew, _SingleAttempt):
            raise RetryError(token_to_renew.refusal, retry_after=token_to_renew.retry_after) from error
        try:
            return self._strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)
        except protocols.RetryError as refusal:
            raise RetryError(str(refusal), retry_after=refusal.retry_after) from error

    async def record_success(self, *, token: RetryToken) -> None:
        """Pass the token of a successful attempt to the strategy, if the strategy issued it."""
        if not isinstance(token, _SingleAttempt):
            self._strategy.record_success(token=token)


@dataclass(frozen=True, slots=True)
class _SingleAttempt:
    """Token of a request for which the strategy refused a token. The request is still sent once.

    Source: the Smithy Python retry design, "Example Usage": a request without a token is not retried.
    """

    refusal: str
    """Reason for the strategy's refusal."""
    retry_after: float | None = None
    """Delay that the strategy requested, in seconds; None for no delay."""
    retry_count: int = 0
    """Number of retries so far."""
    retry_delay: float = 0.0
    """Delay before the attempt, in seconds."""
