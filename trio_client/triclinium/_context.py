"""Retry strategy and context values that a block gives to all operations in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from triclinium_core.retry.combined.strategies import AnyRetryStrategy, require_strategy

block_strategy: ContextVar[AnyRetryStrategy | None] = ContextVar("triclinium.retrying", default=None)
"""That of the innermost ``retrying``; None outside of any."""
block_values: ContextVar[Mapping[str, object] | None] = ContextVar("triclinium.client_context", default=None)
"""What the ``client_context`` blocks around the caller have set; None outside of any."""


@contextmanager
def retrying(strategy: AnyRetryStrategy) -> Iterator[None]:
    """Let ``strategy`` decide about all operations of the block, and of the tasks that are started in it.

    The innermost block counts; the ``retry_strategy`` of a single call comes before any block. Strategies of either kind
    are taken: Couchbase's, and those that hand out tokens.

    Raises:
        InvalidArgumentException: ``strategy`` is no retry strategy.
    """
    require_strategy(strategy)
    token = block_strategy.set(strategy)
    try:
        yield
    finally:
        block_strategy.reset(token)


@contextmanager
def client_context(**values: object) -> Iterator[None]:
    """Show ``values`` to the retry strategy of all operations of the block, and of the tasks that are started in it.

    They arrive as ``RetryRequest.client_context``. An inner block adds to those around it, and wins where it repeats one.
    """
    token = block_values.set(MappingProxyType({**(block_values.get() or {}), **values}))
    try:
        yield
    finally:
        block_values.reset(token)


def strategy_for(given: AnyRetryStrategy | None) -> AnyRetryStrategy | None:
    """Return the strategy of a call: its own, that of the innermost ``retrying``, or None for the cluster's.

    Raises:
        InvalidArgumentException: ``given`` is no retry strategy.
    """
    if given is None:
        return block_strategy.get()
    require_strategy(given)
    return given
