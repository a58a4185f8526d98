"""Retries as in the Smithy retry design: a strategy issues tokens, and requests share a quota that limits retries.

This package imports only the standard library and other modules of the core. ``protocols`` has the interfaces of
strategies, tokens and errors, which other libraries implement too. ``classification`` reads the retry information of an
error. The strategies are ``simple``, ``standard``, ``adaptive``, ``budget`` and ``breaker``; ``resolver`` creates one
of the first three from options. Their parts are in ``base``, ``tokens``, ``quota``, ``backoff``, ``numbers`` and
``rate_limiter``. ``asynchronous`` adapts a strategy to the asynchronous interface. The package ``retry.calls`` retries
any function under a strategy.

Source: the Smithy Python retry design, and the numbers of its released library and of the AWS SDKs.

This package exports the names that a driver needs. It loads each name on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from triclinium_core.retry.smithy.adaptive import AdaptiveRetryStrategy
    from triclinium_core.retry.smithy.asynchronous import METHODS, as_async, require_strategy
    from triclinium_core.retry.smithy.backoff import (
        DecorrelatedRetryBackoffStrategy,
        ExponentialRetryBackoffStrategy,
        Jitter,
    )
    from triclinium_core.retry.smithy.breaker import BreakerRetryStrategy
    from triclinium_core.retry.smithy.budget import BudgetRetryStrategy
    from triclinium_core.retry.smithy.classification import ClassifiedError, ErrorInfo, classify
    from triclinium_core.retry.smithy.numbers import AwsRetryNumbers
    from triclinium_core.retry.smithy.protocols import (
        AnyRetryStrategy,
        AsyncMinimalRetryStrategy,
        AsyncRetryStrategy,
        ErrorRetryInfo,
        HasFault,
        MinimalRetryStrategy,
        PartyAtFault,
        RetryBackoffStrategy,
        RetryError,
        RetryStrategy,
        RetryToken,
        is_async,
    )
    from triclinium_core.retry.smithy.resolver import RetryMode, RetryStrategyOptions, RetryStrategyResolver
    from triclinium_core.retry.smithy.simple import SimpleRetryStrategy
    from triclinium_core.retry.smithy.standard import StandardRetryStrategy
    from triclinium_core.retry.smithy.tokens import SingleUseToken, require_scope

_MODULE_OF = {
    "AdaptiveRetryStrategy": "triclinium_core.retry.smithy.adaptive",
    "AnyRetryStrategy": "triclinium_core.retry.smithy.protocols",
    "AsyncMinimalRetryStrategy": "triclinium_core.retry.smithy.protocols",
    "AsyncRetryStrategy": "triclinium_core.retry.smithy.protocols",
    "AwsRetryNumbers": "triclinium_core.retry.smithy.numbers",
    "BreakerRetryStrategy": "triclinium_core.retry.smithy.breaker",
    "BudgetRetryStrategy": "triclinium_core.retry.smithy.budget",
    "ClassifiedError": "triclinium_core.retry.smithy.classification",
    "DecorrelatedRetryBackoffStrategy": "triclinium_core.retry.smithy.backoff",
    "ErrorInfo": "triclinium_core.retry.smithy.classification",
    "ErrorRetryInfo": "triclinium_core.retry.smithy.protocols",
    "ExponentialRetryBackoffStrategy": "triclinium_core.retry.smithy.backoff",
    "HasFault": "triclinium_core.retry.smithy.protocols",
    "Jitter": "triclinium_core.retry.smithy.backoff",
    "METHODS": "triclinium_core.retry.smithy.asynchronous",
    "MinimalRetryStrategy": "triclinium_core.retry.smithy.protocols",
    "PartyAtFault": "triclinium_core.retry.smithy.protocols",
    "RetryBackoffStrategy": "triclinium_core.retry.smithy.protocols",
    "RetryError": "triclinium_core.retry.smithy.protocols",
    "RetryMode": "triclinium_core.retry.smithy.resolver",
    "RetryStrategy": "triclinium_core.retry.smithy.protocols",
    "RetryStrategyOptions": "triclinium_core.retry.smithy.resolver",
    "RetryStrategyResolver": "triclinium_core.retry.smithy.resolver",
    "RetryToken": "triclinium_core.retry.smithy.protocols",
    "SimpleRetryStrategy": "triclinium_core.retry.smithy.simple",
    "SingleUseToken": "triclinium_core.retry.smithy.tokens",
    "StandardRetryStrategy": "triclinium_core.retry.smithy.standard",
    "as_async": "triclinium_core.retry.smithy.asynchronous",
    "classify": "triclinium_core.retry.smithy.classification",
    "is_async": "triclinium_core.retry.smithy.protocols",
    "require_scope": "triclinium_core.retry.smithy.tokens",
    "require_strategy": "triclinium_core.retry.smithy.asynchronous",
}

if not TYPE_CHECKING:  # A type checker that sees ``__getattr__`` accepts misspelt names.
    __getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)

__all__ = [
    "METHODS",
    "AdaptiveRetryStrategy",
    "AnyRetryStrategy",
    "AsyncMinimalRetryStrategy",
    "AsyncRetryStrategy",
    "AwsRetryNumbers",
    "BreakerRetryStrategy",
    "BudgetRetryStrategy",
    "ClassifiedError",
    "DecorrelatedRetryBackoffStrategy",
    "ErrorInfo",
    "ErrorRetryInfo",
    "ExponentialRetryBackoffStrategy",
    "HasFault",
    "Jitter",
    "MinimalRetryStrategy",
    "PartyAtFault",
    "RetryBackoffStrategy",
    "RetryError",
    "RetryMode",
    "RetryStrategy",
    "RetryStrategyOptions",
    "RetryStrategyResolver",
    "RetryToken",
    "SimpleRetryStrategy",
    "SingleUseToken",
    "StandardRetryStrategy",
    "as_async",
    "classify",
    "is_async",
    "require_scope",
    "require_strategy",
]
