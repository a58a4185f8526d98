"""Token that a strategy issues for an attempt. The strategy accepts each token only once.

Source: the Smithy Python retry design, "Specification"; decisions S6, S18 and S20.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy.protocols import RetryToken
from triclinium_core.shown import shown


@dataclass(slots=True, eq=False)
class SingleUseToken:
    """Token that a strategy issued for one attempt.

    The caller uses it once: to refresh it after a failure, to record a success, or to abandon it.
    """

    owner: object | None = field(repr=False)
    """Strategy that issued the token; None if the token was used, or if the strategy refused to refresh it."""
    token_scope: str | None = None
    """Scope that the request passed when it acquired its first token; None is also a scope."""
    retry_count: int = 0
    """Number of attempts so far, excluding the first."""
    retry_delay: float = 0.0
    """Seconds to wait before the attempt."""
    quota_acquired: int = field(default=0, repr=False)
    """Cost of the attempt, which the strategy has taken from the quota or budget; 0 for a first attempt."""
    deposit: float = field(default=0.0, repr=False)
    """Amount that the first attempt added to a budget."""
    holds_slot: bool = field(default=False, repr=False)
    """Whether the attempt has taken or reserved a token of the rate limiter."""

    @property
    def attempt_count(self) -> int:
        """Number of attempts so far, including the attempt with this token."""
        return self.retry_count + 1

    @property
    def is_used(self) -> bool:
        """Whether the token was refreshed, recorded or abandoned, or the strategy refused to refresh it."""
        return self.owner is None


def require_token(token: RetryToken, owner: object, parameter: str) -> SingleUseToken:
    """Return ``token`` if ``owner`` issued it and it was not used yet.

    Raises:
        ArgumentError: ``token`` was used before, ``owner`` did not issue it, or it is not a token.
    """
    if type(token) is SingleUseToken:
        if token.owner is owner:
            return token
        used, foreign = (
            "has been used; it permits one refresh or one success",
            "comes from another strategy; pass it there",
        )
        reason = used if token.is_used else foreign
        raise ArgumentError(f"{parameter}={shown(token)} {reason}", parameter=parameter)
    raise ArgumentError(
        f"{parameter} is of type {type(token).__name__}; it must be the token that acquire_initial_retry_token or "
        "refresh_retry_token_for_retry of this strategy returned",
        parameter=parameter,
    )


def require_scope(token_scope: str | None) -> None:
    """Raise ArgumentError unless ``token_scope`` is a string or None."""
    if token_scope is not None and not isinstance(token_scope, str):
        raise ArgumentError(f"token_scope={shown(token_scope)} must be a string or None", parameter="token_scope")
