"""Strategies that requests of a cluster accept: those of Couchbase's kind, and token strategies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.couchbase import strategy as couchbase
from triclinium_core.retry.kinds import DeciderKind, kind_of, other_kind
from triclinium_core.retry.smithy import asynchronous, protocols
from triclinium_core.shown import shown

TokenStrategy = protocols.AnyRetryStrategy
"""A strategy of Smithy's shape, which answers at once or is awaited."""


@dataclass(frozen=True, slots=True)
class TokenScope:
    """A token strategy, and the scope whose tokens requests get from it: each scope has a quota of its own.

    It is for ``retry_strategy`` and ``retrying``; ``retry`` and its kin have ``token_scope``.

    Raises:
        InvalidArgumentException: ``strategy`` is no token strategy, or ``token_scope`` is not a string.
    """

    strategy: TokenStrategy
    token_scope: str

    def __post_init__(self) -> None:
        _require_tokens(self.strategy, "strategy")
        if not isinstance(self.token_scope, str):
            raise errors.InvalidArgumentException(
                f"token_scope={shown(self.token_scope)} must be a string", parameter="token_scope"
            )


AnyRetryStrategy = couchbase.AnyRetryStrategy | TokenStrategy | TokenScope
"""What a cluster, a block and a call take as their strategy."""


@dataclass(frozen=True, slots=True)
class TokenLender:
    """A token strategy, recognised as such, and the scope whose tokens requests get from it."""

    strategy: TokenStrategy
    token_scope: str | None


Decider = couchbase.AnyRetryStrategy | TokenLender
"""Object that decides about a request. Its type distinguishes a lender of tokens from a strategy of Couchbase's."""


def decider_of(strategy: AnyRetryStrategy) -> Decider:
    """Return a strategy as what decides about requests. One that has both shapes counts as Couchbase's (decision T8).

    Args:
        strategy: checked with ``require_strategy``.
    """
    if kind_of(strategy) is DeciderKind.COUCHBASE:
        return cast(couchbase.AnyRetryStrategy, strategy)
    if isinstance(strategy, TokenScope):
        return TokenLender(strategy.strategy, strategy.token_scope)
    return TokenLender(cast(TokenStrategy, strategy), None)


def require_strategy(strategy: object, parameter: str = "retry_strategy") -> None:
    """Raise InvalidArgumentException, about ``parameter``, unless ``strategy`` is one of ``AnyRetryStrategy``."""
    try:
        _judge(strategy, parameter)
    except ArgumentError:
        raise
    except Exception as error:
        # It is also asked while the machine is at work, and a proxy for a strategy may have no target there.
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(strategy)} raised {type(error).__name__} when it was asked for its methods",
            parameter=parameter,
        ) from error


def _judge(strategy: object, parameter: str) -> None:
    match kind_of(strategy):
        case DeciderKind.COUCHBASE:
            if isinstance(strategy, type):
                couchbase.require_strategy(strategy, parameter)
            return
        case DeciderKind.SMITHY:
            _require_tokens(strategy, parameter)
            return
    if not isinstance(strategy, TokenScope):
        hint = other_kind(strategy, DeciderKind.COUCHBASE) or "it has no such method"
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(strategy)} must be an object with a method retry_after(request, reason), such as "
            f"BestEffortRetryStrategy(), or a token strategy, such as StandardRetryStrategy(); {hint}",
            parameter=parameter,
        )


def _require_tokens(strategy: object, parameter: str) -> None:
    try:
        asynchronous.require_strategy(strategy, parameter)
    except ArgumentError as error:
        raise errors.InvalidArgumentException(str(error), parameter=parameter) from None
