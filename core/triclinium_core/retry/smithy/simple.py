"""The simple strategy: a number of attempts, and nothing that requests share.

Source: smithy-core's ``SimpleRetryStrategy``; decisions S3 and S16 to S20.
"""

from __future__ import annotations

from typing import Self

from triclinium_core.checks import check_integer
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy, backoff_delay, check_backoff
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy, RetryToken
from triclinium_core.retry.smithy.refusals import at_least_retry_after, refuse_hopeless, require_error
from triclinium_core.retry.smithy.tokens import SingleUseToken, require_scope, require_token


class SimpleRetryStrategy:
    """Retries what is safe to retry until ``max_attempts`` were made. It stops no storm: see ``StandardRetryStrategy``.

    Args:
        rng: draws for the backoff.
        max_attempts: attempts of one request, the first among them; 0 means 1, for the first is never refused.
        backoff: replaces 25 ms, doubled up to 20 s, half of it random.

    Raises:
        InvalidArgumentException: an argument is of the wrong type or out of range.
    """

    def __init__(self, *, rng: Random, max_attempts: int = 5, backoff: RetryBackoffStrategy | None = None) -> None:
        self._max_attempts = check_integer(max_attempts, "max_attempts")
        if backoff is None:
            backoff = ExponentialRetryBackoffStrategy(rng=rng)
        self._backoff = check_backoff(backoff, "backoff")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_attempts={self._max_attempts})"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @property
    def max_attempts(self) -> int:
        """Attempts of one request, the first among them."""
        return self._max_attempts

    @property
    def backoff_strategy(self) -> RetryBackoffStrategy:
        """What computes the delays."""
        return self._backoff

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        """Return the token of a first attempt; ``token_scope`` separates nothing here.

        Raises:
            InvalidArgumentException: ``token_scope`` is neither a string nor None.
        """
        if token_scope is not None:
            require_scope(token_scope)
        return SingleUseToken(self, token_scope)

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> SingleUseToken:
        """Return the token of the next attempt; the one given is used up, also where there is none.

        Raises:
            RetryError: ``error`` is not safe to retry, or the attempts are used up. ``error`` is its cause.
            InvalidArgumentException: the token is used up or not from here, ``error`` is no exception, or the backoff computed
                no delay; nothing has changed then.
        """
        token = require_token(token_to_renew, self, "token_to_renew")
        info = require_error(error)
        refuse_hopeless(token, error, info, self._max_attempts)
        count = token.retry_count + 1
        delay = at_least_retry_after(backoff_delay(self._backoff, count), info.retry_after, clamped=False)
        token.use()
        return SingleUseToken(self, token.token_scope, count, delay)

    def record_success(self, *, token: RetryToken) -> None:
        """Take back the token of the attempt that succeeded.

        Raises:
            InvalidArgumentException: the token is used up, or not from here.
        """
        require_token(token, self, "token").use()

    def abandon(self, *, token: RetryToken) -> None:
        """Take back the token of an attempt that will not be made, such as one that its deadline leaves no time for.

        Raises:
            InvalidArgumentException: the token is used up, or not from here.
        """
        require_token(token, self, "token").use()
