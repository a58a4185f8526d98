"""Retry strategy and context values of the operations in a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from triclinium_core.retry.combined.strategies import AnyRetryStrategy, require_strategy

block_strategy: ContextVar[AnyRetryStrategy | None] = ContextVar("triclinium.retrying", default=None)
"""Strategy of the innermost ``retrying`` block; None outside of any."""
block_values: ContextVar[Mapping[str, object] | None] = ContextVar("triclinium.client_context", default=None)
"""Values of all surrounding ``client_context`` blocks; None outside of any."""


@contextmanager
def retrying(strategy: AnyRetryStrategy) -> Iterator[None]:
    """Use ``strategy`` for the operations of the block and of the tasks that are started in it.

    The innermost block takes precedence. The ``retry_strategy`` argument of a call overrides any block. Both kinds of
    strategies are accepted: Couchbase's, and token strategies.

    Raises:
        InvalidArgumentException: ``strategy`` is not a retry strategy.
    """
    require_strategy(strategy)
    token = block_strategy.set(strategy)
    try:
        yield
    finally:
        block_strategy.reset(token)


@contextmanager
def client_context(**values: object) -> Iterator[None]:
    """Pass ``values`` to Couchbase retry strategies in the block and in the tasks that are started in it.

    A strategy finds them in ``RetryRequest.client_context``. An inner block adds its values to those of the outer
    blocks, and overrides a value of the same name.
    """
    token = block_values.set(MappingProxyType({**(block_values.get() or {}), **values}))
    try:
        yield
    finally:
        block_values.reset(token)


def strategy_for(given: AnyRetryStrategy | None) -> AnyRetryStrategy | None:
    """Return the strategy of a call: ``given``, else that of the innermost ``retrying`` block; None for the cluster's.

    Raises:
        InvalidArgumentException: ``given`` is not a retry strategy.
    """
    if given is None:
        return block_strategy.get()
    require_strategy(given)
    return given
