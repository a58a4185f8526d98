"""Couchbase's tradition: each failure has a reason, and the strategy of the request decides. Standard library only.

``machine`` drives one request through its ``states``, from ``events`` to ``actions``. ``orchestrator`` asks the ``strategy``,
and ``failures`` makes the exceptions. ``circuit_breaker`` and ``terminal_states`` watch nodes and connections. What a
response means stands in ``tables``.

Source: SDK-RFC 0049.

This package has the names that a driver needs, each loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from triclinium_core.retry.couchbase.actions import (
        AskStrategy,
        CloseConnection,
        Complete,
        Dispatch,
        Fail,
        Ignore,
        RefreshCollection,
        RefreshTopology,
        ReportRefusal,
        ReportRetry,
        RequestAction,
        RetryAfter,
    )
    from triclinium_core.retry.couchbase.circuit_breaker import (
        BreakerEvent,
        BreakerState,
        BreakerStatistics,
        CircuitBreaker,
        CircuitBreakerOptions,
    )
    from triclinium_core.retry.couchbase.events import (
        Abandoned,
        Dispatched,
        DispatchFailed,
        ErrorMapLoaded,
        HandedOver,
        KvResponse,
        Load,
        RequestEvent,
        Response,
        ResponseReceived,
        ServiceResponse,
        SocketClosed,
        StrategyAnswered,
        WakeupReached,
    )
    from triclinium_core.retry.couchbase.retry_machine import RequestAnnotation, RetryMachine
    from triclinium_core.retry.couchbase.states import RetryState
    from triclinium_core.retry.couchbase.strategy import (
        AnyRetryStrategy,
        AsyncRetryStrategy,
        BestEffortRetryStrategy,
        ErrorMapRetryStrategy,
        FastFailOnTerminalErrorRetryStrategy,
        RetryAction,
        RetryRequest,
        RetryStrategy,
        is_async,
        require_strategy,
    )
    from triclinium_core.retry.couchbase.tables.error_map import ErrorMap, ErrorMapEntry, ErrorMapStore
    from triclinium_core.retry.couchbase.tables.reasons import RetryReason
    from triclinium_core.retry.couchbase.tables.service import Service
    from triclinium_core.retry.couchbase.terminal_states import TerminalStates

_MODULE_OF = {
    "Abandoned": "triclinium_core.retry.couchbase.events",
    "AnyRetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "AsyncRetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "BestEffortRetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "BreakerEvent": "triclinium_core.retry.couchbase.circuit_breaker",
    "BreakerState": "triclinium_core.retry.couchbase.circuit_breaker",
    "BreakerStatistics": "triclinium_core.retry.couchbase.circuit_breaker",
    "CircuitBreaker": "triclinium_core.retry.couchbase.circuit_breaker",
    "CircuitBreakerOptions": "triclinium_core.retry.couchbase.circuit_breaker",
    "CloseConnection": "triclinium_core.retry.couchbase.actions",
    "Complete": "triclinium_core.retry.couchbase.actions",
    "AskStrategy": "triclinium_core.retry.couchbase.actions",
    "Dispatch": "triclinium_core.retry.couchbase.actions",
    "DispatchFailed": "triclinium_core.retry.couchbase.events",
    "Dispatched": "triclinium_core.retry.couchbase.events",
    "ErrorMap": "triclinium_core.retry.couchbase.tables.error_map",
    "ErrorMapEntry": "triclinium_core.retry.couchbase.tables.error_map",
    "ErrorMapLoaded": "triclinium_core.retry.couchbase.events",
    "ErrorMapRetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "ErrorMapStore": "triclinium_core.retry.couchbase.tables.error_map",
    "Fail": "triclinium_core.retry.couchbase.actions",
    "FastFailOnTerminalErrorRetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "HandedOver": "triclinium_core.retry.couchbase.events",
    "Ignore": "triclinium_core.retry.couchbase.actions",
    "KvResponse": "triclinium_core.retry.couchbase.events",
    "Load": "triclinium_core.retry.couchbase.events",
    "RefreshCollection": "triclinium_core.retry.couchbase.actions",
    "RefreshTopology": "triclinium_core.retry.couchbase.actions",
    "ReportRefusal": "triclinium_core.retry.couchbase.actions",
    "ReportRetry": "triclinium_core.retry.couchbase.actions",
    "RequestAction": "triclinium_core.retry.couchbase.actions",
    "RequestAnnotation": "triclinium_core.retry.couchbase.retry_machine",
    "RequestEvent": "triclinium_core.retry.couchbase.events",
    "RetryState": "triclinium_core.retry.couchbase.states",
    "Response": "triclinium_core.retry.couchbase.events",
    "ResponseReceived": "triclinium_core.retry.couchbase.events",
    "RetryAction": "triclinium_core.retry.couchbase.strategy",
    "RetryAfter": "triclinium_core.retry.couchbase.actions",
    "RetryMachine": "triclinium_core.retry.couchbase.retry_machine",
    "RetryReason": "triclinium_core.retry.couchbase.tables.reasons",
    "RetryRequest": "triclinium_core.retry.couchbase.strategy",
    "RetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "Service": "triclinium_core.retry.couchbase.tables.service",
    "ServiceResponse": "triclinium_core.retry.couchbase.events",
    "SocketClosed": "triclinium_core.retry.couchbase.events",
    "StrategyAnswered": "triclinium_core.retry.couchbase.events",
    "TerminalStates": "triclinium_core.retry.couchbase.terminal_states",
    "WakeupReached": "triclinium_core.retry.couchbase.events",
    "is_async": "triclinium_core.retry.couchbase.strategy",
    "require_strategy": "triclinium_core.retry.couchbase.strategy",
}

if not TYPE_CHECKING:  # A type checker would take every misspelt name for one that this function finds.
    __getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)

__all__ = [
    "Abandoned",
    "AnyRetryStrategy",
    "AskStrategy",
    "AsyncRetryStrategy",
    "BestEffortRetryStrategy",
    "BreakerEvent",
    "BreakerState",
    "BreakerStatistics",
    "CircuitBreaker",
    "CircuitBreakerOptions",
    "CloseConnection",
    "Complete",
    "Dispatch",
    "DispatchFailed",
    "Dispatched",
    "ErrorMap",
    "ErrorMapEntry",
    "ErrorMapLoaded",
    "ErrorMapRetryStrategy",
    "ErrorMapStore",
    "Fail",
    "FastFailOnTerminalErrorRetryStrategy",
    "HandedOver",
    "Ignore",
    "KvResponse",
    "Load",
    "RefreshCollection",
    "RefreshTopology",
    "ReportRefusal",
    "ReportRetry",
    "RequestAction",
    "RequestAnnotation",
    "RequestEvent",
    "Response",
    "ResponseReceived",
    "RetryAction",
    "RetryAfter",
    "RetryMachine",
    "RetryReason",
    "RetryRequest",
    "RetryState",
    "RetryStrategy",
    "Service",
    "ServiceResponse",
    "SocketClosed",
    "StrategyAnswered",
    "TerminalStates",
    "WakeupReached",
    "is_async",
    "require_strategy",
]
