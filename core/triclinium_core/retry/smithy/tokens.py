"""The token that a strategy hands out for each attempt, and takes back once.

Source: the Smithy Python retry design, "Specification"; decisions S6, S18 and S20.
"""

from __future__ import annotations

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.smithy.protocols import RetryToken


class SingleUseToken:
    """The token of one attempt; strategies make it.

    Whoever makes the attempt refreshes it after a failure, or records its success, and has no more use for it then.
    """

    __slots__ = ("_holds_slot", "_owner", "_quota_acquired", "_retry_count", "_retry_delay", "_token_scope")

    def __init__(
        self,
        owner: object,
        token_scope: str | None = None,
        retry_count: int = 0,
        retry_delay: float = 0.0,
        quota_acquired: int = 0,
    ) -> None:
        self._owner: object | None = owner
        self._token_scope = token_scope
        self._retry_count = retry_count
        self._retry_delay = retry_delay
        self._quota_acquired = quota_acquired
        self._holds_slot = False

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(token_scope={self._token_scope!r}, retry_count={self._retry_count}, "
            f"retry_delay={self._retry_delay})"
        )

    @property
    def retry_count(self) -> int:
        """Attempts so far without the first."""
        return self._retry_count

    @property
    def attempt_count(self) -> int:
        """Attempts so far, that of this token among them."""
        return self._retry_count + 1

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before the attempt."""
        return self._retry_delay

    @property
    def quota_acquired(self) -> int:
        """What the attempt took from the quota: 0 for a first attempt."""
        return self._quota_acquired

    @property
    def token_scope(self) -> str | None:
        """The scope that the request was begun with."""
        return self._token_scope

    @property
    def is_used(self) -> bool:
        """Whether it was refreshed, refused a retry, or recorded as a success."""
        return self._owner is None

    @property
    def holds_slot(self) -> bool:
        """Whether a rate limiter keeps a place for the attempt."""
        return self._holds_slot

    def postpone(self, delay: float, *, holds_slot: bool) -> None:
        """Have the attempt wait for ``delay`` seconds at least; its strategy does, before it hands the token out."""
        self._retry_delay = max(self._retry_delay, delay)
        self._holds_slot = holds_slot

    def use(self) -> None:
        """Mark it as used; its strategy does, once nothing can go wrong any more."""
        self._owner = None


def require_token(token: RetryToken, owner: object, parameter: str) -> SingleUseToken:
    """Return ``token``, which can be used.

    Raises:
        InvalidArgumentException: it was used before, ``owner`` did not make it, or it is no token at all.
    """
    if type(token) is SingleUseToken:
        if token._owner is owner:
            return token
        if token.is_used:
            reason = "has been used; a token serves one attempt, for one refresh or one success"
        else:
            reason = "comes from another strategy; give it back to the one that made it"
        raise InvalidArgumentException(f"{parameter}={token!r} {reason}", parameter=parameter)
    raise InvalidArgumentException(
        f"{parameter} is a {type(token).__name__}; it must be the token that acquire_initial_retry_token or "
        "refresh_retry_token_for_retry of this strategy returned",
        parameter=parameter,
    )


def require_scope(token_scope: str | None) -> None:
    """Raise InvalidArgumentException unless ``token_scope`` is a string or None."""
    if token_scope is not None and not isinstance(token_scope, str):
        raise InvalidArgumentException(f"token_scope={token_scope!r} must be a string or None", parameter="token_scope")
