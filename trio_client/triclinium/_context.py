"""What a block of code lends to all operations in it: a retry strategy, and what that strategy may look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy, require_strategy

_strategy: ContextVar[AnyRetryStrategy | None] = ContextVar("triclinium.retrying", default=None)
_values: ContextVar[Mapping[str, object] | None] = ContextVar("triclinium.client_context", default=None)


@contextmanager
def retrying(strategy: AnyRetryStrategy) -> Iterator[None]:
    """Let ``strategy`` decide about all operations of the block, and of the tasks that are started in it.

    The innermost block counts; the ``retry_strategy`` of a single call comes before any block.

    Raises:
        InvalidArgumentException: ``strategy`` is no retry strategy.
    """
    require_strategy(strategy)
    token = _strategy.set(strategy)
    try:
        yield
    finally:
        _strategy.reset(token)


@contextmanager
def client_context(**values: object) -> Iterator[None]:
    """Show ``values`` to the retry strategy of all operations of the block, and of the tasks that are started in it.

    They arrive as ``RetryRequest.client_context``. An inner block adds to those around it, and wins where it repeats one.
    """
    token = _values.set(MappingProxyType({**(_values.get() or {}), **values}))
    try:
        yield
    finally:
        _values.reset(token)


def strategy_for(given: AnyRetryStrategy | None) -> AnyRetryStrategy | None:
    """Return the strategy of a call: its own, that of the innermost ``retrying``, or None for the cluster's.

    Raises:
        InvalidArgumentException: ``given`` is no retry strategy.
    """
    if given is None:
        return _strategy.get()
    require_strategy(given)
    return given


def current_client_context() -> Mapping[str, object] | None:
    """Return what the ``client_context`` blocks around the caller have set; None outside of any."""
    return _values.get()
