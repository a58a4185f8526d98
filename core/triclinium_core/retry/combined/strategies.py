"""Types and checks of the strategies that requests to a cluster accept: Couchbase strategies and token strategies."""

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
"""Strategy with Smithy's interface, synchronous or asynchronous."""


@dataclass(frozen=True, slots=True)
class TokenScope:
    """Token strategy together with the scope that requests pass to it. The strategy may have a quota for each scope.

    Pass this object as ``retry_strategy`` or to ``retrying``. ``retry`` and its variants have a parameter
    ``token_scope`` instead.

    Raises:
        InvalidArgumentException: ``strategy`` is not a token strategy, or ``token_scope`` is not a string.
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
"""Strategy that a cluster, a block or a call accepts."""


@dataclass(frozen=True, slots=True)
class PermitIssuer:
    """Checked token strategy together with the scope that requests pass to it."""

    strategy: TokenStrategy
    token_scope: str | None


Decider = couchbase.AnyRetryStrategy | PermitIssuer
"""Object that decides about a request. A token strategy is always wrapped in a ``PermitIssuer``."""


def decider_of(strategy: AnyRetryStrategy) -> Decider:
    """Return the object that decides for ``strategy``: a Couchbase strategy itself, or the issuer of its permits.

    A strategy with both interfaces counts as a Couchbase strategy (decision T8).

    Args:
        strategy: strategy that ``require_strategy`` has checked.
    """
    if kind_of(strategy) is DeciderKind.COUCHBASE:
        return cast(couchbase.AnyRetryStrategy, strategy)
    if isinstance(strategy, TokenScope):
        return PermitIssuer(strategy.strategy, strategy.token_scope)
    return PermitIssuer(cast(TokenStrategy, strategy), None)


def require_strategy(strategy: object, parameter: str = "retry_strategy") -> None:
    """Raise InvalidArgumentException, about ``parameter``, unless ``strategy`` is one of ``AnyRetryStrategy``."""
    try:
        _judge(strategy, parameter)
    except ArgumentError:
        raise
    except Exception as error:
        # A lookup of a method may raise: the object may be a proxy that has no target at this moment.
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(strategy)} raised {type(error).__name__} when its methods were looked up",
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
