"""Our strategies for clients made with ``smithy-core``; needs the extra ``smithy-core``, and with it Python 3.12.

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
        "the package smithy-core is missing; on Python 3.12 or newer, run: pip install 'triclinium-core[smithy-core]'"
    ) from _missing

__all__ = ["LimitedRetryStrategy", "SmithyCoreRetryStrategy"]


class LimitedRetryStrategy(protocols.RetryStrategy, Protocol):
    """A strategy with ``max_attempts`` and ``backoff_strategy``, as ``smithy-core`` requires."""


class SmithyCoreRetryStrategy:
    """One of our strategies, as the ``retry_strategy`` of a ``smithy-core`` client.

    The client's own resolver returns it as it is. Clients that are given the same object, or two made of the same
    ``strategy``, share its quota. A copy of it, deep or not, is the object itself: clients copy their configuration for
    every call, and a copied quota would be nobody's limit.

    It belongs to one event loop; of the client's methods none is a checkpoint here, for the answers come at once.

    Args:
        strategy: what decides. Its scopes count: the client passes its ``retry_scope``.

    Raises:
        ArgumentError: ``strategy`` lacks something, is a class, or its methods are ``async def``.
    """

    def __init__(self, strategy: LimitedRetryStrategy) -> None:
        require_strategy(strategy)
        for name in ("max_attempts", "backoff_strategy"):
            if not hasattr(strategy, name):
                raise ArgumentError(
                    f"strategy={shown(strategy)} lacks {name}, which smithy-core looks for; give it that attribute",
                    parameter="strategy",
                )
        if protocols.is_async(strategy):
            raise ArgumentError(
                f"strategy={shown(strategy)} has to be awaited; pass the strategy that answers at once",
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
        """Attempts of one request at most, the first included."""
        return self._strategy.max_attempts

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """What computes the delay of an error that is no throttling."""
        return self._strategy.backoff_strategy

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token of a request's first attempt; it never refuses.

        The client lets a refusal through to its caller, who would not get to send anything. So where the strategy has no
        token, the request gets one that is good for a single attempt.
        """
        try:
            return self._strategy.acquire_initial_retry_token(token_scope=token_scope)
        except protocols.RetryError as refusal:
            return _SingleAttempt(str(refusal), refusal.retry_after)

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Return the token of the next attempt, given that of the attempt that failed with ``error``.

        Raises:
            smithy_core.exceptions.RetryError: no further attempt is permitted; ``__cause__`` is ``error``. The client
                raises ``error`` then, and where its operation is a long poll it waits for ``retry_after`` first.
        """
        if isinstance(token_to_renew, _SingleAttempt):
            raise RetryError(token_to_renew.refusal, retry_after=token_to_renew.retry_after) from error
        try:
            return self._strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)
        except protocols.RetryError as refusal:
            raise RetryError(str(refusal), retry_after=refusal.retry_after) from error

    async def record_success(self, *, token: RetryToken) -> None:
        """Take back the token of the attempt that succeeded."""
        if not isinstance(token, _SingleAttempt):
            self._strategy.record_success(token=token)


@dataclass(frozen=True, slots=True)
class _SingleAttempt:
    """The token of a request that its strategy refused one: it is sent once all the same.

    Source: the Smithy Python retry design, "Specification": a request without a token is not retried.
    """

    refusal: str
    """Why there is no other token."""
    retry_after: float | None = None
    """Seconds that the strategy would have waited."""
    retry_count: int = 0
    """Attempts so far without the first."""
    retry_delay: float = 0.0
    """Seconds to wait before the attempt."""
